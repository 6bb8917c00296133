"""Results of ``dataplane``, as rows of the benchmark report and as one page of tables."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.report import layout
from bench.traffic.dataplane_runs import (
    CAPACITY,
    ETHERNET,
    FEW,
    FLOWS,
    FRR,
    GOAL_BOUND,
    GOAL_DRAW,
    GOAL_HAND,
    GOAL_SOONER,
    HAND,
    HEADERS,
    PAIR,
    ROUTINGS,
    SCENARIOS,
    SIMULATED,
    SLOW,
    WEIGHTED,
    WORKLOADS,
    Found,
)

_Row = dict[str, Any]


def found_in(directory: Path) -> Found:
    """Read all results from files."""
    found: Found = {}
    for scenario in SCENARIOS:
        for routing in ROUTINGS:
            file = directory / f"{scenario}-{routing}.json"
            results = json.loads(file.read_text("utf-8")) if file.exists() else {}
            found |= {(scenario, routing, workload): one for workload, one in results.items()}
    return found


def chance(shares: Sequence[float], capacities: Sequence[float], flows: int, mtu: int) -> float:
    """The part of the bound that the median draw of ``flows`` flows allows, less headers."""
    draws = np.random.default_rng(1).multinomial(flows, shares, SIMULATED)
    best = flows / sum(capacities) / (draws / capacities).max(axis=1)
    return float(np.median(best)) * (mtu - HEADERS) / (mtu + ETHERNET)


def rows_of(found: Found, mtu: int) -> list[_Row]:
    """Compare routings with FRR, with the bound, and with the limit of random placement."""
    rows = [
        row
        for scenario in SCENARIOS
        for workload in WORKLOADS
        for routing in ROUTINGS
        if routing not in (FRR, HAND) and (scenario, routing, workload) in found
        for row in _rows(found, (scenario, workload, routing), mtu)
    ]
    return rows + list(_beside_hand(found))


def _row(name: str, ours: float, other: float | None, goal: float | None, unit: str = "") -> _Row:
    """A row whose goal applies to the ratio if there is a unit, else to the figure itself."""
    ratio = other / ours if unit and other is not None else None
    judged = ours if ratio is None else ratio
    return {
        "name": name,
        "ours": ours,
        "other": other,
        "unit": unit,
        "ratio": ratio,
        "goal": None if goal is None else f">= {goal}",
        "met": None if goal is None else judged >= goal,
    }


def _rows(found: Found, which: tuple[str, str, str], mtu: int) -> Iterator[_Row]:
    """Rows of one routing: ratio to FRR, and parts of the bound, the draw and the median draw."""
    scenario, workload, routing = which
    one, frr = found[scenario, routing, workload], found.get((scenario, FRR, workload))
    ours = statistics.median(one["seconds"])
    other = None if frr is None else statistics.median(frr["seconds"])
    judged = which == (SLOW, PAIR, FEW)
    name = f"{scenario}, {WORKLOADS[workload]}: {routing}"
    if other is not None:
        goal = GOAL_SOONER if judged else None
        yield _row(f"{name}, beside FRR, times sooner", ours, other, goal, "s")
    if frr is not None and None not in frr["busiest"] and workload == PAIR:
        # TCP retransmission timeouts on a congested link cost FRR more than its hashing does.
        least = statistics.median(frr["busiest"])
        yield _row(f"{name}, beside what FRR's draw of ports allows", ours, least, None, "s")
    if routing not in WEIGHTED:
        return
    bound = one["bound"]
    yield _row(
        f"{name}, part of the bound of {bound:.3g} s, median of {len(one['seconds'])} (other: FRR)",
        bound / ours,
        None if other is None else bound / other,
        GOAL_BOUND if judged else None,
    )
    part = drawn(one)
    if part is not None:
        goal = GOAL_DRAW if judged else None
        yield _row(f"{name}, part of what this draw of ports allows", part, None, goal)
    if workload == PAIR:
        allowed = chance(one["shares"], one["capacities"], FLOWS, mtu)
        yield _row(
            f"{name}, part of the bound that the median draw allows, simulated", allowed, None, None
        )


def drawn(one: dict[str, Any]) -> float | None:
    """Duration that the busiest link allows over the measured one, for the median draw."""
    if None in one["busiest"]:
        return None
    pairs = zip(one["busiest"], one["seconds"], strict=True)
    return statistics.median(busy / seconds for busy, seconds in pairs)


def _beside_hand(found: Found) -> Iterator[_Row]:
    """Weights by capacity compared with the same weights set by hand, from the same ports."""
    ours, hand = (found.get((SLOW, who, PAIR)) for who in (CAPACITY, HAND))
    if ours is None or hand is None:
        return
    draws = min(len(ours["seconds"]), len(hand["seconds"]))
    a, b = (statistics.median(one["seconds"][:draws]) for one in (ours, hand))
    yield _row(
        f"{SLOW}, {WORKLOADS[PAIR]}: {CAPACITY} beside weights set by hand, same ports",
        a,
        b,
        GOAL_HAND,
        "s",
    )


def page(found: Found, mtu: int) -> list[str]:
    """One table per workload: a line per scenario, a column per routing."""
    lines = [
        f"MTU {mtu}. Median completion time; in brackets the part of the max-flow bound,",
        "of the limit of the draw of ports, and the ratio to FRR's time.",
        "",
    ]
    for workload, title in WORKLOADS.items():
        shown = [r for r in ROUTINGS if any((s, r, workload) in found for s in SCENARIOS)]
        body = [
            [scenario, _bound(found, scenario, workload), *cells]
            for scenario in SCENARIOS
            for cells in ([_cell(found, scenario, routing, workload) for routing in shown],)
            if any(cells)
        ]
        if body:
            lines += [f"**{title}**", ""]
            lines += [*layout(["scenario", "bound", *shown], body, (1,)), ""]
    return lines


def _bound(found: Found, scenario: str, workload: str) -> str:
    least = {found[key]["bound"] for key in found if (key[0], key[2]) == (scenario, workload)}
    return f"{min(least):.2f} s" if least else ""


def _cell(found: Found, scenario: str, routing: str, workload: str) -> str:
    one = found.get((scenario, routing, workload))
    if one is None:
        return ""
    seconds = statistics.median(one["seconds"])
    parts = [f"{one['bound'] / seconds:.0%}"]
    part = drawn(one)
    parts.append("-" if part is None else f"{part:.0%}")
    frr = found.get((scenario, FRR, workload))
    if routing != FRR and frr is not None:
        parts.append(f"{statistics.median(frr['seconds']) / seconds:.1f}x")
    return f"{seconds:.2f} s ({', '.join(parts)})"
