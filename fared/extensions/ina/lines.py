"""Connections of JSON lines."""

from __future__ import annotations

import socket

from fared.extensions.ina.connection import QueuedConnection
from fared.extensions.ina.messages import MAX_LINE

_READ = 1 << 16
_MOST_QUEUED = 4 * MAX_LINE


class LineConnection(QueuedConnection):
    """A connection of lines of at most ``most`` bytes."""

    def __init__(self, sock: socket.socket, most: int = MAX_LINE) -> None:
        super().__init__(sock, _MOST_QUEUED)
        self._most = most

    def lines(self) -> list[bytes]:
        """Read what is there; return whole lines."""
        if not self._receive(_READ):
            return []
        *found, rest = bytes(self._read).split(b"\n")
        self._read = bytearray(rest)
        if len(rest) > self._most:
            self.closed = True
        return [line for line in found if line]

    def send(self, line: bytes) -> None:
        """Queue a line and send as much as possible."""
        self._queue(line, b"\n")
