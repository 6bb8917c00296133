"""Waits for the sockets of streams, and has each of them processed in its turn.

The sockets are in an epoll instance of their own, which the loop watches. A turn takes each of them
once at most, and ends after ``_SLICE``: packets of other protocols, timers and the kernel do not
wait for a neighbor that has much to tell. Where routes are computed after each turn, it lasts as
long as that took: otherwise the last of many neighbors would wait for as many computations. The
kernel returns ready sockets one after the other, so that the next turn goes on where this one
ended.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable

READ, WRITE = select.EPOLLIN, select.EPOLLOUT
BROKEN = select.EPOLLERR | select.EPOLLHUP
_SLICE, _LONG_SLICE = 0.02, 0.1
"""Seconds of a turn, with the time of what follows from each socket but not from all together: at
least, and at most."""

Ready = Callable[[int], None]
"""Processes a socket; it gets those of READ, WRITE and BROKEN that apply."""


class Pump:
    """``flush`` is called at the end of each turn."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self._flush = flush
        self._loop = asyncio.get_running_loop()
        self._epoll: select.epoll | None = None
        self._ready: dict[int, Ready] = {}
        self._slice = _SLICE

    def watch(self, sock: socket.socket, events: int, ready: Ready) -> None:
        """Call ``ready`` when one of the events, or BROKEN, applies, again and again."""
        if self._epoll is None:
            self._epoll = select.epoll()
            self._loop.add_reader(self._epoll.fileno(), self.turn)
        self._epoll.register(sock.fileno(), events)
        self._ready[sock.fileno()] = ready

    def change(self, sock: socket.socket, events: int) -> None:
        """Wait for other events of a socket."""
        assert self._epoll is not None
        self._epoll.modify(sock.fileno(), events)

    def forget(self, sock: socket.socket) -> None:
        """Wait for a socket no more, before it is closed."""
        if self._ready.pop(sock.fileno(), None) is not None and self._epoll is not None:
            self._epoll.unregister(sock.fileno())

    def turn(self, most: float | None = None) -> None:
        """Process sockets that are ready, for so many seconds at most."""
        done: set[int] = set()
        until = self._loop.time() + (self._slice if most is None else most)
        try:
            while self._epoll is not None and (found := self._epoll.poll(0, 1)):
                ((descriptor, events),) = found
                ready = self._ready.get(descriptor)
                if descriptor in done or ready is None:
                    break  # it is the turn of the first again
                done.add(descriptor)
                ready(events)
                if self._loop.time() >= until:
                    break
        finally:
            began = self._loop.time()
            self._flush()
            self._slice = min(max(_SLICE, self._loop.time() - began), _LONG_SLICE)

    def close(self) -> None:
        """Wait for nothing any more."""
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None
            self._ready.clear()
