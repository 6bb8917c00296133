"""``path SRC DST``: the way of traffic through the fabric, as every node on it splits.

Each router's split is computed here from the flooded database with the very solver it runs
itself, so the answer is what the fabric does, as far as the database knows it.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

from fared.api.control import CommandError
from fared.api.schema import path as schema
from fared.api.views.context import ViewContext, finite
from fared.core.ids import NodeId, Prefix
from fared.ospf.offline import links_of_block
from fared.rib.model import Route
from fared.rib.solver import RouteSolver
from fared.ted.model import PathType

MAX_NODES = 512


class Walker:
    """Solves the routes of one node after the other, from the same blocks."""

    def __init__(self, context: ViewContext) -> None:
        self._solver = context.router.solver
        self._settings = context.router.settings.solver

    def route(self, node: int, prefix: Prefix) -> Route | None:
        """The route of ``node`` to ``prefix``."""
        return self._solve(node).routes.get(prefix)

    def way(self, node: int, prefix: Prefix) -> Route | None:
        """The same with a metric that falls along the way: that of external type 2 does not."""
        solver = self._solve(node)
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

    def _solve(self, node: int) -> RouteSolver:
        solver = RouteSolver(NodeId(node), self._settings)
        for area in self._solver.areas:
            blocks = self._solver.ted(area).blocks
            for name, block in blocks.items():
                solver.put_block(area, name, block)
            own = blocks.get(NodeId(node))
            solver.set_local_links(area, () if own is None else links_of_block(own, dict(blocks)))
        solver.solve()
        return solver

    def cost(self, tail: int, head: int) -> int:
        """Least metric of the links between two neighbors, 0 if there are none."""
        for area in self._solver.areas:
            graph = self._solver.ted(area).graph()
            at, to = graph.index(tail), graph.index(head)
            edge = None if at is None or to is None else graph.edge(at, to)
            if edge is not None:
                return int(graph.metric[edge])
        return 0

    def link(self, tail: int, head: int) -> tuple[float | None, float | None]:
        """Capacity and available capacity of all links between two neighbors, bytes/s.

        Across a LAN those of the link into it.
        """
        for area in self._solver.areas:
            graph = self._solver.ted(area).graph()
            at, to = graph.index(tail), graph.index(head)
            edge = None if at is None or to is None else graph.way(at, to)
            if edge is not None:
                return finite(float(graph.capacity[edge])), finite(float(graph.available[edge]))
        return None, None


def path(context: ViewContext, source: str, destination: str) -> schema.PathDocument:
    """Follow all shortest paths. Raises CommandError where there is none."""
    start = context.find_node(source)
    prefix, goal = _goal(context, destination)
    walker = Walker(context)
    first = walker.route(start, prefix)
    way = walker.way(start, prefix)
    if first is None or way is None:
        raise CommandError("not-found", f"{source} has no route to {destination}")
    edges = _follow(context, walker, start, way)
    known = [(e["capacity"], e["share"]) for e in edges if e["share"]]
    limits = [capacity / share for capacity, share in known if capacity is not None]
    return {
        "format": "fared-path/1",
        "source": context.node(start),
        "source_hostname": context.hostnames.get(start),
        "destination": context.node(goal),
        "destination_hostname": context.hostnames.get(goal),
        "metric": first.metric,
        "capacity": min(limits) if limits and len(limits) == len(known) else None,
        "edges": edges,
    }


def _goal(context: ViewContext, text: str) -> tuple[Prefix, int]:
    """A prefix to follow and the node it stands for."""
    try:
        node = context.find_node(text)
    except CommandError:
        prefix = context.find_route(text)
        return prefix, context.router.solver.routes[prefix].destinations[0]
    solver = context.router.solver
    for area in solver.areas:
        block = solver.ted(area).block(NodeId(node))
        own = () if block is None else block.prefixes
        inside = [item for item in own if item.path_type is PathType.INTRA_AREA]
        if inside:
            narrowest = max(inside, key=lambda a: (a.prefix.length, -a.metric))
            return narrowest.prefix, node
    raise CommandError("not-found", f"{text} announces no prefix")


def _next(walker: Walker, route: Route, node: int, head: int) -> Route | None:
    """The route of the next node; at a border or boundary router what can be known ends."""
    if route.path_type is not PathType.INTRA_AREA and head in route.destinations:
        metric = route.metric - walker.cost(node, head)
        return replace(route, metric=metric, nexthops=None)
    return walker.way(head, route.prefix)


def _follow(
    context: ViewContext, walker: Walker, start: int, first: Route
) -> list[schema.PathEdge]:
    """Send one unit of traffic along the splits, farthest node first."""
    inflow = {start: 1.0}
    routes = {start: first}
    queue = [(-first.metric, start)]
    edges: list[schema.PathEdge] = []
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
                found = _next(walker, route, node, head)
                if found is None:
                    raise CommandError("not-found", f"{context.node(head)} has no route: a loop?")
                routes[head] = found
                heapq.heappush(queue, (-found.metric, head))
            capacity, available = walker.link(node, head)
            edges.append(
                {
                    "from": context.node(node),
                    "from_hostname": context.hostnames.get(node),
                    "to": context.node(head),
                    "to_hostname": context.hostnames.get(head),
                    "metric": route.metric - routes[head].metric,
                    "capacity": capacity,
                    "available": available,
                    "share": round(share, 6),
                }
            )
    return edges
