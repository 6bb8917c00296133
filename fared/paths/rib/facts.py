"""Facts of routes that a border router advertises: metric, areas, and aggregate capacity.

The aggregate capacity is that of all paths together, so it can change while the next-hop set does
not.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fared.core.ids import BACKBONE
from fared.paths.spf.search import UNREACHABLE
from fared.paths.ted.events import AdvertisedRoute
from fared.paths.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fared.core.ids import NodeId
    from fared.paths.rib.area import AreaSolver
    from fared.paths.rib.model import NextHopSet
    from fared.paths.ted.model import NodeBlock

Egress = tuple[tuple[int, "NodeId", float], ...]
"""Egress nodes of a route: (area, node, capacity it advertises: bytes/s, infinite if none)."""


def aggregate_capacity(
    areas: Mapping[int, AreaSolver], egress: Egress, nexthops: NextHopSet | None
) -> float | None:
    """Return the capacity from the root to all egress nodes, bytes/s; None: unknown, unlimited."""
    if nexthops is None:
        return None
    total = 0.0
    for area, node, advertised in egress:
        solution = areas[area].solution
        assert solution is not None
        index = solution.plan.graph.index(node)
        flow = math.inf if index is None else solution.aggregate_capacities.item(index)
        # An unknown path capacity makes the total unknown, with any advertised capacity.
        total += math.nan if math.isnan(flow) else min(flow, advertised)
    hops = nexthops.hops
    known = [hop.capacity for hop in hops if hop.capacity is not None]
    if len(known) < len(hops) or not math.isfinite(total):
        return None
    return min(total, sum(known))


def find_asbrs(
    areas: Mapping[int, AreaSolver],
    described: Mapping[tuple[int, NodeId], NodeBlock],
    beyond: Iterable[int],
    root: NodeId,
) -> dict[NodeId, AdvertisedRoute]:
    """Return the preferred route to every AS boundary router (RFC 2328 §16.4 (3)).

    ``described``: the blocks of ASBRs and of border routers that advertise ASBRs; ``beyond``: the
    areas whose summaries are used.
    """
    found: dict[NodeId, tuple[tuple[bool, int, int], AdvertisedRoute]] = {}
    summarized = set(beyond)
    for (area, node), block in sorted(described.items()):
        distance = _distance(areas.get(area), node)
        if distance is None:
            continue
        # RFC 2328 §16.1 (4): an entry for each AS boundary router of the area
        ways = [(node, 0, PathType.INTRA_AREA)] if block.is_asbr else []
        # §16.2 (2): not the summaries that this router originates
        if area in summarized and node != root:
            ways += [(asbr, cost, PathType.INTER_AREA) for asbr, cost in block.asbr_routes]
        for asbr, cost, kind in ways:
            metric = distance + cost
            # §16.4.1: intra-area paths outside the backbone first, regardless of cost; §16.2 (6):
            # a summary does not replace an intra-area path
            inside = kind is PathType.INTRA_AREA and area != BACKBONE
            key = (not inside, int(kind), metric)
            best = found.get(asbr)
            if asbr == root or (best is not None and best[0] < key):
                continue
            # Deviation from §16.4 (3), which takes the largest area id: equal paths share the load.
            same = best is not None and best[0] == key
            before = best[1].areas if best is not None and same else ()
            at = tuple(sorted({*before, area}))
            found[asbr] = key, AdvertisedRoute(metric, kind, at, None)
    return {asbr: reached for asbr, (_, reached) in sorted(found.items())}


def _distance(solver: AreaSolver | None, node: NodeId) -> int | None:
    if solver is None or solver.solution is None:
        return None
    plan = solver.solution.plan
    index = plan.graph.index(node)
    if index is None:
        return None
    distance: int = plan.distance.item(index)
    return None if distance == UNREACHABLE else distance
