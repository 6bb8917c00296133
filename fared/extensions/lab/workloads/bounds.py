"""A lower bound on the time of a set of transfers, with optimal use of every path.

``run`` compares its results with this bound: maximum flows by networkx over the shortest-path
DAGs, as in ``expected``. Many transfers at once are a multi-commodity flow, for which this takes
the largest of the bounds that single-commodity flows give: each pair of routers by itself, all
that one router sends, all that one receives, and everything together. Each is a true lower bound;
where one router is the bottleneck, as in a fabric with one slow link, it is the exact optimum.

An iteration of a job takes at least as long as its longest path: tasks that wait for one another,
each by itself, and the time to compute. Nor can it be faster than all its bytes together. The same
holds for a phase, whose time is that in which any of its tasks is under way.

Rates are those of the wire: headers, some 4.5 % of full-sized TCP segments, count as lost.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx

from fared.core.units import BytesPerSecond
from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.expected import VETH_RATE, Rate
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ranks import Pair, rank_of
from fared.extensions.lab.workloads.jobs import Job

Demands = Mapping[tuple[str, str], float]
"""Bytes from one router to another."""

_EXACT = 1e-9
_ROUNDING = 4
_MOST_CUTS = 100
_SOURCE, _SINK = ("", "source"), ("", "sink")


def least_seconds(plan: AddressPlan, rate: Rate, demands: Demands) -> float:
    """Return a lower bound on the time until all demands are met; infinity if one has no path."""
    wanted = {pair: size for pair, size in demands.items() if size > 0 and pair[0] != pair[1]}
    if not wanted:
        return 0.0
    edges = {pair: _edges(plan, rate, *pair) for pair in wanted}
    return max(_single_commodity(group, edges) for group in _groups(wanted))


@dataclass(frozen=True)
class JobBounds:
    """The least seconds of an iteration, of each phase, and of each task by itself."""

    whole: float
    phases: Mapping[str, float]
    tasks: tuple[float, ...]


def job_bounds(job: Job, plan: AddressPlan, rate: Rate) -> JobBounds:
    """Return lower bounds of a job that is alone in the fabric; infinity: some pair has no path."""
    least, graph = _Least(plan, rate), job.graph
    own = tuple(least.seconds(sent) for sent in job.sends(plan))

    def all_of(phase: str | None) -> float:
        together = job.crossing(plan, graph.transfers(phase))
        return max(graph.longest(own, phase), least.seconds(together))

    return JobBounds(all_of(None), {phase: all_of(phase) for phase in graph.phases}, own)


def bound(job: Job, plan: AddressPlan, rate: Rate) -> float:
    """Return the least seconds an iteration of the job takes if nothing else is sent."""
    return job_bounds(job, plan, rate).whole


class _Least:
    """Least times of transfers between hosts; many are multiples of one another."""

    def __init__(self, plan: AddressPlan, rate: Rate) -> None:
        self._plan, self._rate = plan, rate
        self._known: dict[tuple[tuple[Pair, float], ...], float] = {}

    def seconds(self, sizes: Mapping[Pair, int]) -> float:
        demands: dict[Pair, float] = {}
        for (source, target), size in sizes.items():
            leaves = rank_of(self._plan, source).leaf, rank_of(self._plan, target).leaf
            demands[leaves] = demands.get(leaves, 0.0) + size
        most = max(demands.values(), default=0.0) or 1.0
        # Steps differ by single bytes if a message does not divide evenly.
        unit = {pair: round(size / most, _ROUNDING) for pair, size in demands.items()}
        key = tuple(sorted(unit.items()))
        if key not in self._known:
            self._known[key] = least_seconds(self._plan, self._rate, unit)
        return self._known[key] * most


def kernel_rates(fabric: Fabric) -> Rate:
    """Read the present rate of every router's ports, shaped or failed by any means."""
    limits: dict[tuple[str, str], BytesPerSecond] = {}
    for router in fabric.plan.routers:
        netns = fabric.node(router.name).netns
        for qdisc in json.loads(netns.run(["tc", "-j", "qdisc", "show"]).stdout or "[]"):
            if qdisc.get("kind") == "tbf":
                limits[router.name, qdisc["dev"]] = float(qdisc["options"]["rate"])
        links: list[dict[str, Any]] = json.loads(netns.ip("-j", "link", "show") or "[]")
        for link in links:
            if link.get("operstate") in {"DOWN", "LOWERLAYERDOWN"}:
                limits[router.name, link["ifname"]] = 0.0
    return lambda port: limits.get((port.node, port.name))


def _groups(demands: Demands) -> Iterator[Demands]:
    """Yield the sets of demands to treat as one commodity."""
    for pair, size in demands.items():
        yield {pair: size}
    for end in (0, 1):
        for router in {pair[end] for pair in demands}:
            yield {pair: size for pair, size in demands.items() if pair[end] == router}
    yield demands


def _edges(plan: AddressPlan, rate: Rate, source: str, target: str) -> dict[tuple[str, str], float]:
    """Return the links on shortest paths, parallel ones as one: (from, to) to bytes/s."""
    far = plan.distances(target)
    result: dict[tuple[str, str], float] = {}
    queue, seen = [source], {source}
    while queue:
        name = queue.pop()
        for port in plan.onward(name, far):
            own = rate(port)
            known = result.get((name, port.peer), 0.0)
            result[name, port.peer] = known + (VETH_RATE if own is None else own)
            if port.peer not in seen:
                seen.add(port.peer)
                queue.append(port.peer)
    return result


def _single_commodity(
    demands: Demands, edges: Mapping[tuple[str, str], Mapping[tuple[str, str], float]]
) -> float:
    """Return the least time T in which the links, T times their rate, carry all demands.

    Newton's method on cuts: a cut that is too small at T gives the least T for itself.
    """
    links: dict[tuple[str, str], float] = {}
    ends: dict[tuple[object, object], float] = {}
    for (source, target), size in demands.items():
        links.update(edges[source, target])
        ends[_SOURCE, (source, "out")] = ends.get((_SOURCE, (source, "out")), 0.0) + size
        ends[(target, "in"), _SINK] = ends.get(((target, "in"), _SINK), 0.0) + size
    total = sum(demands.values())
    seconds = 0.0
    for _ in range(_MOST_CUTS):
        graph = _graph(links, ends, seconds)
        _, (near, _) = nx.minimum_cut(graph, _SOURCE, _SINK)
        fixed = sum(size for (a, b), size in ends.items() if a in near and b not in near)
        rate = sum(
            value for (a, b), value in links.items() if (a, "out") in near and (b, "in") not in near
        )
        if fixed + rate * seconds >= total * (1 - _EXACT):
            return seconds
        if rate <= 0:
            return math.inf
        seconds = (total - fixed) / rate
    return seconds


def _graph(
    links: Mapping[tuple[str, str], float],
    ends: Mapping[tuple[object, object], float],
    seconds: float,
) -> nx.DiGraph[Any]:
    """Return the flow network; each router is an entry and an exit, joined.

    Traffic for a router's own hosts stays inside.

    Traffic may transit a router, from its entry to its exit, but its own starts at the exit: so a
    demand from and one to the same router never cancel out.
    """
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_node(_SOURCE)
    graph.add_node(_SINK)
    for (a, b), capacity in ends.items():
        graph.add_edge(a, b, capacity=capacity)
    for (a, b), rate in links.items():
        graph.add_edge((a, "out"), (b, "in"), capacity=rate * seconds)
        graph.add_edge((b, "in"), (b, "out"))
    return graph
