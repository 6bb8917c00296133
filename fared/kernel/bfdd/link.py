"""The socket to the daemon: one message a packet, never blocking.

If the daemon does not read, changes of a session are merged into the last one, and other messages
are dropped, so that the queue never has more entries than there are sessions.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import msgspec

from fared.protocols.bfd.messages import Answer, Request, SessionKey, StateChange
from fared.runtime.connection import PacketConnection


class DaemonLink:
    """Encodes and sends answers, reads and decodes requests."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.dropped = 0
        self._connection = PacketConnection(sock)
        self._waiting: dict[SessionKey, StateChange] = {}
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Request).decode

    @property
    def blocked(self) -> bool:
        """Whether messages wait for the socket to become writable."""
        return bool(self._waiting)

    def send(self, answer: Answer) -> None:
        """Send a message, or keep a change of a session until that is possible."""
        if not self.blocked and self._try(answer):
            return
        if isinstance(answer, StateChange):
            self._waiting.pop(answer.key, None)
            self._waiting[answer.key] = answer
        else:
            self.dropped += 1

    def flush(self) -> None:
        """Send what waits: the socket is writable."""
        while self._waiting:
            key = next(iter(self._waiting))
            if not self._try(self._waiting[key]):
                return
            del self._waiting[key]

    def _try(self, answer: Answer) -> bool:
        return self._connection.send(self._encode(answer))

    def requests(self) -> Iterator[Request | None]:
        """Yield the requests that wait; None: one is of another version."""
        for data in self._connection.messages():
            try:
                yield self._decode(data)
            except (msgspec.DecodeError, msgspec.ValidationError):
                yield None

    @property
    def closed(self) -> bool:
        """Whether the daemon has ended."""
        return self._connection.closed
