"""The merged graph of one area as arrays: the input of SPF and path capacity.

Nodes are in ascending order of their ids, so index order is id order and results do not depend on
the order of arrival. Parallel links are one edge here (node granularity): the least metric, and the
summed capacities of the links that have it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.paths.ted.model import MAX_LINK_METRIC

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.paths.ted.opposite import Opposite


class Graph(msgspec.Struct, frozen=True, eq=False, dict=True):
    """A directed graph in compressed rows; N nodes, E edges, each listed by both of its ends.

    ``nodes`` (N,) ids ascending; ``indptr`` (N+1,) first edge of each node; ``src``, ``dst``,
    ``metric``, ``reverse`` (E,), edges sorted by (src, dst), ``reverse[e]`` the opposite edge, from
    ``opposite``.
    ``capacity`` and ``available`` (E,) are bytes/s, NaN unknown, infinite out of a transit
    network; the owner writes them in place, everything else never changes.
    ``uniform_metric`` is the metric that all edges share, 0 if they differ; an edge of
    MAX_LINK_METRIC or more is on no path. ``available`` is ``capacity`` itself while no router
    advertises available bandwidth.
    """

    nodes: NDArray[np.int64]
    indptr: NDArray[np.int64]
    dst: NDArray[np.int64]
    metric: NDArray[np.int64]
    opposite: Opposite
    capacity: NDArray[np.float64]
    available: NDArray[np.float64]
    transit: NDArray[np.bool_]
    network: NDArray[np.bool_]
    uniform_metric: int

    @cached_property
    def src(self) -> NDArray[np.int64]:
        """The tail of each edge (E,), computed at first use."""
        return np.arange(len(self.nodes)).repeat(self.indptr[1:] - self.indptr[:-1])

    @property
    def reverse(self) -> NDArray[np.int64]:
        """The opposite of each edge (E,), computed at first use after a loss."""
        return self.opposite.edges

    @property
    def without_load(self) -> bool:
        """Whether no router advertises available bandwidth."""
        return self.available is self.capacity

    def index(self, node: int) -> int | None:
        """Return the index of a node id, or None."""
        at = int(self.nodes.searchsorted(node))
        return at if at < len(self.nodes) and self.nodes[at] == node else None

    def indexes(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the indexes of many node ids, -1 for those not in the graph."""
        if not len(self.nodes):
            return absent(len(nodes))
        at = np.minimum(self.nodes.searchsorted(nodes), len(self.nodes) - 1)
        return np.where(self.nodes[at] == nodes, at, -1)

    def bandwidths(self, node: int) -> bytes:
        """Return the bandwidths of the edges that leave a node index, to be compared with later."""
        edges = slice(int(self.indptr[node]), int(self.indptr[node + 1]))
        return self.capacity[edges].tobytes() + self.available[edges].tobytes()

    def tail(self, edge: int) -> int:
        """Return the node that an edge leaves."""
        return int(self.indptr.searchsorted(edge, "right")) - 1

    def edge(self, tail: int, head: int) -> int | None:
        """Return the edge between two node indexes, or None."""
        low, high = int(self.indptr[tail]), int(self.indptr[tail + 1])
        at = low + int(self.dst[low:high].searchsorted(head))
        return at if at < high and self.dst[at] == head else None

    def way(self, tail: int, head: int) -> int | None:
        """Return the edge between two node indexes, or that into a transit network between."""
        direct = self.edge(tail, head)
        if direct is not None:
            return direct
        low, high = int(self.indptr[tail]), int(self.indptr[tail + 1])
        into = low + self.network[self.dst[low:high]].nonzero()[0]
        beyond = (at for at in into.tolist() if self.edge(int(self.dst[at]), head) is not None)
        return next(beyond, None)


def anywhere(mask: NDArray[np.bool_]) -> bool:
    """Whether any is True: for short arrays in half the time of ``any``, with cold caches, too."""
    return b"\1" in mask.tobytes()


def absent(size: int) -> NDArray[np.int64]:
    """Return -1 for each of ``size``; ``np.full``, in Python, takes twice the time."""
    found = np.empty(size, np.int64)
    found.fill(-1)
    return found


def common(metric: NDArray[np.int64]) -> int:
    """Return the metric that all edges share; 0 if they differ, are unusable or there are none."""
    shared = len(metric) and metric[0] < MAX_LINK_METRIC and (metric == metric[0]).all()
    return int(metric[0]) if shared else 0


def same_metric(metric: int, size: int) -> NDArray[np.int64]:
    """Return a read-only array with one metric for all edges, which takes no memory."""
    return np.broadcast_to(np.int64(metric), size)


def out_edges(indptr: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of all edges that leave ``nodes``, in the order of the nodes."""
    if len(nodes) == 1:
        return np.arange(int(indptr[nodes[0]]), int(indptr[nodes[0] + 1]))
    first = indptr[nodes]
    counts = indptr[nodes + 1] - first
    return runs(first, counts)


def runs(first: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Concatenate runs of ``counts`` consecutive integers that begin at ``first``."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    start: NDArray[np.int64] = first - ends + counts
    return np.arange(total) + np.repeat(start, counts)


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the different values in ascending order.

    ``np.unique`` without options imports ``numpy.ma`` to look for masked arrays: 15 ms and 1 MB.
    """
    ordered = np.sort(values)
    return ordered[run_starts(ordered)]


def run_starts(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where runs of equal values begin."""
    fresh = np.empty(len(values), bool)
    fresh[:1] = True
    np.not_equal(values[1:], values[:-1], out=fresh[1:])
    return fresh.nonzero()[0]


def run_lengths(begin: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Return the lengths of the runs that begin at ``begin``; the last one ends at ``total``."""
    lengths = np.empty_like(begin)
    np.subtract(begin[1:], begin[:-1], out=lengths[:-1])
    lengths[-1:] = total - begin[-1:]
    return lengths
