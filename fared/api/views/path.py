"""``path SRC DST``: the way of traffic through the fabric, as every node on it splits.

Each router's split is computed here from the flooded database with the very solver it runs
itself, so the answer is what the fabric does, as far as the database knows it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace

from fared.api.control import CommandError
from fared.api.schema import path as schema
from fared.api.views.context import ViewContext, family_name, family_number, finite
from fared.core.ids import FAMILY_IPV4, NodeId, Prefix
from fared.rib.model import Route
from fared.rib.solver import Announcements, RouteSolver
from fared.router.speaker import ISIS, OSPF, Speaker
from fared.ted.model import PathType, PrefixAttachment
from fared.ted.saved import links_of_block

MAX_NODES = 512
_BEYOND = (PathType.INTER_AREA, PathType.EXTERNAL_1, PathType.EXTERNAL_2)
"""Where a route leads out of what OSPF knows; IS-IS shows what a router of both levels sees."""
_INSIDE = (PathType.INTRA_AREA, PathType.LEVEL_1, PathType.LEVEL_2)


class Walker:
    """Solves the routes of one node after the other, from the same blocks.

    ``speaker`` says by which protocol; all nodes are taken to use that one.
    """

    def __init__(self, context: ViewContext, speaker: Speaker, prefix: Prefix) -> None:
        solver = speaker.solver_of(prefix)
        assert solver is not None, "the prefix is of a family that the protocol routes"
        self._solver = solver
        self._proto = speaker.name
        self._announced = _announced(solver, prefix)
        if speaker.name == ISIS:
            for level, leaked in _own_words(context, prefix).items():
                self._announced[level, speaker.root] = leaked

    def route(self, node: int, prefix: Prefix) -> Route | None:
        """The route of ``node`` to ``prefix``."""
        return self._solve(node, prefix).routes.get(prefix)

    def way(self, node: int, prefix: Prefix) -> Route | None:
        """The same with a metric that falls along the way: that of external type 2 does not."""
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
        announced = self._announced if self._proto == OSPF else self._of_its_own(root)
        solver = self._solver.seen_from(root, announced)
        for area in self._solver.areas:
            blocks = dict(self._solver.ted(area).blocks)
            own = blocks.get(root)
            links = () if own is None else links_of_block(own, blocks, prefix.family)
            solver.set_local_links(area, links)
        solver.solve()
        return solver

    def _of_its_own(self, node: NodeId) -> Announcements:
        """What a router of both levels goes by: not what it leaks from one into the other.

        What somebody else announces in the other level was learnt there.
        """
        levels = [area for area in self._solver.areas if node in self._solver.ted(area).blocks]
        learnt = [
            (area, node)
            for area in levels
            if any(far != node and level != area and level in levels for level, far in self._known)
        ]
        return {at: found for at, found in self._announced.items() if at not in learnt}

    @property
    def _known(self) -> Iterator[tuple[int, NodeId]]:
        """Who announces the prefix, in which area."""
        return (at for at, found in self._announced.items() if found)

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


def _announced(solver: RouteSolver, prefix: Prefix) -> Announcements:
    """Who announces a prefix: the others are most of the work and do not matter.

    Where one has a forwarding address all count: the way to that may be any of them.
    """
    everything: Announcements = {
        (area, node): block.prefixes
        for area in solver.areas
        for node, block in solver.ted(area).blocks.items()
    }
    matching: Announcements = {}
    for at, prefixes in everything.items():
        found = tuple(attached for attached in prefixes if attached.prefix == prefix)
        if any(attached.forward for attached in found):
            return everything
        if found:
            matching[at] = found
    return matching


def _own_words(context: ViewContext, prefix: Prefix) -> dict[int, tuple[PrefixAttachment, ...]]:
    """What this router announces of a prefix in each level: its own blocks lack what it leaks."""
    from fared.isis.described import describe  # noqa: PLC0415 - only where IS-IS runs

    settings = context.router.settings.isis
    code = None if settings is None else settings.path_capacity_code
    return {
        view.level: tuple(
            attached
            for stored in view.lsps
            if stored.own and not stored.purged
            for several in describe(stored.lsp, own=False, capacity_code=code).prefixes.values()
            for attached in several
            if attached.prefix == prefix
        )
        for view in context.isis.databases
    }


def path(
    context: ViewContext, source: str, destination: str, af: str | None = None
) -> schema.PathDocument:
    """Follow all shortest paths. Raises CommandError where there is none."""
    speaker, start, prefix, goal = _ends(context, source, destination, family_number(af))
    walker = Walker(context, speaker, prefix)
    first = walker.route(start, prefix)
    way = walker.way(start, prefix)
    if first is None or way is None:
        raise CommandError("not-found", f"{source} has no route to {destination}")
    edges = _follow(context, walker, start, way)
    known = [(e["capacity"], e["share"]) for e in edges if e["share"]]
    limits = [capacity / share for capacity, share in known if capacity is not None]
    return {
        "format": "fared-path/1",
        "protocol": speaker.name,
        "af": family_name(prefix.family),
        "prefix": str(prefix),
        "source": context.node(start),
        "source_hostname": context.hostnames.get(start),
        "destination": context.node(goal),
        "destination_hostname": context.hostnames.get(goal),
        "metric": first.metric,
        "capacity": min(limits) if limits and len(limits) == len(known) else None,
        "edges": edges,
    }


def _ends(
    context: ViewContext, source: str, destination: str, family: int | None
) -> tuple[Speaker, int, Prefix, int]:
    """Protocol, first node, the prefix to follow and the node it stands for.

    The protocol is the most preferred one that knows both ends. Raises CommandError.
    """
    preferences = context.router.settings.preferences
    reason: CommandError | None = None
    for speaker in sorted(context.speakers, key=lambda known: preferences[known.name]):
        here = context.narrowed(speaker.name)
        start = here.find_node(source, speaker)
        if start is None:
            continue
        try:
            return speaker, start, *_goal(here, speaker, destination, family)
        except CommandError as error:
            reason = reason or error
    raise reason or CommandError("not-found", f"no router {source!r} in the database")


def _goal(
    context: ViewContext, speaker: Speaker, text: str, family: int | None
) -> tuple[Prefix, int]:
    node = context.find_node(text, speaker)
    if node is None:
        try:
            prefix = context.find_route(text)
        except CommandError as error:
            if error.code == "bad-argument":
                message = f"no router {text!r} in the database, and it is no prefix"
                raise CommandError("not-found", message) from None
            raise
        return prefix, context.routes[prefix].destinations[0]
    for known, solver in sorted(speaker.solvers.items(), key=lambda item: item[0] != FAMILY_IPV4):
        if family not in (None, known):
            continue
        for area in solver.areas:
            block = solver.ted(area).block(NodeId(node))
            own = () if block is None else block.prefixes
            inside = [item for item in own if item.path_type in _INSIDE]
            if inside:
                narrowest = max(inside, key=lambda a: (a.prefix.length, -a.metric))
                return narrowest.prefix, node
    what = "prefix" if family is None else f"{family_name(family)} prefix"
    raise CommandError("not-found", f"{text} announces no {what}")


def _next(walker: Walker, route: Route, node: int, head: int) -> Route | None:
    """The route of the next node; at a border or boundary router what can be known ends."""
    if route.path_type in _BEYOND and head in route.destinations:
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
