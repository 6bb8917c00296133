"""One connection: bytes that wait to be sent, and whether it is read.

Nothing here waits: what the kernel does not take stays in the queue, whose length the engine knows
and limits (``StreamSent``), and what the engine does not want stays in the kernel, which tells the
neighbor.
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


class TcpStream:
    """A connection that is being opened, is open, or (``leaving``) is being closed."""

    def __init__(self, number: StreamId, transport: Transport, sock: socket.socket) -> None:
        self.id, self.transport, self.sock = number, transport, sock
        self.connecting = not number.passive
        self.leaving = False
        self._queue: deque[memoryview] = deque()
        self._wanted, self._blocked = True, False
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
