"""Traffic for the virtual clock: fluid demands that follow the weights in each kernel.

A demand is a rate from a router toward a prefix; every kernel on the path splits it by its own
weights, without packets or flows. Each measuring period the load of each port, averaged over the
period, is passed to its router, as the daemon does with the kernel's counters.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from fared.protocols.igp.events import LoadsMeasured

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fared.core.ids import Prefix
    from fared.extensions.sim.fabric import Fabric
    from fared.extensions.sim.network import Node

MAX_HOPS = 16
PortKey = tuple[str, int]
"""Node and ifindex: the sending end of one direction of a link."""
Demands = dict[tuple[str, "Prefix"], float]
"""Bytes/s from a node toward a prefix."""


class OnOff(msgspec.Struct, frozen=True):
    """When demands send: the first ``duty`` of every ``period`` seconds; by default always."""

    period: float = math.inf
    duty: float = 1.0

    def on(self, at: float) -> bool:
        """Whether demands send at a time."""
        return math.isinf(self.period) or at % self.period < self.duty * self.period

    def part(self, begin: float, end: float) -> float:
        """Return the part (0..1) of an interval in which demands send."""
        if math.isinf(self.period):
            return 1.0
        return (self._sent(end) - self._sent(begin)) / (end - begin)

    def _sent(self, at: float) -> float:
        whole, rest = divmod(at, self.period)
        length = self.duty * self.period
        return whole * length + min(rest, length)


class Sample(msgspec.Struct):
    """One measuring period. Utilization is load over capacity, of demands while they send.

    ``overflow`` is the part of all traffic above the capacity of a link on its path, ``rewrites``
    the number of next-hop groups changed in all kernels since the last sample.
    """

    at: float
    worst: float
    overflow: float
    rewrites: dict[str, int] = msgspec.field(default_factory=dict)


class Traffic:
    """Demands (bytes/s) on a fabric, and the resulting loads.

    ``demands``: from a node toward a prefix; ``background``: a constant load on the link from one
    node toward another only.
    """

    def __init__(
        self,
        fabric: Fabric,
        demands: Demands,
        *,
        background: dict[tuple[str, str], float] | None = None,
        pattern: OnOff | None = None,
        period: float = 1.0,
    ) -> None:
        self.fabric = fabric
        self.demands = demands
        self.pattern = pattern or OnOff()
        self.period = period
        self.samples: list[Sample] = []
        self._background: dict[PortKey, float] = defaultdict(float)
        for (tail, head), rate in (background or {}).items():
            self._background[tail, fabric.network.find_port(tail, head).ifindex] += rate
        self._groups: dict[str, dict[int, object]] = {}
        self._seen: dict[str, int] = {}
        self._ways: dict[str, _Ways] = {}
        self._carried: dict[PortKey, float] = {}
        self._carried_at = -1
        self._running = False
        self._began = 0.0

    def start(self) -> None:
        """Send and measure from now on, every period.

        The pattern begins now, too: with periods of two measurements a measurement has all or no
        traffic, the worst case for adaptation.
        """
        self._running = True
        self._began = self.fabric.network.now
        self._again()

    def stop(self) -> None:
        """Stop sending and measuring."""
        self._running = False

    def _again(self) -> None:
        network = self.fabric.network
        network.at(network.now + self.period, self._measure)

    def _measure(self) -> None:
        """Give every router the load of its ports in the last period, and note a sample."""
        if not self._running:
            return
        now = self.fabric.network.now
        carried = self.carried()
        since = now - self._began
        part = self.pattern.part(since - self.period, since)
        for name, node in self.fabric.network.nodes.items():
            if node.router is None:
                continue
            loads: dict[int, float | None] = {
                port.ifindex: min(load, port.capacity or load)
                for port in node.ports.values()
                if port.far and port.up
                for key in ((name, port.ifindex),)
                for load in (carried.get(key, 0.0) * part + self._background.get(key, 0.0),)
            }
            self.fabric.network.input(name, LoadsMeasured(loads))
        self.samples.append(self._sample(now, carried))
        self._again()

    def carried(self) -> dict[PortKey, float]:
        """Return the load of each port while demands send, bytes/s, by the kernels' weights.

        It is computed again only after a kernel was written, or a link failed.
        """
        now = sum(node.kernel.version for node in self.fabric.network.nodes.values())
        if now != self._carried_at:
            self._carried, self._carried_at = self._carry(), now
        return self._carried

    def _carry(self) -> dict[PortKey, float]:
        load: dict[PortKey, float] = defaultdict(float)
        arriving: dict[tuple[str, Prefix], float] = dict(self.demands)
        for _ in range(MAX_HOPS):
            following: dict[tuple[str, Prefix], float] = defaultdict(float)
            for (name, prefix), rate in arriving.items():
                for port, far, share in self.ways(name, prefix):
                    load[port] += rate * share
                    following[far, prefix] += rate * share
            arriving = following
            if not arriving:
                return dict(load)
        raise RuntimeError("traffic loops")

    def ways(self, name: str, prefix: Prefix) -> list[tuple[PortKey, str, float]]:
        """Return the ports from which a kernel sends to a prefix, with far node and share."""
        node = self.fabric.network.nodes[name]
        known = self._ways.get(name)
        if known is None or known.version != node.kernel.version:
            known = self._ways[name] = _Ways(node.kernel.version)
        target = node.kernel.state.routes.get(prefix)
        if target is None:
            return []
        if target not in known.by_target:
            known.by_target[target] = list(_ways(node, target))
        return known.by_target[target]

    def utilisation(self, carried: dict[PortKey, float] | None = None) -> dict[PortKey, float]:
        """Return load over capacity of each port in use, while demands send; may exceed 1."""
        found = self.carried() if carried is None else carried
        nodes = self.fabric.network.nodes
        return {
            (name, ifindex): (
                found.get((name, ifindex), 0.0) + self._background.get((name, ifindex), 0.0)
            )
            / capacity
            for name, ifindex in {*found, *self._background}
            if (capacity := nodes[name].ports[ifindex].capacity)
        }

    def _sample(self, now: float, carried: dict[PortKey, float]) -> Sample:
        used = self.utilisation(carried)
        nodes = self.fabric.network.nodes
        above = sum(
            (value - 1.0) * (nodes[name].ports[ifindex].capacity or 0.0)
            for (name, ifindex), value in used.items()
            if value > 1.0
        )
        total = sum(self.demands.values())
        rewrites = {name: self._rewritten(node) for name, node in nodes.items()}
        return Sample(now, max(used.values(), default=0.0), above / total if total else 0, rewrites)

    def _rewritten(self, node: Node) -> int:
        """Return the number of a kernel's groups whose weights changed since the last sample."""
        before = self._groups.get(node.name, {})
        if self._seen.get(node.name) == node.kernel.version:
            return 0
        self._seen[node.name] = node.kernel.version
        now: dict[int, object] = dict(node.kernel.state.groups)
        self._groups[node.name] = now
        return sum(1 for number, members in now.items() if before.get(number) != members)


class _Ways(msgspec.Struct):
    """Contents of one kernel, cached by route target (next hop or group) for one version."""

    version: int
    by_target: dict[int, list[tuple[PortKey, str, float]]] = msgspec.field(default_factory=dict)


def _ways(node: Node, target: int) -> Iterable[tuple[PortKey, str, float]]:
    state = node.kernel.state
    members = state.groups.get(target)
    weights = [(target, 1)] if members is None else [tuple(member) for member in members]
    total = sum(weight for _, weight in weights)
    for nexthop, weight in weights:
        ifindex, _, gateway, _ = state.nexthops[nexthop]
        if not ifindex or not node.ports[ifindex].up:
            continue
        port = node.ports[ifindex]
        for far in port.far:
            if len(port.far) == 1 or gateway in (far.address, far.link_local):
                yield (node.name, ifindex), far.node, weight / total


def all_to_all(fabric: Fabric, rate: float, leaves: Iterable[str] = ()) -> Demands:
    """Return demands: every leaf of a job (default: all) sends ``rate``, split over the others."""
    job = tuple(leaves) or tuple(fabric.leaf_prefixes)
    each = rate / (len(job) - 1)
    return {
        (source, fabric.leaf_prefixes[leaf]): each
        for source in job
        for leaf in job
        if leaf != source
    }


def ring(fabric: Fabric, rate: float, leaves: Iterable[str] = ()) -> Demands:
    """Return demands: every leaf of a job (default: all) sends ``rate`` bytes/s to the next one."""
    job = tuple(leaves) or tuple(fabric.leaf_prefixes)
    return {
        (source, fabric.leaf_prefixes[leaf]): rate
        for source, leaf in zip(job, (*job[1:], job[0]), strict=True)
    }
