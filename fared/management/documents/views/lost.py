"""The view of missing links: those that databases had, and those that siblings have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from fared.core.ids import NodeId, format_node, is_group
from fared.management.documents.lost import MissingLink
from fared.management.documents.sliced import Work
from fared.router.lost import LostLink

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.management.documents.views.fabric_image import FabricImage
    from fared.paths.ted.siblings import Lacking

_Pair = tuple[NodeId, NodeId]


class _Missed(msgspec.Struct):
    """What is known of a pair of routers without a link, or with fewer than it had."""

    lost: LostLink | None = None
    lacking: Lacking | None = None


def lost_links(context: ViewContext) -> Work[list[LostLink]]:
    """Return the lost links of the requested protocols, the earliest first.

    A path of BGP that is withdrawn is no lost link.
    """
    changes = context.router.changes
    yield from changes.settled()
    names = {instance.name for instance in context.instances}
    return [
        link
        for link in changes.lost.present(context.now)
        if link.protocol in names and not (is_group(link.a) or is_group(link.b))
    ]


def missing_links(
    image: FabricImage,
    lost: Iterable[LostLink],
    lacks: Iterable[Lacking],
    unix: Callable[[float], float],
) -> list[MissingLink]:
    """Return what a fabric misses, by pair; ``unix`` converts the router's clock."""
    missed: dict[_Pair, _Missed] = {}
    neighbors = image.neighbors
    first = image.first
    for link in lost:
        pair = _pair(first.get(link.a, link.a), first.get(link.b, link.b))
        if image.one_protocol or pair[1] not in neighbors.get(pair[0], ()):
            missed.setdefault(pair, _Missed()).lost = link
    for each in lacks:
        missed.setdefault(_pair(each.node, each.end), _Missed()).lacking = each
    return [_entry(image, pair, found, unix) for pair, found in sorted(missed.items())]


def in_area(
    context: ViewContext, lost: Iterable[LostLink], protocol: str, area: int
) -> list[MissingLink]:
    """Return the lost links of one area or level."""
    return [
        MissingLink.of(
            link,
            from_=context.node(link.a),
            to=context.node(link.b),
            from_hostname=link.names[0],
            to_hostname=link.names[1],
            since=context.unix(link.since),
            **_UNCOMPARED,
        )
        for link in lost
        if (link.protocol, link.area) == (protocol, area)
    ]


_UNCOMPARED: Mapping[str, None] = MappingProxyType(
    dict.fromkeys(("have", "siblings", "sibling_of", "alone"))
)


def _entry(
    image: FabricImage, pair: _Pair, missed: _Missed, unix: Callable[[float], float]
) -> MissingLink:
    lost, lacks = missed.lost, missed.lacking
    names = _names(image, pair, lost)
    alone = [node for node in pair if not image.neighbors.get(node)]
    return MissingLink(
        from_=format_node(pair[0]),
        to=format_node(pair[1]),
        from_hostname=names[0],
        to_hostname=names[1],
        links=None if lost is None else lost.links,
        since=None if lost is None else unix(lost.since),
        have=None if lacks is None else lacks.have,
        siblings=None if lacks is None else lacks.siblings,
        sibling_of=None if lacks is None else format_node(lacks.node),
        alone=format_node(alone[0]) if len(alone) == 1 else None,
    )


def _names(image: FabricImage, pair: _Pair, lost: LostLink | None) -> list[str | None]:
    """Return the hostnames, the last known ones of routers that have left."""
    known: dict[NodeId, str | None] = {}
    if lost is not None:
        ends = (image.first.get(node, node) for node in (lost.a, lost.b))
        known.update(zip(ends, lost.names, strict=True))
    for node in pair:
        vertex = image.vertices.get(node)
        if vertex is not None:
            known[node] = next((b.hostname for b in vertex.blocks if b.hostname), None)
    return [known.get(node) for node in pair]


def _pair(a: NodeId, b: NodeId) -> _Pair:
    return (a, b) if a < b else (b, a)
