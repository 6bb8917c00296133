r"""Shortest paths as a plan: distances, the ECMP DAG, and the order in which values follow it.

``rib.area`` builds a plan from a graph, and ``weights`` sweeps it. A plan depends on the topology
only. It lists, depth by depth, which slots feed which. A slot is one pair (node, first hop) such
that a shortest path from the root to the node begins with that first hop. All values of a sweep
are arrays over the slots, so a capacity change costs a few array operations::

            S1 (hop 0)             slot        0    1    2    3    4    5
           /          \            slot_node   S1   S2   L    L    H    H
       root            L --- H     slot_hop    0    1    0    1    0    1
           \          /
            S2 (hop 1)             row_of[H] = L: H shares the row of its only predecessor

       steps   slots 0-1   seeds 0, 1 (direct neighbors)
               slots 2-3   fed by slots 0, 1 over the edges S1-L, S2-L
               slots 4-5   fed by slots 2, 3 over the edge L-H, once for each first hop

A row holds the values of a node's slots over all first hops (H,): slots 2 and 3 form the row of L.
The weights of a node come from the row of ``row_of``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.paths.spf.laid import Laid, SweepStep
from fared.paths.spf.search import UNREACHABLE, shortest_paths
from fared.paths.ted.graph import out_edges, run_lengths, runs
from fared.paths.ted.model import MAX_LINK_METRIC

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.paths.spf.search import Depth
    from fared.paths.ted.graph import Graph


class SpfPlan(msgspec.Struct, frozen=True, eq=False):
    """Shortest paths from ``root`` (an index of ``graph``); N nodes, H first hops, S slots.

    ``distance`` (N,), UNREACHABLE where there is no path. ``hops`` (H,) are the neighbors that
    begin a shortest path, ``via`` (H,) the root's edge toward them (toward the transit network
    where that lies between), in ascending order of neighbor. ``slot_node``, ``slot_hop`` (S,);
    the slots of node n are ``slot_start[n]`` to ``slot_start[n] + slot_count[n] - 1``,
    ascending by hop. ``row_of`` (N,): the node whose row gives the weights of n. ``laid`` has the
    steps of a sweep.
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
    row_of: NDArray[np.int64]
    laid: Laid

    @property
    def levels(self) -> tuple[NDArray[np.int64], ...]:
        """The edges of the DAG, grouped by the depth of their heads."""
        return self.laid.present_levels

    @property
    def dag(self) -> NDArray[np.int64]:
        """All edges on shortest paths."""
        return np.concatenate(self.levels or (np.empty(0, np.int64),))

    def first_hops(self, node: int) -> NDArray[np.int64]:
        """Return the indexes of the neighbors with which shortest paths to ``node`` begin."""
        nodes: NDArray[np.int64] = self.hops[self.slot_hop[self.slots(node)]]
        return nodes

    def slots(self, node: int) -> slice:
        """Return the slots of one node."""
        low = int(self.slot_start[node])
        return slice(low, low + int(self.slot_count[node]))

    def edges_into(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the edges of the DAG whose head is one of ``nodes``."""
        graph = self.graph
        back = graph.reverse[out_edges(graph.indptr, nodes)]
        # as in ``shortest_paths``: a tail that may be crossed, equal cost, a usable metric
        tail, head = graph.src[back], graph.dst[back]
        usable = (graph.transit[tail] | (tail == self.root)) & (self.distance[tail] != UNREACHABLE)
        back, tail, head = back[usable], tail[usable], head[usable]
        on_path = self.distance[tail] + graph.metric[back] == self.distance[head]
        on_path &= graph.metric[back] < MAX_LINK_METRIC
        found: NDArray[np.int64] = back[on_path]
        # edges of metric 0 that would close a loop are of equal cost, too, but not in the DAG
        return found if graph.metric[found].all() else found[np.isin(found, self.dag)]


def build_plan(graph: Graph, root: int) -> SpfPlan:
    """Compute the plan of shortest paths from ``root``, an index of ``graph``."""
    distance, levels = shortest_paths(graph, root)
    hops, via = _first_hops(graph, root, levels)
    builder = _SlotBuilder(graph, hops)
    for level in levels:
        builder.add(level)
    empty = [np.empty(0, np.int64)]
    return SpfPlan(
        graph=graph,
        root=root,
        distance=distance,
        hops=hops,
        via=via,
        slot_node=np.concatenate(builder.slot_node or empty),
        slot_hop=builder.slot_hop,
        slot_start=builder.start,
        slot_count=builder.count,
        row_of=builder.row_of,
        laid=Laid(
            tuple(builder.steps), tuple(level.edges for level in levels), len(builder.slot_hop)
        ),
    )


def _first_hops(
    graph: Graph, root: int, levels: list[Depth]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the first hops: neighbors and the root's edges toward them.

    RFC 2328 §16.1.1: behind a directly attached transit network the next hops are the routers
    on it.
    """
    # with one metric all edges of the root lead to depth 1
    near = levels[:1] if graph.uniform_metric else levels
    mine = [level.edges[level.tails == root] for level in near] or [np.empty(0, np.int64)]
    edges = np.sort(np.concatenate(mine))
    heads = graph.dst[edges]
    if not graph.network[heads].any():
        return heads, edges
    found: list[tuple[int, int]] = []
    for head, edge in zip(heads.tolist(), edges.tolist(), strict=True):
        # RFC 2328 §16.1.1: the parent is the root: a router is its own next hop
        if not graph.network[head]:
            found.append((head, edge))
            continue
        # §16.1.1: the parent is a network that connects to the root: the routers on it
        for beyond in levels:
            on_network = beyond.heads[beyond.tails == head].tolist()
            found.extend((node, edge) for node in on_network)
    found.sort()
    hops = np.array([node for node, _ in found], np.int64)
    return hops, np.array([edge for _, edge in found], np.int64)


class _SlotBuilder:
    """Appends the slots and steps of a plan, depth by depth."""

    def __init__(self, graph: Graph, hops: NDArray[np.int64]) -> None:
        size = len(graph.nodes)
        self._hops = hops
        self._uniform = bool(graph.uniform_metric)
        self._unseeded = len(hops)
        self._neighbors = 0
        self._single = False
        self.slot_hop = np.empty(0, np.int64)
        self.start = np.zeros(size, np.int64)
        self.count = np.zeros(size, np.int64)
        self.row_of = np.arange(size)
        self.slot_node: list[NDArray[np.int64]] = []
        self.steps: list[SweepStep] = []

    def add(self, level: Depth) -> None:
        """Append the slots of one depth and the step that feeds them."""
        degree = run_lengths(level.begin, len(level.edges))
        self._share_rows(level, degree)
        seeds = self._seeds(level)
        # Only direct neighbors: no slot feeds them.
        if len(seeds) == len(level.nodes) and not self.steps:
            self._append(level, level.nodes, seeds, degree)
            none, slots = np.empty(0, np.int64), np.arange(len(seeds))
            self.steps.append(SweepStep(0, len(seeds), none, none, none, slots, unlimited=False))
            # the numbers of slots are those of hops only if all first hops are at this depth
            self._neighbors = 0 if self._unseeded else len(seeds)
            return
        source, edge, fed = self._expand(level, degree)
        # The slots of the neighbors come first, and their numbers are those of their hops.
        unlimited = len(source) > 0 and int(source.max()) < self._neighbors
        hop = source if unlimited else self.slot_hop[source]
        if len(seeds) or not (unlimited or self._ascending(level, fed, hop)):
            place = np.arange(len(fed)).repeat(fed)
            self._merge(level, source, edge, place * len(self._hops) + hop, seeds)
            return
        nodes = level.heads if len(hop) == len(level.heads) else level.nodes.repeat(fed)
        low = self._append(level, nodes, hop, fed)
        none = np.empty(0, np.int64)
        self.steps.append(SweepStep(low, low + len(hop), source, edge, None, none, unlimited))

    def _expand(
        self, level: Depth, degree: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Pair every edge with every slot of its tail; the root has none.

        Returns the slots, the edges, and the number of pairs that lead to each node.
        """
        first = self.start[level.tails]
        if self._single:  # every node so far has one slot: pairs are edges
            return first, level.edges, degree
        counts = self.count[level.tails]
        if (counts == 1).all():
            return first, level.edges, degree
        pairs = np.add.reduceat(counts, level.begin)
        return runs(first, counts), level.edges.repeat(counts), pairs

    def _seeds(self, level: Depth) -> NDArray[np.int64]:
        """Return the first hops that are among the nodes of this level."""
        if not self._unseeded:
            return np.empty(0, np.int64)
        here = np.zeros(len(self.start), bool)
        here[level.nodes] = True
        seeds: NDArray[np.int64] = here[self._hops].nonzero()[0]
        self._unseeded -= len(seeds)
        return seeds

    def _ascending(self, level: Depth, fed: NDArray[np.int64], hop: NDArray[np.int64]) -> bool:
        """Whether the pairs are in the order of slots, and no two feed the same slot."""
        key = level.nodes.repeat(fed) * len(self._hops) + hop
        return bool((key[1:] > key[:-1]).all())

    def _merge(
        self,
        level: Depth,
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
        step = SweepStep(low, low + len(hop), source, edge, target, seeds, unlimited=False)
        self.steps.append(step)

    def _append(
        self,
        level: Depth,
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

    def _share_rows(self, level: Depth, degree: NDArray[np.int64]) -> None:
        """Let a node with exactly one predecessor on the DAG share that predecessor's row.

        A limit behind a node that all paths share applies to all of them alike, so it must not even
        out the weights before that node. At a transit node thousands of rows become a few.
        """
        only = (degree == 1).nonzero()[0]
        if len(only):
            tails = level.tails[level.begin[only]]
            behind = self.count[tails] > 0  # the root has no slots, hence no row to share
            self.row_of[level.nodes[only[behind]]] = self.row_of[tails[behind]]
