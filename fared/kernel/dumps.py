"""Reads kernel tables in slices, so that the event loop runs in between.

The kernel produces the next slice of a dump when the last one has been received, so receiving does
not block; decoding ten thousand routes takes the time, about a millisecond for each slice.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable

from fared.kernel import netlink
from fared.kernel.errors import NetlinkError
from fared.kernel.netlink import (
    HEADER,
    NLM_F_DUMP,
    NLM_F_DUMP_INTR,
    NLM_F_REQUEST,
    NLMSG_DONE,
    NLMSG_ERROR,
    failure_in,
    messages,
    raise_if_ended_badly,
)

_SLICE = 64 << 10
"""Buffer for one slice: the kernel sends 32 KB at most, some 500 routes."""
_TIMEOUT = 1.0

Take = Callable[[int, bytes], None]
"""Receives message type and body of one entry."""


class SlicedDump:
    """Dumps tables of the namespace it was created in, without blocking the loop for long."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._sequence = 0
        self._ready()

    def close(self) -> None:
        """Close the socket; the next dump opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def dump(self, kind: int, body: bytes, take: Take) -> bool:
        """Pass every entry of a table to ``take``; return whether nothing changed meanwhile.

        Raises OSError; the next dump then uses a new socket.
        """
        try:
            return await self._dump(kind, body, take)
        except BaseException:  # also when cancelled: the kernel would continue this dump
            self.close()
            raise

    async def _dump(self, kind: int, body: bytes, take: Take) -> bool:
        """Pass each answer to ``take``, one packet in a turn; return whether all arrived."""
        sock = self._ready()
        self._sequence = wanted = (self._sequence + 1) & 0xFFFFFFFF
        flags = NLM_F_REQUEST | NLM_F_DUMP
        sock.send(HEADER.pack(16 + len(body), kind, flags, wanted, 0) + body)
        whole = True
        while True:
            received = await self._receive(sock)
            whole &= received is not None
            for answer, answer_flags, sequence, _, payload in messages(received or b""):
                if sequence != wanted:  # the rest of an earlier dump
                    continue
                whole &= not answer_flags & NLM_F_DUMP_INTR
                if answer == NLMSG_ERROR:
                    failure = failure_in(answer_flags, payload)
                    if failure is not None:
                        raise NetlinkError(*failure)
                elif answer == NLMSG_DONE:
                    raise_if_ended_badly(payload)
                    return whole
                else:
                    take(answer, payload)
            await asyncio.sleep(0)

    def _ready(self) -> socket.socket:
        """Return the socket, reopened if necessary. Raises OSError."""
        if self._socket is None:
            self._socket = netlink.open_socket()
            self._socket.setblocking(False)
        return self._socket

    async def _receive(self, sock: socket.socket) -> bytes | None:
        """Receive one slice; None where messages were lost. Raises OSError, also TimeoutError."""
        try:
            return sock.recv(_SLICE)
        except BlockingIOError:
            async with asyncio.timeout(_TIMEOUT):
                return await asyncio.get_running_loop().sock_recv(sock, _SLICE)
        except OSError as error:
            # ENOBUFS: the kernel dropped a slice; the dump continues and the socket stays usable.
            if error.errno != errno.ENOBUFS:
                raise
            return None
