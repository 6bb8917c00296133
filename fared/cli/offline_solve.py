"""Computing routes from a saved database: solver and views of the daemon, no daemon."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from typing import Any

from fared.api.views import graph, routes
from fared.api.views.context import Runtime, ViewContext, area_name
from fared.cli.offline_world import World
from fared.config import Config
from fared.core.ids import NodeId, format_node
from fared.fib.model import FibState
from fared.rib.settings import SolverSettings
from fared.router.router import Router
from fared.ted.saved import Ignored

Json = dict[str, Any]


def solve(world: World, root: NodeId, settings: SolverSettings) -> ViewContext:
    """Compute one router's routes as its daemon would; the views read them from what returns."""
    router = Router(world.router_settings(root, settings), random.Random(0), 0.0, lambda: 0.0)
    for area, blocks in world.seen_from(root).items():
        for node, block in blocks.items():
            router.solver.put_block(area, node, block)
        if root in blocks:
            router.solver.set_local_links(area, world.local_links(area, root, blocks))
    router.solver.solve()
    return ViewContext(
        router=router,
        config=Config(),
        runtime=Runtime(started_at=0.0, pid=0, config_file="", loaded_at=0.0),
        now=0.0,
        wall=0.0,
        log=deque(),
        dump=FibState,
        links={},
        counters=dict,
        proto=next(iter(router.speakers)),
    )


def routes_document(world: World, root: NodeId, settings: SolverSettings) -> Json:
    """``fared-routes/1`` with ``nodes`` and ``ignored``."""
    context = solve(world, root, settings)
    found = graph.spf(context)["nodes"]
    document: Json = {**routes.routes(context)}
    for route in document["routes"]:
        _unname(route)
    document["nodes"] = found
    document["ignored"] = [
        {"key": key, "reason": reason}
        for key, reason in (*world.ignored, *_cut_off(context, found))
    ]
    return document


def _cut_off(context: ViewContext, found: list[Any]) -> Iterator[Ignored]:
    reached = {(node["area"], node["id"]) for node in found}
    solver, proto = context.router.solver, context.speakers[0].name
    for area in solver.areas:
        for node in solver.ted(area).blocks:
            if (area_name(proto, area), format_node(node)) not in reached:
                yield Ignored(format_node(node), "unreachable")


def explain_document(world: World, root: NodeId, settings: SolverSettings, prefix: str) -> Json:
    """``fared-explain/1``. Raises CommandError for a prefix that has no route or is none."""
    document: Json = {**routes.explain(solve(world, root, settings), prefix)}
    _unname(document)
    return document


def _unname(route: Json) -> None:
    """Links made up from the database have no interface name."""
    for hop in route["nexthops"]:
        hop["interface"] = hop["interface"] or None
