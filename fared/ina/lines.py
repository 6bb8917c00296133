"""Connections of JSON lines that never block: what is read is cut into lines, writes are queued."""

from __future__ import annotations

import socket

from fared.ina.messages import MAX_LINE

_READ = 1 << 16
_MOST_QUEUED = 4 * MAX_LINE


class LineConnection:
    """One connection; ``closed`` once it has ended or its peer does not read."""

    def __init__(self, sock: socket.socket, most: int = MAX_LINE) -> None:
        sock.setblocking(False)
        self.sock, self.closed = sock, False
        self._most = most
        self._read = bytearray()
        self._unsent = bytearray()

    @property
    def blocked(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._unsent)

    def lines(self) -> list[bytes]:
        """Read what is there; return whole lines."""
        try:
            data = self.sock.recv(_READ)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.closed = True
        self._read += data
        *found, rest = bytes(self._read).split(b"\n")
        self._read = bytearray(rest)
        if len(rest) > self._most:
            self.closed = True
        return [line for line in found if line]

    def send(self, line: bytes) -> None:
        """Queue a line and send as much as possible."""
        if len(self._unsent) + len(line) > _MOST_QUEUED:
            self.closed = True
            return
        self._unsent += line + b"\n"
        self.flush()

    def flush(self) -> None:
        """Send what waits."""
        try:
            sent = self.sock.send(self._unsent)
        except BlockingIOError:
            return
        except OSError:
            self.closed = True
            return
        del self._unsent[:sent]

    def close(self) -> None:
        """Close the connection."""
        self.closed = True
        self.sock.close()
