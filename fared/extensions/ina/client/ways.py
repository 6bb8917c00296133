"""The sockets of a worker: packets to routers over UDP, results by BIER, a ring without trees."""

from __future__ import annotations

import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable

from fared.extensions.ina.client.bier_sockets import BierSockets
from fared.extensions.ina.client.ring import WorkerRing
from fared.extensions.ina.messages import JobEpoch
from fared.extensions.ina.plan.model import Vertex
from fared.extensions.ina.slots.packet import Values
from fared.extensions.ina.slots.setup import JobSetup
from fared.extensions.ina.trains import Addresses, TrainSocket

_AT_ONCE = 64
_BUFFER = 4 << 20

Ready = Callable[[selectors.BaseSelector], None]


class PacketWays:
    """How packets come and go, from ``open`` to ``close``. Packets of other senders are counted."""

    def __init__(self, counters: Counter[str]) -> None:
        self.ring: WorkerRing | None = None
        """From the first epoch without trees on."""
        self._counters = counters
        self._udp: socket.socket | None = None
        self._trains: TrainSocket | None = None
        self._by_bier: BierSockets | None = None
        self._senders: set[tuple[str, int]] = set()
        self._parents: dict[Vertex, Addresses] = {}
        """The routers to which packets go; none in an epoch without trees."""

    def open(self, pair: tuple[str, int]) -> None:
        """Open the UDP socket at an address and port. Raises OSError."""
        self._udp = _open_udp(pair)
        self._trains = TrainSocket(self._udp, self._counters)

    def begin(self, job: JobEpoch, bfr_id: int) -> JobSetup:
        """Return the trees of an epoch, or the chains of a ring. Raises OSError."""
        self._open_bier(job, bfr_id)
        routers = {vertex: member.pair for vertex, member in job.members.items() if vertex >= 0}
        self._senders = set(routers.values())
        self._parents = {vertex: (pair,) for vertex, pair in routers.items()}
        if job.setup.trees:
            if self.ring is not None:
                self.ring.rest()
            return job.setup
        if self.ring is None:
            self.ring = WorkerRing(job, bfr_id, self._counters)
        return self.ring.begin(job)

    def _open_bier(self, job: JobEpoch, bfr_id: int) -> None:
        """Open the sockets of results by BIER once; without them results are repeated."""
        if job.bier is None or self._by_bier is not None:
            return
        try:
            self._by_bier = BierSockets(job.members[-bfr_id].address, job.bier.bfr_ids[bfr_id])
        except OSError:
            self._counters["bier-not-received"] += 1

    def watch(self, selector: selectors.BaseSelector, packets: Ready, by_bier: Ready) -> None:
        """Let a selector call ``packets`` and ``by_bier``, but for the ring."""
        if self._udp is not None and self._udp not in selector.get_map():
            selector.register(self._udp, selectors.EVENT_READ, packets)
        for sock in self._by_bier.all if self._by_bier is not None else ():
            if sock not in selector.get_map():
                selector.register(sock, selectors.EVENT_READ, by_bier)

    def send(self, parent: Vertex, header: bytes, values: Values) -> None:
        """Send a packet; what cannot be sent is repeated."""
        address = self._parents.get(parent)
        if address is None:
            assert self.ring is not None
            self.ring.put(header + values.tobytes(), time.monotonic())
            return
        assert self._trains is not None
        self._trains.put(address, len(header) + values.nbytes, header, values.data)

    def flush(self) -> None:
        """Send what waits for more packets to the same router."""
        if self._trains is not None:
            self._trains.flush()

    def receive(self, take: Callable[[memoryview, int], None]) -> None:
        """Take trains of routers that have arrived, and the bytes of their packets."""

        def train(source: tuple[str, int], data: memoryview, step: int) -> None:
            if source not in self._senders:
                self._counters["address"] += 1
                return
            take(data, step)

        assert self._trains is not None
        self._trains.receive(train, _AT_ONCE)

    def receive_by_bier(self, take: Callable[[memoryview], None]) -> None:
        """Take the results that came by BIER."""
        assert self._by_bier is not None
        for source, data in self._by_bier.arrived():
            if source in self._senders:
                self._counters["bier"] += 1
                take(data)
            else:
                self._counters["address"] += 1

    def close(self) -> None:
        """Close all sockets."""
        for one in (self._udp, self._by_bier, self.ring):
            if one is not None:
                one.close()


def _open_udp(pair: tuple[str, int]) -> socket.socket:
    """Open the socket of packets. Raises OSError."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        sock.bind(pair)
    except OSError:
        sock.close()
        raise
    return sock
