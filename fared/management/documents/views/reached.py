"""Which routers can compare their databases: those that reach one another in an area or level."""

from __future__ import annotations

from collections.abc import Iterator

from fared.core.ids import HOSTS_AREA, ISIS_NODE, format_node
from fared.management.documents.context import ViewContext
from fared.paths.spf.search import UNREACHABLE
from fared.router.instance import ProtocolInstance

_PSEUDONODE = 0xFF


def lowest_reached(context: ViewContext, instance: ProtocolInstance) -> Iterator[tuple[str, str]]:
    """Yield each area with the lowest id of a router that is reached there, this one included.

    It names the part of the area that this router is in: an area may have several, as that of the
    planes of a fabric has. A router that a reached one lists counts even if its own LSA or LSP is
    missing, since a database that lacks one must not pass for that of another part.
    """
    for area, plan in instance.solver.plans.items():
        if area >= HOSTS_AREA:
            continue
        ted, lowest = instance.solver.ted(area), int(instance.root)
        for node in plan.graph.nodes[plan.distance != UNREACHABLE].tolist():
            block = ted.block(node)
            if block is not None and len(block.neighbors):
                lowest = min(lowest, int(block.neighbors.min()))
        if lowest & ISIS_NODE:
            lowest &= ~_PSEUDONODE
        yield context.area_name(instance.name, area), format_node(lowest)
