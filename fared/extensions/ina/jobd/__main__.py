"""``python -m MODULE FD``: ``FD`` is the socket to the daemon, which alone starts it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import struct
import sys

import msgspec

from fared.extensions.ina.control.exchange import NAME, Begin, FromJobs, ToJobs
from fared.extensions.ina.jobd.service import JobService
from fared.runtime.children import end_with_parent, set_name

_SIZE = struct.Struct("!I")
_NICE = 5


def main() -> None:
    """Run until the daemon ends or closes the socket."""
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit(f"{NAME}: the fared daemon starts this program")
    end_with_parent()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)  # a service manager signals all processes
    set_name(NAME)
    with contextlib.suppress(OSError):
        os.nice(_NICE)
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        asyncio.run(_serve(socket.socket(fileno=int(sys.argv[1]))))


async def _serve(sock: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=sock)
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(ToJobs).decode

    def tell(message: FromJobs) -> None:
        text = encode(message)
        writer.write(_SIZE.pack(len(text)) + text)

    async def read() -> ToJobs:
        (size,) = _SIZE.unpack(await reader.readexactly(_SIZE.size))
        found: ToJobs = decode(await reader.readexactly(size))
        return found

    first = await read()
    assert isinstance(first, Begin)
    service = JobService(first, tell)
    while True:
        service.take(await read())


if __name__ == "__main__":
    main()
