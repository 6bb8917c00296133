"""Answers to "why": each next hop's path capacity, the links that limit it, its weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fared.spf.plan import UNREACHABLE, Plan
from fared.ted.model import PathType
from fared.weights.path_capacity import node_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fared.core.ids import NodeId, Prefix
    from fared.rib.area import AreaSolver, Solution
    from fared.rib.model import NextHop, Route


@dataclass(frozen=True, slots=True)
class LimitingLink:
    """A link of the DAG that bounds a path: ``tail -> head``, bytes/s (None unknown)."""

    tail: NodeId
    head: NodeId
    capacity: float | None


@dataclass(frozen=True, slots=True)
class ExplainedHop:
    """One next hop. Capacities are bytes/s, None unknown; shares are fractions of the traffic.

    ``local_capacity`` is what this router can send to the neighbor over all parallel links,
    ``path_capacity`` what the neighbor's paths carry altogether (before it is divided among
    parallel links), ``limits`` the links that make up the bottleneck: widening others does
    not help. ``ecmp_share`` is the share under plain ECMP.
    """

    hop: NextHop
    local_capacity: float | None
    path_capacity: float | None
    limits: tuple[LimitingLink, ...]
    share: float
    ecmp_share: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """A route and its reasons.

    ``shared_node``: the node nearest to the root that all paths have in common, to which the
    weights refer; None where that is the destination itself.
    """

    prefix: Prefix
    route: Route
    path_type: PathType
    distance: int
    shared_node: NodeId | None
    hops: tuple[ExplainedHop, ...]


@dataclass(frozen=True, slots=True)
class SpfNode:
    """A vertex as SPF sees it: ``metric`` from the root, neighbors its paths begin with."""

    metric: int
    first_hops: tuple[NodeId, ...]


def view_spf(plan: Plan) -> dict[NodeId, SpfNode]:
    """Distances and first hops of all reachable nodes, in ascending order of id."""
    nodes = plan.graph.nodes
    view: dict[NodeId, SpfNode] = {}
    for index in np.flatnonzero(plan.distance != UNREACHABLE).tolist():
        hops = sorted(set(nodes[plan.first_hops(index)].tolist()))
        view[_id(nodes[index])] = SpfNode(int(plan.distance[index]), tuple(hops))
    return view


def _id(value: np.int64) -> NodeId:
    node: NodeId = int(value)  # type: ignore[assignment]
    return node


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def explain_route(areas: Mapping[int, AreaSolver], route: Route) -> Explanation:
    """Explain a present route."""
    hops: list[ExplainedHop] = []
    shared: int | None = None
    if route.nexthops is not None:
        total = route.nexthops.total_weight
        count = len(route.nexthops.hops)
        for hop in route.nexthops.hops:
            local, path, limits, meeting = _trace(areas, route, hop)
            shared = meeting
            hops.append(ExplainedHop(hop, local, path, limits, hop.weight / total, 1 / count))
    return Explanation(
        prefix=route.prefix,
        route=route,
        path_type=route.path_type,
        distance=route.metric,
        shared_node=None if shared in route.destinations else shared,  # type: ignore[arg-type]
        hops=tuple(hops),
    )


def _trace(
    areas: Mapping[int, AreaSolver], route: Route, hop: NextHop
) -> tuple[float | None, float | None, tuple[LimitingLink, ...], int | None]:
    """Local capacity, path capacity, limiting links and meeting node of one next hop."""
    for area in sorted(areas) if route.area is None else [route.area]:
        solver = areas[area]
        solution = solver.solution
        if solution is None:
            continue
        for place, link in enumerate(solution.members.links):
            if (link.ifindex, link.gateway, link.neighbor) == (
                hop.ifindex,
                hop.gateway,
                hop.neighbor,
            ):
                column = int(solution.members.column[place])
                return _trace_column(solver, solution, route, column)
    return None, hop.capacity, (), None


def _trace_column(
    solver: AreaSolver, solution: Solution, route: Route, column: int
) -> tuple[float | None, float | None, tuple[LimitingLink, ...], int | None]:
    plan = solution.plan
    ends = plan.graph.indexes(np.array(route.destinations, np.int64))
    ends = ends[ends >= 0]
    meeting: int | None = None
    if len(ends) == 1:
        row = solver.row(int(ends[0]))
        meeting = int(plan.row_of[ends[0]])
        ends = np.array([meeting])
    else:
        row = solver.contracted(tuple(ends.tolist()), (np.inf,) * len(ends))
    local = float(solution.members.local[column])
    bound = float(row.bound[column])
    node = None if meeting is None else int(plan.graph.nodes[meeting])
    first = LimitingLink(
        _id(plan.graph.nodes[plan.root]),
        _id(plan.graph.nodes[plan.graph.dst[plan.via[column]]]),
        _known(local),
    )
    if not np.isnan(local) and local <= bound:
        return _known(local), _known(bound), (first,), node
    limits = _cut(solution, column, ends)
    path = None if row.unknown[column] else _known(bound)
    return _known(local), path, limits or (first,), node


def _cut(
    solution: Solution, column: int, ends: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> tuple[LimitingLink, ...]:
    """The links whose capacities add up to what one first hop can carry to ``ends``.

    Walks back from the destination: a link no wider than what arrives before it limits; else
    the reason lies further back.
    """
    plan, graph = solution.plan, solution.plan.graph
    found: dict[int, None] = {}
    queue, seen = [int(end) for end in ends], set[int]()
    while queue:
        node = queue.pop(0)
        if node in seen or node == plan.hops[column]:
            continue
        seen.add(node)
        for edge in plan.edges_into(np.array([node])).tolist():
            tail = int(graph.src[edge])
            before = node_row(plan, solution.flow, tail)
            if tail == plan.root or not before.present[column]:
                continue
            capacity = float(solution.capacity[edge])
            if np.isnan(capacity) or capacity <= before.bound[column]:
                found[edge] = None
            else:
                queue.append(tail)
    return tuple(
        LimitingLink(
            _id(graph.nodes[graph.src[edge]]),
            _id(graph.nodes[graph.dst[edge]]),
            _known(float(solution.capacity[edge])),
        )
        for edge in sorted(found)
    )
