"""What a border router tells of its routes: metric, area, and how much they can carry.

Path capacities here are of all paths together, so they can change where no next-hop set does:
they are worked out for the whole table, once for each distinct destination.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fared.spf.plan import UNREACHABLE
from fared.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from fared.core.ids import NodeId
    from fared.rib.area import AreaSolver
    from fared.rib.model import NextHopSet
    from fared.ted.model import NodeBlock

Ends = tuple[tuple[int, "NodeId", float], ...]
"""(area, node, what the node announced: bytes/s, infinite if nothing) of a route."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A way to a prefix or an AS boundary router.

    ``areas`` are those of the next hops, ascending. ``capacity`` in bytes/s, None where it is
    unknown or unlimited.
    """

    metric: int
    path_type: PathType
    areas: tuple[int, ...]
    capacity: float | None


def carried(
    areas: Mapping[int, AreaSolver], ends: Ends, nexthops: NextHopSet | None
) -> float | None:
    """What the root can carry to all ends together, bytes/s: None if unknown or unlimited."""
    if nexthops is None:
        return None
    total = 0.0
    for area, node, announced in ends:
        solution = areas[area].solution
        assert solution is not None
        index = solution.plan.graph.index(node)
        flow = np.inf if index is None else float(areas[area].merged()[index])
        # What lies behind an end of unknown capacity is still a bound.
        total += min(flow, announced) if not np.isnan(flow) else np.nan
    shown = [hop.capacity for hop in nexthops.hops]
    if any(capacity is None for capacity in shown) or not np.isfinite(total):
        return None
    return min(total, sum(capacity for capacity in shown if capacity is not None))


def find_asbrs(
    areas: Mapping[int, AreaSolver],
    described: Mapping[tuple[int, NodeId], NodeBlock],
    beyond: Iterable[int],
    root: NodeId,
) -> dict[NodeId, Reached]:
    """The best way to every AS boundary router (RFC 2328 §16.2, §16.3, §16.4.1).

    ``described``: the blocks that are one or lead to one; ``beyond``: the areas whose border
    routers are believed.
    """
    found: dict[NodeId, tuple[tuple[int, int], Reached]] = {}
    believed = set(beyond)
    for (area, node), block in sorted(described.items()):
        distance = _distance(areas.get(area), node)
        if distance is None:
            continue
        ways = [(node, 0, PathType.INTRA_AREA)] if block.boundary else []
        if area in believed and node != root:
            ways += [(asbr, cost, PathType.INTER_AREA) for asbr, cost in block.leads_to]
        for asbr, cost, kind in ways:
            metric = distance + cost
            key = (int(kind), metric)
            best = found.get(asbr)
            if asbr == root or (best is not None and best[0] < key):
                continue
            same = best is not None and best[0] == key
            before = best[1].areas if best is not None and same else ()
            at = tuple(sorted({*before, area}))
            found[asbr] = key, Reached(metric, kind, at, None)
    return {asbr: reached for asbr, (_, reached) in sorted(found.items())}


def _distance(solver: AreaSolver | None, node: NodeId) -> int | None:
    if solver is None or solver.solution is None:
        return None
    plan = solver.solution.plan
    index = plan.graph.index(node)
    if index is None:
        return None
    distance: NDArray[np.int64] = plan.distance[index]
    return None if distance == UNREACHABLE else int(distance)
