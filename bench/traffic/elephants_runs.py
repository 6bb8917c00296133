"""What the section elephants runs: routings, connections, settings of hosts, and its runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.traffic.dataplane_runs import HEALTHY, SLOW

FRR, FLOW, FLOWLET, PACKET = "FRR", "flow", "flowlet", "packet"
ROUTINGS = (FRR, FLOW, FLOWLET, PACKET)
CONNECTIONS = (1, 2, 4, 8, 32, 128)
FEW = 8
"""Connections that a healthy fabric is judged with."""
SIZE = 256_000_000
SYSCTLS = {"net.ipv4.tcp_min_rtt_wlen": 0, "net.ipv4.tcp_recovery": 5}
SINGLE = {"labels": {"fared-lab.segmentation": "single"}}
HOSTS: dict[str, dict[str, Any]] = {
    "advised": SINGLE | {"sysctls": SYSCTLS},
    "default": SINGLE,
    "offload": {},
}
UDP, CHANGE = "UDP", "change"


@dataclass(frozen=True)
class Run:
    """A workload in a scenario over a routing: so many connections, or a name of ``dataplane``."""

    scenario: str
    routing: str
    workload: int | str

    @property
    def key(self) -> str:
        """Its name in the results."""
        return f"{self.scenario} {self.routing} {self.workload}"


Found = dict[str, dict[str, Any]]
"""Results by key of the run."""


def short() -> list[Run]:
    """The runs of ``make bench``: all that have a goal, and what they are compared with.

    Of FRR with the number of connections that depends least on the draw of ports: one connection
    takes 20 s or 100 s, 128 take 26 s.
    """
    runs = [Run(SLOW, FRR, 128)]
    runs += [Run(SLOW, FLOW, count) for count in (1, 8, 128)]
    runs += [Run(SLOW, FLOWLET, count) for count in (1, 8)]
    runs += [Run(SLOW, PACKET, workload) for workload in (*CONNECTIONS, UDP, CHANGE)]
    return runs + [Run(HEALTHY, PACKET, count) for count in CONNECTIONS if count <= FEW]


def everything() -> list[Run]:
    """All numbers of connections over every routing, damaged and healthy."""
    runs = [
        Run(scenario, routing, workload)
        for scenario in (HEALTHY, SLOW)
        for routing in ROUTINGS
        for workload in CONNECTIONS
    ]
    return [*runs, Run(SLOW, PACKET, UDP), Run(SLOW, PACKET, CHANGE)]
