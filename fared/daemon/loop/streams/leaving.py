"""Streams that an engine has closed, until the neighbor has read what was sent before.

Their number and time are limited. What the neighbor still sends is discarded: if a socket is closed
with bytes unread, the kernel resets the connection, and the neighbor may lose the farewell.
"""

from __future__ import annotations

import asyncio
from typing import Final

from fared.daemon.loop.streams.stream import TcpStream

_WITHIN: Final = 2.0
"""Seconds for the neighbor to read, and to close."""
_MOST: Final = 256


class LeavingStreams:
    """Each is closed by the neighbor, or by the time, or by too many others."""

    def __init__(self, buffer: memoryview) -> None:
        self._buffer = buffer
        self._loop = asyncio.get_running_loop()
        self._streams: dict[TcpStream, asyncio.TimerHandle] = {}

    def add(self, stream: TcpStream) -> None:
        """Send the last bytes of a stream, and close it later."""
        if len(self._streams) >= _MOST:
            self._end(next(iter(self._streams)))
        self._streams[stream] = self._loop.call_later(_WITHIN, self._end, stream)
        try:
            stream.leave()
        except OSError:  # it is gone already
            self._end(stream)

    def ready(self, stream: TcpStream) -> None:
        """Send what is left, and see whether the neighbor has closed."""
        try:
            stream.write()
            if stream.read(self._buffer):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._end(stream)

    def _end(self, stream: TcpStream) -> None:
        timer = self._streams.pop(stream, None)
        if timer is not None:
            timer.cancel()
        stream.close()

    def close(self) -> None:
        """Close all of them now."""
        for stream in list(self._streams):
            self._end(stream)
