"""What changed between two images of the fabric: the data of an event ``delta``.

Routers whose blocks are the same objects are skipped, and of one whose links are the same only
those rows are compared whose bandwidths differ. So a step costs what changed, not what there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from fared.core.ids import NodeId, format_node
from fared.management.documents.context import seconds
from fared.management.documents.fabric import FabricLink
from fared.management.documents.views.fabric import known, mark_of
from fared.management.documents.views.fabric_image import (
    FabricImage,
    FabricLinkRow,
    FabricVertex,
    link_rows,
    name_of,
)
from fared.paths.ted.compare import same_delays
from fared.paths.ted.model import NodeBlock


def is_other(old: FabricImage, new: FabricImage) -> bool:
    """Whether routers, places or usual capacities differ: then all must be read again."""
    return (
        old.vertices.keys() != new.vertices.keys()
        or old.shape.places != new.shape.places
        or old.shape.usual != new.shape.usual
        or old.first != new.first
        or any(
            vertex is not new.vertices[node] and _role(vertex) != _role(new.vertices[node])
            for node, vertex in old.vertices.items()
        )
    )


def changed_nodes(old: FabricImage, new: FabricImage) -> list[NodeId]:
    """Return the routers of whose links some may have changed, ascending."""
    found: set[NodeId] = set()
    for node, vertex in new.vertices.items():
        before = old.vertices[node]
        if before is not vertex:
            found.add(node)
            found |= (before.ends ^ vertex.ends) & new.vertices.keys()
    if old.own != new.own:
        found.add(new.here)
    return sorted(found)


def changed_links(
    old: FabricImage, new: FabricImage, node: NodeId
) -> Iterator[FabricLink | tuple[str, str]]:
    """Yield the links of a router that changed; the ends of those that it has no more."""
    before, after = old.vertices[node], new.vertices[node]
    ends = _touched(old, new, before, after)
    rows_before, rows_after = link_rows(old, before, ends), link_rows(new, after, ends)
    tail = format_node(node)
    for end in sorted(rows_before.keys() | rows_after.keys()):
        row = rows_after.get(end)
        if row is None:
            yield tail, format_node(end)
            continue
        mark = mark_of(new, after, end, row)
        was = rows_before.get(end)
        if was is None or not _same(was, row) or mark != mark_of(old, before, end, was):
            yield FabricLink(
                from_=tail,
                to=format_node(end),
                count=row.links,
                metric=row.metric,
                capacity=known(row.capacity),
                available=known(row.available),
                state=None if mark is None else mark.state,
                reason=None if mark is None else mark.reason,
                delay=seconds(row.delay),
            )


def _touched(
    old: FabricImage, new: FabricImage, before: FabricVertex, after: FabricVertex
) -> set[NodeId]:
    """Return the neighbors to which links may differ."""
    node = after.node
    found: set[NodeId] = set()
    for end in before.ends | after.ends:
        was, now = old.vertices.get(end), new.vertices.get(end)
        ends_were = frozenset() if was is None else was.ends
        ends_are = frozenset() if now is None else now.ends
        if ends_were is not ends_are and (node in ends_were) != (node in ends_are):
            found.add(end)
    if node == new.here:
        marked = old.own.keys() | new.own.keys()
        found |= {end for end in marked if old.own.get(end) != new.own.get(end)}
    if len(before.blocks) != len(after.blocks):
        return found | before.ends | after.ends
    for old_block, new_block in zip(before.blocks, after.blocks, strict=True):
        found.update(_first(new, _differing(old_block, new_block)))
    return found


def _first(image: FabricImage, nodes: Iterable[int]) -> Iterator[NodeId]:
    return (image.first.get(NodeId(node), NodeId(node)) for node in nodes)


def _differing(old: NodeBlock, new: NodeBlock) -> list[int]:
    """Return the neighbors in rows that differ."""
    if old is new:
        return []
    if len(old.neighbors) != len(new.neighbors) or (old.neighbors != new.neighbors).any():
        return [*old.neighbors.tolist(), *new.neighbors.tolist()]
    differs = old.metrics != new.metrics
    for was, now in ((old.capacities, new.capacities), (old.availables, new.availables)):
        differs |= (was != now) & ~(np.isnan(was) & np.isnan(now))
    if not same_delays(old, new):
        was, now = old.each_delay(), new.each_delay()
        differs |= (was != now) & ~(np.isnan(was) & np.isnan(now))
    ends: list[int] = new.neighbors[differs].tolist()
    return ends


def _same(a: FabricLinkRow, b: FabricLinkRow) -> bool:
    """Whether two rows are equal in JSON; NaN is unknown."""
    return [a.links, a.metric, known(a.capacity), known(a.available), seconds(a.delay)] == [
        b.links,
        b.metric,
        known(b.capacity),
        known(b.available),
        seconds(b.delay),
    ]


def _role(vertex: FabricVertex) -> tuple[str, bool, bool]:
    return name_of(vertex), vertex.transit, vertex.last_resort
