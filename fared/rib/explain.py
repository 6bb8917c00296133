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

    from numpy.typing import NDArray

    from fared.core.ids import NodeId, Prefix
    from fared.rib.area import AreaSolver, Solution
    from fared.rib.facts import Ends
    from fared.rib.model import NextHop, Route


@dataclass(frozen=True, slots=True)
class LimitingLink:
    """A link of the DAG that bounds a path: ``tail -> head``, bytes/s (None unknown).

    ``tail`` equal to ``head``: what this border router announced to lie behind it.
    """

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
class Announced:
    """A node the route leads to, and what it says lies behind it: bytes/s, None if nothing."""

    node: NodeId
    area: int
    capacity: float | None


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
    announced: tuple[Announced, ...] = ()
    """What border routers announced; empty where the prefix lies in an area of this router."""


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


def explain_route(areas: Mapping[int, AreaSolver], route: Route, ends: Ends) -> Explanation:
    """Explain a present route; ``ends`` with what each node announced."""
    hops: list[ExplainedHop] = []
    shared: int | None = None
    if route.nexthops is not None and not route.discard:
        total = route.nexthops.total_weight
        count = len(route.nexthops.hops)
        for hop in route.nexthops.hops:
            local, path, limits, meeting = _trace(areas, route, hop, ends)
            shared = meeting
            hops.append(ExplainedHop(hop, local, path, limits, hop.weight / total, 1 / count))
    return Explanation(
        prefix=route.prefix,
        route=route,
        path_type=route.path_type,
        distance=route.metric,
        shared_node=None if shared in route.destinations else shared,  # type: ignore[arg-type]
        hops=tuple(hops),
        announced=tuple(
            Announced(node, area, _known(capacity))
            for area, node, capacity in ends
            if route.path_type is PathType.INTER_AREA
        ),
    )


def _trace(
    areas: Mapping[int, AreaSolver], route: Route, hop: NextHop, ends: Ends
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
                return _trace_column(
                    solver, solution, [end for end in ends if end[0] == area], column
                )
    return None, hop.capacity, (), None


def _trace_column(
    solver: AreaSolver, solution: Solution, told: list[tuple[int, NodeId, float]], column: int
) -> tuple[float | None, float | None, tuple[LimitingLink, ...], int | None]:
    plan = solution.plan
    ends = plan.graph.indexes(np.array([node for _, node, _ in told], np.int64))
    announced = [capacity for _, _, capacity in told]
    meeting: int | None = None
    if len(ends) == 1:
        row = solver.row(int(ends[0]))
        meeting = int(plan.row_of[ends[0]])
        ends = np.array([meeting])
    else:
        row = solver.contracted(tuple(ends.tolist()), tuple(announced))
    local = float(solution.members.local[column])
    bound = float(row.bound[column])
    node = None if meeting is None else int(plan.graph.nodes[meeting])
    if len(announced) == 1 and announced[0] < bound:
        behind = told[0][1]
        limit = LimitingLink(behind, behind, announced[0])
        return _known(local), _known(bound), (limit,), node
    first = LimitingLink(
        _id(plan.graph.nodes[plan.root]),
        _id(plan.graph.nodes[plan.graph.dst[plan.via[column]]]),
        _known(local),
    )
    if not np.isnan(local) and local <= bound:
        return _known(local), _known(bound), (first,), node
    limits = _announced_limits(solution, column, ends, announced, bound)
    limits = limits or _cut(solution, column, ends)
    path = None if row.unknown[column] else _known(bound)
    return _known(local), path, limits or (first,), node


def _announced_limits(
    solution: Solution,
    column: int,
    ends: NDArray[np.int64],
    announced: list[float],
    bound: float,
) -> tuple[LimitingLink, ...]:
    """The border routers behind which the bottleneck lies: what they announced is all there is.

    Such a limit has no links that this router could know: it leads from a border router to
    itself.
    """
    found, total = [], 0.0
    for end, capacity in zip(ends.tolist(), announced, strict=True):
        row = node_row(solution.plan, solution.flow, end)
        if row.present[column] and capacity < row.bound[column]:
            node = _id(solution.plan.graph.nodes[end])
            found.append(LimitingLink(node, node, capacity))
            total += capacity
    return tuple(found) if found and total <= bound else ()


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
