"""One connection: bytes that wait to be sent, and whether it is read.

Nothing here waits: what the kernel does not take stays in the queue, whose length the engine knows
and limits (``StreamSent``), and what the engine does not want stays in the kernel, which tells the
neighbor.

A neighbor that sends the same bytes again and again, some seconds apart, only shows that it lives:
it is quiet. These bytes then wake nobody, any more do; they are read within a second, those of all
quiet neighbors together (``edge``).
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections import deque
from itertools import islice
from typing import Final

from fared.core.streams import StreamId, Transport
from fared.daemon.loop.streams.pump import READ, WRITE, Pump, Ready

_BUFFERS: Final = 64
"""Pieces that one call sends."""
_REPEATS: Final = 3
_SLOW: Final = 1.5
"""A neighbor is quiet after so many repetitions, so many seconds apart at least."""
_SHORT: Final = 64
"""Bytes of what is remembered, to be compared."""


class TcpStream:
    """A connection that is being opened, is open, or (``leaving``) is being closed."""

    def __init__(self, number: StreamId, transport: Transport, sock: socket.socket) -> None:
        self.id, self.transport, self.sock = number, transport, sock
        self.connecting = not number.passive
        self.leaving = False
        self._queue: deque[memoryview] = deque()
        self._wanted, self._blocked = True, False
        self._last, self._last_at, self._repeated = b"", 0.0, 0
        self.quiet = False
        self._pump: Pump | None = None
        self._events = 0

    def watch(self, pump: Pump, ready: Ready) -> None:
        """Have ``ready`` called when there is something to do."""
        self._pump, self._events = pump, self._interest
        pump.watch(self.sock, self._events, ready)

    @property
    def _interest(self) -> int:
        if self.connecting:
            return WRITE
        return (READ if self._wanted else 0) | (WRITE if self._blocked else 0)

    def _changed(self) -> None:
        if self._pump is not None and self._events != self._interest:
            self._events = self._interest
            self._pump.change(self.sock, self._events)

    @property
    def reads(self) -> bool:
        """Whether what comes is wanted."""
        return self._wanted

    def read_on(self, *, wanted: bool) -> None:
        """Read, or leave what comes in the kernel."""
        self._wanted = wanted
        self._changed()

    def opened(self) -> None:
        """The connection is there. Raises OSError if it is not."""
        error = self.error()
        if error.errno:
            raise error
        self.connecting = False
        self._changed()

    def error(self) -> OSError:
        """What the kernel says is wrong; number 0: nothing."""
        number = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        return OSError(number, os.strerror(number))

    def read(self, buffer: memoryview) -> bytes:
        """Read once; nothing: the neighbor has closed. Raises OSError, and BlockingIOError."""
        return bytes(buffer[: self.sock.recv_into(buffer)])

    def heard(self, data: bytes, now: float) -> None:
        """Notice whether the neighbor is quiet, by what was read."""
        if data == self._last and now - self._last_at >= _SLOW:
            self._repeated += 1
        else:
            self._repeated = 0
        self._last, self._last_at = data if len(data) <= _SHORT else b"", now
        quiet = self._repeated >= _REPEATS
        if quiet is not self.quiet:
            self.quiet = quiet
            with contextlib.suppress(OSError):  # then it wakes us, as others do
                least = len(data) + 1 if quiet else 1
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)

    def put(self, data: bytes) -> None:
        """Add bytes to send."""
        self._queue.append(memoryview(data))

    def write(self) -> int:
        """Send what the kernel takes; return how many bytes. Raises OSError."""
        sent = 0
        while self._queue and not self.connecting:
            try:
                count = self.sock.sendmsg(list(islice(self._queue, _BUFFERS)))
            except BlockingIOError:
                break
            sent += count
            while self._queue and count >= len(self._queue[0]):
                count -= len(self._queue.popleft())
            if count:
                self._queue[0] = self._queue[0][count:]
        self._blocked = bool(self._queue)
        if self.leaving and not self._queue:
            self.sock.shutdown(socket.SHUT_WR)
        self._changed()
        return sent

    def leave(self) -> None:
        """Send what waits, then the end; what comes is read, to be discarded. Raises OSError."""
        self.leaving = self._wanted = True
        self.write()

    def close(self) -> None:
        """Close the socket."""
        if self._pump is not None:
            self._pump.forget(self.sock)
            self._pump = None
        with contextlib.suppress(OSError):  # it is closed all the same
            self.sock.close()
