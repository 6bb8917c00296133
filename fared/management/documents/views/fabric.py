"""The view of the fabric, as the areas of this router show it.

Routers have their places, links capacity, load and state. Rows are made where they are read: the
document in slices (``Rows``), the changes between two images for changed routers only
(``fabric_changes``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import UNSET, UnsetType

from fared.core.ids import NodeId, format_node
from fared.core.units import MIN_CAPACITY, format_bandwidth
from fared.management.documents.context import ViewContext, seconds
from fared.management.documents.each import views_of
from fared.management.documents.fabric import (
    FabricDocument,
    FabricNode,
    LinkColumns,
    LinkMark,
)
from fared.management.documents.lost import MissingLink
from fared.management.documents.rows import Rows
from fared.management.documents.sliced import Sliced, Work, beside
from fared.management.documents.views.fabric_image import (
    FabricImage,
    FabricLinkRow,
    FabricVertex,
    image_of,
    link_rows,
    name_of,
    sight,
)
from fared.management.documents.views.fabric_marks import UnusualLink
from fared.management.documents.views.host_links import oversubscription
from fared.management.documents.views.longest import longest_path
from fared.management.documents.views.lost import lost_links, missing_links
from fared.management.documents.views.weakest import weakest_pair
from fared.paths.ted.model import MAX_LINK_METRIC
from fared.paths.ted.siblings import lacking
from fared.paths.ted.tiers import ROLES
from fared.router.lost import LostLink

_LEAST = MIN_CAPACITY * 1.5
"""A drained link is advertised with the least capacity."""
_REDUCED = 0.9
"""Less than this part of what is usual is reduced."""


@Sliced
def fabric(context: ViewContext) -> Work[FabricDocument]:
    """``show fabric``."""
    image = yield from beside(partial(image_of, sight(context)))
    lost = yield from lost_links(context)
    missing = yield from beside(partial(missing_of, image, lost, context.unix))
    return FabricDocument(
        router_id=context.root,
        hostname=context.router.settings.hostname or "",
        at=context.wall,
        clos=bool(image.shape.places),
        nodes=Rows(list(image.vertices.values()), lambda vertex: node_row(image, vertex)),
        missing=missing,
        jobs=[job for plugged in context.plugged.values() for job in plugged.drawn()],
        oversubscription=oversubscription(
            context, (views.census(context) for _, views in views_of(context))
        ),
        weakest=(yield from weakest_pair(context, image)),
        longest=(yield from longest_path(context, image)),
    )


def missing_of(
    image: FabricImage, lost: list[LostLink], unix: Callable[[float], float]
) -> list[MissingLink]:
    """Return the links that were there, and those that siblings have."""
    return missing_links(image, lost, lacking(image.neighbors, image.shape.places), unix)


def mark_of(
    image: FabricImage, vertex: FabricVertex, end: NodeId, row: FabricLinkRow
) -> UnusualLink | None:
    """Return what is unusual about a link; None: nothing."""
    far = image.vertices.get(end)
    if far is None or vertex.node not in far.ends:
        return UnusualLink("one-way", "the other end does not confirm it")
    if vertex.node == image.here and end in image.own:
        return image.own[end]
    why = _drained(vertex, far, row)
    return _reduced(image, vertex, end, row) if why is None else UnusualLink("drained", why)


def _drained(vertex: FabricVertex, far: FabricVertex, row: FabricLinkRow) -> str | None:
    for each in (vertex, far):
        if not each.transit:
            return f"paths may end at {name_of(each)}, not cross it"
        if each.last_resort:
            return f"paths cross {name_of(each)} where there is no other way"
    if row.metric >= MAX_LINK_METRIC:
        return "no path crosses a link of its metric"
    if row.capacity <= _LEAST * row.links:
        return "it is used where there is no other path"
    return None


def _reduced(
    image: FabricImage, vertex: FabricVertex, end: NodeId, row: FabricLinkRow
) -> UnusualLink | None:
    places = image.shape.places
    near, far = (places[n].tier if n in places else None for n in (vertex.node, end))
    usual = image.shape.usual.get((near, far))
    if usual is None or not row.capacity < usual * row.links * _REDUCED:
        return None
    part = row.capacity / (usual * row.links)
    text = format_bandwidth(usual * row.links)
    return UnusualLink("reduced", f"{part:.0%} of the {text} that are usual")


def node_row(image: FabricImage, vertex: FabricVertex) -> FabricNode:
    """Make the entry of one router."""
    place = image.shape.places.get(vertex.node)
    found = link_rows(image, vertex)
    marks = ((end, mark_of(image, vertex, end, row)) for end, row in found.items())
    ids = list(dict.fromkeys(block.node for block in vertex.blocks))
    return FabricNode(
        id=format_node(vertex.node),
        ids=[format_node(node) for node in ids],
        hostname=next((b.hostname for b in vertex.blocks if b.hostname), None),
        network=vertex.blocks[0].network,
        here=vertex.node == image.here,
        transit=vertex.transit,
        last_resort=vertex.last_resort,
        prefixes=max(image.seen.prefixes.get(node, 0) for node in ids),
        tier=None if place is None else place.tier,
        role=None if place is None else ROLES[place.tier],
        pod=None if place is None else place.pod,
        plane=None if place is None else place.plane,
        links=LinkColumns(
            to=[format_node(end) for end in found],
            count=[row.links for row in found.values()],
            metric=[row.metric for row in found.values()],
            capacity=[known(row.capacity) for row in found.values()],
            available=[known(row.available) for row in found.values()],
            delay=_delays([row.delay for row in found.values()]),
            marks=[
                LinkMark(to=format_node(end), state=mark.state, reason=mark.reason)
                for end, mark in marks
                if mark is not None
            ],
        ),
    )


def _delays(found: list[float]) -> list[float | None] | UnsetType:
    delays = [seconds(delay) for delay in found]
    if all(delay is UNSET for delay in delays):
        return UNSET
    return [None if delay is UNSET else delay for delay in delays]


def known(value: float) -> float | None:
    """Return whole bytes/s for JSON: a sixth of the size of floats; NaN is unknown."""
    return float(round(value)) if value == value else None  # noqa: PLR0124 - NaN
