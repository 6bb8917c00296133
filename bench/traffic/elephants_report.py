"""Results of ``elephants``, as rows of the benchmark report."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from bench.rows import compared
from bench.traffic.dataplane_runs import HEALTHY, SLOW
from bench.traffic.elephants_runs import (
    CHANGE,
    CONNECTIONS,
    FEW,
    FLOW,
    FRR,
    PACKET,
    ROUTINGS,
    UDP,
    Found,
    Run,
)
from bench.traffic.elephants_udp import CHANGE_LOAD, JUST_BELOW

GOAL_ONE, GOAL_MANY, GOAL_NEVER_SLOWER = 2.2, 0.85, 0.95
GOAL_HEALTHY = 0.90
GOAL_SHARES = 0.5


def rows_of(found: Found) -> Iterator[dict[str, Any]]:
    """Compare granularities with each other, with FRR, and with the bound."""
    for scenario in (HEALTHY, SLOW):
        for workload in CONNECTIONS:
            for routing in ROUTINGS:
                one = found.get(Run(scenario, routing, workload).key)
                if one is not None:
                    yield from _rows(found, Run(scenario, routing, workload), one)
    below = found.get(Run(SLOW, PACKET, UDP).key)
    if below is not None:
        yield from _udp_rows(below)
    change = found.get(Run(SLOW, PACKET, CHANGE).key)
    if change is not None:
        yield from _change_rows(change)


def _rows(found: Found, run: Run, one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The part of the bound, and the ratio to flows and to FRR."""
    seconds = statistics.median(one["seconds"])
    name = f"{run.scenario}, {_connections(int(run.workload))}: {run.routing}"
    part = one["bound"] / seconds
    order = one["order"][0]
    spurious = order["spurious"] / max(1, order["segments"])
    late = order["out_of_order"] / max(1, order["segments"])
    note = f"{late:.1%} of the segments out of order, {spurious:.1%} sent twice"
    goal = _goal_of_bound(run)
    yield {
        "name": f"{name}, part of the bound of {one['bound']:.3g} s; {note}",
        "ours": part,
        "unit": "",
        "goal": None if goal is None else f">= {goal:g}",
        "met": None if goal is None else part >= goal,
    }
    for other in (FLOW, FRR):
        beside = found.get(Run(run.scenario, other, run.workload).key)
        if beside is None or run.routing in (FRR, other):
            continue
        yield _beside(f"{name}, beside {other}, times sooner", run, seconds, beside, other)


def _beside(
    name: str, run: Run, seconds: float, beside: dict[str, Any], other: str
) -> dict[str, Any]:
    goals = {1: GOAL_ONE, 128: GOAL_NEVER_SLOWER}
    judged = (run.scenario, run.routing, other) == (SLOW, PACKET, FLOW)
    least = goals.get(int(run.workload)) if judged else None
    return compared(name, seconds, statistics.median(beside["seconds"]), "s", least)


def _connections(count: int) -> str:
    return f"256 MB over {count} connection{'s' if count > 1 else ''}"


def _goal_of_bound(run: Run) -> float | None:
    if run.routing != PACKET:
        return None
    if run.scenario == HEALTHY:
        return GOAL_HEALTHY if int(run.workload) <= FEW else None
    return GOAL_MANY if int(run.workload) >= FEW else None


def _udp_rows(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    order = one["order"]
    name = f"{SLOW}, packet, UDP at {JUST_BELOW:.0%} of the bound, {one['sent']:,} packets"
    told = f"{order['reordered']} reordered, extent {order['extent']}, {order['buffer']} held"
    yield _exact(f"{name}: lost ({told})", one["lost"], 0)
    points = 100 * one["error"]
    yield {
        "name": f"{name}: largest difference of a share from its weight",
        "ours": points,
        "unit": "points",
        "goal": f"<= {GOAL_SHARES:g}",
        "met": points <= GOAL_SHARES,
    }


def _change_rows(one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    shares = " and ".join(
        ":".join(f"{part:.3f}" for part in one[when]) for when in ("before", "after")
    )
    name = f"weights change under UDP at {CHANGE_LOAD:.0%} of the bound ({shares})"
    yield _exact(f"{name}: packets lost of {one['sent']:,}", one["lost"], 0)
    changed_ = one["before"] != one["after"]
    yield _exact(f"{name}: transactions", one["transactions"] if changed_ else 0, 1)


def _exact(name: str, value: int, wanted: int) -> dict[str, Any]:
    return {"name": name, "ours": value, "unit": "", "goal": f"{wanted}", "met": value == wanted}
