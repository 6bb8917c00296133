"""Shortest paths from one root: distances, and the edges of the ECMP DAG by depth.

``plan`` lays its slots over the result. If all metrics are equal (as in most fabrics), a
breadth-first search over whole frontiers finds the distances; otherwise label-correcting rounds do.
Routers that are not for transit (overload bit) can be reached but not crossed, except
for the root itself (RFC 6987, ISO 10589 §7.2.8.1). A link with the maximum link metric is never
used, not even by the root (RFC 5305 §3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.paths.ted.graph import out_edges, run_starts
from fared.paths.ted.model import MAX_LINK_METRIC

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.paths.ted.graph import Graph

UNREACHABLE = np.iinfo(np.int64).max
"""The distance of a node without a path."""


class Depth(msgspec.Struct, frozen=True, eq=False):
    """The nodes at one depth, and the DAG edges into them sorted by (head, tail).

    ``begin``: where in ``edges`` those into each of ``nodes`` begin.
    """

    nodes: NDArray[np.int64]
    begin: NDArray[np.int64]
    edges: NDArray[np.int64]
    tails: NDArray[np.int64]
    heads: NDArray[np.int64]


def depth_of(edges: NDArray[np.int64], tails: NDArray[np.int64], heads: NDArray[np.int64]) -> Depth:
    """Make a depth of DAG edges that are sorted by head."""
    begin = run_starts(heads)
    return Depth(heads[begin], begin, edges, tails, heads)


def shortest_paths(graph: Graph, root: int) -> tuple[NDArray[np.int64], list[Depth]]:
    """Return the distances (N,) from ``root``, an index of ``graph``, and the DAG by depth."""
    # RFC 2328 §16.1 (3) adds the nearest candidate: with one metric those are whole depths
    if graph.uniform_metric:
        return _breadth_first(graph, root)
    return _label_correcting(graph, root)


def _breadth_first(graph: Graph, root: int) -> tuple[NDArray[np.int64], list[Depth]]:
    """Compute distances and the DAG where all metrics are equal.

    Each level examines the edges out of the frontier, or the edges into the unreached nodes,
    whichever are fewer: in a Clos fabric that halves the work.
    """
    degree = graph.indptr[1:] - graph.indptr[:-1]
    distance = np.full(len(graph.nodes), UNREACHABLE)
    # RFC 2328 §16.1 (1): the tree has only the root
    distance[root] = 0
    left = distance == UNREACHABLE
    remaining = len(graph.dst) - int(degree[root])
    levels: list[Depth] = []
    frontier = np.array([root])
    # RFC 2328 §16.1 (3), (5): until no candidate is left
    while len(frontier) and remaining:
        if remaining <= int(degree[frontier].sum()):
            level = _pull(graph, frontier, left.nonzero()[0], degree)
        else:
            level = _push(graph, frontier, left)
        nodes = level.nodes
        if not len(nodes):
            break
        levels.append(level)
        distance[nodes] = len(levels) * graph.uniform_metric
        left[nodes] = False
        remaining -= int(degree[nodes].sum())
        # ISO 10589 §7.2.8.1: no transit through overloaded routers
        frontier = nodes[graph.transit[nodes]]
    return distance, levels


def _push(graph: Graph, frontier: NDArray[np.int64], left: NDArray[np.bool_]) -> Depth:
    """Find the edges from the frontier to nodes that are ``left``, by the edges out of it."""
    edges = out_edges(graph.indptr, frontier)
    heads = graph.dst[edges]
    if len(frontier) == 1:  # the edges of one tail are sorted by head already
        if not left[heads].all():
            edges = edges[left[heads]]
        return depth_of(edges, graph.src[edges], graph.dst[edges])
    # RFC 2328 §16.1 (2)(c): not to nodes of the tree; (d): all edges of equal cost
    fresh = left[heads]
    edges, heads = edges[fresh], heads[fresh]
    # stable: for each head the tails remain ascending
    edges = edges[heads.argsort(kind="stable")]
    return depth_of(edges, graph.src[edges], graph.dst[edges])


def _pull(
    graph: Graph, frontier: NDArray[np.int64], left: NDArray[np.int64], degree: NDArray[np.int64]
) -> Depth:
    """Find the edges from the frontier to nodes that are ``left``, by the edges into these."""
    # Every edge has its reverse (two-way check), so the edges out of a node give those into it.
    low, high = int(graph.indptr[left[0]]), int(graph.indptr[left[-1] + 1])
    if int(left[-1]) - int(left[0]) + 1 == len(left):  # consecutive nodes: one slice of edges
        tails, edges = graph.dst[low:high], graph.reverse[low:high]
    else:
        out = out_edges(graph.indptr, left)
        tails, edges = graph.dst[out], graph.reverse[out]
    heads = left.repeat(degree[left])
    fed = np.zeros(len(graph.nodes), bool)
    fed[frontier] = True
    used = fed[tails]
    if not used.all():
        edges, tails, heads = edges[used], tails[used], heads[used]
    return depth_of(edges, tails, heads)


def _label_correcting(graph: Graph, root: int) -> tuple[NDArray[np.int64], list[Depth]]:
    """Compute distances and the DAG where metrics differ.

    A round relaxes the edges of all nodes that the last one improved, in array operations, where
    Dijkstra takes one node after the other; a node that improves again costs another round.
    """
    distance = np.full(len(graph.nodes), UNREACHABLE)
    distance[root] = 0
    frontier = np.array([root])
    # RFC 5305 §3: a link with the maximum link metric is not considered
    usable = graph.metric < MAX_LINK_METRIC
    whole = bool(usable.all())
    while len(frontier):
        edges = out_edges(graph.indptr, frontier)
        if not whole:
            edges = edges[usable[edges]]
        heads = graph.dst[edges]
        better = distance.copy()
        # RFC 2328 §16.1 (2)(d): the least cost; here a node may improve again in later rounds
        np.minimum.at(better, heads, distance[graph.src[edges]] + graph.metric[edges])
        improved = np.flatnonzero(better < distance)
        distance = better
        # ISO 10589 §7.2.8.1: no transit through overloaded routers
        frontier = improved[graph.transit[improved]]
    crossed = graph.transit & (distance != UNREACHABLE)
    crossed[root] = True
    # Every edge has its reverse (two-way check): in the order of edges, the reverse ones are sorted
    # by (head, tail).
    back, tails, heads = graph.reverse, graph.dst, graph.src
    # RFC 2328 §16.1 (2)(d): all edges of equal cost; (c): none back to the root
    on_path = distance[tails] + graph.metric[back] == distance[heads]
    on_path &= crossed[tails]
    if not whole:
        on_path &= usable[back]
    on_path[graph.indptr[root] : graph.indptr[root + 1]] = False
    edges = _without_loops(graph, root, distance, back[on_path])
    return distance, _by_depth(graph, root, edges)


def _without_loops(
    graph: Graph, root: int, distance: NDArray[np.int64], edges: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Drop edges of metric 0 that would close a loop among nodes at the same distance.

    Such edges out of transit networks close no loop. IS-IS permits metric 0 between routers: there
    a node is reached over as few of these edges as possible, and some equal paths are not used.
    """
    free = graph.metric[edges] == 0
    if not (free & ~graph.network[graph.src[edges]]).any():
        return edges
    rank = np.full(len(distance), len(distance), np.int64)
    rank[graph.dst[edges[~free]]] = 0
    rank[root] = 0
    zero = edges[free]
    for _ in range(len(distance)):
        before = rank.copy()
        np.minimum.at(rank, graph.dst[zero], before[graph.src[zero]] + 1)
        if np.array_equal(before, rank):
            break
    kept: NDArray[np.int64] = edges[~free | (rank[graph.src[edges]] < rank[graph.dst[edges]])]
    return kept


def _by_depth(graph: Graph, root: int, edges: NDArray[np.int64]) -> list[Depth]:
    """Group DAG edges, sorted by head, by the most edges from the root to their head."""
    size = len(graph.nodes)
    tails, heads = graph.src[edges], graph.dst[edges]
    on_dag = np.zeros(len(graph.dst), bool)
    on_dag[edges] = True
    beyond = graph.dst[on_dag]  # the heads, by tail
    indptr = np.concatenate(([0], np.bincount(tails, minlength=size).cumsum()))
    waiting = np.bincount(heads, minlength=size)
    depth = np.zeros(size, np.int64)
    frontier = np.array([root])
    level = 0
    while len(frontier):
        level += 1
        reached = np.bincount(beyond[out_edges(indptr, frontier)], minlength=size)
        waiting -= reached
        # only when all predecessors have their depth: slots are fed by complete slots
        frontier = ((waiting == 0) & (reached > 0)).nonzero()[0]
        depth[frontier] = level
    key = depth[heads].astype(np.min_scalar_type(level))  # NumPy sorts short integers by digits
    order = key.argsort(kind="stable")
    bounds = np.bincount(key, minlength=2)[1:-1].cumsum()
    return [
        depth_of(edges[part], tails[part], heads[part])
        for part in np.split(order, bounds)
        if len(part)
    ]
