"""The report ``fared-plan-failures/1``: what each set of failures leaves, worst first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from fared.extensions.ina.plan.flow import max_flow
from fared.extensions.offline.plan.equal import moved_links
from fared.extensions.offline.plan.fabric import PlanFabric
from fared.extensions.offline.plan.paths import NONE, edge_changes
from fared.extensions.offline.plan.rows import SetResult
from fared.extensions.offline.plan.sets import DOUBLES, GROUPS, LINKS, NODES
from fared.extensions.offline.plan.traffic import CarriedTraffic
from fared.management.documents import human

Json = dict[str, Any]
FORMAT = "fared-plan-failures/1"
ALIASES = {LINKS: "n-1", DOUBLES: "n-2"}
CONFIDENCE, _DEVIATIONS = 0.99, 2.5758293035489004
"""Confidence of the interval of a sample, and the quantile of the normal distribution for it."""
_BINS = 20
_MOST_PODS = 64


class Shown(msgspec.Struct, frozen=True):
    """How much the report contains: worst failures, worst pairs of each set (None: all)."""

    ranked: int = 10
    pairs: int | None = 20


class Planned(msgspec.Struct, frozen=True, eq=False):
    """A plan: the fabric, its healthy capacities (P, P), and the results of all sets.

    ``now`` (P, P) are capacities while routers are drained, ``traffic`` the given traffic without
    failures and without drained routers.
    """

    fabric: PlanFabric
    healthy: NDArray[np.float64]
    now: NDArray[np.float64]
    results: tuple[SetResult, ...]
    traffic: CarriedTraffic | None = None


def plan_document(
    plan: Planned, changes: Iterable[str], drained: Iterable[str], shown: Shown
) -> Json:
    """Return the report. Capacities are bytes/s, parts 0..1."""
    fabric = plan.fabric
    single = [result for result in plan.results if result.failures.kind in (LINKS, NODES, GROUPS)]
    links = [result for result in plan.results if result.failures.kind == LINKS]
    return {
        "format": FORMAT,
        "changes": list(changes),
        "drained": list(drained),
        "routers": int((~fabric.graph.network).sum()),
        "links": len(fabric.link_names),
        "ends": [
            {"name": fabric.names[node], "pod": pod + 1}
            for node, pod in zip(fabric.ends.tolist(), fabric.pods.tolist(), strict=True)
        ],
        "healthy": _healthy(plan),
        "traffic": _traffic(plan),
        "sets": [_set(plan, result, shown) for result in plan.results],
        "worst": _ranked(plan, shown.ranked),
        "single_points": [
            _what(plan, result, at) for result in single for at in result.cutting.tolist()
        ],
        "never_matter": [
            _what(plan, result, at) for result in links for at in result.harmless.tolist()
        ],
        "rows": [
            _row(plan, result, at) for result in plan.results for at in range(len(result.left))
        ],
    }


def _healthy(plan: Planned) -> Json:
    """The capacities of pairs without failures, and what drained routers leave of them."""
    counts = np.isfinite(plan.healthy) & (plan.healthy > 0.0)
    off = ~np.eye(len(plan.healthy), dtype=bool)
    known = plan.healthy[counts & off]
    drained = plan.now[counts & off] / known if len(known) else np.ones(1)
    return {
        "pairs": int(off.sum()),
        "cut": int((off & (plan.healthy <= 0.0)).sum()),
        "least": float(known.min()) if len(known) else 0.0,
        "mean": float(known.mean()) if len(known) else 0.0,
        "most": float(known.max()) if len(known) else 0.0,
        "left": float(np.minimum(drained, 1.0).min()),
        **_longest(plan.fabric),
    }


def _longest(fabric: PlanFabric) -> Json:
    """The ends with the longest delay, seconds; nothing where no link has one."""
    if fabric.longest is None:
        return {}
    tail, head = (fabric.names[fabric.graph.index(end) or 0] for end in fabric.longest.ends)
    return {"longest": {"from": tail, "to": head, "delay": round(fabric.longest.delay / 1e6, 6)}}


def _traffic(plan: Planned) -> Json | None:
    """The given traffic without failures, and the load of each link in each direction."""
    traffic = plan.traffic
    if traffic is None:
        return None
    used = traffic.utilization
    return {
        "demands": traffic.demands,
        "rate": traffic.rate,
        "unserved": traffic.unserved,
        "utilization": float(used.max(initial=0.0)),
        "links": [
            {
                "link": _way(plan, int(traffic.graph.src[edge]), int(traffic.graph.dst[edge])),
                "load": float(traffic.loads[edge]),
                "utilization": float(used[edge]),
            }
            for edge in (-used).argsort(kind="stable").tolist()
        ],
    }


def _way(plan: Planned, tail: int, head: int) -> str:
    return f"{plan.fabric.names[tail]} > {plan.fabric.names[head]}"


def _traffic_row(plan: Planned, result: SetResult, at: int) -> Json:
    """What one failure does to traffic; ``slowdown`` is None where some of it has no path."""
    used, lost = float(result.utilization[at]), float(result.unserved[at])
    before = float(plan.traffic.utilization.max(initial=0.0)) if plan.traffic else 0.0
    whole = lost <= 0.0 and before > 0.0
    return {
        "utilization": used,
        "busiest": _way(plan, *result.busiest[at].tolist()) if used > 0.0 else None,
        "slowdown": used / before if whole else None,
        "unserved": lost,
    }


def _worst_traffic(plan: Planned, result: SetResult) -> Json:
    """The failure of a set that loses most traffic, or else slows it most."""
    order = np.lexsort((-result.utilization, -result.unserved))
    row = _traffic_row(plan, result, int(order[0]))
    return {**_what(plan, result, int(order[0])), **row}


def _set(plan: Planned, result: SetResult, shown: Shown) -> Json:
    failures = result.failures
    mean, low, high = result.mean_interval(_DEVIATIONS)
    found: Json = {
        "set": failures.kind,
        "alias": ALIASES.get(failures.kind),
        "failures": failures.count(),
        "classes": None if failures.numbers is None else len(failures),
        "population": failures.population,
        "seed": failures.seed,
        "left": float(result.left.min(initial=1.0)),
        "mean_left": mean,
        "interval": {"low": low, "high": high, "confidence": CONFIDENCE}
        if failures.sampled
        else None,
        "mean": result.mean_of(result.mean),
        "cut": failures.count(result.cutting),
        "harmless": failures.count(result.harmless),
        "histogram": _histogram(result),
        "pairs": _pairs(plan, result, shown.pairs),
    }
    if len(result.utilization):
        found["traffic"] = _worst_traffic(plan, result)
    pods = int(plan.fabric.pods.max(initial=0)) + 1
    if 1 < pods <= _MOST_PODS:
        found["pods"] = _pods(plan, result, pods)
    return found


def _histogram(result: SetResult) -> list[int]:
    """Count failures by the part that the worst pair keeps: none, up to 5 %, ... up to 100 %."""
    bins = np.ceil(result.left * _BINS - 1e-9).astype(np.int64)
    found = np.zeros(_BINS + 1, np.int64)
    np.add.at(found, bins, result.failures.sizes)
    return [int(n) for n in found]


def _parts(plan: Planned, result: SetResult) -> NDArray[np.float64]:
    """The least part of its healthy capacity that each pair keeps (P, P), 1 if none is lost."""
    known = np.isfinite(plan.healthy) & (plan.healthy > 0.0)
    return np.divide(
        result.pair_least,
        plan.healthy,
        out=np.ones_like(plan.healthy),
        where=known & np.isfinite(result.pair_least),
    )


def _pairs(plan: Planned, result: SetResult, most: int | None) -> list[Json]:
    part = _parts(plan, result)
    hit = (result.pair_cause.ravel() != NONE).nonzero()[0]
    order = hit[part.ravel()[hit].argsort(kind="stable")][:most]
    size = len(plan.healthy)
    return [_pair(plan, result, part, at // size, at % size) for at in order.tolist()]


def _pair(plan: Planned, result: SetResult, part: NDArray[np.float64], row: int, end: int) -> Json:
    return {
        "pair": [_end(plan, row), _end(plan, end)],
        "healthy": float(plan.healthy[row, end]),
        "capacity": float(result.pair_least[row, end]),
        "left": float(part[row, end]),
        "cause": _cause(plan, result, row, end),
    }


def _cause(plan: Planned, result: SetResult, row: int, end: int) -> str:
    """Name the failure that hurts a pair most."""
    fabric, at = plan.fabric, int(result.pair_cause[row, end])
    if result.pair_source is None:
        return result.failures.name(fabric, at)
    ends = fabric.ends.tolist()
    of, to = divmod(int(result.pair_source[row, end]), len(ends))
    links = result.failures.links_at(at)
    moved = moved_links(fabric, links, (ends[of], ends[to]), (ends[row], ends[end]))
    return " + ".join(fabric.link_names[link] for link in sorted(moved))


def _pods(plan: Planned, result: SetResult, pods: int) -> list[Json]:
    """The worst pair between each two pods that lose capacity."""
    part = np.where(result.pair_cause != NONE, _parts(plan, result), np.inf)
    found = []
    for a in range(pods):
        for b in range(pods):
            rows, ends = (plan.fabric.pods == a).nonzero()[0], (plan.fabric.pods == b).nonzero()[0]
            some = part[np.ix_(rows, ends)]
            at = int(some.argmin())
            row, end = int(rows[at // len(ends)]), int(ends[at % len(ends)])
            if np.isfinite(part[row, end]):
                found.append({"pods": [a + 1, b + 1], **_pair(plan, result, part, row, end)})
    return found


def _ranked(plan: Planned, most: int) -> list[Json]:
    """The worst failures of all sets; those with equal effect count as one, with their number."""
    keys: dict[tuple[float, ...], list[tuple[int, int]]] = {}
    for number, result in enumerate(plan.results):
        for at in (result.reduced > 0).nonzero()[0].tolist():
            key = (
                float(result.left[at]),
                -float(result.cut[at]),
                round(float(result.mean[at]), 9),
                -float(result.reduced[at]),
                float(number),
            )
            keys.setdefault(key, []).append((number, at))
    found = []
    for ranked in sorted(keys)[:most]:
        number, at = keys[ranked][0]
        result = plan.results[number]
        alike = sum(int(plan.results[n].failures.sizes[k]) for n, k in keys[ranked])
        row = {**_row(plan, result, at), "alike": alike - 1}
        row["max_flow"] = max_flow_after(plan.fabric, result, at)
        found.append(row)
    return found


def _row(plan: Planned, result: SetResult, at: int) -> Json:
    row, end = result.worst[at].tolist()
    hit = result.reduced[at] > 0 or result.left[at] < 1.0
    return {
        **_what(plan, result, at),
        "left": float(result.left[at]),
        "pair": [_end(plan, row), _end(plan, end)] if hit else None,
        "capacity": float(result.capacity[at]) if hit else None,
        "mean": float(result.mean[at]),
        "reduced": int(result.reduced[at]),
        "cut": int(result.cut[at]),
        **({} if result.failures.numbers is None else {"equal": int(result.failures.sizes[at])}),
        **({"traffic": _traffic_row(plan, result, at)} if len(result.utilization) else {}),
    }


def max_flow_after(fabric: PlanFabric, result: SetResult, at: int) -> float:
    """Return what the worst pair of a failure could have over paths of any length, bytes/s."""
    graph = fabric.graph
    changes = edge_changes(fabric, result.failures, at, at + 1)
    capacity = fabric.capacity.copy()
    capacity[changes.edge] = changes.capacity
    row, end = (int(fabric.ends[number]) for number in result.worst[at].tolist())
    crossed = graph.transit.copy()
    crossed[[row, end]] = True
    used = crossed[graph.src] & crossed[graph.dst] & (capacity > 0.0)
    links = dict(
        zip(
            zip(graph.src[used].tolist(), graph.dst[used].tolist(), strict=True),
            capacity[used].tolist(),
            strict=True,
        )
    )
    out, into = capacity[graph.src == row].sum(), capacity[graph.dst == end].sum()
    return max_flow(links, row, end, min(math.fsum([out]), math.fsum([into])))


def _what(plan: Planned, result: SetResult, at: int) -> Json:
    return {"set": result.failures.kind, "failure": result.failures.name(plan.fabric, at)}


def _end(plan: Planned, number: int) -> str:
    return plan.fabric.names[int(plan.fabric.ends[number])]


def set_named(document: Json, name: str) -> Json | None:
    """Return a set of a report by its name or alias (``n-1``)."""
    known: Sequence[Json] = document["sets"]
    return next((one for one in known if name in (one["set"], one["alias"])), None)


def part(value: float) -> str:
    """Format a part as a percentage that never rounds up to 100, nor a rest down to 0."""
    percent = value * 100
    if 0 < percent < 0.05 or 99.95 <= percent < 100:
        return "<0.1%" if percent < 1 else ">99.9%"
    return human.share(value)
