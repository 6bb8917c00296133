"""Build the merged graph from the rows of all routers: two-way check, parallel links, capacities.

A row is one flooded link; an edge of the graph is one or several rows. ``Ted`` calls ``assemble``
for a new graph and ``refresh`` for new capacities of a router. Where all capacities are known, the
rows of that router suffice. Otherwise ``Partners`` keeps the far end of each link, whose
capacity stands in for an unknown one (``partners``).

``refresh`` is a fast path beside ``assemble``: tests/ted/test_database.py proves them equal; row
``graph with other bandwidths``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.core.ids import NodeId
from fared.paths.ted.graph import (
    Graph,
    absent,
    anywhere,
    common,
    run_lengths,
    run_starts,
    same_metric,
)
from fared.paths.ted.opposite import Opposite
from fared.paths.ted.partners import Partners

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fared.paths.ted.rows import LinkRows
    from fared.paths.ted.store import GraphLayout

_RADIX_SORT_LIMIT = 1 << 16


def refresh(graph: Graph, node: int, rows: LinkRows) -> None:
    """Write one router's capacities, all of them known, into the graph, in place."""
    low, high = int(graph.indptr[node]), int(graph.indptr[node + 1])
    # The capacity out of a transit network is unlimited and never changes.
    if graph.network[node] or low == high:
        return
    capacity, available = graph.capacity[low:high], graph.available[low:high]
    if high - low == len(rows.metrics):  # each row is an edge, in the same order
        capacity[:], available[:] = rows.capacities, rows.left()
        return
    index = graph.indexes(rows.neighbors)
    place = np.minimum(graph.dst[low:high].searchsorted(index), high - low - 1)
    # Rows that are one-way, or costlier than a parallel link, belong to no edge.
    used = (graph.dst[low + place] == index) & (graph.metric[low + place] == rows.metrics)
    place = place[used]
    capacity[:] = np.bincount(place, rows.capacities[used], high - low)
    available[:] = np.bincount(place, rows.left()[used], high - low)


class _Runs(msgspec.Struct, frozen=True, eq=False):
    """The rows grouped into runs with the same ends; the runs (Q,) are sorted by (src, dst).

    ``kept`` are the rows that lead to a known router; ``first`` (Q,) the position in ``kept`` of
    the first, the cheapest, row of each run; ``run`` the run of each kept row; ``reverse`` (Q,) the
    opposite run, -1 if there is none.
    """

    kept: NDArray[np.int64]
    first: NDArray[np.int64]
    run: NDArray[np.int64]
    src: NDArray[np.int64]
    dst: NDArray[np.int64]
    reverse: NDArray[np.int64]


def assemble(
    layout: GraphLayout, routers: Mapping[NodeId, LinkRows]
) -> tuple[Graph, Partners | None]:
    """Build the graph; ``routers`` (by node id) is read only where capacities are unknown."""
    tail = np.arange(len(layout.nodes)).repeat(layout.row_ptr[1:] - layout.row_ptr[:-1])
    if not layout.has_unknown_capacity and _simple(tail, layout.head):
        reverse = opposites(tail, layout.head, len(layout.nodes))
        # All rows are two-way, and none are parallel: rows are edges.
        if len(reverse) and reverse.min() >= 0:
            return _as_it_is(layout, tail, reverse), None
    return _merged(layout, tail, routers)


def _simple(tail: NDArray[np.int64], head: NDArray[np.int64]) -> bool:
    """Whether every row leads to another router, and no two rows of a router to the same one."""
    if not len(head) or head.min() < 0 or anywhere(head == tail):
        return False
    again = (head[1:] == head[:-1]).nonzero()[0]
    return not anywhere(tail[again] == tail[again + 1])


def _as_it_is(layout: GraphLayout, tail: NDArray[np.int64], reverse: NDArray[np.int64]) -> Graph:
    """Return the graph whose edges are the rows."""
    metric, uniform_metric = same_metric(layout.uniform_metric, len(tail)), layout.uniform_metric
    capacity = layout.capacity.copy()
    available = layout.available.copy() if layout.loaded else capacity
    if not uniform_metric or anywhere(layout.network):
        # RFC 2328 §A.4.3: the distance from a network to its routers is 0
        out = layout.network[tail]
        metric = np.where(out, 0, layout.metric)
        capacity[out] = available[out] = np.inf
        uniform_metric = common(metric)
    return Graph(
        nodes=layout.nodes,
        indptr=layout.row_ptr,
        dst=layout.head,
        metric=metric,
        opposite=Opposite(reverse),
        capacity=capacity,
        available=available,
        transit=layout.transit,
        network=layout.network,
        uniform_metric=uniform_metric,
    )


def _merged(
    layout: GraphLayout, tail: NDArray[np.int64], routers: Mapping[NodeId, LinkRows]
) -> tuple[Graph, Partners | None]:
    """Return the graph where rows are one-way or parallel, or capacities unknown."""
    runs, count = _runs_of(tail, layout.head, len(layout.nodes)), len(layout.nodes)
    out = layout.network[tail]
    metric = np.where(out, 0, layout.metric)
    capacity = np.where(out, np.inf, layout.capacity)
    available = np.where(out, np.inf, layout.available)
    # RFC 2328 §16.1 (2)(b): a link that the other end does not list back does not count.
    two_way = runs.reverse >= 0
    number = np.where(two_way, two_way.cumsum() - 1, -1)
    src, dst, least = runs.src[two_way], runs.dst[two_way], metric[runs.kept[runs.first[two_way]]]
    row_edge = absent(len(tail))
    # RFC 2328 §16.1 (2)(d): of parallel links those of the least cost carry traffic
    cheapest = metric[runs.kept] == metric[runs.kept[runs.first]][runs.run]
    row_edge[runs.kept] = np.where(cheapest, number[runs.run], -1)
    graph = Graph(
        nodes=layout.nodes,
        indptr=np.append(0, np.bincount(src, minlength=count).cumsum()),
        dst=dst,
        metric=least,
        opposite=Opposite(number[runs.reverse[two_way]]),
        capacity=np.empty(len(src)),
        available=np.empty(len(src)),
        transit=layout.transit,
        network=layout.network,
        uniform_metric=common(least),
    )
    if layout.has_unknown_capacity:
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
    """For edges sorted by (src, dst), return the position of the opposite edge, -1 for none.

    The edges to higher nodes, sorted by head, and the edges to lower nodes, in the order given, are
    opposites one by one, unless some are one-way.
    """
    up = src < dst
    upper, lower = up.nonzero()[0], (~up).nonzero()[0]
    heads = dst[upper]
    small = heads.astype(np.uint16) if size <= _RADIX_SORT_LIMIT else heads
    upper = upper.take(small.argsort(kind="stable"))
    reverse = absent(len(src))
    if (
        len(upper) != len(lower)
        or anywhere(dst.take(upper) != src.take(lower))
        or anywhere(src.take(upper) != dst.take(lower))
    ):
        wanted = dst[upper] * size + src[upper]
        there = src[lower] * size + dst[lower]
        _, one, other = np.intersect1d(wanted, there, assume_unique=True, return_indices=True)
        upper, lower = upper[one], lower[other]
    reverse[upper] = lower
    reverse[lower] = upper
    return reverse


def _partners(
    layout: GraphLayout, tail: NDArray[np.int64], runs: _Runs, routers: Mapping[NodeId, LinkRows]
) -> NDArray[np.int64]:
    """Return for each row the row of the same link at the other end, -1 if one-way.

    Parallel links are matched by their ids where both ends advertise them, else by position.
    """
    kept, first, back = runs.kept, runs.first, runs.reverse[runs.run]
    partner = absent(len(tail))
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
    layout: GraphLayout,
    tail: NDArray[np.int64],
    parallel: NDArray[np.int64],
    partner: NDArray[np.int64],
    routers: Mapping[NodeId, LinkRows],
) -> None:
    """Pair parallel links whose ids at both ends match: fill ``partner`` in place."""
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
