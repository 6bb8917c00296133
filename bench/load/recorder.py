"""Recording of a fabric over minutes: weights in the kernels, load on the links, flooding.

A thread periodically reads the shares of all next hops toward the leaves' prefixes in every leaf's
kernel, the root queues of all ports between routers, the number of next-hop group rewrites, and
from one daemon the sequence numbers of the TE LSAs, which count originations.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from fared.core.units import BytesPerSecond
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.expected import VETH_RATE
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView, Queue, shares
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.workloads.bounds import kernel_rates
from fared.management.api.client import ControlClient

_TE_LINK = "te-link"

Member = tuple[str, str, str]
"""A leaf, the prefix of another leaf, and a port of the first leaf."""
LinkEnd = tuple[str, str]
"""A router and one of its ports."""


@dataclass(frozen=True)
class Moment:
    """One reading, ``at`` seconds since the first.

    ``shares``: as programmed; ``offered``: the load of each port since the previous reading,
    drops included, as a part of its rate; ``rewrites``: next-hop objects that each router wrote
    in that time; ``sequences``: the sequence number of each TE LSA, by router and opaque id.
    """

    at: float
    shares: dict[Member, float]
    offered: dict[LinkEnd, float]
    rewrites: dict[str, int]
    sequences: dict[tuple[str, str], int] = field(repr=False)


class Recorder:
    """Reads a fabric until the context ends. ``packet``: bytes on the wire of a dropped packet."""

    def __init__(self, fabric: Fabric, interval: float = 1.0, packet: int = 1514) -> None:
        self._fabric = fabric
        self._interval = interval
        self._packet = packet
        self._rate = kernel_rates(fabric)
        # The thread needs its own views: those of the fabric belong to another thread.
        self._views = {
            router.name: KernelView(fabric.node(router.name).netns)
            for router in fabric.plan.routers
        }
        self._prefixes = {
            leaf.name: [
                str(prefix)
                for other in fabric.plan.leaves
                if other is not leaf
                for prefix in other.host_prefixes
            ]
            for leaf in fabric.plan.leaves
        }
        self._client = _control(fabric)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._queues: dict[LinkEnd, Queue] = {}
        self._read_at = time.monotonic()
        self._begun = self._read_at
        self._error: BaseException | None = None
        self.moments: list[Moment] = []

    def __enter__(self) -> Self:
        """Start the readings."""
        self._moment()
        self._begun = self._read_at
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the readings. Raises LabError if a reading failed."""
        self._stop.set()
        self._thread.join()
        for view in self._views.values():
            view.close()
        if self._error is not None and error is None:
            raise LabError(f"the recording failed: {self._error}") from self._error

    def _run(self) -> None:
        due = self._begun + self._interval
        try:
            while not self._stop.wait(max(0.0, due - time.monotonic())):
                self.moments.append(self._moment())
                due = max(due, time.monotonic() - self._interval) + self._interval
        except Exception as error:  # noqa: BLE001 - raised again by __exit__
            self._error = error

    def _moment(self) -> Moment:
        now = time.monotonic()
        queues = {
            (name, interface): queue
            for name, view in self._views.items()
            for interface, queue in view.queues().items()
        }
        offered = {
            (port.node, port.name): self._offered(queues, port, now - self._read_at)
            for node in self._fabric.plan.routers
            for port in node.fabric_ports
            if (port.node, port.name) in self._queues.keys() & queues.keys()
        }
        self._queues, self._read_at = queues, now
        return Moment(
            now - self._begun, self._shares(), offered, self._rewrites(), self._sequences()
        )

    def _offered(self, queues: dict[LinkEnd, Queue], port: PortAddresses, seconds: float) -> float:
        before, after = self._queues[port.node, port.name], queues[port.node, port.name]
        dropped = (after.dropped - before.dropped) * self._packet
        rate: BytesPerSecond = self._rate(port) or VETH_RATE
        return (after.sent_bytes - before.sent_bytes + dropped) / seconds / rate

    def _shares(self) -> dict[Member, float]:
        found = {}
        for leaf, prefixes in self._prefixes.items():
            routes = self._views[leaf].routes()
            for prefix in prefixes:
                for interface, share in shares(routes.get(prefix, ())).items():
                    found[leaf, prefix, interface] = share
        return found

    def _rewrites(self) -> dict[str, int]:
        counts = {}
        for name, view in self._views.items():
            view.read_events()
            counts[name] = view.writes.next_hops
            view.writes.reset()
        return counts

    def _sequences(self) -> dict[tuple[str, str], int]:
        if self._client is None:
            return {}
        document = self._client.request("show", "database", {"type": _TE_LINK})
        return {
            (lsa["adv_router"], lsa["id"]): lsa["seq"]
            for area in document["areas"]
            for lsa in area["lsas"]
        }


def _control(fabric: Fabric) -> ControlClient | None:
    """A client of the first daemon that has a control socket; None if none has."""
    for router in fabric.plan.routers:
        socket = fabric.node(router.name).directory / "fared.sock"
        if router.node.kind == "fared":
            return ControlClient(str(socket))
    return None


@dataclass(frozen=True)
class Behaviour:
    """Summary of a recording; shares in points (hundredths of all flows).

    ``worst_offered``: the highest load of any port as a part of its rate, averaged over time;
    ``overflow``: the load above the rates of the ports, as a part of the total load. ``deviation``
    and ``swing``: the largest among the members' shares. ``rewrites``: group rewrites per
    second of the busiest leaf. ``originations``: per second, of the most frequent LSA over the
    recording; ``burst``: the same, at most between two readings.
    """

    seconds: float
    worst_offered: float
    overflow: float
    deviation: float
    swing: float
    rewrites: float
    originations: float
    burst: float


def behaviour(moments: Sequence[Moment]) -> Behaviour:
    """Summarise two readings or more."""
    seconds = moments[-1].at - moments[0].at
    later = moments[1:]
    tracks: dict[Member, list[float]] = {}
    for member in {member for moment in moments for member in moment.shares}:
        tracks[member] = [moment.shares.get(member, 0.0) for moment in moments]
    above = sum(max(0.0, part - 1.0) for moment in later for part in moment.offered.values())
    total = sum(sum(moment.offered.values()) for moment in later)
    leaves = {leaf for leaf, _, _ in tracks}
    first, last = moments[0].sequences, moments[-1].sequences
    steps = [
        (number - before.sequences.get(lsa, number)) / max(1.0, after.at - before.at)
        for before, after in zip(moments, later, strict=False)
        for lsa, number in after.sequences.items()
    ]
    return Behaviour(
        seconds,
        statistics.fmean(max(moment.offered.values()) for moment in later),
        above / total if total else 0.0,
        100 * max(map(statistics.pstdev, tracks.values())),
        100 * max(max(track) - min(track) for track in tracks.values()),
        max(sum(moment.rewrites[leaf] for moment in later) for leaf in leaves) / seconds,
        max((last[lsa] - first.get(lsa, last[lsa]) for lsa in last), default=0) / seconds,
        max(steps, default=0.0),
    )
