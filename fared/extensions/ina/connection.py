"""A TCP or unix connection that never blocks: what is sent waits in a queue, up to a limit.

``LineConnection`` and ``FrameConnection`` cut what is read into lines and frames.
"""

from __future__ import annotations

import socket


class QueuedConnection:
    """One connection; ``closed`` once it has ended or its peer does not read.

    ``most_queued`` are bytes that may wait to be sent.
    """

    def __init__(self, sock: socket.socket, most_queued: int) -> None:
        sock.setblocking(False)
        self.sock, self.closed = sock, False
        self._most_queued = most_queued
        self._read = bytearray()
        """What was received and is not a whole message yet."""
        self._unsent = bytearray()

    @property
    def blocked(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._unsent)

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

    def _queue(self, *parts: bytes) -> None:
        """Queue a message and send as much as possible."""
        if len(self._unsent) + sum(map(len, parts)) > self._most_queued:
            self.closed = True
            return
        for part in parts:
            self._unsent += part
        self.flush()

    def _receive(self, most: int) -> bool:
        """Read at most so many bytes; return whether any came."""
        try:
            data = self.sock.recv(most)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        self._read += data
        self.closed = self.closed or not data
        return bool(data)
