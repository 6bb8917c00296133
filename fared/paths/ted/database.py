"""The traffic engineering database of one area or level: router blocks in, a graph out.

The solver feeds it and computes on its graph. Blocks are collected; the next call of ``graph()``
applies all of them at once, in the cheapest of three ways. Where a block has the same links, its
bandwidths are written into the present graph. Where links were added, removed or changed their
metric, the graph is updated (``graph_update``). Any other change, such as a new router, rebuilds
it.

Each application makes a new version of the graph. A solver passes the version it knows and gets
the ``GraphDelta`` since then: the solvers for load and for capacity, and those of other roots,
share one database and know different versions.

A router without a two-way link is in no path. In the database of a solver it takes no part in the
graph until it has one (``Apart``): forged LSAs and LSPs of unknown routers would make the graph
larger one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fared.core.ids import NodeId
from fared.paths.ted.apart import Apart
from fared.paths.ted.assemble import assemble, refresh
from fared.paths.ted.change import (
    ChangeKind,
    GraphDelta,
    change_of_adjacencies,
    change_of_links,
    lists,
    lost_row,
)
from fared.paths.ted.compare import same_delays, same_role
from fared.paths.ted.delays import edge_delays
from fared.paths.ted.graph_update import updated_graph
from fared.paths.ted.partners import Partners, Reshaped, without_links
from fared.paths.ted.rows import LinkRows, same_links
from fared.paths.ted.store import LinkStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from fared.paths.ted.graph import Graph
    from fared.paths.ted.model import LocalLink, NodeBlock


class Ted:
    """The database of one area. No order or result depends on the order of arrival.

    With a ``root``, which is always in the graph, other routers are in it from their first two-way
    link on; without, all are.
    """

    def __init__(self, root: NodeId | None = None) -> None:
        self._root = root
        self._rows: dict[NodeId, LinkRows] = {}
        self._apart = Apart(self._rows)
        self._store = LinkStore()
        self._unstored: dict[NodeId, None] = {}
        """Routers whose links are not in the store yet, which only a new graph reads."""
        self._graph: Graph | None = None
        self._partners: Partners | None = None
        self._collected: dict[NodeId, ChangeKind] = {}
        """How the links of routers differ from the graph: LOAD, CAPACITY or TOPOLOGY."""
        self._lost: dict[NodeId, NodeId | None] = {}
        """The neighbor to which one of those in TOPOLOGY has lost its link, None where links differ
        in another way."""
        self._former: dict[NodeId, LinkRows] = {}
        """The rows in the graph of those in TOPOLOGY, where capacities are unknown."""
        self._version = 0
        self._latest: dict[ChangeKind, int] = {}
        """The latest version that each kind of change made."""
        self._before_cut = 0
        self._cut: tuple[int, ...] | None = None
        """The edges that the latest TOPOLOGY version lost; None if it differs by more than that."""
        self._cut_alone = 0
        """The latest version that lost edges, and has all others with the same capacities."""
        self._delayed: dict[NodeId, None] = {}
        """The routers in the graph that flood a delay of any link."""
        self._redelayed = False
        """Whether delays differ from those in the latest version."""
        self._delays: tuple[Graph, NDArray[np.float64]] | None = None
        """The delays of the edges of a graph, while they are the same."""

    @property
    def blocks(self) -> Mapping[NodeId, NodeBlock]:
        """The present block of each node, in ascending order of node id."""
        blocks = {node: rows.block for node, rows in self._rows.items()} | self._apart.blocks
        return dict(sorted(blocks.items()))

    @property
    def apart(self) -> int:
        """How many routers have no two-way link and are not in the graph."""
        return len(self._apart.blocks)

    def block(self, node: NodeId) -> NodeBlock | None:
        """The present block of one node."""
        rows = self._rows.get(node)
        return rows.block if rows is not None else self._apart.blocks.get(node)

    def seen_from(self, root: NodeId) -> Ted:
        """Return a database with another root: this one, or one of that router alone."""
        block = self._apart.blocks.get(root)
        if block is None:
            return self
        alone = Ted(root)
        alone.put(block)
        return alone

    def links(self, node: NodeId) -> LinkRows | None:
        """The links of one node in the graph: sorted, float32 noise removed."""
        return self._rows.get(node)

    def delays(self) -> NDArray[np.float64] | None:
        """The delay of each edge (E,) of ``graph()`` as of ``edge_delays``; None: none has one."""
        graph = self.graph()
        if not self._delayed:
            return None
        if self._delays is None or self._delays[0] is not graph:
            self._delays = graph, edge_delays(graph, (self._rows[node] for node in self._delayed))
        return self._delays[1]

    def put(self, block: NodeBlock) -> ChangeKind:
        """Install the newest block of a node; return the kind of change, prefixes ignored."""
        rows = self._rows.get(block.node)
        if rows is None:
            if self._root not in (None, block.node) and not self._apart.linked(block):
                return self._apart.put(block)
            self._apart.blocks.pop(block.node, None)
            self._enter(block, *self._apart.joined_by(block))
            return ChangeKind.TOPOLOGY
        old = rows.block
        if same_links(old, block):
            kind = self._write(rows, block)
            return kind if same_role(old, block) else max(kind, ChangeKind.PREFIX)
        if joined := self._apart.joined_by(block):
            self._enter(*joined)
        row = lost_row(old, block)
        lost = None if row is None else NodeId(int(old.neighbors[row]))
        kind = max(change_of_links(self._rows, old, block, lost), ChangeKind.CAPACITY)
        renewed = self._insert(block)
        self._lost[block.node] = None if block.node in self._lost else lost
        # Where a capacity is unknown, edges of the far ends may depend on it.
        if self._partners is not None:
            self._former.setdefault(block.node, rows)
        elif rows.has_unknown_capacity or renewed.has_unknown_capacity:
            self._graph = None
        return kind

    def remove(self, node: NodeId) -> ChangeKind:
        """Remove a node."""
        if self._apart.blocks.pop(node, None) is not None:
            return ChangeKind.DROPPED
        if self._rows.pop(node, None) is None:
            return ChangeKind.NONE
        self._unstored.pop(node, None)
        self._delayed.pop(node, None)
        self._store.remove(node)
        self._graph = None
        return ChangeKind.LOSS

    def change_of_adjacencies(
        self, root: NodeId, old: tuple[LocalLink, ...], new: tuple[LocalLink, ...]
    ) -> ChangeKind:
        """Return the kind of a change of the full adjacencies of ``root``."""
        return change_of_adjacencies(self._apart.all, root, old, new)

    def connects(self, node: NodeId, other: NodeId) -> bool:
        """Whether both list a link between them, or both links to a network between."""
        if self._lists(node, other) and self._lists(other, node):
            return True
        rows = self._rows.get(node)
        ends = [] if rows is None else rows.neighbors.tolist()
        networks = [end for end in ends if (there := self.block(end)) and there.network]
        return any(
            self._lists(network, node)
            and self._lists(network, other)
            and self._lists(other, network)
            for network in networks
        )

    def _lists(self, node: NodeId, other: NodeId) -> bool:
        return lists(self._rows, node, other)

    def graph(self) -> Graph:
        """Return the graph of the present blocks.

        It is the same object until its edges change, or the first router advertises available
        bandwidth.
        """
        if self._graph is None or self._collected:
            self._graph = self._applied()
        return self._graph

    def since(self, version: int) -> GraphDelta:
        """Return the graph, and how it differs from ``version``; 0 stands for no graph."""
        graph = self.graph()
        kind = ChangeKind.NONE
        for found, latest in self._latest.items():
            if latest > version and found > kind:
                kind = found
        # The cut starts from the topology before the latest change of it.
        simple = kind is ChangeKind.TOPOLOGY and version >= self._before_cut
        cut = self._cut if simple else None
        alone = cut is not None and self._cut_alone == self._version == version + 1
        return GraphDelta(graph, self._version, kind, cut, alone)

    def _applied(self) -> Graph:
        """Apply the collected blocks and return the graph, with a new version."""
        before, graph, cut = self._graph, self._graph, None
        kinds: list[ChangeKind] = []
        collected, self._collected = self._collected, {}
        if graph is not None:
            reshaped = {
                node: self._lost[node]
                for node, kind in collected.items()
                if kind is ChangeKind.TOPOLOGY
            }
            if reshaped:
                graph, cut = self._reshaped(graph, reshaped)
        self._former.clear()
        self._lost.clear()
        if graph is None:
            for node in self._unstored:
                self._store.put(self._rows[node])
            self._unstored.clear()
            graph, self._partners = assemble(self._store.layout(), self._rows)
        else:
            kinds = [
                kind
                for node, kind in collected.items()
                if self._refresh(graph, node, reshaped=kind is ChangeKind.TOPOLOGY)
            ]
            if self._redelayed:
                kinds.append(ChangeKind.DELAY)
        self._redelayed = False
        self._version += 1
        if graph is not before:
            kind = ChangeKind.TOPOLOGY
            self._before_cut, self._cut = self._latest.get(kind, 0), cut
            if cut is not None and not kinds:
                self._cut_alone = self._version
        else:  # a link that only one end advertises changes nothing in the graph
            kind = min(max(kinds, default=ChangeKind.NONE), ChangeKind.CAPACITY)
        self._latest[kind] = self._version
        return graph

    def _reshaped(
        self, graph: Graph, nodes: Mapping[NodeId, NodeId | None]
    ) -> tuple[Graph | None, tuple[int, ...] | None]:
        """Return the graph with other links of some routers, as ``updated_graph``."""
        if self._partners is None:
            return updated_graph(graph, nodes, self._rows)
        routers = []
        for node in nodes:
            index = graph.index(node)
            if index is None:
                return None, None
            routers.append(Reshaped(index, self._former[node], self._rows[node]))
        found = without_links(self._partners, graph, routers)
        if found is None:
            return None, None
        self._partners, graph, cut = found
        return graph, cut

    def _refresh(self, graph: Graph, node: NodeId, *, reshaped: bool) -> bool:
        """Write the bandwidths of a router into the graph; return whether that may change results.

        If a router is ``reshaped``, its edges and their bandwidths may all be as before. Otherwise
        a bandwidth changed: in the sum of parallel links it may not show, but the router itself
        divides the load among them by it.
        """
        index, rows = graph.index(node), self._rows[node]
        assert index is not None
        if self._partners is not None:
            return self._partners.write(graph, index, rows) or not reshaped
        before = graph.bandwidths(index) if reshaped else None
        refresh(graph, index, rows)
        return before is None or before != graph.bandwidths(index)

    def _enter(self, *blocks: NodeBlock) -> None:
        """Insert routers that are new in the graph."""
        self._graph = None
        for block in blocks:
            self._insert(block)

    def _insert(self, block: NodeBlock) -> LinkRows:
        former = self._rows.get(block.node)
        if block.delays is not None or (former is not None and former.block.delays is not None):
            self._note_delays(None if former is None else former.block, block)
        rows = self._rows[block.node] = LinkRows.of(block)
        if self._graph is None:
            self._unstored.pop(block.node, None)
            self._store.put(rows)
        else:  # a lost link is urgent, and the present graph needs no store
            self._unstored[block.node] = None
        self._collect(rows, ChangeKind.TOPOLOGY)
        return rows

    def _write(self, rows: LinkRows, block: NodeBlock) -> ChangeKind:
        delay = rows.block.delays is not block.delays and self._note_delays(rows.block, block)
        capacity, available = rows.renew(block)
        if not capacity and not available:
            if not delay:
                return ChangeKind.NONE
            kind = ChangeKind.DELAY
        else:
            kind = ChangeKind.CAPACITY if capacity else ChangeKind.LOAD
            if block.node not in self._unstored:
                self._store.write(rows)
        self._collect(rows, kind)
        return max(kind, ChangeKind.DELAY) if delay else kind

    def _note_delays(self, old: NodeBlock | None, new: NodeBlock) -> bool:
        """Note which routers flood delays; return whether those of a router differ, or are new."""
        before = None if old is None else old.delays
        if before is None and new.delays is None:
            return False
        if old is not None and same_links(old, new) and same_delays(old, new):
            return False
        self._delayed.pop(new.node, None)
        if new.delays is not None:
            self._delayed[new.node] = None
        self._delays, self._redelayed = None, True
        return True

    def _collect(self, rows: LinkRows, kind: ChangeKind) -> None:
        """Note that the graph lacks a router's change, until the next application."""
        node, graph, rows.version = rows.block.node, self._graph, self._version + 1
        if graph is None:
            return  # the next graph is built of all rows
        if rows.advertised and graph.without_load:  # the first router with available bandwidth
            self._graph = replace(graph, available=graph.capacity.copy())
        self._collected[node] = max(kind, self._collected.get(node, kind))
