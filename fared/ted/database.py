"""The traffic engineering database of one area or level: router blocks in, a graph out.

Blocks are only taken note of; the next call of ``graph()`` brings the graph up to date with
all of them at once. Three speeds: blocks whose links are the same have their floats written
into the graph that is already there (``capacity_generation`` counts these); links that came,
went or changed their cost are cut out and pasted in; anything else, a new router above all,
makes it anew (``generation`` counts both).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from fared.ted.assemble import Partners, assemble, refresh
from fared.ted.rows import Rows, same_links
from fared.ted.splice import respliced
from fared.ted.store import LinkStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fared.core.ids import NodeId
    from fared.ted.graph import Graph
    from fared.ted.model import NodeBlock


class Change(enum.Flag):
    """What a block changed compared with the one before it."""

    NONE = 0
    CAPACITY = enum.auto()
    LOAD = enum.auto()
    PREFIXES = enum.auto()
    TOPOLOGY = enum.auto()


class Ted:
    """The database of one area. Iteration orders and results do not depend on arrival order."""

    def __init__(self) -> None:
        self.generation = 0
        self.capacity_generation = 0
        self._rows: dict[NodeId, Rows] = {}
        self._store = LinkStore()
        self._graph: Graph | None = None
        self._partners: Partners | None = None
        self._reshaped: dict[NodeId, None] = {}
        self._rewritten: dict[NodeId, None] = {}

    @property
    def blocks(self) -> Mapping[NodeId, NodeBlock]:
        """The present block of each node, in ascending order of node id."""
        return {node: self._rows[node].block for node in sorted(self._rows)}

    def block(self, node: NodeId) -> NodeBlock | None:
        """The present block of one node."""
        rows = self._rows.get(node)
        return rows.block if rows is not None else None

    def links(self, node: NodeId) -> Rows | None:
        """The links of one node as used by the graph: sorted, float32 noise removed."""
        return self._rows.get(node)

    def put(self, block: NodeBlock) -> Change:
        """Take the newest block of a node; say what it changed."""
        rows = self._rows.get(block.node)
        if rows is None:
            self._insert(block)
            self._graph = None
            return Change.TOPOLOGY | Change.PREFIXES
        old = rows.block
        prefixes = Change.PREFIXES
        if block.prefixes is old.prefixes or block.prefixes == old.prefixes:
            prefixes = Change.NONE
        if same_links(old, block):
            return self._write(rows, block) | prefixes
        renewed = self._insert(block)
        if rows.doubtful or renewed.doubtful or self._first_load(renewed):
            self._graph = None
        self._reshaped[block.node] = self._rewritten[block.node] = None
        return Change.TOPOLOGY | prefixes

    def remove(self, node: NodeId) -> Change:
        """Forget a node."""
        if self._rows.pop(node, None) is None:
            return Change.NONE
        self._store.remove(node)
        self._graph = None
        self.generation += 1
        return Change.TOPOLOGY | Change.PREFIXES

    def graph(self) -> Graph:
        """The graph of the present blocks; the same object until its edges change."""
        graph = self._graph
        if graph is not None and self._reshaped:
            graph = respliced(graph, self._reshaped, self._rows) if not self._partners else None
        if graph is None:
            graph, self._partners = assemble(self._store.lay(), self._rows)
        else:
            for node in self._rewritten:
                self._refresh(graph, node)
        self._graph = graph
        self._reshaped.clear()
        self._rewritten.clear()
        return graph

    def _refresh(self, graph: Graph, node: NodeId) -> None:
        index, rows = graph.index(node), self._rows[node]
        assert index is not None
        if self._partners is None:
            refresh(graph, index, rows)
        else:
            self._partners.write(graph, index, rows)

    def _insert(self, block: NodeBlock) -> Rows:
        rows = self._rows[block.node] = Rows.of(block)
        self._store.put(rows)
        self.generation += 1
        return rows

    def _first_load(self, rows: Rows) -> bool:
        """Whether this router tells what is available, and the graph has no room for it."""
        return rows.loaded and self._graph is not None and self._graph.loadless

    def _write(self, rows: Rows, block: NodeBlock) -> Change:
        capacity, available = rows.renew(block)
        if not capacity and not available:
            return Change.NONE
        self._store.write(rows)
        if self._first_load(rows):
            self._graph = None
        self._rewritten[block.node] = None
        self.capacity_generation += 1
        return Change.CAPACITY if capacity else Change.LOAD
