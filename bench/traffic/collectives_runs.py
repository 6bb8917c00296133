"""What the section collectives runs: collectives, failures, queues, and its runs."""

from __future__ import annotations

from dataclasses import dataclass

from bench.traffic.dataplane_runs import ALL, LEAF, RING, SENDER
from bench.traffic.elephants_runs import FLOW, FLOWLET, FRR, PACKET, ROUTINGS

RING_ONE, ALL_ONE = f"{RING}, one connection", f"{ALL}, one connection"
COLLECTIVES = (RING, ALL, RING_ONE, ALL_ONE)
NEAR, FAR = "a link of the sending leaf fails", "a downlink of another spine fails"
FAILURES = {NEAR: ("S2", SENDER), FAR: ("S2", LEAF)}
"""The link that fails, and the end at which it is set down."""
LONG, SHORT, UNLIMITED = "300 ms", "80 ms", "300 ms, large send buffers"
QUEUES = {LONG: None, SHORT: 0.08, UNLIMITED: None}
"""Seconds of traffic that wait at most; None: as the lab has it."""
LIMITED_BUFFERS, USUAL_BUFFERS = "4096 65536 131072", "4096 16384 4194304"
"""``net.ipv4.tcp_wmem`` of hosts, which IPv6 has in common."""
IPV4, IPV6 = "IPv4", "IPv6"
SLOWER = 0.25
MANY = 64
"""Connections of the UDP traffic that is hashed."""


@dataclass(frozen=True)
class Run:
    """A collective or a failure over a routing, with queues of a length; IPv6 over IS-IS."""

    routing: str
    workload: str
    queue: str = LONG
    family: str = IPV4

    @property
    def key(self) -> str:
        """Its name in the results."""
        return f"{self.family} {self.routing} {self.workload} {self.queue}"

    @property
    def kind(self) -> str:
        """The fabric that it needs."""
        return FRR if self.routing == FRR else self.family


def short() -> list[Run]:
    """The runs of ``make bench``: FRR, which takes longest, with the lab's usual queues only."""
    queues = {FRR: (LONG,), FLOW: (LONG, SHORT), FLOWLET: (SHORT,), PACKET: tuple(QUEUES)}
    runs = [
        Run(routing, workload, queue)
        for routing in ROUTINGS
        for queue in queues[routing]
        for workload in (RING, ALL)
    ]
    runs += [Run(routing, failure) for routing in (FLOW, PACKET) for failure in FAILURES]
    return runs + [Run(PACKET, workload, SHORT, IPV6) for workload in (RING, ALL)]


def everything() -> list[Run]:
    """All collectives over every routing, with both queues; IPv6 by packets."""
    runs = [
        Run(routing, workload, queue)
        for routing in ROUTINGS
        for queue in QUEUES
        for workload in COLLECTIVES
    ]
    runs += [Run(routing, failure) for routing in (FLOW, PACKET) for failure in FAILURES]
    return runs + [
        Run(PACKET, workload, queue, IPV6) for queue in QUEUES for workload in COLLECTIVES
    ]
