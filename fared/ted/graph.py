"""The merged graph of one area as arrays: what SPF and path capacity compute on.

Nodes are in ascending order of their ids, so an index order is an id order and results do not
depend on the order in which routers were heard. Parallel links are one edge here (node
granularity): the least metric, and the capacities of those links that have it summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import weakref

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Loss:
    """A graph is the one ``before`` without its edges ``cut`` (ascending), capacities aside."""

    before: weakref.ref[Graph]
    cut: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Graph:
    """A directed graph in compressed rows; N nodes, E edges, both ends agree on every edge.

    ``nodes`` (N,) ids ascending; ``indptr`` (N+1,) first edge of each node; ``src``, ``dst``,
    ``metric``, ``reverse`` (E,), edges sorted by (src, dst), ``reverse[e]`` the opposite edge.
    ``capacity`` and ``available`` (E,) are bytes/s, NaN unknown, infinite out of a transit
    network; the owner writes them in place, everything else never changes.
    ``uniform`` is the metric that all edges share, 0 if they differ. ``available`` may be
    ``capacity`` itself while no router tells what is available.
    """

    nodes: NDArray[np.int64]
    indptr: NDArray[np.int64]
    dst: NDArray[np.int64]
    metric: NDArray[np.int64]
    reverse: NDArray[np.int64]
    capacity: NDArray[np.float64]
    available: NDArray[np.float64]
    transit: NDArray[np.bool_]
    network: NDArray[np.bool_]
    uniform: int
    loss: Loss | None = None
    """Where it differs from another one by lost links only."""

    @cached_property
    def src(self) -> NDArray[np.int64]:
        """The tail of each edge (E,): laid out when first asked for."""
        return np.arange(len(self.nodes)).repeat(self.indptr[1:] - self.indptr[:-1])

    @property
    def loadless(self) -> bool:
        """Whether nobody tells what is available."""
        return self.available is self.capacity

    def index(self, node: int) -> int | None:
        """The index of a node id, or None."""
        at = int(self.nodes.searchsorted(node))
        return at if at < len(self.nodes) and self.nodes[at] == node else None

    def indexes(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Indexes of many node ids at once, -1 for those not in the graph."""
        if not len(self.nodes):
            return np.full(len(nodes), -1, np.int64)
        at = np.minimum(self.nodes.searchsorted(nodes), len(self.nodes) - 1)
        return np.where(self.nodes[at] == nodes, at, -1)

    def tail(self, edge: int) -> int:
        """The node that an edge leaves."""
        return int(self.indptr.searchsorted(edge, "right")) - 1

    def edge(self, tail: int, head: int) -> int | None:
        """The edge between two node indexes, or None."""
        low, high = int(self.indptr[tail]), int(self.indptr[tail + 1])
        at = low + int(self.dst[low:high].searchsorted(head))
        return at if at < high and self.dst[at] == head else None

    def way(self, tail: int, head: int) -> int | None:
        """The edge between two node indexes, or the one into a transit network between them."""
        direct = self.edge(tail, head)
        if direct is not None:
            return direct
        low, high = int(self.indptr[tail]), int(self.indptr[tail + 1])
        into = low + self.network[self.dst[low:high]].nonzero()[0]
        beyond = (at for at in into.tolist() if self.edge(int(self.dst[at]), head) is not None)
        return next(beyond, None)


def common(metric: NDArray[np.int64]) -> int:
    """The metric that all edges share, 0 if they differ or there are none."""
    return int(metric[0]) if len(metric) and (metric == metric[0]).all() else 0


def same_metric(metric: int, size: int) -> NDArray[np.int64]:
    """One metric for all edges, to be read only: it takes no room."""
    return np.broadcast_to(np.int64(metric), size)


def out_edges(indptr: NDArray[np.int64], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of all edges that leave ``nodes``, in the order of the nodes."""
    if len(nodes) == 1:
        return np.arange(int(indptr[nodes[0]]), int(indptr[nodes[0] + 1]))
    first = indptr[nodes]
    counts = indptr[nodes + 1] - first
    return runs(first, counts)


def runs(first: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Consecutive integers from each ``first``, ``counts`` of them, laid end to end."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    start: NDArray[np.int64] = first - ends + counts
    return np.arange(total) + np.repeat(start, counts)


def run_starts(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where runs of equal values begin."""
    fresh = np.empty(len(values), bool)
    fresh[:1] = True
    np.not_equal(values[1:], values[:-1], out=fresh[1:])
    return fresh.nonzero()[0]


def run_lengths(begin: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """How long the runs are that begin there, the last one ending at ``total``."""
    lengths = np.empty_like(begin)
    np.subtract(begin[1:], begin[:-1], out=lengths[:-1])
    lengths[-1:] = total - begin[-1:]
    return lengths
