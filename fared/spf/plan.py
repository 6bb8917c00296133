"""Shortest paths as a plan: distances, the ECMP DAG, and how to carry values along it.

A plan depends on the topology only. It lists, level by level, which "slots" feed which: a
slot is one pair (node, first hop) such that some shortest path from the root to the node
begins with that first hop. A capacity change is then one sweep over a few index arrays.

Equal metrics everywhere (the usual fabric) take a breadth-first search over whole frontiers;
anything else label-correcting rounds. Routers that may not be crossed (stub router, overload)
can be reached, and the root itself is always left, RFC 6987 and RFC 5305 §4 alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fared.ted.graph import Graph, out_edges, run_lengths, run_starts, runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNREACHABLE = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One level: slots ``low`` to ``high - 1`` are fed by pairs (source slot, edge).

    ``source``, ``edge`` (K,); ``target`` (K,) counts from ``low``, or is None where pair i
    simply feeds slot ``low + i``. ``seeds`` are slots of direct neighbors, fed without limit.
    ``unlimited``: all sources are such slots and fed by nothing else, so only the edges limit.
    """

    low: int
    high: int
    source: NDArray[np.int64]
    edge: NDArray[np.int64]
    target: NDArray[np.int64] | None
    seeds: NDArray[np.int64]
    unlimited: bool


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Shortest paths from ``root`` (an index of ``graph``); N nodes, H first hops, S slots.

    ``distance`` (N,), UNREACHABLE where there is no path. ``hops`` (H,) are the neighbors that
    begin a shortest path, ``via`` (H,) the root's edge toward them (toward the transit network
    where that lies between), in ascending order of neighbor. ``slot_node``, ``slot_hop`` (S,);
    the slots of node n are ``slot_start[n]`` to ``slot_start[n] + slot_count[n] - 1``,
    ascending by hop. ``row_of`` (N,): the node whose row of weights serves n. ``levels`` are the
    edges of the DAG, grouped by the depth of their heads.
    """

    graph: Graph
    root: int
    distance: NDArray[np.int64]
    hops: NDArray[np.int64]
    via: NDArray[np.int64]
    slot_node: NDArray[np.int64]
    slot_hop: NDArray[np.int64]
    slot_start: NDArray[np.int64]
    slot_count: NDArray[np.int64]
    steps: tuple[Step, ...]
    row_of: NDArray[np.int64]
    levels: tuple[NDArray[np.int64], ...]

    @property
    def dag(self) -> NDArray[np.int64]:
        """All edges on shortest paths."""
        return np.concatenate(self.levels or (np.empty(0, np.int64),))

    def first_hops(self, node: int) -> NDArray[np.int64]:
        """Indexes of the neighbors with which shortest paths to ``node`` begin."""
        nodes: NDArray[np.int64] = self.hops[self.slot_hop[self.slots(node)]]
        return nodes

    def slots(self, node: int) -> slice:
        """The slots of one node."""
        low = int(self.slot_start[node])
        return slice(low, low + int(self.slot_count[node]))

    def edges_into(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The edges of the DAG whose head is one of ``nodes``."""
        graph = self.graph
        back = graph.reverse[out_edges(graph.indptr, nodes)]
        tail, head = graph.src[back], graph.dst[back]
        usable = (graph.transit[tail] | (tail == self.root)) & (self.distance[tail] != UNREACHABLE)
        back, tail, head = back[usable], tail[usable], head[usable]
        on_path = self.distance[tail] + graph.metric[back] == self.distance[head]
        found: NDArray[np.int64] = back[on_path]
        return found if graph.metric[found].all() else found[np.isin(found, self.dag)]


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """The nodes at one depth, and the DAG edges into them sorted by (head, tail).

    ``begin``: where in ``edges`` those into each of ``nodes`` begin.
    """

    nodes: NDArray[np.int64]
    begin: NDArray[np.int64]
    edges: NDArray[np.int64]
    tails: NDArray[np.int64]
    heads: NDArray[np.int64]


def _level(edges: NDArray[np.int64], tails: NDArray[np.int64], heads: NDArray[np.int64]) -> _Level:
    begin = run_starts(heads)
    return _Level(heads[begin], begin, edges, tails, heads)


def build_plan(graph: Graph, root: int) -> Plan:
    """Compute shortest paths from ``root``, an index of ``graph``."""
    if graph.uniform:
        distance, levels = _breadth_first(graph, root)
    else:
        distance, levels = _label_correcting(graph, root)
    hops, via = _first_hops(graph, root, levels)
    builder = _SlotBuilder(graph, hops)
    for level in levels:
        builder.add(level)
    empty = [np.empty(0, np.int64)]
    return Plan(
        graph=graph,
        root=root,
        distance=distance,
        hops=hops,
        via=via,
        slot_node=np.concatenate(builder.slot_node or empty),
        slot_hop=builder.slot_hop,
        slot_start=builder.start,
        slot_count=builder.count,
        steps=tuple(builder.steps),
        row_of=builder.row_of,
        levels=tuple(level.edges for level in levels),
    )


def _breadth_first(graph: Graph, root: int) -> tuple[NDArray[np.int64], list[_Level]]:
    """Distances and levels where all metrics are equal.

    Each level looks at the edges out of the frontier, or at those into what is left, whichever
    are fewer: in a Clos fabric that halves the work.
    """
    degree = graph.indptr[1:] - graph.indptr[:-1]
    distance = np.full(len(graph.nodes), UNREACHABLE)
    distance[root] = 0
    left = distance == UNREACHABLE
    remaining = len(graph.dst) - int(degree[root])
    levels: list[_Level] = []
    frontier = np.array([root])
    while len(frontier) and remaining:
        if remaining <= int(degree[frontier].sum()):
            level = _pull(graph, frontier, left.nonzero()[0], degree)
        else:
            level = _push(graph, frontier, left)
        nodes = level.nodes
        if not len(nodes):
            break
        levels.append(level)
        distance[nodes] = len(levels) * graph.uniform
        left[nodes] = False
        remaining -= int(degree[nodes].sum())
        frontier = nodes[graph.transit[nodes]]
    return distance, levels


def _push(graph: Graph, frontier: NDArray[np.int64], left: NDArray[np.bool_]) -> _Level:
    edges = out_edges(graph.indptr, frontier)
    heads = graph.dst[edges]
    if len(frontier) == 1:
        if not left[heads].all():
            edges = edges[left[heads]]
        return _level(edges, graph.src[edges], graph.dst[edges])
    fresh = left[heads]
    edges, heads = edges[fresh], heads[fresh]
    edges = edges[heads.argsort(kind="stable")]
    return _level(edges, graph.src[edges], graph.dst[edges])


def _pull(
    graph: Graph, frontier: NDArray[np.int64], left: NDArray[np.int64], degree: NDArray[np.int64]
) -> _Level:
    low, high = int(graph.indptr[left[0]]), int(graph.indptr[left[-1] + 1])
    if int(left[-1]) - int(left[0]) + 1 == len(left):
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
    return _level(edges, tails, heads)


def _label_correcting(graph: Graph, root: int) -> tuple[NDArray[np.int64], list[_Level]]:
    distance = np.full(len(graph.nodes), UNREACHABLE)
    distance[root] = 0
    frontier = np.array([root])
    while len(frontier):
        edges = out_edges(graph.indptr, frontier)
        heads = graph.dst[edges]
        better = distance.copy()
        np.minimum.at(better, heads, distance[graph.src[edges]] + graph.metric[edges])
        improved = np.flatnonzero(better < distance)
        distance = better
        frontier = improved[graph.transit[improved]]
    crossed = graph.transit & (distance != UNREACHABLE)
    crossed[root] = True
    edges = np.flatnonzero(crossed[graph.src])
    heads = graph.dst[edges]
    on_path = distance[graph.src[edges]] + graph.metric[edges] == distance[heads]
    edges = edges[on_path & (heads != root)]
    return distance, _by_depth(graph, root, _without_loops(graph, root, distance, edges))


def _without_loops(
    graph: Graph, root: int, distance: NDArray[np.int64], edges: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Drop edges of metric 0 that would close a loop among nodes at the same distance.

    Out of transit networks they are harmless. IS-IS permits them between routers: there a node
    is taken to be reached over as few of them as possible, at the price of some equal paths.
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


def _by_depth(graph: Graph, root: int, edges: NDArray[np.int64]) -> list[_Level]:
    """Group DAG edges by the longest number of edges from the root to their head."""
    size = len(graph.nodes)
    tails, heads = graph.src[edges], graph.dst[edges]
    indptr = np.concatenate(([0], np.cumsum(np.bincount(tails, minlength=size))))
    waiting = np.bincount(heads, minlength=size)
    depth = np.zeros(size, np.int64)
    frontier = np.array([root])
    level = 0
    while len(frontier):
        level += 1
        reached = heads[out_edges(indptr, frontier)]
        waiting -= np.bincount(reached, minlength=size)
        touched = np.unique(reached)
        frontier = touched[waiting[touched] == 0]
        depth[frontier] = level
    order = np.lexsort((tails, heads, depth[heads]))
    bounds = np.searchsorted(depth[heads][order], np.arange(2, level + 1))
    return [
        _level(edges[part], tails[part], heads[part])
        for part in np.split(order, bounds)
        if len(part)
    ]


def _first_hops(
    graph: Graph, root: int, levels: list[_Level]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the first hops: neighbors and the root's edges toward them.

    RFC 2328 §16.1.1: behind a directly attached transit network the next hops are the routers
    on it.
    """
    near = levels[:1] if graph.uniform else levels
    mine = [level.edges[level.tails == root] for level in near] or [np.empty(0, np.int64)]
    edges = np.sort(np.concatenate(mine))
    heads = graph.dst[edges]
    if not graph.network[heads].any():
        return heads, edges
    found: list[tuple[int, int]] = []
    for head, edge in zip(heads.tolist(), edges.tolist(), strict=True):
        if not graph.network[head]:
            found.append((head, edge))
            continue
        for beyond in levels:
            on_network = beyond.heads[beyond.tails == head].tolist()
            found.extend((node, edge) for node in on_network)
    found.sort()
    hops = np.array([node for node, _ in found], np.int64)
    return hops, np.array([edge for _, edge in found], np.int64)


class _SlotBuilder:
    """Lays out the slots level by level."""

    def __init__(self, graph: Graph, hops: NDArray[np.int64]) -> None:
        size = len(graph.nodes)
        self._hops = hops
        self._uniform = bool(graph.uniform)
        self._unseeded = len(hops)
        self._neighbors = 0
        self._single = False
        self.slot_hop = np.empty(0, np.int64)
        self.start = np.zeros(size, np.int64)
        self.count = np.zeros(size, np.int64)
        self.row_of = np.arange(size)
        self.slot_node: list[NDArray[np.int64]] = []
        self.steps: list[Step] = []

    def add(self, level: _Level) -> None:
        """Append the slots of one level and the step that feeds them."""
        degree = run_lengths(level.begin, len(level.edges))
        self._share_rows(level, degree)
        seeds = self._seeds(level)
        if len(seeds) == len(level.nodes) and not self.steps:
            self._append(level, level.nodes, seeds, degree)
            none, slots = np.empty(0, np.int64), np.arange(len(seeds))
            self.steps.append(Step(0, len(seeds), none, none, none, slots, unlimited=False))
            self._neighbors = 0 if self._unseeded else len(seeds)
            return
        source, edge, fed = self._expand(level, degree)
        # In the slots of the neighbors, the first ones, a slot's number is its hop's.
        unlimited = len(source) > 0 and int(source.max()) < self._neighbors
        hop = source if unlimited else self.slot_hop[source]
        if len(seeds) or not (unlimited or self._ascending(level, fed, hop)):
            place = np.arange(len(fed)).repeat(fed)
            self._merge(level, source, edge, place * len(self._hops) + hop, seeds)
            return
        nodes = level.heads if len(hop) == len(level.heads) else level.nodes.repeat(fed)
        low = self._append(level, nodes, hop, fed)
        none = np.empty(0, np.int64)
        self.steps.append(Step(low, low + len(hop), source, edge, None, none, unlimited))

    def _expand(
        self, level: _Level, degree: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Pair every edge with every slot of its tail; the root itself has none.

        Returns the slots, the edges, and how many such pairs lead to each node.
        """
        first = self.start[level.tails]
        if self._single:
            return first, level.edges, degree
        counts = self.count[level.tails]
        if (counts == 1).all():
            return first, level.edges, degree
        pairs = np.add.reduceat(counts, level.begin)
        return runs(first, counts), level.edges.repeat(counts), pairs

    def _seeds(self, level: _Level) -> NDArray[np.int64]:
        """Which first hops are among the nodes of this level."""
        if not self._unseeded:
            return np.empty(0, np.int64)
        here = np.zeros(len(self.start), bool)
        here[level.nodes] = True
        seeds: NDArray[np.int64] = here[self._hops].nonzero()[0]
        self._unseeded -= len(seeds)
        return seeds

    def _ascending(self, level: _Level, fed: NDArray[np.int64], hop: NDArray[np.int64]) -> bool:
        """Whether no two pairs feed one slot and all lie in the order of slots."""
        key = level.nodes.repeat(fed) * len(self._hops) + hop
        return bool((key[1:] > key[:-1]).all())

    def _merge(
        self,
        level: _Level,
        source: NDArray[np.int64],
        edge: NDArray[np.int64],
        key: NDArray[np.int64],
        seeds: NDArray[np.int64],
    ) -> None:
        """Append slots that several pairs may feed; ``key`` counts by node, then first hop."""
        size, width = len(level.nodes), len(self._hops)
        seed_key = np.searchsorted(level.nodes, self._hops[seeds]) * width + seeds
        present = np.zeros(size * width, bool)
        present[key] = True
        present[seed_key] = True
        number = present.cumsum() - 1
        place, hop = present.reshape(size, width).nonzero()
        count = np.bincount(place, minlength=size)
        low = self._append(level, level.nodes[place], hop, count)
        target, seeds = number[key], low + number[seed_key]
        step = Step(low, low + len(hop), source, edge, target, seeds, unlimited=False)
        self.steps.append(step)

    def _append(
        self,
        level: _Level,
        nodes: NDArray[np.int64],
        hop: NDArray[np.int64],
        count: NDArray[np.int64],
    ) -> int:
        """Append slots given by node and first hop, ``count`` of each node of the level."""
        low = len(self.slot_hop)
        self.slot_hop = np.concatenate((self.slot_hop, hop)) if low else hop
        self.slot_node.append(nodes)
        self.start[level.nodes] = low + count.cumsum() - count
        self.count[level.nodes] = count
        self._single = self._uniform and (self._single or not low) and bool((count == 1).all())
        return low

    def _share_rows(self, level: _Level, degree: NDArray[np.int64]) -> None:
        """A node with exactly one predecessor on the DAG shares that predecessor's row.

        What lies behind a node that all paths share limits all of them alike, so it must not
        even out the weights before it. At a transit node thousands of rows become a few.
        """
        only = (degree == 1).nonzero()[0]
        if len(only):
            tails = level.tails[level.begin[only]]
            behind = self.count[tails] > 0
            self.row_of[level.nodes[only[behind]]] = self.row_of[tails[behind]]
