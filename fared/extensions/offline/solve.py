"""Computing routes from a saved database, with the solver and views of the daemon."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from msgspec.structs import replace

from fared.config import Config
from fared.core.bier import CODE_OF, LENGTHS, BierSettings
from fared.core.ids import FAMILY_IPV4, NodeId, format_node
from fared.daemon.loop.runtime import Runtime
from fared.extensions.offline.documents import IgnoredEntry, OfflineBier, OfflineRoutes
from fared.extensions.offline.ignored import Ignored
from fared.extensions.offline.world import World
from fared.management.documents.context import ViewContext
from fared.management.documents.explain import Explain
from fared.management.documents.log_ring import LogRing
from fared.management.documents.spf import SpfNode
from fared.management.documents.views import explain, graph, routes
from fared.management.documents.views.bier import bier
from fared.paths.fib.model import FibState
from fared.paths.fib.settings import FibSettings
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import WeightMode
from fared.paths.ted.links import networks_of_block
from fared.router.router import Router


def solve(
    world: World,
    root: NodeId,
    settings: SolverSettings,
    bier: BierSettings | None = None,
    max_groups: int | None = None,
) -> ViewContext:
    """Compute the routes of a router as its daemon does. The result is the context of the views.

    In ``max_groups`` groups the routes of this protocol and family have the weights that they get
    together: those of a router that starts.
    """
    made = replace(world.router_settings(root, settings), bier=bier)
    if max_groups is not None:
        most, whole = settings.max_weight, settings.max_group_size
        bounds = FibSettings(max_weight=most, max_group_size=whole, max_groups=max_groups)
        made = replace(made, fib=bounds)
    router = Router(made, random.Random(0), 0.0, lambda: 0.0)
    (instance,) = router.instances.values()
    # weights are those for the load in the database: no time passes in which they could follow it
    instance.apply_settings(replace(settings, mode=WeightMode.CAPACITY))
    instance.solver.apply_settings(settings)
    for area, blocks in world.seen_from(root).items():
        for node, block in blocks.items():
            router.solver.put_block(area, node, block)
        if root in blocks:
            links = world.local_links(area, root, blocks)
            router.solver.set_local_links(area, links)
            if world.family == FAMILY_IPV4:
                networks = networks_of_block(blocks[root], blocks, links)
                router.solver.set_local_networks(area, networks)
    instance.solve()
    if max_groups is not None:
        router.planner.update({}, 0.0)
    if router.multicast.bier is not None:
        _compute_bier(router, world)
    return ViewContext(
        router=router,
        config=Config(),
        runtime=Runtime(started_at=0.0, pid=0, config_file="", loaded_at=0.0),
        now=0.0,
        wall=0.0,
        log=LogRing(0),
        dump=FibState,
        links={},
        counters=dict,
        proto=instance.name,
    )


def _compute_bier(router: Router, world: World) -> None:
    (name,) = router.instances
    for update in world.bier():
        router.multicast.advertised(name, update)
    router.multicast.process(0.0, frozen=True)


def bier_document(
    world: World, root: NodeId, settings: SolverSettings, sub_domain: int
) -> OfflineBier | None:
    """``fared-bier/1`` with the BIFTs of a router; None if nobody is in the sub-domain.

    The length of bit strings is the most frequent one. Hosts of the root count as itself.
    """
    infos = [
        (update.node, prefix, info)
        for update in world.bier()
        for prefix, known in update.prefixes.items()
        for info in known
        if info.sub_domain == sub_domain
    ]
    if not infos:
        return None
    codes = Counter(each.length_code for _, _, info in infos for each in info.encapsulations)
    lengths = [length for length, code in CODE_OF.items() if code in codes]
    length = max(lengths, key=lambda known: codes[CODE_OF[known]], default=LENGTHS[0])
    metric = {p.prefix: p.metric for block in world.described(root) for p in block.prefixes}
    mine = [(metric.get(at, 0), at, info.bfr_id) for node, at, info in infos if node == root]
    own = min(mine)[-1] if mine else 0  # that of its loopback: hosts have a metric
    found = bier(solve(world, root, settings, BierSettings(sub_domain, own, length)), bift=True)
    return OfflineBier.of(found, root=format_node(root))


def routes_document(
    world: World, root: NodeId, settings: SolverSettings, max_groups: int | None = None
) -> OfflineRoutes:
    """``fared-routes/1`` with ``nodes`` and ``ignored``; it keeps nothing of the router."""
    context = solve(world, root, settings, max_groups=max_groups)
    nodes = graph.spf(context).nodes or []
    found = routes.routes(context)
    rows = list(found.routes)
    shared = {id(row.nexthops): row.nexthops for row in rows}
    hops = {key: list(shown) for key, shown in shared.items()}
    for row in rows:
        row.nexthops = hops[id(row.nexthops)]
    ignored = (*world.ignored, *_cut_off(context, nodes))
    return OfflineRoutes(
        root=found.root,
        af=found.af,
        routes=rows,
        nodes=nodes,
        ignored=[IgnoredEntry(key=key, reason=reason) for key, reason in ignored],
    )


def _cut_off(context: ViewContext, found: list[SpfNode]) -> Iterator[Ignored]:
    reached = {(node.area, node.id) for node in found}
    solver, proto = context.router.solver, context.instances[0].name
    for area in solver.areas:
        for node in solver.ted(area).blocks:
            if (context.area_name(proto, area), format_node(node)) not in reached:
                yield Ignored(format_node(node), "unreachable")


def explain_document(
    world: World,
    root: NodeId,
    settings: SolverSettings,
    prefix: str,
    max_groups: int | None = None,
) -> Explain:
    """``fared-explain/1``. Raises CommandError for an invalid prefix or one without a route."""
    return explain.explain(solve(world, root, settings, max_groups=max_groups), prefix)
