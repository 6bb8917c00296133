"""The view of the longest path: the two routers with the longest delay between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from fared.core.ids import NodeId, format_node
from fared.management.documents.fabric import LongestPath
from fared.management.documents.views.fabric_image import FabricImage
from fared.management.documents.views.weakest import areas_and_ends
from fared.paths.weights.longest import LongestPair, longest_of

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.management.documents.sliced import Work


def longest_path(context: ViewContext, image: FabricImage) -> Work[LongestPath | UnsetType]:
    """Return the longest path of all areas; UNSET: no link has a delay, or it takes too long."""
    found = LongestPair()
    for ted, ends in areas_and_ends(context, image):
        delay = ted.delays()
        if delay is not None and not (yield from longest_of(ted.graph(), delay, ends, found)):
            return UNSET
    if not found.delay:
        return UNSET
    tail, head = (image.vertices[image.first[NodeId(end)]] for end in found.ends)
    return LongestPath(
        from_=format_node(tail.node),
        from_hostname=context.hostnames.get(tail.node),
        to=format_node(head.node),
        to_hostname=context.hostnames.get(head.node),
        delay=round(found.delay / 1e6, 6),
    )
