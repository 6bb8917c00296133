"""Explain a route: each next hop's path capacity, the links that limit it, its weight.

The document ``fared-explain`` holds the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.paths.rib.hop_delays import HopDelay, hop_delays
from fared.paths.spf.plan import SpfPlan
from fared.paths.spf.search import UNREACHABLE
from fared.paths.ted.model import PathType
from fared.paths.weights.path_capacity import node_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fared.core.ids import NodeId, Prefix
    from fared.paths.rib.area import AreaSolver, Solution
    from fared.paths.rib.facts import Egress
    from fared.paths.rib.model import NextHop, Route


class LimitingLink(msgspec.Struct, frozen=True):
    """A link of the DAG that bounds a path: ``tail -> head``, bytes/s (None unknown).

    ``tail`` equal to ``head``: the path capacity that this border router advertises.
    """

    tail: NodeId
    head: NodeId
    capacity: float | None


class ExplainedHop(msgspec.Struct, frozen=True):
    """One next hop. Capacities are bytes/s, None unknown; shares are fractions of the traffic.

    ``local_capacity`` is what this router can send to the neighbor over all parallel links,
    ``path_capacity`` what the neighbor's paths carry in total (before it is divided among
    parallel links), ``limits`` the links that form the bottleneck: widening other links does
    not help. ``ecmp_share`` is the share under plain ECMP.
    """

    hop: NextHop
    local_capacity: float | None
    path_capacity: float | None
    limits: tuple[LimitingLink, ...]
    share: float
    ecmp_share: float


class AdvertisedCapacity(msgspec.Struct, frozen=True):
    """An egress node of the route, and the capacity it advertises: bytes/s, None without."""

    node: NodeId
    area: int
    capacity: float | None


class Explanation(msgspec.Struct, frozen=True):
    """A route, and how its next hops and weights were computed.

    ``shared_node``: the node nearest to the root that all paths have in common, to which the
    weights refer; None where that is the destination itself.
    """

    prefix: Prefix
    route: Route
    path_type: PathType
    distance: int
    shared_node: NodeId | None
    hops: tuple[ExplainedHop, ...]
    advertised: tuple[AdvertisedCapacity, ...] = ()
    """The advertised capacities; empty where the prefix lies in an area of this router.

    Of prefixes from elsewhere it has those of all routers once one advertises any."""
    delays: tuple[HopDelay, ...] = ()
    """Those of all next hops at equal cost, also of those that are not used because of it."""


class SpfVertex(msgspec.Struct, frozen=True):
    """A vertex of SPF: ``metric`` from the root, and the neighbors with which its paths begin."""

    metric: int
    first_hops: tuple[NodeId, ...]


def view_spf(plan: SpfPlan) -> dict[NodeId, SpfVertex]:
    """Return distances and first hops of all reachable nodes, in ascending order of id."""
    nodes = plan.graph.nodes
    view: dict[NodeId, SpfVertex] = {}
    for index in np.flatnonzero(plan.distance != UNREACHABLE).tolist():
        hops = sorted(set(nodes[plan.first_hops(index)].tolist()))
        view[_id(nodes[index])] = SpfVertex(int(plan.distance[index]), tuple(hops))
    return view


def _id(value: np.int64) -> NodeId:
    node: NodeId = int(value)  # type: ignore[assignment]
    return node


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def explain_route(
    areas: Mapping[int, AreaSolver], prefix: Prefix, route: Route, egress: Egress
) -> Explanation:
    """Explain a present route; ``egress`` has the capacity that each node advertises."""
    hops: list[ExplainedHop] = []
    shared: int | None = None
    told = route.path_type is PathType.INTER_AREA or any(np.isfinite(one[2]) for one in egress)
    if route.nexthops is not None and not route.discard:
        total = route.nexthops.total_weight
        count = len(route.nexthops.hops)
        for hop in route.nexthops.hops:
            local, path, limits, meeting = _trace(areas, route, hop, egress)
            shared = meeting
            hops.append(ExplainedHop(hop, local, path, limits, hop.weight / total, 1 / count))
    return Explanation(
        prefix=prefix,
        route=route,
        path_type=route.path_type,
        distance=route.metric,
        shared_node=None if shared in route.destinations else shared,  # type: ignore[arg-type]
        hops=tuple(hops),
        advertised=tuple(
            AdvertisedCapacity(node, area, _known(capacity))
            for area, node, capacity in (egress if told else ())
        ),
        delays=hop_delays(areas, egress) if hops else (),
    )


def _trace(
    areas: Mapping[int, AreaSolver], route: Route, hop: NextHop, egress: Egress
) -> tuple[float | None, float | None, tuple[LimitingLink, ...], int | None]:
    """Return local capacity, path capacity, limiting links and common node of one next hop."""
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
                    solver, solution, [end for end in egress if end[0] == area], column
                )
    return None, hop.capacity, (), None


def _trace_column(
    solver: AreaSolver, solution: Solution, egress: list[tuple[int, NodeId, float]], column: int
) -> tuple[float | None, float | None, tuple[LimitingLink, ...], int | None]:
    """Return what one next hop of a route carries to its egresses, and what limits it.

    These are the capacity of its own link, that of the path, the limiting links, and the node where
    all paths of the column meet, if the route has one egress.
    """
    plan = solution.plan
    ends = plan.graph.indexes(np.array([node for _, node, _ in egress], np.int64))
    advertised = [capacity for _, _, capacity in egress]
    meeting: int | None = None
    if len(ends) == 1:
        row = solver.row(int(ends[0]))
        meeting = int(plan.row_of[ends[0]])
        ends = np.array([meeting])
    else:
        row = solver.contracted(tuple(ends.tolist()), tuple(advertised))
    local = float(solution.members.local[column])
    bound = float(row.bound[column])
    node = None if meeting is None else int(plan.graph.nodes[meeting])
    if len(advertised) == 1 and advertised[0] < bound:
        behind = egress[0][1]
        limit = LimitingLink(behind, behind, advertised[0])
        return _known(local), _known(bound), (limit,), node
    first = LimitingLink(
        _id(plan.graph.nodes[plan.root]),
        _id(plan.graph.nodes[plan.graph.dst[plan.via[column]]]),
        _known(local),
    )
    # The row is bounded by ``local``: if that is all it carries, the own links are the limit.
    if not np.isnan(local) and local <= bound:
        return _known(local), _known(bound), (first,), node
    limits = _advertised_limits(solution, column, ends, advertised, bound)
    limits = limits or _cut(solution, column, ends)
    path = None if row.unknown[column] else _known(bound)
    return _known(local), path, limits or (first,), node


def _advertised_limits(
    solution: Solution,
    column: int,
    ends: NDArray[np.int64],
    advertised: list[float],
    bound: float,
) -> tuple[LimitingLink, ...]:
    """Return the border routers whose advertised capacity is the bottleneck.

    This router does not know the links behind them: such a limit leads from a border router to
    itself.
    """
    found, total = [], 0.0
    for end, capacity in zip(ends.tolist(), advertised, strict=True):
        row = node_row(solution.plan, solution.flow, end)
        if row.present[column] and capacity < row.bound[column]:
            node = _id(solution.plan.graph.nodes[end])
            found.append(LimitingLink(node, node, capacity))
            total += capacity
    return tuple(found) if found and total <= bound else ()


def _cut(
    solution: Solution, column: int, ends: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> tuple[LimitingLink, ...]:
    """Return the links whose capacities sum up to what one first hop can carry to ``ends``.

    Walks back from the destination: a link that is no wider than its input limits the path; else
    the limit is further back.
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
            # The root's own links are in ``local``; paths of other first hops are not this one's.
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
