"""The sockets of a ring: one connection to the next worker, one from the worker before.

A connection that breaks is opened again, since the slots repeat what is lost; a worker that has
ended is told by its router. Only the worker before may connect, from the address of its rank.
"""

from __future__ import annotations

import selectors
import socket
from collections import Counter, deque
from collections.abc import Callable

from fared.extensions.ina.messages import JobEpoch
from fared.extensions.ina.slots.ring import (
    HELLO_INTERVAL,
    RingPlace,
    next_in_ring,
    previous_in_ring,
    ring_of,
)
from fared.extensions.ina.slots.setup import JobSetup
from fared.runtime.connection import FrameConnection

_RETRY = 0.2


class WorkerRing:
    """One worker's place in the ring, from its first epoch without trees to ``close``."""

    def __init__(self, job: JobEpoch, bfr_id: int, counters: Counter[str]) -> None:
        """Listen at the worker's address and port. Raises OSError."""
        self._counters, self._bfr_id = counters, bfr_id
        self._place = RingPlace(bfr_id, self)
        self._next, self._previous = _neighbors(job, bfr_id)
        self._listener = socket.create_server(job.members[-bfr_id].pair)
        self._listener.setblocking(False)
        self._out: FrameConnection | None = None
        self._connecting: socket.socket | None = None
        self._in: FrameConnection | None = None
        self._retry_at = self._hello_at = 0.0
        self._local: deque[bytes] = deque()
        self._watched: dict[socket.socket, int] = {}
        self._used = False
        """Whether the present epoch has no trees."""

    def rest(self) -> None:
        """An epoch with trees begins."""
        self._used = False

    def begin(self, job: JobEpoch) -> JobSetup:
        """Begin an epoch without trees; return its setup with chains."""
        next_, previous = _neighbors(job, self._bfr_id)
        if next_ != self._next:  # workers of an elastic job have changed
            self._next, self._out, self._connecting, self._retry_at = next_, None, None, 0.0
        if previous != self._previous:
            self._previous, self._in = previous, None
        chains = ring_of(job.setup)
        self._place.install(chains)
        self._used = True
        return chains

    @property
    def counters(self) -> Counter[str]:
        """The counters of packets that were summed here."""
        return self._place.aggregator.counters

    # -- packets --------------------------------------------------------------------------------

    def put(self, packet: bytes, now: float) -> None:
        """Take a packet of this worker."""
        self._place.put(packet, now)

    def received(self) -> deque[bytes]:
        """Return packets for this worker, which takes them out."""
        return self._local

    def forward(self, frame: bytes) -> None:
        """Send a frame to the next worker, if there is a connection."""
        if self._out is None:
            self._counters["not-sent"] += 1
        else:
            self._out.send(frame)

    def backward(self, frame: bytes) -> None:
        """Send a frame to the worker before, if it has connected."""
        if self._in is not None:
            self._in.send(frame)

    def deliver(self, packet: bytes) -> None:
        """Keep a packet for this worker."""
        self._local.append(packet)

    # -- sockets --------------------------------------------------------------------------------

    def deadline(self) -> float | None:
        """Return when ``tick`` has something to do."""
        unconnected = self._out is None and self._connecting is None
        dues = [self._hello_at] * self._used + [self._retry_at] * unconnected
        return min(dues, default=None)

    def tick(self, now: float) -> None:
        """Connect to the next worker if there is no connection; show that this one runs."""
        if self._used and now >= self._hello_at:
            self._hello_at = now + HELLO_INTERVAL
            self._place.tick(now)
        if self._out is not None or self._connecting is not None or now < self._retry_at:
            return
        self._retry_at = now + _RETRY
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            # The next worker knows this one by its address.
            sock.bind((self._listener.getsockname()[0], 0))
            sock.connect(self._next)
        except BlockingIOError:
            pass
        except OSError:
            sock.close()
            return
        self._connecting = sock

    def watch(
        self, selector: selectors.BaseSelector, ready: Callable[[selectors.BaseSelector], None]
    ) -> None:
        """Let the selector know the sockets, which may be new ones; ``ready`` calls ``serve``."""
        wanted = {self._listener: selectors.EVENT_READ}
        if self._connecting is not None:
            wanted[self._connecting] = selectors.EVENT_WRITE
        for connection in (self._out, self._in):
            if connection is not None:
                writes = selectors.EVENT_WRITE if connection.blocked else 0
                wanted[connection.sock] = selectors.EVENT_READ | writes
        for sock in [sock for sock in self._watched if sock not in wanted]:
            selector.unregister(sock)
            sock.close()
            del self._watched[sock]
        for sock, events in wanted.items():
            if sock not in self._watched:
                selector.register(sock, events, ready)
            elif self._watched[sock] != events:
                selector.modify(sock, events, ready)
            self._watched[sock] = events

    def serve(self, now: float) -> None:
        """Accept, connect, read and write what is ready. ``watch`` closes what has ended."""
        self._accept()
        if self._connecting is not None:
            self._connected(self._connecting)
        if self._out is not None:
            self._out.flush()
            for frame in self._out.messages():
                self._place.take_back(frame)
            if self._out.closed:
                self._out, self._retry_at = None, now + _RETRY
        if self._in is not None:
            self._in.flush()
            for frame in self._in.messages():
                self._place.take(frame, now)
            if self._in.closed:
                self._in = None

    def _accept(self) -> None:
        try:
            sock, address = self._listener.accept()
        except OSError:
            return
        if address[0] != self._previous:
            self._counters["address"] += 1
            sock.close()
            return
        self._in = FrameConnection(sock)

    def _connected(self, sock: socket.socket) -> None:
        try:
            sock.getpeername()
        except OSError:
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self._connecting = None
            return
        self._connecting = None
        self._out = FrameConnection(sock)

    def close(self) -> None:
        """Close all sockets, after the thread has ended."""
        for sock in (self._listener, *self._watched):
            sock.close()


def _neighbors(job: JobEpoch, bfr_id: int) -> tuple[tuple[str, int], str]:
    """Return where the next worker listens, and the address of the one before."""
    after, before = next_in_ring(job.setup, bfr_id), previous_in_ring(job.setup, bfr_id)
    return job.members[-after].pair, job.members[-before].address
