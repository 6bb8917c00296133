"""From router blocks to the merged graph: two-way check, parallel links, unknown capacities.

The rows of all blocks are laid end to end ("rows" below: one flooded link each); an edge of
the graph is one or several rows. The layout is kept, so a change of capacity is a write into
the rows of one router and a sum over its edges.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fared.ted.graph import Graph, common, renumber, run_lengths, run_starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.ted.model import NodeBlock

_T = TypeVar("_T", bound=np.generic)
_SIGNIFICANT_DIGITS = 7
_FEW_VALUES = 64
_RADIX_SORT_LIMIT = 1 << 16
_TABLE_PER_EDGE = 16


@dataclass(slots=True)
class Rows:
    """The links of one router sorted by (neighbor, metric, local id); all arrays (K,).

    ``order`` maps the block's own order to this one, ``slots`` are the neighbors' numbers in
    the database's own numbering, ``capacities`` and ``availables`` have float32 noise removed. ``doubtful``: some capacity is unknown.
    """

    block: NodeBlock
    order: NDArray[np.int64]
    neighbors: NDArray[np.int64]
    slots: NDArray[np.int64]
    metrics: NDArray[np.int64]
    local_ids: NDArray[np.int64]
    remote_ids: NDArray[np.int64]
    capacities: NDArray[np.float64]
    availables: NDArray[np.float64]
    doubtful: bool


def snap(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Remove the noise of IEEE singles: 49999998976 bytes/s was meant to be 400 Gb/s.

    Rounds to seven significant digits in bits/s, which is all a single holds.
    """
    if values.size > _FEW_VALUES:
        return _rounded(values)
    snapped = [_snapped(v) if v > 0.0 else v for v in values.ravel().tolist()]
    return np.array(snapped, np.float64).reshape(values.shape)


@functools.lru_cache(maxsize=1024)
def _snapped(value: float) -> float:
    """One value: a fabric has few different capacities, and changes come one by one."""
    return float(_rounded(np.array([value]))[0])


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    bits = values * 8.0
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.floor(np.log10(bits)) - (_SIGNIFICANT_DIGITS - 1)
        coarse = np.power(10.0, np.maximum(exponent, 0.0))
        fine = np.power(10.0, np.maximum(-exponent, 0.0))
        snapped = np.rint(bits * fine / coarse) * coarse / fine / 8.0
    return np.where(np.isfinite(values) & (values > 0.0), snapped, values)


def spliced(values: NDArray[_T], gone: slice) -> NDArray[_T]:
    """The values without a contiguous part."""
    return np.concatenate((values[: gone.start], values[gone.stop :]))


@dataclass(frozen=True, slots=True, eq=False)
class Assembly:
    """A graph and the layout it was built from.

    ``row_ptr`` (N+1,) first row of each node; ``row_edge`` (R,) the edge a row counts for, -1
    where it counts for none (one-way, costlier than its parallels); ``partner`` (R,) the same
    link as the other end describes it, -1 unknown, None where nobody asks since all capacities
    are known; ``capacities``, ``availables`` (R,) as flooded. ``single``: no edge has more than
    one row.
    """

    graph: Graph
    row_ptr: NDArray[np.int64]
    row_edge: NDArray[np.int64]
    partner: NDArray[np.int64] | None
    capacities: NDArray[np.float64]
    availables: NDArray[np.float64]
    single: bool

    def write(self, node: int, rows: Rows) -> None:
        """Take new capacities of one node (by index) into the graph, in place."""
        low, high = int(self.row_ptr[node]), int(self.row_ptr[node + 1])
        if self.graph.network[node]:
            return
        self.capacities[low:high] = rows.capacities
        self.availables[low:high] = rows.availables
        self.refresh(node, node + 1)
        if self.partner is not None:
            partners = self.partner[low:high]
            if np.isnan(self.capacities[partners[partners >= 0]]).any():
                self.refresh(0, len(self.graph.nodes))  # the far end reads our side of a link

    def without(self, node: int, lost: slice) -> Assembly | None:
        """The same less some rows of a node (by index): all that it has toward one neighbor.

        The graph stays the same object if these rows did not count anyway, which is so when
        the other end was the first to tell that the link is gone. None if it takes more than
        leaving out edges.
        """
        if self.partner is not None:
            return None
        first = int(self.row_ptr[node])
        rows = slice(first + lost.start, first + lost.stop)
        row_ptr = self.row_ptr.copy()
        row_ptr[node + 1 :] -= lost.stop - lost.start
        row_edge = spliced(self.row_edge, rows)
        graph, there = self.graph, int(self.row_edge[rows].max())
        if there >= 0:
            back = int(graph.reverse[there])
            row_edge[row_edge == back] = -1
            renumber(row_edge, *sorted((there, back)))
            graph = graph.without(there, back)
        return Assembly(
            graph=graph,
            row_ptr=row_ptr,
            row_edge=row_edge,
            partner=None,
            capacities=spliced(self.capacities, rows),
            availables=spliced(self.availables, rows),
            single=self.single,
        )

    def refresh(self, first: int, last: int) -> None:
        """Sum the rows of the nodes ``first`` to ``last - 1`` into their edges."""
        rows = slice(int(self.row_ptr[first]), int(self.row_ptr[last]))
        base, end = int(self.graph.indptr[first]), int(self.graph.indptr[last])
        used: slice | NDArray[np.bool_] = slice(None)
        if not (self.single and len(self.row_edge) == len(self.graph.src)):
            used = self.row_edge[rows] >= 0
        edge = self.row_edge[rows][used] - base
        capacity = self.capacities[rows][used]
        if self.partner is not None:
            partner = self.partner[rows][used]
            far = np.where(partner >= 0, self.capacities[partner], np.nan)
            capacity = np.where(np.isnan(capacity) & np.isfinite(far), far, capacity)
        available = self.availables[rows][used]
        # How loaded the far direction is says nothing of this one: then all of it is available.
        available = np.where(np.isnan(available), capacity, available)
        self.graph.capacity[base:end] = self._total(edge, capacity, end - base)
        self.graph.available[base:end] = self._total(edge, available, end - base)

    def _total(
        self, edge: NDArray[np.int64], values: NDArray[np.float64], size: int
    ) -> NDArray[np.float64]:
        if self.single:
            total = np.full(size, np.nan)
            total[edge] = values
            return total
        known = ~np.isnan(values)
        total = np.bincount(edge, np.where(known, values, 0.0), size)
        count = np.bincount(edge, known, size)
        # A parallel link of unknown capacity counts as the mean of its known parallels.
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(count > 0, total * (np.bincount(edge, minlength=size) / count), np.nan)


def _reverse_edges(src: NDArray[np.int64], dst: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """For edges sorted by (src, dst): the position of the opposite edge, -1 if there is none."""
    forward = src * size + dst
    backward = dst * size + src
    if size * size <= _TABLE_PER_EDGE * len(src):  # a dense fabric: look up in a table
        table = np.full(size * size, -1, np.int64)
        table[forward] = np.arange(len(src))
        found: NDArray[np.int64] = table[backward]
        return found
    by_head = np.argsort(dst.astype(np.uint16) if size < _RADIX_SORT_LIMIT else dst, kind="stable")
    backward = backward[by_head]
    if np.array_equal(forward, backward):
        return by_head
    at = np.minimum(np.searchsorted(forward, backward), len(forward) - 1)
    hit = forward[at] == backward
    reverse = np.full(len(src), -1, np.int64)
    reverse[by_head[hit]] = at[hit]
    return reverse


def _concat(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def assemble(routers: list[Rows], slots: NDArray[np.int64], slot_count: int) -> Assembly:
    """Build the graph of these routers, which are in ascending order of node id.

    ``slots`` are their numbers in the numbering that ``Rows.slots`` uses.
    """
    count = len(routers)
    lengths = np.array([len(rows.slots) for rows in routers], np.int64)
    row_ptr = np.concatenate(([0], np.cumsum(lengths)))
    rank = np.full(slot_count, -1, np.int64)
    rank[slots] = np.arange(count)
    network = np.array([rows.block.network for rows in routers], bool)
    head = rank[_concat([rows.slots for rows in routers])]
    tail = np.repeat(np.arange(count), lengths)
    metric = _concat([rows.metrics for rows in routers])
    if network.any():
        metric = np.where(network[tail], 0, metric)
    edges, row_edge, partner = _edges(routers, tail, head, metric)
    src, dst, least, reverse = edges
    graph = Graph(
        nodes=np.array([rows.block.node for rows in routers], np.int64),
        indptr=np.concatenate(([0], np.cumsum(np.bincount(src, minlength=count)))),
        src=src,
        dst=dst,
        metric=least,
        reverse=reverse,
        capacity=np.full(len(src), np.nan),
        available=np.full(len(src), np.nan),
        transit=np.array([rows.block.transit for rows in routers], bool),
        network=network,
        uniform=common(least),
    )
    return _fill(graph, routers, row_ptr, row_edge, partner)


def _edges(
    routers: list[Rows],
    tail: NDArray[np.int64],
    head: NDArray[np.int64],
    metric: NDArray[np.int64],
) -> tuple[tuple[NDArray[np.int64], ...], NDArray[np.int64], NDArray[np.int64] | None]:
    """Merge rows (R,) into two-way edges (E,).

    Returns tails, heads, metrics and opposites of the edges; the edge of each row; the partner
    of each row.
    """
    count, size = len(routers), len(head)
    kept = np.arange(size)
    listed = (head >= 0) & (head != tail)
    if not listed.all():
        kept = listed.nonzero()[0]
        tail, head, metric = tail[kept], head[kept], metric[kept]
    starts, merged = _merge(tail, head, count)
    src, dst, least = tail, head, metric
    if len(starts) < len(kept):
        src, dst, least = tail[starts], head[starts], metric[starts]  # the least of each run
    reverse = _reverse_edges(src, dst, count)
    partner = _partners(routers, kept, starts, merged, reverse[merged])
    # RFC 2328 §16.1 (2)(b): a link that the other end does not list back does not count.
    two_way = reverse >= 0
    if two_way.all() and len(starts) == size:
        return (src, dst, least, reverse), starts, partner  # no parallel link: rows are edges
    number = np.where(two_way, two_way.cumsum() - 1, -1)
    row_edge = np.full(size, -1, np.int64)
    row_edge[kept] = np.where(metric == least[merged], number[merged], -1)
    if not two_way.all():
        src, dst, least, reverse = (a[two_way] for a in (src, dst, least, reverse))
        reverse = number[reverse]
    return (src, dst, least, reverse), row_edge, partner


def _merge(
    tail: NDArray[np.int64], head: NDArray[np.int64], size: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the runs of rows with equal ends: first row of each run, and the run of each row."""
    starts = run_starts(tail * size + head)
    if len(starts) == len(head):
        return starts, starts
    return starts, np.arange(len(starts)).repeat(run_lengths(starts, len(head)))


def _fill(
    graph: Graph,
    routers: list[Rows],
    row_ptr: NDArray[np.int64],
    row_edge: NDArray[np.int64],
    partner: NDArray[np.int64] | None,
) -> Assembly:
    empty: list[NDArray[np.float64]] = [np.empty(0)]
    capacities = np.concatenate([rows.capacities for rows in routers] or empty)
    availables = np.concatenate([rows.availables for rows in routers] or empty)
    if graph.network.any():
        unlimited = np.repeat(graph.network, np.diff(row_ptr))
        capacities[unlimited] = np.inf
        availables[unlimited] = np.inf
    used = int((row_edge >= 0).sum())
    assembly = Assembly(
        graph, row_ptr, row_edge, partner, capacities, availables, single=used == len(graph.src)
    )
    assembly.refresh(0, len(graph.nodes))
    return assembly


def _partners(
    routers: list[Rows],
    kept: NDArray[np.int64],
    starts: NDArray[np.int64],
    merged: NDArray[np.int64],
    back: NDArray[np.int64],
) -> NDArray[np.int64] | None:
    """For each row the row of the same link at the other end, -1 if one-way; None if not needed.

    ``kept`` are the rows that make runs, ``starts`` and ``merged`` as of ``_merge``, ``back`` the
    opposite run of each. Parallel links are told apart by their ids where both ends give them, else by position.
    """
    if not any(rows.doubtful for rows in routers):
        return None  # nobody will ask: a change of what is unknown assembles anew
    partner = np.full(sum(len(rows.slots) for rows in routers), -1, np.int64)
    counts = np.diff(np.append(starts, len(kept)))
    place = np.arange(len(kept)) - starts[merged]
    place = np.minimum(place, counts[back] - 1)
    partner[kept] = np.where(back >= 0, kept[np.minimum(starts[back] + place, len(kept) - 1)], -1)
    parallel = kept[(back >= 0) & ((counts[merged] > 1) | (counts[back] > 1))]
    if len(parallel):
        _pair_by_ids(routers, parallel, partner)
    return partner


def _pair_by_ids(
    routers: list[Rows], parallel: NDArray[np.int64], partner: NDArray[np.int64]
) -> None:
    nodes = _concat([np.full(len(r.neighbors), r.block.node, np.int64) for r in routers])[parallel]
    heads = _concat([rows.neighbors for rows in routers])[parallel]
    local = _concat([rows.local_ids for rows in routers])[parallel].tolist()
    remote = _concat([rows.remote_ids for rows in routers])[parallel].tolist()
    ends = list(zip(nodes.tolist(), heads.tolist(), strict=True))
    near = {
        (*end, mine): row for end, mine, row in zip(ends, local, parallel.tolist(), strict=True)
    }
    for (tail, head), theirs, row in zip(ends, remote, parallel.tolist(), strict=True):
        match = near.get((head, tail, theirs)) if theirs else None
        if match is not None:
            partner[row] = match
            partner[match] = row
