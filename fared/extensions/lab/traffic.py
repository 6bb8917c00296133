"""Traffic between two hosts or GPUs, and its distribution over paths.

Many short UDP flows, each with a distinct five-tuple, are sent from one host to another; the
counters of each uplink of the sender's leaf are compared with the weights in that leaf's kernel.
Of flows with several packets, the report shows in what order they arrived.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import Hop, InterfaceCounters, shares
from fared.extensions.lab.packet_order import PacketOrder
from fared.extensions.lab.ranks import Rank, rank_of
from fared.extensions.lab.udp import (
    LEAST_PAYLOAD,
    MOST_FLOWS,
    MOST_PAYLOAD,
    PAYLOAD,
    TICK,
    Stream,
    send,
    sinks,
)

FORMAT = "fared-traffic/1"
_DRAIN_DEADLINE = 2.0

DEFAULT_FLOWS = 20_000
DEFAULT_RATE = 25_000


@dataclass(frozen=True)
class Uplink:
    """One uplink: its weight in the kernel, its expected share, and its traffic."""

    interface: str
    gateway: str | None
    weight: int
    expected: float
    packets: int
    measured: float


@dataclass(frozen=True)
class TrafficReport:
    """The distribution of flows over the uplinks of the sender's leaf.

    ``order``: of the packets at the receiver, None if every flow has only one.
    """

    source: str
    destination: str
    leaf: str
    prefix: str
    flows: int
    sent: int
    delivered: int
    seconds: float
    uplinks: tuple[Uplink, ...]
    order: PacketOrder | None = None

    @property
    def worst_error(self) -> float:
        """The largest difference between measured and expected share, 0 to 1."""
        return max((abs(up.measured - up.expected) for up in self.uplinks), default=1.0)

    def as_json(self) -> str:
        """The report as one JSON document, format ``fared-traffic/1``."""
        return json.dumps({"format": FORMAT, **asdict(self)})


def measure(
    fabric: Fabric,
    source: str,
    destination: str,
    *,
    flows: int = DEFAULT_FLOWS,
    packets_per_flow: int = 1,
    rate: int = DEFAULT_RATE,
    payload: int = PAYLOAD,
    ipv6: bool = False,
) -> TrafficReport:
    """Send the flows and report each uplink's share.

    ``rate`` is packets a second; the default is far below the rate of slow lab links, so that drops
    do not distort shares. Raises LabError if a host is unknown or there is no route.
    """
    _check(flows, packets_per_flow, rate, payload)
    near, far = _ends(fabric, source, destination)
    view, prefix = fabric.view(near.leaf), str(far.prefix(ipv6=ipv6))
    hops = view.hops(prefix)
    if not hops:
        raise LabError(f"{near.leaf} has no route to {prefix}")
    sent = flows * packets_per_flow
    before, before_far = view.counters(), _received(fabric, far)
    begun = time.monotonic()
    ordered = packets_per_flow > 1
    origin, target = near.address(ipv6=ipv6), far.address(ipv6=ipv6)
    with sinks(fabric.node(far.host), target, flows if ordered else 0) as arrivals:
        stream, idle = Stream(flows, packets_per_flow, rate, payload), arrivals.read
        send(fabric.node(near.host), target, stream, idle if ordered else None, source=origin)
        seconds = time.monotonic() - begun
        _drain(fabric, far, before_far + sent)
        arrivals.read()
    uplinks = _uplinks(hops, before, view.counters())
    delivered = min(sent, _received(fabric, far) - before_far)
    return TrafficReport(
        near.name,
        far.name,
        near.leaf,
        prefix,
        flows,
        sent,
        delivered,
        seconds,
        uplinks,
        arrivals.order() if ordered else None,
    )


def _ends(fabric: Fabric, source: str, destination: str) -> tuple[Rank, Rank]:
    """Return sender and receiver. Raises LabError if nothing between them crosses the fabric."""
    near, far = rank_of(fabric.plan, source), rank_of(fabric.plan, destination)
    if near.host == far.host:
        raise LabError(f"{source} and {destination} are in the same server, {near.host}")
    if near.leaf == far.leaf:
        raise LabError(f"{source} and {destination} are on the same router, {near.leaf}")
    return near, far


def _uplinks(
    hops: tuple[Hop, ...],
    before: Mapping[str, InterfaceCounters],
    after: Mapping[str, InterfaceCounters],
) -> tuple[Uplink, ...]:
    """Return what each next hop got between two readings of the counters."""
    names = [hop.interface for hop in hops]
    packets = {name: after[name].sent_packets - before[name].sent_packets for name in names}
    total = sum(packets.values()) or 1
    wanted = shares(hops)
    return tuple(
        Uplink(*hop, wanted[hop.interface], packets[hop.interface], packets[hop.interface] / total)
        for hop in hops
    )


def _check(flows: int, packets_per_flow: int, rate: int, payload: int) -> None:
    for name, value, least, most in (
        ("flows", flows, 1, MOST_FLOWS),
        ("packets of a flow", packets_per_flow, 1, None),
        ("packets a second", rate, 1, None),
        ("bytes of payload", payload, LEAST_PAYLOAD, MOST_PAYLOAD),
    ):
        if value < least or (most is not None and value > most):
            limits = f"{least} to {most}" if most is not None else f"{least} or more"
            raise LabError(f"{value} {name}: not {limits}")


def _received(fabric: Fabric, rank: Rank) -> int:
    return fabric.view(rank.host).counters()[rank.nic.name].received_packets


def _drain(fabric: Fabric, rank: Rank, expected: int) -> None:
    deadline = time.monotonic() + _DRAIN_DEADLINE
    while _received(fabric, rank) < expected and time.monotonic() < deadline:
        time.sleep(TICK)
