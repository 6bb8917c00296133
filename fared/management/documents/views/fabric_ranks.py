"""What tells leaves from super-spines: prefixes of their own, and areas or levels.

A router knows only its own areas. A leaf sees its pod, and that the spines are border routers. A
super-spine sees its plane, and that the spines below it are. A spine sees both.
"""

from __future__ import annotations

from collections.abc import Mapping

from fared.core.ids import NodeId
from fared.management.documents.context import ViewContext
from fared.paths.ted.stages import BORDER, CORE, INNER
from fared.router.instance import ProtocolInstance


def heights(context: ViewContext) -> dict[NodeId, int]:
    """Return INNER, BORDER or CORE for routers of protocols with border routers, by node id."""
    found: dict[NodeId, int] = {}
    for instance in context.instances:
        found.update(_heights(instance))
    return found


def _heights(instance: ProtocolInstance) -> dict[NodeId, int]:
    """Those of one protocol; none if it has no border router."""
    borders = {node for _, node in instance.engine.borders()}
    areas = {area for solver in instance.solvers.values() for area in solver.areas}
    if not borders and len(areas) == 1:
        return {}
    found: dict[NodeId, int] = {}
    at: dict[NodeId, int] = {}
    for solver in instance.solvers.values():
        for area in solver.areas:
            height = CORE if area == instance.protocol.backbone else INNER
            for node in solver.ted(area).blocks:
                several = at.setdefault(node, area) != area
                found[node] = BORDER if several or node in borders else height
    return found if BORDER in found.values() else {}


def own_hosts(
    context: ViewContext, first: Mapping[NodeId, NodeId], high: Mapping[NodeId, int]
) -> dict[NodeId, int]:
    """Return how many prefixes each vertex has that no other router advertises.

    ``high`` are the heights of vertices. In level 2, prefixes that a border router readvertises
    look like its own ones: of these, only its loopback counts.
    """
    found: dict[NodeId, int] = {}
    for instance in context.instances:
        externals = list(instance.engine.externals())
        for solver in instance.solvers.values():
            for node, count in solver.own_prefixes(externals).items():
                vertex = first.get(node, node)
                found[vertex] = max(found.get(vertex, 0), count)
    borders = [node for node in found if high.get(node) == BORDER]
    # if all are border routers, they are compared with each other
    return found | dict.fromkeys(borders, 1) if len(borders) < len(found) else found
