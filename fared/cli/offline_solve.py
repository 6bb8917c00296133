"""Computing routes from a saved database: blocks, solver and views of the daemon, no daemon."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fared.api.views import graph, routes
from fared.api.views.context import Runtime, ViewContext
from fared.cli.offline_file import Database
from fared.config import Config
from fared.core.ids import NETWORK_NODE, AreaId, NodeId, RouterId, dotted, format_node
from fared.fib.model import FibState
from fared.ospf.offline import build_blocks, links_of_interfaces
from fared.ospf.settings import OspfSettings
from fared.ospf.whatif import apply, apply_to_interfaces
from fared.rib.settings import SolverSettings
from fared.router.router import Router
from fared.router.settings import RouterSettings
from fared.ted.model import LocalLink
from fared.ted.saved import Blocks, Ignored, links_of_block, one_way, overloaded
from fared.ted.whatif import Changes

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class World:
    """A database under some assumptions, ready to be computed from any root.

    ``ignored`` is what counts from nowhere; what is unreachable depends on the root.
    """

    database: Database
    changes: Changes
    blocks: dict[AreaId, Blocks]
    ignored: tuple[Ignored, ...]

    @property
    def routers(self) -> list[NodeId]:
        """All routers with a router LSA, ascending."""
        return [node for node in self.nodes if not node & NETWORK_NODE]

    @property
    def nodes(self) -> list[NodeId]:
        """All routers with a router LSA, and networks with a network LSA, ascending."""
        return sorted({node for blocks in self.blocks.values() for node in blocks})

    @property
    def hostnames(self) -> dict[NodeId, str]:
        """Dynamic hostnames (RFC 5642) by router id."""
        return {
            node: block.hostname
            for blocks in self.blocks.values()
            for node, block in blocks.items()
            if block.hostname
        }


def build_world(database: Database, area: AreaId | None, changes: Changes) -> World:
    """Apply changes to one area or all and build the graph's blocks."""
    areas = [contents for contents in database.areas if area in (None, contents.area)]
    blocks = build_blocks(
        (apply(contents, changes) for contents in areas), apply(database.as_scope, changes)
    )
    ignored = [item for at, item in database.ignored if area in (None, at) or at is None]
    for found in blocks.values():
        ignored += one_way(found)
        ignored += overloaded(found)
    return World(database, changes, blocks, tuple(ignored))


def solve(world: World, root: NodeId, settings: SolverSettings) -> ViewContext:
    """Compute one router's routes as its daemon would; the views read them from what returns."""
    router_settings = RouterSettings(ospf=OspfSettings(RouterId(root)), solver=settings)
    router = Router(router_settings, random.Random(0), 0.0, lambda: 0.0)
    for area, blocks in world.blocks.items():
        for node, block in blocks.items():
            router.solver.put_block(area, node, block)
        if root in blocks:
            router.solver.set_local_links(area, _local_links(world, area, root))
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
    )


def _local_links(world: World, area: AreaId, root: NodeId) -> tuple[LocalLink, ...]:
    blocks = world.blocks[area]
    database = world.database
    if root == database.router_id and database.interfaces:
        own = [interface for interface in database.interfaces if interface.area == area]
        return links_of_interfaces(blocks[root], apply_to_interfaces(own, root, world.changes))
    return links_of_block(blocks[root], blocks)


def routes_document(world: World, root: NodeId, settings: SolverSettings) -> Json:
    """``fared-routes/1`` with ``nodes`` and ``ignored``."""
    context = solve(world, root, settings)
    found = graph.spf(context)["nodes"]
    document: Json = {**routes.routes(context)}
    for route in document["routes"]:
        _unname(route)
    document["nodes"] = found
    document["ignored"] = [
        {"key": key, "reason": reason} for key, reason in (*world.ignored, *_cut_off(world, found))
    ]
    return document


def _cut_off(world: World, found: list[Any]) -> Iterator[Ignored]:
    reached = {(node["area"], node["id"]) for node in found}
    for area, blocks in world.blocks.items():
        for node in blocks:
            if (dotted(area), format_node(node)) not in reached:
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
