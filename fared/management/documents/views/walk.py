"""Walking the paths of traffic to a prefix, with the split at each node.

Each router's split is computed from the flooded database, by the solver that the router itself
runs. It needs the databases of a solver and no daemon: ``path`` walks from the live ones,
``offline.path`` from those of a file.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from functools import cached_property, partial
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from fared.core.ids import FAMILY_IPV4, NodeId, Prefix, format_node, is_group
from fared.management.documents.context import family_name, finite, seconds
from fared.management.documents.each import Perspective
from fared.management.documents.errors import CommandError
from fared.management.documents.facts import LinkDelay
from fared.management.documents.path import PathDocument, PathEdge
from fared.management.documents.sliced import Work, beside
from fared.paths.rib.model import Route
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.links import links_of_block, networks_of_block
from fared.paths.ted.model import PathType

Hostnames = Mapping[int, str]
MAX_NODES = 512
_BEYOND = (PathType.INTER_AREA, PathType.EXTERNAL_1, PathType.EXTERNAL_2)
"""Routes out of OSPF's area databases; for IS-IS ``isis_path`` has each router's view."""


class PathEnds(NamedTuple):
    """The ends of paths, as they were named, and what they stand for."""

    source: str
    destination: str
    protocol: str
    start: int
    prefix: Prefix
    goal: int
    """The node that the destination is, or that serves the prefix."""


class Walker:
    """Solves the routes of one node after the other, from the same blocks.

    All nodes are assumed to use the protocol of the solver. After ``__init__`` it looks at that
    solver no more: a thread may walk.
    """

    def __init__(self, solver: RouteSolver, perspective: Perspective) -> None:
        self._blocks = {area: dict(solver.ted(area).blocks) for area in solver.areas}
        self._of_blocks = partial(solver.computed_from, self._blocks)
        self._perspective = perspective

    @cached_property
    def _solver(self) -> RouteSolver:
        return self._of_blocks()

    def route(self, node: int, prefix: Prefix) -> Route | None:
        """Return the route of ``node`` to ``prefix``."""
        return self._solve(node, prefix).routes.get(prefix)

    def way(self, node: int, prefix: Prefix) -> Route | None:
        """Return the route with a metric that decreases along the path; that of type 2 does not."""
        solver = self._solve(node, prefix)
        route = solver.routes.get(prefix)
        if route is None or route.path_type is not PathType.EXTERNAL_2:
            return route
        ends = [
            view[end].metric
            for view in map(solver.spf_view, solver.areas)
            for end in route.destinations
            if end in view
        ]
        return replace(route, metric=min(ends, default=0))

    def _solve(self, node: int, prefix: Prefix) -> RouteSolver:
        root = NodeId(node)
        solver = self._solver.seen_from(root, self._perspective(root))
        for area, blocks in self._blocks.items():
            own = blocks.get(root)
            if own is None:
                continue
            links = links_of_block(own, blocks, prefix.family)
            solver.set_local_links(area, links)
            if prefix.family == FAMILY_IPV4:
                solver.set_local_networks(area, networks_of_block(own, blocks, links))
        solver.solve()
        return solver

    def cost(self, tail: int, head: int) -> int:
        """Return the least metric of the links between two neighbors, 0 if there are none."""
        for area in self._solver.areas:
            graph = self._solver.ted(area).graph()
            at, to = graph.index(tail), graph.index(head)
            edge = None if at is None or to is None else graph.edge(at, to)
            if edge is not None:
                return int(graph.metric[edge])
        return 0

    def link(self, tail: int, head: int) -> tuple[float | None, float | None, LinkDelay]:
        """Return capacity and available capacity of all links between two neighbors, and delay.

        Bytes/s, seconds. Across a LAN they are those of the link into it.
        """
        for area in self._solver.areas:
            ted = self._solver.ted(area)
            graph, delays = ted.graph(), ted.delays()
            at, to = graph.index(tail), graph.index(head)
            edge = None if at is None or to is None else graph.way(at, to)
            if edge is not None:
                rates = finite(float(graph.capacity[edge])), finite(float(graph.available[edge]))
                return *rates, UNSET if delays is None else seconds(float(delays[edge]))
        return None, None, UNSET


def between(walker: Walker, ends: PathEnds, names: Hostnames) -> Work[PathDocument]:
    """Follow all shortest paths from one end to the other. Raises CommandError if there is none."""
    start, prefix = ends.start, ends.prefix
    first = yield from beside(partial(walker.route, start, prefix))
    way = yield from beside(partial(walker.way, start, prefix))
    if first is None or way is None:
        raise CommandError("not-found", f"{ends.source} has no route to {ends.destination}")
    edges = yield from _follow(names, walker, prefix, start, way)
    known = [(edge.capacity, edge.share) for edge in edges if edge.share]
    limits = [capacity / share for capacity, share in known if capacity is not None]
    return PathDocument(
        protocol=ends.protocol,
        af=family_name(prefix.family),
        prefix=str(prefix),
        source=format_node(start),
        source_hostname=names.get(start),
        destination=_node(ends.goal, prefix),
        destination_hostname=names.get(ends.goal),
        metric=first.metric,
        capacity=min(limits) if limits and len(limits) == len(known) else None,
        edges=edges,
        delay=_longest(edges),
    )


def _node(node: int, prefix: Prefix) -> str:
    """Format the id of a vertex; in BGP paths end, for who sees them, at the prefix."""
    return str(prefix) if is_group(node) else format_node(node)


def _longest(edges: list[PathEdge]) -> LinkDelay:
    """Return the delay of the longest path; edges are in order of distance from the source."""
    if all(edge.delay is UNSET for edge in edges):
        return UNSET
    at: dict[str, float] = {}
    for edge in edges:
        delay = at.get(edge.from_, 0.0) + (0.0 if edge.delay is UNSET else edge.delay)
        at[edge.to] = max(at.get(edge.to, 0.0), delay)
    return round(max(at.values()), 6)


def _next(walker: Walker, prefix: Prefix, route: Route, node: int, head: int) -> Route | None:
    """Return the route of the next node, which ends, without next hops, at a border router.

    None: the node has no route.
    """
    if route.path_type in _BEYOND and head in route.destinations:
        metric = route.metric - walker.cost(node, head)
        return replace(route, metric=metric, nexthops=None)
    return walker.way(head, prefix)


def _follow(
    names: Hostnames, walker: Walker, prefix: Prefix, start: int, first: Route
) -> Work[list[PathEdge]]:
    """Send one unit of traffic along the splits, farthest node first."""
    inflow = {start: 1.0}
    routes = {start: first}
    queue = [(-first.metric, start)]
    edges: list[PathEdge] = []
    while queue and len(routes) <= MAX_NODES:
        _, node = heapq.heappop(queue)
        route = routes[node]
        if route.nexthops is None:
            continue
        split: dict[int, int] = {}
        for hop in route.nexthops.hops:
            split[hop.neighbor] = split.get(hop.neighbor, 0) + hop.weight
        for head, weight in sorted(split.items()):
            share = inflow[node] * weight / route.nexthops.total_weight
            inflow[head] = inflow.get(head, 0.0) + share
            if head not in routes:
                step = partial(_next, walker, prefix, route, node, head)
                found = yield from beside(step)
                if found is None:
                    raise CommandError("not-found", f"{format_node(head)} has no route: a loop?")
                routes[head] = found
                heapq.heappush(queue, (-found.metric, head))
            capacity, available, delay = walker.link(node, head)
            edges.append(
                PathEdge(
                    from_=format_node(node),
                    from_hostname=names.get(node),
                    to=_node(head, prefix),
                    to_hostname=names.get(head),
                    metric=route.metric - routes[head].metric,
                    capacity=capacity,
                    available=available,
                    share=round(share, 6),
                    delay=delay,
                )
            )
    return edges
