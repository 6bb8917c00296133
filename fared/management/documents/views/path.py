"""``path SRC DST``: the paths of traffic through the fabric, with the split at each node.

Each router's split is computed here from the flooded database, by the solver that the router itself
runs, so the answer is the fabric's behavior as far as the database describes it.
"""

from __future__ import annotations

import heapq
from functools import cached_property, partial

from msgspec import UNSET
from msgspec.structs import replace

from fared.core.ids import FAMILY_IPV4, NodeId, Prefix, is_group
from fared.management.documents.context import (
    ViewContext,
    family_name,
    family_number,
    finite,
    seconds,
)
from fared.management.documents.each import perspective
from fared.management.documents.errors import CommandError
from fared.management.documents.facts import LinkDelay
from fared.management.documents.path import PathDocument, PathEdge
from fared.management.documents.sliced import Sliced, Work, beside
from fared.paths.rib.model import Route
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.links import links_of_block, networks_of_block
from fared.paths.ted.model import PathType
from fared.router.instance import ProtocolInstance

MAX_NODES = 512
_BEYOND = (PathType.INTER_AREA, PathType.EXTERNAL_1, PathType.EXTERNAL_2)
"""Routes out of OSPF's area databases; for IS-IS ``isis_path`` has each router's view."""
_INSIDE = (PathType.INTRA_AREA, PathType.LEVEL_1, PathType.LEVEL_2)


class Walker:
    """Solves the routes of one node after the other, from the same blocks.

    ``instance`` is the protocol; all nodes are assumed to use it. After ``__init__`` it looks at
    the router no more: a thread may walk.
    """

    def __init__(self, context: ViewContext, instance: ProtocolInstance, prefix: Prefix) -> None:
        solver = instance.solver_of(prefix)
        assert solver is not None, "the prefix is of a family that the protocol routes"
        self._blocks = {area: dict(solver.ted(area).blocks) for area in solver.areas}
        self._of_blocks = partial(solver.computed_from, self._blocks)
        self._perspective = perspective(context, instance, solver, prefix)

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


@Sliced
def path(
    context: ViewContext, source: str, destination: str, af: str | None = None
) -> Work[PathDocument]:
    """Follow all shortest paths. Raises CommandError if there is none."""
    instance, start, prefix, goal = _ends(context, source, destination, family_number(af))
    walker = Walker(context, instance, prefix)
    first = yield from beside(partial(walker.route, start, prefix))
    way = yield from beside(partial(walker.way, start, prefix))
    if first is None or way is None:
        raise CommandError("not-found", f"{source} has no route to {destination}")
    edges = yield from _follow(context, walker, prefix, start, way)
    known = [(edge.capacity, edge.share) for edge in edges if edge.share]
    limits = [capacity / share for capacity, share in known if capacity is not None]
    return PathDocument(
        protocol=instance.name,
        af=family_name(prefix.family),
        prefix=str(prefix),
        source=context.node(start),
        source_hostname=context.hostnames.get(start),
        destination=_node(context, goal, prefix),
        destination_hostname=context.hostnames.get(goal),
        metric=first.metric,
        capacity=min(limits) if limits and len(limits) == len(known) else None,
        edges=edges,
        delay=_longest(edges),
    )


def _node(context: ViewContext, node: int, prefix: Prefix) -> str:
    """Format the id of a vertex; in BGP paths end, for who sees them, at the prefix."""
    return str(prefix) if is_group(node) else context.node(node)


def _longest(edges: list[PathEdge]) -> LinkDelay:
    """Return the delay of the longest path; edges are in order of distance from the source."""
    if all(edge.delay is UNSET for edge in edges):
        return UNSET
    at: dict[str, float] = {}
    for edge in edges:
        delay = at.get(edge.from_, 0.0) + (0.0 if edge.delay is UNSET else edge.delay)
        at[edge.to] = max(at.get(edge.to, 0.0), delay)
    return round(max(at.values()), 6)


def _ends(
    context: ViewContext, source: str, destination: str, family: int | None
) -> tuple[ProtocolInstance, int, Prefix, int]:
    """Return protocol, first node, the prefix to follow and the node it stands for.

    The protocol is the most preferred one that knows both ends. Raises CommandError.
    """
    preferences = context.router.preferences
    reason: CommandError | None = None
    for instance in sorted(context.instances, key=lambda known: preferences[known.name]):
        here = context.narrowed(instance.name)
        start = here.find_node(source, instance)
        if start is None:
            continue
        try:
            return instance, start, *_goal(here, instance, destination, family)
        except CommandError as error:
            reason = reason or error
    raise reason or CommandError("not-found", f"no router {source!r} in the database")


def _goal(
    context: ViewContext, instance: ProtocolInstance, text: str, family: int | None
) -> tuple[Prefix, int]:
    """Return the prefix and the router that ``text`` names, a prefix, an address, or a router.

    Of a router it is the narrowest prefix of its own. Raises CommandError.
    """
    node = context.find_node(text, instance)
    if node is None:
        try:
            prefix = context.find_route(text)
        except CommandError as error:
            if error.code == "bad-argument":
                message = f"no router {text!r} in the database, and it is no prefix"
                raise CommandError("not-found", message) from None
            raise
        return prefix, context.routes[prefix].destinations[0]
    for known, solver in sorted(instance.solvers.items(), key=lambda item: item[0] != FAMILY_IPV4):
        if family not in (None, known):
            continue
        for area in solver.areas:
            own = solver.advertised_by(area, NodeId(node))
            inside = [item for item in own if item.path_type in _INSIDE]
            if inside:
                narrowest = max(inside, key=lambda a: (a.prefix.length, -a.metric))
                return narrowest.prefix, node
    what = "prefix" if family is None else f"{family_name(family)} prefix"
    raise CommandError("not-found", f"{text} advertises no {what}")


def _next(walker: Walker, prefix: Prefix, route: Route, node: int, head: int) -> Route | None:
    """Return the route of the next node, which ends, without next hops, at a border router.

    None: the node has no route.
    """
    if route.path_type in _BEYOND and head in route.destinations:
        metric = route.metric - walker.cost(node, head)
        return replace(route, metric=metric, nexthops=None)
    return walker.way(head, prefix)


def _follow(
    context: ViewContext, walker: Walker, prefix: Prefix, start: int, first: Route
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
                    raise CommandError("not-found", f"{context.node(head)} has no route: a loop?")
                routes[head] = found
                heapq.heappush(queue, (-found.metric, head))
            capacity, available, delay = walker.link(node, head)
            edges.append(
                PathEdge(
                    from_=context.node(node),
                    from_hostname=context.hostnames.get(node),
                    to=_node(context, head, prefix),
                    to_hostname=context.hostnames.get(head),
                    metric=route.metric - routes[head].metric,
                    capacity=capacity,
                    available=available,
                    share=round(share, 6),
                    delay=delay,
                )
            )
    return edges
