"""Results of ``collectives``, as rows of the benchmark report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.rows import compared
from bench.traffic.collectives_runs import (
    ALL_ONE,
    COLLECTIVES,
    FAILURES,
    IPV4,
    IPV6,
    MANY,
    QUEUES,
    RING_ONE,
    UNLIMITED,
    Run,
)
from bench.traffic.dataplane_runs import WORKLOADS
from bench.traffic.elephants_runs import FLOW, FRR, PACKET, ROUTINGS, Found
from bench.traffic.elephants_udp import CHANGE_LOAD

GOAL = 0.80
TITLES = {
    **WORKLOADS,
    RING_ONE: "all-reduce ring of 8, 1 flow a pair",
    ALL_ONE: "all-to-all of 8, 1 flow a pair",
}


def rows_of(found: Found) -> Iterator[dict[str, Any]]:
    """Each collective beside the bound, beside flows, and beside FRR; then links that fail."""
    for workload in COLLECTIVES:
        for queue in QUEUES:
            for family in (IPV4, IPV6):
                for routing in ROUTINGS:
                    run = Run(routing, workload, queue, family)
                    if run.key in found:
                        yield from _rows(found, run, found[run.key])
    for failure in FAILURES:
        sprayed, hashed = (found.get(Run(routing, failure).key) for routing in (PACKET, FLOW))
        if sprayed is not None and hashed is not None:
            yield _failure_row(failure, sprayed, hashed)


def _rows(found: Found, run: Run, one: dict[str, Any]) -> Iterator[dict[str, Any]]:
    family = "" if run.family == IPV4 else f" over {run.family}"
    name = f"{TITLES[run.workload]}, queues of {run.queue}: {run.routing}{family}"
    part = one["bound"] / one["seconds"]
    order = one["order"]
    segments = max(1, order["segments"])
    again = (order["retransmitted"] - order["spurious"]) / segments
    note = f"{again:.1%} of the segments lost, {order['spurious'] / segments:.1%} sent twice"
    judged = run.routing == PACKET and run.workload in WORKLOADS and run.queue != UNLIMITED
    yield {
        "name": f"{name}, part of the bound of {one['bound']:.3g} s; {note}",
        "ours": part,
        "unit": "",
        "goal": f">= {GOAL:g}" if judged else None,
        "met": part >= GOAL if judged else None,
    }
    for other in (FLOW, FRR):
        beside = found.get(Run(other, run.workload, run.queue).key)
        if beside is not None and run.routing not in (FRR, other) and run.family == IPV4:
            told = f"{name}, beside {other}, times sooner"
            yield compared(told, one["seconds"], beside["seconds"], "s")


def _failure_row(failure: str, sprayed: dict[str, Any], hashed: dict[str, Any]) -> dict[str, Any]:
    """Packets lost; a ratio of so few would only tell when the link failed."""
    name = f"{failure} under UDP at {CHANGE_LOAD:.0%} of the bound"
    told = f"{sprayed['sent']:,} packets, one flow by packets / {MANY} flows by flow"
    return {
        "name": f"{name}: lost of {told}",
        "ours": sprayed["lost"],
        "other": hashed["lost"],
        "unit": "packets",
        "goal": None,
        "met": None,
    }
