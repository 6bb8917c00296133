"""Connections that never block, of whole messages: how processes speak to each other.

Messages are lines where people may look, frames where they may be long, and packets where each has
to wake its reader at once. What is received ends the connection if it is longer than permitted, and
so does what the peer does not read.
"""

from __future__ import annotations

import socket
import struct
from typing import Final

_PACKETS: Final = 256
"""Packets that are read at once."""
_MOST_PACKET: Final = 1 << 16
_LENGTH: Final = struct.Struct("!I")


class _StreamConnection:
    """A TCP or unix connection; ``closed`` once it has ended or its peer does not read.

    ``most``: bytes of a received message; ``most_queued``: bytes that may wait to be sent.
    """

    kind: Final = socket.SOCK_STREAM

    def __init__(self, sock: socket.socket, most: int, most_queued: int) -> None:
        sock.setblocking(False)
        self.sock, self.closed = sock, False
        self._most, self._most_queued = most, most_queued
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

    def _queue(self, *parts: bytes) -> bool:
        """Queue a message and send as much as possible; return True, since it waits here."""
        if len(self._unsent) + sum(map(len, parts)) > self._most_queued:
            self.closed = True
            return True
        for part in parts:
            self._unsent += part
        self.flush()
        return True

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


class LineConnection(_StreamConnection):
    """A connection of lines."""

    def __init__(self, sock: socket.socket, most: int, most_queued: int = 16 << 20) -> None:
        super().__init__(sock, most, most_queued)

    def send(self, line: bytes) -> bool:
        """Queue a line and send as much as possible."""
        return self._queue(line, b"\n")

    def messages(self) -> list[bytes]:
        """Read what is there; return whole lines."""
        if not self._receive(1 << 16):
            return []
        *found, rest = bytes(self._read).split(b"\n")
        self._read = bytearray(rest)
        if len(rest) > self._most:
            self.closed = True
        return [line for line in found if line]


class FrameConnection(_StreamConnection):
    """A connection of frames: a length of four bytes, and as many bytes."""

    def __init__(
        self, sock: socket.socket, most: int = 1 << 17, most_queued: int = 64 << 20
    ) -> None:
        super().__init__(sock, most, most_queued)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, frame: bytes) -> bool:
        """Queue a frame and send as much as possible."""
        return self._queue(_LENGTH.pack(len(frame)), frame)

    def messages(self) -> list[memoryview]:
        """Read what is there; return whole frames."""
        if not self._receive(1 << 18) or self._is_part():
            return []
        whole, at, found = memoryview(bytes(self._read)), 0, list[memoryview]()
        while len(whole) - at >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(whole, at)
            if size > self._most:
                self.closed = True
                break
            if len(whole) - at - _LENGTH.size < size:
                break
            at += _LENGTH.size
            found.append(whole[at : at + size])
            at += size
        del self._read[:at]
        return found

    def _is_part(self) -> bool:
        """Whether all that was read is a part of one frame: a long one is not copied each time."""
        known = len(self._read) - _LENGTH.size
        return known >= 0 and known < _LENGTH.unpack_from(self._read)[0] <= self._most


class PacketConnection:
    """A connection of packets (SOCK_SEQPACKET); nothing is queued here."""

    kind: Final = socket.SOCK_SEQPACKET
    blocked: Final = False

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock, self.closed = sock, False

    def flush(self) -> None:
        """Do nothing, as nothing waits."""

    def close(self) -> None:
        """Close the connection."""
        self.closed = True
        self.sock.close()

    def send(self, packet: bytes) -> bool:
        """Send a packet; return False if that must wait until the socket is writable."""
        try:
            self.sock.send(packet)
        except BlockingIOError:
            return False
        except OSError:
            return True  # the peer has ended: who reads is told
        return True

    def messages(self) -> list[bytes]:
        """Read what is there."""
        found: list[bytes] = []
        while len(found) < _PACKETS:
            try:
                data = self.sock.recv(_MOST_PACKET)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self.closed = True
                break
            found.append(data)
        return found
