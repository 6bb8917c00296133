"""From the rows of all routers to the merged graph: two-way check, parallel links, capacities.

A row is one flooded link; an edge of the graph is one or several rows. Where every capacity is
known, a later change needs no more than the rows of its router; only where some is unknown
the far ends of all links are kept, to fill in for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fared.core.ids import NodeId
from fared.ted.graph import Graph, common, run_lengths, run_starts, same_metric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fared.ted.rows import Rows
    from fared.ted.store import Layout

_RADIX_SORT_LIMIT = 1 << 16


def refresh(graph: Graph, node: int, rows: Rows) -> None:
    """Write one router's capacities, all of them known, into the graph, in place."""
    low, high = int(graph.indptr[node]), int(graph.indptr[node + 1])
    if graph.network[node]:
        return
    if high - low == len(rows.metrics):  # every row is an edge, in the same order
        graph.capacity[low:high] = rows.capacities
        graph.available[low:high] = rows.left()
        return
    index = graph.indexes(rows.neighbors)
    place = np.minimum(graph.dst[low:high].searchsorted(index), high - low - 1)
    if high > low:
        used = (graph.dst[low + place] == index) & (graph.metric[low + place] == rows.metrics)
        place, size = place[used], high - low
        graph.capacity[low:high] = np.bincount(place, rows.capacities[used], size)
        graph.available[low:high] = np.bincount(place, rows.left()[used], size)


@dataclass(frozen=True, slots=True, eq=False)
class Partners:
    """How unknown capacities are filled in; R rows as of Layout.

    ``row_edge`` (R,) the edge a row counts for, -1 where it counts for none (one-way, costlier
    than its parallels); ``partner`` (R,) the same link as the other end describes it, -1
    unknown; ``capacity``, ``available`` (R,) as of Layout.
    """

    row_ptr: NDArray[np.int64]
    row_edge: NDArray[np.int64]
    partner: NDArray[np.int64]
    capacity: NDArray[np.float64]
    available: NDArray[np.float64]

    def write(self, graph: Graph, node: int, rows: Rows) -> None:
        """Take new capacities of one router (by index) into the graph, in place."""
        if graph.network[node]:
            return
        low, high = int(self.row_ptr[node]), int(self.row_ptr[node + 1])
        self.capacity[low:high] = rows.capacities
        self.available[low:high] = rows.left()
        partners = self.partner[low:high]
        if np.isnan(self.capacity[partners[partners >= 0]]).any():
            self.fill(graph, 0, len(graph.nodes))  # the far end reads our side of a link
        else:
            self.fill(graph, node, node + 1)

    def fill(self, graph: Graph, first: int, last: int) -> None:
        """Sum the rows of the routers ``first`` to ``last - 1`` into their edges.

        What the far end says counts where this end says nothing.
        """
        rows = slice(int(self.row_ptr[first]), int(self.row_ptr[last]))
        base, end = int(graph.indptr[first]), int(graph.indptr[last])
        used = self.row_edge[rows] >= 0
        edge, partner = self.row_edge[rows][used] - base, self.partner[rows][used]
        capacity, available = self.capacity[rows][used], self.available[rows][used]
        far = np.where(partner >= 0, self.capacity[partner], np.nan)
        capacity = np.where(np.isnan(capacity) & np.isfinite(far), far, capacity)
        available = np.where(np.isnan(available), capacity, available)
        graph.capacity[base:end] = _total(edge, capacity, end - base)
        graph.available[base:end] = _total(edge, available, end - base)


def _total(edge: NDArray[np.int64], values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Sum by edge; a parallel link of unknown capacity counts as the mean of its parallels."""
    known = ~np.isnan(values)
    total = np.bincount(edge, np.where(known, values, 0.0), size)
    count = np.bincount(edge, known, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(count > 0, total * (np.bincount(edge, minlength=size) / count), np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Rows that have the same ends are one run; runs (Q,) are sorted by (src, dst).

    ``kept`` rows lead somewhere, ``first`` (Q,) of these is the first, the cheapest, of each
    run, ``run`` (of each kept row) its run; ``reverse`` the opposite run, -1 if there is none.
    """

    kept: NDArray[np.int64]
    first: NDArray[np.int64]
    run: NDArray[np.int64]
    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    reverse: NDArray[np.int64]


def assemble(layout: Layout, routers: Mapping[NodeId, Rows]) -> tuple[Graph, Partners | None]:
    """Build the graph; ``routers`` by node id are asked only where capacities are unknown."""
    tail = np.arange(len(layout.nodes)).repeat(np.diff(layout.row_ptr))
    if not layout.doubtful and _simple(tail, layout.head):
        reverse = opposites(tail, layout.head, len(layout.nodes))
        if len(reverse) and reverse.min() >= 0:
            return _as_it_is(layout, tail, reverse), None
    return _merged(layout, tail, routers)


def _simple(tail: NDArray[np.int64], head: NDArray[np.int64]) -> bool:
    """Whether every row leads to another router, no two of one router to the same."""
    if not len(head) or head.min() < 0 or (head == tail).any():
        return False
    again = (head[1:] == head[:-1]).nonzero()[0]
    return not (tail[again] == tail[again + 1]).any()


def _as_it_is(layout: Layout, tail: NDArray[np.int64], reverse: NDArray[np.int64]) -> Graph:
    """The graph whose edges are the rows."""
    metric, uniform = same_metric(layout.uniform, len(tail)), layout.uniform
    capacity = layout.capacity.copy()
    available = layout.available.copy() if layout.loaded else capacity
    if not uniform or layout.network.any():
        out = layout.network[tail]
        metric = np.where(out, 0, layout.metric)
        capacity[out] = available[out] = np.inf
        uniform = common(metric)
    return Graph(
        nodes=layout.nodes,
        indptr=layout.row_ptr,
        dst=layout.head,
        metric=metric,
        reverse=reverse,
        capacity=capacity,
        available=available,
        transit=layout.transit,
        network=layout.network,
        uniform=uniform,
    )


def _merged(
    layout: Layout, tail: NDArray[np.int64], routers: Mapping[NodeId, Rows]
) -> tuple[Graph, Partners | None]:
    """The graph where rows are one-way or parallel, or capacities unknown."""
    runs, count = _runs_of(tail, layout.head, len(layout.nodes)), len(layout.nodes)
    out = layout.network[tail]
    metric = np.where(out, 0, layout.metric)
    capacity = np.where(out, np.inf, layout.capacity)
    available = np.where(out, np.inf, layout.available)
    # RFC 2328 §16.1 (2)(b): a link that the other end does not list back does not count.
    two_way = runs.reverse >= 0
    number = np.where(two_way, two_way.cumsum() - 1, -1)
    src, dst, least = runs.src[two_way], runs.dst[two_way], metric[runs.kept[runs.first[two_way]]]
    row_edge = np.full(len(tail), -1)
    cheapest = metric[runs.kept] == metric[runs.kept[runs.first]][runs.run]
    row_edge[runs.kept] = np.where(cheapest, number[runs.run], -1)
    graph = Graph(
        nodes=layout.nodes,
        indptr=np.append(0, np.bincount(src, minlength=count).cumsum()),
        dst=dst,
        metric=least,
        reverse=number[runs.reverse[two_way]],
        capacity=np.empty(len(src)),
        available=np.empty(len(src)),
        transit=layout.transit,
        network=layout.network,
        uniform=common(least),
    )
    if layout.doubtful:
        partner = _partners(layout, tail, runs, routers)
        partners = Partners(layout.row_ptr, row_edge, partner, capacity, available)
        partners.fill(graph, 0, count)
        return graph, partners
    used = row_edge >= 0
    graph.capacity[:] = np.bincount(row_edge[used], capacity[used], len(src))
    graph.available[:] = np.bincount(row_edge[used], available[used], len(src))
    return graph, None


def _runs_of(tail: NDArray[np.int64], head: NDArray[np.int64], size: int) -> _Runs:
    kept = ((head >= 0) & (head != tail)).nonzero()[0]
    src, dst = tail[kept], head[kept]
    first = run_starts(src * size + dst)
    run = np.arange(len(first)).repeat(run_lengths(first, len(kept)))
    src, dst = src[first], dst[first]
    return _Runs(kept, first, run, src, dst, opposites(src, dst, size))


def opposites(src: NDArray[np.int64], dst: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """For edges sorted by (src, dst): the position of the opposite edge, -1 if there is none.

    Those to higher nodes, sorted by head, and those to lower ones, as they are, come in the
    same order; where they are not the same, some are one-way.
    """
    up = src < dst
    upper, lower = up.nonzero()[0], (~up).nonzero()[0]
    heads = dst[upper]
    small = heads.astype(np.uint16) if size <= _RADIX_SORT_LIMIT else heads
    upper = upper.take(small.argsort(kind="stable"))
    reverse = np.full(len(src), -1)
    if len(upper) != len(lower) or not (
        (dst.take(upper) == src.take(lower)).all() and (src.take(upper) == dst.take(lower)).all()
    ):
        wanted = dst[upper] * size + src[upper]
        there = src[lower] * size + dst[lower]
        _, one, other = np.intersect1d(wanted, there, assume_unique=True, return_indices=True)
        upper, lower = upper[one], lower[other]
    reverse[upper] = lower
    reverse[lower] = upper
    return reverse


def _partners(
    layout: Layout, tail: NDArray[np.int64], runs: _Runs, routers: Mapping[NodeId, Rows]
) -> NDArray[np.int64]:
    """For each row the row of the same link at the other end, -1 if one-way.

    Parallel links are told apart by their ids where both ends give them, else by position.
    """
    kept, first, back = runs.kept, runs.first, runs.reverse[runs.run]
    partner = np.full(len(tail), -1)
    if not len(kept):
        return partner
    counts = run_lengths(first, len(kept))
    place = np.arange(len(kept)) - first[runs.run]
    place = np.minimum(place, counts[back] - 1)
    partner[kept] = np.where(back >= 0, kept[np.minimum(first[back] + place, len(kept) - 1)], -1)
    parallel = kept[(back >= 0) & ((counts[runs.run] > 1) | (counts[back] > 1))]
    if len(parallel):
        _pair_by_ids(layout, tail, parallel, partner, routers)
    return partner


def _pair_by_ids(
    layout: Layout,
    tail: NDArray[np.int64],
    parallel: NDArray[np.int64],
    partner: NDArray[np.int64],
    routers: Mapping[NodeId, Rows],
) -> None:
    here = [routers[NodeId(node)] for node in layout.nodes.tolist()]
    local = np.concatenate([rows.local_ids for rows in here])[parallel].tolist()
    remote = np.concatenate([rows.remote_ids for rows in here])[parallel].tolist()
    ends = list(zip(tail[parallel].tolist(), layout.head[parallel].tolist(), strict=True))
    near = {
        (*end, mine): row for end, mine, row in zip(ends, local, parallel.tolist(), strict=True)
    }
    for (near_end, far_end), theirs, row in zip(ends, remote, parallel.tolist(), strict=True):
        match = near.get((far_end, near_end, theirs)) if theirs else None
        if match is not None:
            partner[row] = match
            partner[match] = row
