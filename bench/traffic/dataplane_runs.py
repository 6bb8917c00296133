"""What the section dataplane runs: routings, workloads, scenarios, and which runs have a goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FRR, OFF, CAPACITY, AVAILABLE = "FRR", "adaptive-off", "capacity", "available"
HAND, FEW = "hand-set", "capacity-128-flows"
FLOWS = 128
ROUTINGS: dict[str, dict[str, Any] | None] = {
    FRR: None,
    OFF: {"enabled": False},
    CAPACITY: {"metric": "capacity"},
    FEW: {"metric": "capacity", "flows": FLOWS},
    HAND: {"enabled": False},
    AVAILABLE: {"metric": "available"},
}
"""The section ``adaptive`` of the daemons' configuration; FRR has none."""
WEIGHTED = (CAPACITY, FEW, AVAILABLE)
AT_ONCE = {"metric": "available", "time-constant": "0s"}
SENDER, LEAF, SPINE = "L1", "L2", "S1"
BY_HAND = {SPINE: 1, "S2": 5, "S3": 5, "S4": 5}
"""min(uplink, downlink) of every path with a downlink at a fifth."""
MBIT = 1e6 / 8
RATE = 100 * MBIT
BACKGROUND = 0.5
MEMBERS = 2
READY = 120.0
SETTLED = 1.0
TOLERANCE = {CAPACITY: 0.01, AVAILABLE: 0.02}
NOTHING = 0.001
DRAWS, MANY_DRAWS, HAND_DRAWS = 3, 5, 2
PAIR, RING, ALL = "pair", "ring", "all-to-all"
WORKLOADS = {
    PAIR: "one leaf to another, 128 flows of 2 MB",
    RING: "all-reduce ring of 8, 16 flows a pair",
    ALL: "all-to-all of 8, 8 flows a pair",
}
HEALTHY, SLOW, QUARTER = "healthy", "slow-downlink", "quarter-downlink"
UP_AND_DEAD, LOADED, LAG = "slow-uplink-and-dead-link", "background", "lag-member-lost"
SCENARIOS = (HEALTHY, SLOW, QUARTER, UP_AND_DEAD, LOADED, LAG)
GOAL_SOONER = 3.2
GOAL_BOUND = 0.84
GOAL_DRAW = 0.95
GOAL_HAND = 0.95
MTU = 9000
ETHERNET, HEADERS = 14, 52
"""Header bytes of a frame, and of a segment: IPv4 20, TCP 20, timestamps 12."""
SIMULATED = 20_000


@dataclass(frozen=True)
class Run:
    """A workload to run in a scenario over one routing, with several draws of ports."""

    scenario: str
    routing: str
    workload: str
    draws: int


Found = dict[tuple[str, str, str], dict[str, Any]]
"""By scenario, routing and workload: ``bound``, and ``seconds`` and ``busiest`` of every draw.

``busiest`` is the time that the busiest link needed for the traffic it carried, None if it carried
background traffic as well. ``shares`` and ``capacities``: of the paths from one leaf to the other.
"""


def short() -> list[Run]:
    """The runs of ``make bench``, most of them for rows with a goal.

    FRR has one draw: with any ports, a quarter of the flows use the slow link. The same holds with
    adaptive off, which is plain ECMP as well, takes as long and runs only with ``--all``.
    """
    draws = {HAND: HAND_DRAWS, CAPACITY: DRAWS, FEW: MANY_DRAWS}
    runs = [Run(SLOW, who, PAIR, draws.get(who, 1)) for who in ROUTINGS if who != OFF]
    others = {RING: 1, ALL: DRAWS}  # a ring over FRR takes 15 seconds
    return runs + [Run(SLOW, who, what, n) for who in (FRR, FEW) for what, n in others.items()]


def everything(draws: int = DRAWS) -> list[Run]:
    """Every workload in every scenario over every routing: half an hour with three draws.

    The hand-set weights run in one scenario only.
    """
    return [
        Run(scenario, routing, workload, _draws(scenario, routing, workload, draws))
        for scenario in SCENARIOS
        for routing in ROUTINGS
        for workload in WORKLOADS
        if routing != HAND or (scenario, workload) == (SLOW, PAIR)
    ]


def _draws(scenario: str, routing: str, workload: str, draws: int) -> int:
    """Several draws for short runs, and for runs whose goal or weights depend on the draws.

    One draw for ECMP from one leaf to another, where a slow link costs far more than an unlucky
    draw, and for most rings, which take long.
    """
    if workload == PAIR:
        return draws if routing in WEIGHTED or (scenario == SLOW and routing != OFF) else 1
    return draws if workload == ALL or scenario == SLOW else 1
