"""The fabric at one time: vertices, their places, and what is usual for links.

An ``FabricImage`` refers to the frozen blocks of all routers; it copies no links, so it takes a few
milliseconds and hardly any memory.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from fared.core.ids import NodeId, format_node
from fared.management.documents.context import ViewContext
from fared.management.documents.views.fabric_lans import Cabled, cabled
from fared.management.documents.views.fabric_marks import (
    Tiers,
    UnusualLink,
    own_marks,
    usual_capacities,
)
from fared.management.documents.views.fabric_ranks import heights, own_hosts
from fared.management.documents.views.routers import router_blocks
from fared.paths.ted.model import NodeBlock, longest
from fared.paths.ted.tiers import TierPlace, places
from fared.router.protocols import BGP

if TYPE_CHECKING:
    from numpy.typing import NDArray


class FabricVertex(msgspec.Struct, frozen=True):
    """A router, or network: its id in the first protocol, and its blocks in all of them.

    ``ends`` are the vertices of its neighbors, by their first ids. ``transit`` and ``last_resort``:
    whether paths may cross it, and whether only where there is no other way.
    """

    node: NodeId
    blocks: tuple[NodeBlock, ...]
    ends: frozenset[NodeId]
    transit: bool
    last_resort: bool


class FabricLinkRow(NamedTuple):
    """The links to one neighbor; bytes/s, the longest delay in microseconds, NaN where unknown."""

    links: int
    metric: int
    capacity: float
    available: float
    delay: float = math.nan


EndRows = tuple[Tiers, NodeId, int, "NDArray[np.bool_]"]
"""The rows of a router's block, by its index, that are links between two tiers."""


class FabricShape(msgspec.Struct, frozen=True):
    """What follows from which links there are: places, and the usual capacity between tiers."""

    places: Mapping[NodeId, TierPlace]
    usual: Mapping[Tiers, float]
    ends: list[EndRows]


class Sight(msgspec.Struct, frozen=True):
    """What an image is made of: frozen blocks, and the little that only the router itself has.

    ``first`` maps the ids of all protocols to that of the vertex. ``prefixes`` counts those of each
    node, ``hosts`` those of a vertex that are its own (``own_prefixes``); ``heights`` are those of
    vertices, as for ``places``. ``near``: only neighbors are known, as by BGP, which
    have no places.
    """

    root: NodeId
    joined: Cabled
    first: Mapping[NodeId, NodeId]
    prefixes: Mapping[NodeId, int]
    hosts: Mapping[NodeId, int]
    heights: Mapping[NodeId, int]
    own: Mapping[NodeId, UnusualLink]
    near: bool

    @property
    def blocks(self) -> Mapping[NodeId, list[NodeBlock]]:
        """The blocks of each vertex; networks of two routers are links."""
        return self.joined.blocks


class FabricImage(msgspec.Struct, dict=True):
    """The fabric as it was in a ``Sight``."""

    here: NodeId
    vertices: dict[NodeId, FabricVertex]
    seen: Sight
    shape: FabricShape

    @property
    def first(self) -> Mapping[NodeId, NodeId]:
        """The id of the vertex of each id."""
        return self.seen.first

    @cached_property
    def neighbors(self) -> Mapping[NodeId, frozenset[NodeId]]:
        """The neighbors of each vertex over links that both ends list."""
        return _neighbors(self.vertices)

    @property
    def one_protocol(self) -> bool:
        """Whether all vertices are of one protocol."""
        return len({node >> _ID_BITS for node in self.first}) == 1

    @property
    def own(self) -> Mapping[NodeId, UnusualLink]:
        """What is unusual about the links of this router, by neighbor."""
        return self.seen.own


def sight(context: ViewContext, before: FabricImage | None = None) -> Sight:
    """Look at the router; this takes a millisecond, an image may be made in another thread.

    ``before`` is the image that the new one will be made from: ``hosts`` are counted again if links
    or heights differ, since places depend on them, and ``prefixes``, for whole documents, never.
    """
    joined = cabled(_blocks(context), None if before is None else before.seen.joined)
    blocks, heights_by_id = joined.blocks, heights(context)
    first = _first_ids(blocks)
    high = {first[node]: height for node, height in heights_by_id.items() if node in first}
    root, marks = context.instances[0].root, own_marks(context, first)
    near = all(instance.name == BGP for instance in context.instances)
    if before is None:
        return Sight(
            root,
            joined,
            first,
            _prefixes(context),
            own_hosts(context, first, high),
            high,
            marks,
            near,
        )
    seen = before.seen
    same = seen.heights == high and _same_rows(seen.blocks, blocks)
    hosts = seen.hosts if same else own_hosts(context, first, high)
    return Sight(root, joined, first, seen.prefixes, hosts, high, marks, near)


def _same_rows(
    known: Mapping[NodeId, list[NodeBlock]], found: Mapping[NodeId, list[NodeBlock]]
) -> bool:
    """Whether all routers certainly have the same links: other arrays may be equal."""
    rows = [[b.neighbors for mine in of.values() for b in mine] for of in (known, found)]
    return (
        known.keys() == found.keys()
        and len(rows[0]) == len(rows[1])
        and all(map(operator.is_, *rows))
    )


def image_of(seen: Sight, before: FabricImage | None = None) -> FabricImage:
    """Make an image; of the one ``before``, what did not change is kept."""
    first, of = seen.first, dict[NodeId, list[NodeBlock]]()
    for node, blocks in seen.blocks.items():
        of.setdefault(first[node], []).extend(blocks)
    known = {} if before is None or before.first != first else before.vertices
    vertices = {node: _vertex(node, tuple(blocks), first, known) for node, blocks in of.items()}
    here = first.get(seen.root, seen.root)
    same_heights = before is not None and before.seen.heights == seen.heights
    if before is not None and same_heights and _same_links(known, vertices):
        shape = before.shape
        if not _same_capacities(known, vertices):
            shape = replace(shape, usual=usual_capacities(_capacities(vertices, shape.ends)))
        return FabricImage(here, vertices, seen, shape)
    placed = _places(vertices, seen)
    ends = _ends(vertices, first, placed)
    shape = FabricShape(placed, usual_capacities(_capacities(vertices, ends)), ends)
    return FabricImage(here, vertices, seen, shape)


def _same_links(
    known: Mapping[NodeId, FabricVertex], vertices: Mapping[NodeId, FabricVertex]
) -> bool:
    """Whether all routers have the same neighbors, in the same rows."""
    return known.keys() == vertices.keys() and all(
        old is new
        or (
            old.ends == new.ends
            and len(old.blocks) == len(new.blocks)
            and all(
                np.array_equal(a.neighbors, b.neighbors)
                for a, b in zip(old.blocks, new.blocks, strict=True)
            )
        )
        for old, new in _pairs(known, vertices)
    )


def _same_capacities(
    known: Mapping[NodeId, FabricVertex], vertices: Mapping[NodeId, FabricVertex]
) -> bool:
    return all(
        old is new
        or all(
            np.array_equal(a.capacities, b.capacities, equal_nan=True)
            for a, b in zip(old.blocks, new.blocks, strict=True)
        )
        for old, new in _pairs(known, vertices)
    )


def _pairs(
    known: Mapping[NodeId, FabricVertex], vertices: Mapping[NodeId, FabricVertex]
) -> Iterator[tuple[FabricVertex, FabricVertex]]:
    return ((known[node], vertex) for node, vertex in vertices.items())


def _blocks(context: ViewContext) -> dict[NodeId, list[NodeBlock]]:
    """Return the blocks of each node: one for each area, of the first family that has it."""
    found: dict[NodeId, list[NodeBlock]] = {}
    for instance in context.instances:
        seen: set[tuple[int, NodeId]] = set()
        for solver in instance.solvers.values():
            for area in solver.areas:
                known = router_blocks(context, instance, solver.ted(area).blocks)
                for node, block in known.items():
                    if (area, node) not in seen:
                        seen.add((area, node))
                        found.setdefault(node, []).append(block)
    return found


def _first_ids(found: Mapping[NodeId, list[NodeBlock]]) -> dict[NodeId, NodeId]:
    """Return the id of the vertex of each node: ids with one hostname are one router."""
    named: dict[str, NodeId] = {}
    first: dict[NodeId, NodeId] = {}
    for node, blocks in found.items():
        name = next((block.hostname for block in blocks if block.hostname), None)
        known = node if name is None or blocks[0].network else named.setdefault(name, node)
        # two routers of one protocol that have the same hostname stay two
        first[node] = known if (known ^ node) >> _ID_BITS else node
    return first


_ID_BITS = 60
"""Ids of different protocols differ in the bits above."""


def _vertex(
    node: NodeId,
    blocks: tuple[NodeBlock, ...],
    first: Mapping[NodeId, NodeId],
    known: Mapping[NodeId, FabricVertex],
) -> FabricVertex:
    before = known.get(node)
    if before is not None and len(before.blocks) == len(blocks):
        pairs = list(zip(before.blocks, blocks, strict=True))
        if all(a is b for a, b in pairs):
            return before
        if all(a.neighbors is b.neighbors for a, b in pairs):
            return _vertex_with(node, blocks, before.ends)
    ends = {
        first.get(NodeId(far), NodeId(far)) for block in blocks for far in block.neighbors.tolist()
    }
    return _vertex_with(node, blocks, frozenset(ends - {node}))


def _vertex_with(
    node: NodeId, blocks: tuple[NodeBlock, ...], ends: frozenset[NodeId]
) -> FabricVertex:
    transit = all(block.transit for block in blocks)
    return FabricVertex(node, blocks, ends, transit, all(block.last_resort for block in blocks))


def _prefixes(context: ViewContext) -> dict[NodeId, int]:
    counts: dict[NodeId, int] = {}
    for instance in context.instances:
        for solver in instance.solvers.values():
            for area in solver.areas:
                for node in solver.ted(area).blocks:
                    number = solver.prefix_count(area, node)
                    counts[node] = max(counts.get(node, 0), number)
    return counts


def _places(vertices: Mapping[NodeId, FabricVertex], seen: Sight) -> Mapping[NodeId, TierPlace]:
    if seen.near or any(block.network for vertex in vertices.values() for block in vertex.blocks):
        return {}
    neighbors = _neighbors(vertices)
    # what a router said before it failed stays in the database: it keeps its place
    for node in [node for node, ends in neighbors.items() if not ends]:
        neighbors[node] = vertices[node].ends.intersection(vertices)
        for end in neighbors[node]:
            neighbors[end] |= {node}
    return places(neighbors, seen.hosts, seen.heights)


def _neighbors(vertices: Mapping[NodeId, FabricVertex]) -> dict[NodeId, frozenset[NodeId]]:
    """Return the neighbors of each vertex over links that both ends list."""
    found: dict[NodeId, frozenset[NodeId]] = {}
    for node, vertex in vertices.items():
        one_way = [e for e in vertex.ends if e not in vertices or node not in vertices[e].ends]
        # nearly always there are none: the same set, not a copy
        found[node] = vertex.ends.difference(one_way) if one_way else vertex.ends
    return found


def _ends(
    vertices: Mapping[NodeId, FabricVertex],
    first: Mapping[NodeId, NodeId],
    placed: Mapping[NodeId, TierPlace],
) -> list[EndRows]:
    """Sort the rows of each block by the tiers of the links."""
    tiers: dict[NodeId, int | None] = {
        node: placed[vertex].tier if vertex in placed else None for node, vertex in first.items()
    }
    found: list[EndRows] = []
    for node, vertex in vertices.items():
        for index, block in enumerate(vertex.blocks):
            far = [tiers.get(end) for end in block.neighbors.tolist()]
            found += [
                ((tiers.get(node), tier), node, index, np.array([end == tier for end in far], bool))
                for tier in sorted(set(far), key=str)
            ]
    return found


def _capacities(
    vertices: Mapping[NodeId, FabricVertex], ends: list[EndRows]
) -> Iterator[tuple[Tiers, Any]]:
    """Yield the capacities of links by the tiers of their ends."""
    for tiers, node, index, chosen in ends:
        yield tiers, vertices[node].blocks[index].capacities[chosen]


def link_rows(
    image: FabricImage, vertex: FabricVertex, wanted: Collection[NodeId] | None = None
) -> dict[NodeId, FabricLinkRow]:
    """Return the links of a router by neighbor: those of the first block that has it, summed.

    ``wanted``: only those to these neighbors.
    """
    found: dict[NodeId, FabricLinkRow] = {}
    for block in vertex.blocks:
        mine: dict[NodeId, FabricLinkRow] = {}
        columns = (block.neighbors, block.metrics, block.capacities, block.availables)
        delays = itertools.repeat(math.nan) if block.delays is None else block.delays.tolist()
        rows = zip(zip(*(c.tolist() for c in columns), strict=True), delays, strict=False)
        for (far, metric, capacity, available), delay in rows:
            end = image.first.get(far, far)
            if end in found or end == vertex.node or (wanted is not None and end not in wanted):
                continue
            row = mine.get(end)
            if row is None:
                mine[end] = FabricLinkRow(1, metric, capacity, available, delay)
            else:
                mine[end] = FabricLinkRow(
                    row.links + 1,
                    min(row.metric, metric),
                    row.capacity + capacity,
                    row.available + available,
                    longest(row.delay, delay),
                )
        found.update(mine)
    return found


def name_of(vertex: FabricVertex) -> str:
    """Return the hostname, or the id."""
    return next((b.hostname for b in vertex.blocks if b.hostname), format_node(vertex.node))
