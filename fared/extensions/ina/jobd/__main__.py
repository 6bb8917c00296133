"""``python -m MODULE FD``: ``FD`` is the socket to the daemon, which alone starts it."""

from __future__ import annotations

import asyncio

import msgspec

from fared.extensions.ina.control.exchange import MAX_SIZE, NAME, Begin, FromJobs, ToJobs
from fared.extensions.ina.jobd.service import JobService
from fared.runtime.child import give_way, serve_daemon
from fared.runtime.connection import FrameConnection


def main() -> None:
    """Run until the daemon ends or closes the socket."""
    sock = serve_daemon(NAME)
    give_way()
    asyncio.run(_serve(FrameConnection(sock, MAX_SIZE, MAX_SIZE)))


async def _serve(daemon: FrameConnection) -> None:
    """Process what the daemon says until it has nothing more to say. Raises MsgspecError."""
    loop = asyncio.get_running_loop()
    end = loop.create_future()
    encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(ToJobs).decode
    service: JobService | None = None

    def tell(message: FromJobs) -> None:
        daemon.send(encode(message))
        write()

    def write() -> None:
        """Send what waits, now and whenever the daemon has read some of it."""
        daemon.flush()
        if daemon.blocked and not daemon.closed:
            loop.add_writer(daemon.sock, write)
        else:
            loop.remove_writer(daemon.sock)

    def read() -> None:
        nonlocal service
        try:
            for data in daemon.messages():
                message = decode(data)
                if service is not None:
                    service.take(message)
                else:
                    assert isinstance(message, Begin)
                    service = JobService(message, tell)
        except Exception as error:  # noqa: BLE001 - of another version: the daemon starts another
            end.set_exception(error)
        if daemon.closed or end.done():
            loop.remove_reader(daemon.sock)
            if not end.done():
                end.set_result(None)

    loop.add_reader(daemon.sock, read)
    await end


if __name__ == "__main__":
    main()
