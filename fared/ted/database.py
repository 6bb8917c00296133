"""The traffic engineering database of one area or level: router blocks in, a graph out.

Three speeds: a block whose links are the same writes floats into the graph that is already
there and counts ``capacity_generation``; one that lost its links to one neighbor leaves out
edges, if the other end has not been first to do so; anything else drops the graph, which is
built again at the next call of ``graph()``. The latter two count ``generation``.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import numpy as np

from fared.ted.assemble import Assembly, Rows, assemble, snap, spliced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fared.core.ids import NodeId
    from fared.ted.graph import Graph
    from fared.ted.model import NodeBlock

_COMPACT_ABOVE = 1024


class Change(enum.Flag):
    """What a block changed compared with the one before it."""

    NONE = 0
    CAPACITY = enum.auto()
    LOAD = enum.auto()
    PREFIXES = enum.auto()
    TOPOLOGY = enum.auto()


def _same_links(old: NodeBlock, new: NodeBlock) -> bool:
    """Whether only floats can differ; what is unknown must stay unknown, too."""
    return (
        old.transit == new.transit
        and old.network == new.network
        and _same(old.neighbors, new.neighbors)
        and _same(old.metrics, new.metrics)
        and _same(old.local_ids, new.local_ids)
        and _same(old.remote_ids, new.remote_ids)
        and _same(np.isnan(old.capacities), np.isnan(new.capacities))
    )


def _same(old: NDArray[np.generic], new: NDArray[np.generic]) -> bool:
    return old is new or (len(old) == len(new) and bool((old == new).all()))


def _renewed(old: NodeBlock, rows: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Capacities and availables, sorted and snapped, of a block with the links of ``old``.

    Those that are the same as before are the same array.
    """
    new, order = rows.block, rows.order
    first = (new.capacities != old.capacities)[order].nonzero()[0]
    second = (new.availables != old.availables)[order].nonzero()[0]
    values = snap(np.concatenate((new.capacities[order[first]], new.availables[order[second]])))
    return (
        _replaced(rows.capacities, first, values[: len(first)]),
        _replaced(rows.availables, second, values[len(first) :]),
    )


def _replaced(
    kept: NDArray[np.float64], places: NDArray[np.int64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``kept`` itself if it has these values there, else a copy that has."""
    before = kept[places]
    if ((values == before) | (np.isnan(values) & np.isnan(before))).all():
        return kept
    result = kept.copy()
    result[places] = values
    return result


def _lost(old: Rows, new: Rows) -> slice | None:
    """The rows of ``old`` that ``new`` lacks, if they are all rows to one neighbor.

    None if anything else changed, capacities aside.
    """
    count = len(new.neighbors)
    fewer = len(old.neighbors) - count
    kind = (old.block.transit, old.block.network)
    if fewer <= 0 or new.doubtful or kind != (new.block.transit, new.block.network):
        return None
    differ = (old.neighbors[:count] != new.neighbors).nonzero()[0]
    first = int(differ[0]) if len(differ) else count
    gone, end = slice(first, first + fewer), old.neighbors[first]
    if (old.neighbors[gone] != end).any() or (new.neighbors == end).any():
        return None
    columns = (
        (old.neighbors, new.neighbors),
        (old.metrics, new.metrics),
        (old.local_ids, new.local_ids),
        (old.remote_ids, new.remote_ids),
    )
    return gone if all((spliced(a, gone) == b).all() for a, b in columns) else None


def _reduced(assembly: Assembly, old: Rows, new: Rows) -> Assembly | None:
    """The assembly with one router's new rows, if that takes no more than leaving out edges."""
    lost, index = _lost(old, new), assembly.graph.index(new.block.node)
    if lost is None or index is None:
        return None
    reduced = assembly.without(index, lost)
    if reduced is not None:
        reduced.write(index, new)
    return reduced


class Ted:
    """The database of one area. Iteration orders and results do not depend on arrival order."""

    def __init__(self) -> None:
        self.generation = 0
        self.capacity_generation = 0
        self._rows: dict[NodeId, Rows] = {}
        self._slots: dict[int, int] = {}
        self._assembly: Assembly | None = None

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
        old = self._rows.get(block.node)
        if old is None:
            self._insert(block)
            self._touch()
            return Change.TOPOLOGY | Change.PREFIXES
        prefixes = Change.NONE if block.prefixes == old.block.prefixes else Change.PREFIXES
        if _same_links(old.block, block):
            return self._write(old, block) | prefixes
        rows, assembly = self._insert(block), self._assembly
        self._touch()
        self._assembly = None if assembly is None else _reduced(assembly, old, rows)
        return Change.TOPOLOGY | prefixes

    def remove(self, node: NodeId) -> Change:
        """Forget a node."""
        if self._rows.pop(node, None) is None:
            return Change.NONE
        self._touch()
        return Change.TOPOLOGY | Change.PREFIXES

    def graph(self) -> Graph:
        """The graph of the present blocks; the same object until its edges change."""
        if self._assembly is None:
            if len(self._slots) > 2 * len(self._rows) + _COMPACT_ABOVE:
                self._renumber()
            nodes = sorted(self._rows)
            slots = np.array([self._slots[node] for node in nodes], np.int64)
            routers = [self._rows[node] for node in nodes]
            self._assembly = assemble(routers, slots, len(self._slots))
        return self._assembly.graph

    def _touch(self) -> None:
        self._assembly = None
        self.generation += 1

    def _slot(self, node: int) -> int:
        return self._slots.setdefault(node, len(self._slots))

    def _neighbor_slots(self, neighbors: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.array([self._slot(node) for node in neighbors.tolist()], np.int64)

    def _insert(self, block: NodeBlock) -> Rows:
        self._slot(block.node)
        order = np.lexsort((block.local_ids, block.metrics, block.neighbors))
        neighbors = block.neighbors[order]
        capacities, availables = snap(np.stack((block.capacities, block.availables))[:, order])
        rows = self._rows[block.node] = Rows(
            block=block,
            order=order,
            neighbors=neighbors,
            slots=self._neighbor_slots(neighbors),
            metrics=block.metrics[order],
            local_ids=block.local_ids[order],
            remote_ids=block.remote_ids[order],
            capacities=capacities,
            availables=availables,
            doubtful=bool(np.isnan(block.capacities).any()),
        )
        return rows

    def _write(self, rows: Rows, block: NodeBlock) -> Change:
        old, rows.block = rows.block, block
        capacities, availables = _renewed(old, rows)
        if capacities is rows.capacities and availables is rows.availables:
            return Change.NONE
        change = Change.LOAD if capacities is rows.capacities else Change.CAPACITY
        rows.capacities, rows.availables = capacities, availables
        if self._assembly is not None:
            index = self._assembly.graph.index(block.node)
            if index is not None:
                self._assembly.write(index, rows)
        self.capacity_generation += 1
        return change

    def _renumber(self) -> None:
        """Forget the numbers of nodes that nobody lists any more."""
        self._slots = {}
        for node in sorted(self._rows):
            self._slot(node)
        for rows in self._rows.values():
            rows.slots = self._neighbor_slots(rows.neighbors)
