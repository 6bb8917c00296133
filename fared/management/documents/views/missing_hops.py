"""Next hops that a route had before a link was lost: which of the lost links were on its paths.

A lost link was on a shortest path if the metrics before, on and after it add up to that of the
route, or less: the route is a detour now. Those of the present are used: a link to which a shorter
path has come is not missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from fared.core.ids import NodeId
from fared.core.link_text import link
from fared.management.documents.explain import MissingHop
from fared.management.documents.sliced import Work
from fared.management.documents.views.lost import lost_links
from fared.paths.spf.plan import SpfPlan
from fared.paths.spf.search import UNREACHABLE, shortest_paths

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.paths.rib.model import Route
    from fared.router.instance import ProtocolInstance
    from fared.router.lost import LostLink

_MOST: Final = 64
"""Lost links that are looked at, the last ones."""


def missing_hops(
    context: ViewContext, instance: ProtocolInstance, route: Route
) -> Work[list[MissingHop]]:
    """Return the neighbors that would be next hops of a route again, with their links."""
    if route.nexthops is None:
        return []
    known = yield from lost_links(context)
    present = {hop.neighbor for hop in route.nexthops.hops}
    found: dict[NodeId, LostLink] = {}
    for lost in known[-_MOST:]:
        yield
        plan = instance.solver.plans.get(lost.area)
        if plan is None or lost.protocol != instance.name:
            continue
        for hop in _first_hops(plan, lost, route, instance.root):
            if hop not in present:
                found[hop] = lost
    return [_entry(context, hop, lost) for hop, lost in found.items()]


def _entry(context: ViewContext, hop: NodeId, lost: LostLink) -> MissingHop:
    names = dict(zip((lost.a, lost.b), lost.names, strict=True))
    ends = [name or context.name(node) for node, name in names.items()]
    return MissingHop(
        id=context.node(hop),
        hostname=context.hostnames.get(hop) or names.get(hop),
        link=link(*ends),
        since=context.unix(lost.since),
    )


def _first_hops(plan: SpfPlan, lost: LostLink, route: Route, root: NodeId) -> Iterator[NodeId]:
    """Yield the neighbors with which paths over a lost link would begin, if they are no longer."""
    graph = plan.graph
    indexes = (graph.index(end) for end in route.destinations)
    ends = [end for end in indexes if end is not None and plan.distance[end] != UNREACHABLE]
    longest = max((int(plan.distance[end]) for end in ends), default=-1)
    for tail, head, metric in (
        (lost.a, lost.b, lost.metrics[0]),
        (lost.b, lost.a, lost.metrics[1]),
    ):
        start, beyond = graph.index(tail), graph.index(head)
        if start is None or beyond is None or plan.distance[start] == UNREACHABLE:
            continue
        there = int(plan.distance[start]) + metric
        if there > longest:
            continue
        after, _ = shortest_paths(graph, beyond)
        if any(there + int(after[end]) <= int(plan.distance[end]) for end in ends):
            yield from [head] if tail == root else graph.nodes[plan.first_hops(start)].tolist()
