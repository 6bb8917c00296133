"""The view of the weakest pair: the two leaves that have the least path capacity between them.

Pairs are looked at within an area or level, whose graph routes are computed from too: what a leaf
has to one of another area, its own area does not say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fared.core.ids import NodeId, format_node
from fared.management.documents.fabric import WeakestPair
from fared.management.documents.views.fabric_image import FabricImage
from fared.paths.weights.pairs import PairCapacities, all_pairs
from fared.paths.weights.path_capacity import WeightMode
from fared.router.protocols import BGP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.management.documents.context import ViewContext
    from fared.management.documents.sliced import Work
    from fared.paths.ted.database import Ted
    from fared.paths.ted.graph import Graph


def weakest_pair(context: ViewContext, image: FabricImage) -> Work[WeakestPair | None]:
    """Return the weakest pair of the lowest tier, or of all routers if there are no tiers.

    None: there is no pair of known capacity, weights do not follow capacity, or it takes too long
    to compare all.
    """
    if context.router.settings.solver.mode is WeightMode.NONE:
        return None
    found, seen = PairCapacities(), set[NodeId]()
    areas = ((ted.graph(), ends) for ted, ends in _areas(context, image))
    for graph, ends in sorted(areas, key=lambda area: -len(area[1])):
        nodes = {image.first[NodeId(node)] for node in graph.nodes[ends].tolist()}
        # one protocol or level beside another one, with the same routers
        if len(nodes & seen) > 1:
            continue
        seen |= nodes
        if not (yield from all_pairs(graph, ends, found)):
            return None
    if not found.pairs:
        return None
    tail, head = (image.vertices[image.first[NodeId(end)]] for end in found.ends)
    return WeakestPair.of(
        found,
        from_=format_node(tail.node),
        from_hostname=context.hostnames.get(tail.node),
        to=format_node(head.node),
        to_hostname=context.hostnames.get(head.node),
        capacity=found.least,
    )


def areas_and_ends(
    context: ViewContext, image: FabricImage
) -> Iterator[tuple[Ted, NDArray[np.int64]]]:
    """Yield the same; where none of them is in an area, as between sites, all of its routers."""
    for ted, ends in _areas(context, image):
        graph = ted.graph()
        yield ted, ends if len(ends) > 1 else np.flatnonzero(_alive(graph))


def _areas(context: ViewContext, image: FabricImage) -> Iterator[tuple[Ted, NDArray[np.int64]]]:
    """Yield the database of each area, the preferred protocol first, and who counts there."""
    preferences, places = context.router.preferences, image.shape.places
    lowest = min((place.tier for place in places.values()), default=None)

    def counts(node: NodeId) -> bool:
        place = places.get(image.first.get(node, node))
        return node in image.first and (lowest is None or (place and place.tier) == lowest)

    # BGP knows no links between others
    known = [instance for instance in context.instances if instance.name != BGP]
    for instance in sorted(known, key=lambda known: preferences[known.name]):
        solver = instance.solver
        for area in solver.areas:
            ted = solver.ted(area)
            graph = ted.graph()
            wanted = [counts(NodeId(node)) for node in graph.nodes.tolist()]
            yield ted, np.flatnonzero(_alive(graph) & np.array(wanted, bool))


def _alive(graph: Graph) -> NDArray[np.bool_]:
    """Which nodes are routers with a link (N,)."""
    alive: NDArray[np.bool_] = ~graph.network & (np.diff(graph.indptr) > 0)
    return alive
