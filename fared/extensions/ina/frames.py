"""Connections of frames: a length of four bytes, and as many bytes."""

from __future__ import annotations

import socket
import struct

from fared.extensions.ina.connection import QueuedConnection

_READ = 1 << 18
_LENGTH = struct.Struct("!I")
_MOST_FRAME = 1 << 17
_MOST_QUEUED = 64 << 20


class FrameConnection(QueuedConnection):
    """A TCP connection of frames."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock, _MOST_QUEUED)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, frame: bytes) -> None:
        """Queue a frame and send as much as possible."""
        self._queue(_LENGTH.pack(len(frame)), frame)

    def frames(self) -> list[memoryview]:
        """Read what is there; return whole frames."""
        if not self._receive(_READ):
            return []
        whole, at, found = memoryview(bytes(self._read)), 0, list[memoryview]()
        while len(whole) - at >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(whole, at)
            if size > _MOST_FRAME:
                self.closed = True
                break
            if len(whole) - at - _LENGTH.size < size:
                break
            at += _LENGTH.size
            found.append(whole[at : at + size])
            at += size
        del self._read[:at]
        return found
