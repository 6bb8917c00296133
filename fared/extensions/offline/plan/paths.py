"""The shortest paths of one root, and how failures change the capacity along them.

A failure rarely changes distances. As long as a node keeps a predecessor on the DAG of a root, its
distance and its other predecessors stay, so that the capacities of the old DAG with the failed
edges at 0 are those of the new one. So all failures of a part of a set follow the DAG together,
depth by depth, as a list of the nodes whose capacity differs.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec
import numpy as np
from numpy.typing import NDArray

from fared.extensions.offline.plan.fabric import PlanFabric
from fared.extensions.offline.plan.sets import Failures
from fared.paths.spf.search import Depth, shortest_paths
from fared.paths.ted.graph import Graph, out_edges, run_starts, runs
from fared.paths.ted.opposite import Opposite

NONE = -1
ROUNDING = 1e-9
"""The part of a capacity that is rounding."""


class EdgeChanges(msgspec.Struct, frozen=True, eq=False):
    """Edges whose capacity differs: failure (counted from the first), edge, its capacity then."""

    failure: NDArray[np.int64]
    edge: NDArray[np.int64]
    capacity: NDArray[np.float64]


def edge_changes(fabric: PlanFabric, failures: Failures, first: int, last: int) -> EdgeChanges:
    """Return the edges that differ in failures ``first`` to ``last - 1``, sorted."""
    low, high = int(failures.link_start[first]), int(failures.link_start[last])
    links = failures.links[low:high]
    of = np.arange(last - first).repeat(np.diff(failures.link_start[first : last + 1]))
    size = len(fabric.capacity)
    keys = np.concatenate([of * size + fabric.link_edges[links, side] for side in (0, 1)])
    lost = np.concatenate([fabric.link_parts[links, side] for side in (0, 1)])
    order = keys.argsort(kind="stable")
    begin = run_starts(keys[order])
    if not len(begin):
        none = np.zeros(0, np.int64)
        return EdgeChanges(none, none, np.zeros(0))
    distinct = keys[order][begin]
    edge = distinct % size
    gone = np.add.reduceat(lost[order], begin) * (1.0 - failures.left)
    capacity = fabric.capacity[edge] - gone
    if failures.left == 0.0:
        number = np.diff(np.append(begin, len(keys)))
        capacity[number == fabric.members[edge]] = 0.0
    return EdgeChanges(distinct // size, edge, capacity)


class RootPaths:
    """The shortest paths of one root: the DAG by depth, and the capacity to every node (N,)."""

    def __init__(self, graph: Graph, capacity: NDArray[np.float64], root: int) -> None:
        self.root = root
        self._levels = shortest_paths(graph, root)[1]
        self.flow = np.zeros(len(graph.nodes))
        self.flow[root] = np.inf
        self._values: list[NDArray[np.float64]] = []
        for level in self._levels:
            values = np.minimum(self.flow[level.tails], capacity[level.edges])
            self.flow[level.nodes] = np.add.reduceat(values, level.begin)
            self._values.append(values)
        self._graph, self._capacity = graph, capacity

    def changed(
        self, changes: EdgeChanges
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return failure, node and capacity wherever the capacity of a node differs."""
        return _Followed(self, changes).result()

    @property
    def levels(self) -> list[Depth]:
        """The DAG by depth."""
        return self._levels

    @property
    def values(self) -> list[NDArray[np.float64]]:
        """What each edge of each depth contributes."""
        return self._values

    @property
    def edge_capacity(self) -> NDArray[np.float64]:
        """The capacities of all edges."""
        return self._capacity


class _Followed:
    """All failures of a part along the DAG of one root."""

    def __init__(self, paths: RootPaths, changes: EdgeChanges) -> None:
        self._paths = paths
        levels = paths.levels
        sizes = [len(level.edges) for level in levels]
        self._ends = np.cumsum(sizes)
        self._edges = np.concatenate([level.edges for level in levels] or [np.zeros(0, np.int64)])
        self._tails = np.concatenate([level.tails for level in levels] or [np.zeros(0, np.int64)])
        self._heads = np.concatenate([level.heads for level in levels] or [np.zeros(0, np.int64)])
        self._values = np.concatenate(paths.values or [np.zeros(0)])
        self._total = max(len(self._edges), 1)
        size = len(paths.flow)
        self._by_tail = self._tails.argsort(kind="stable")
        self._out = np.concatenate(([0], np.bincount(self._tails, minlength=size).cumsum()))
        place = np.full(len(paths.edge_capacity), NONE)
        place[self._edges] = np.arange(len(self._edges))
        at = place[changes.edge]
        used = at != NONE
        self._key = changes.failure[used] * self._total + at[used]
        self._capacity = changes.capacity[used]
        self._depth = self._ends.searchsorted(at[used], "right")
        self._waiting: defaultdict[int, list[tuple[NDArray[np.int64], NDArray[np.float64]]]]
        self._waiting = defaultdict(list)

    def result(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        failures, nodes, flows = [], [], []
        for depth in range(len(self._ends)):
            here = self._step(depth)
            if here is None:
                continue
            failure, node, flow = here
            self._expand(failure, node, flow)
            failures.append(failure)
            nodes.append(node)
            flows.append(flow)
        if not failures:
            none = np.zeros(0, np.int64)
            return none, none, np.zeros(0)
        return np.concatenate(failures), np.concatenate(nodes), np.concatenate(flows)

    def _step(
        self, depth: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]] | None:
        """Return the nodes of one depth that differ."""
        mine = self._depth == depth
        own_key, own_capacity = self._key[mine], self._capacity[mine]
        fed = self._waiting.pop(depth, [])
        fed_key = np.concatenate([key for key, _ in fed] or [np.zeros(0, np.int64)])
        fed_flow = np.concatenate([flow for _, flow in fed] or [np.zeros(0)])
        if not len(own_key) and not len(fed_key):
            return None
        both = np.concatenate((own_key, fed_key))
        keys, place = np.unique(both, return_inverse=True)
        at = keys % self._total
        capacity = self._paths.edge_capacity[self._edges[at]]
        capacity[place[: len(own_key)]] = own_capacity
        flow = self._paths.flow[self._tails[at]]
        flow[place[len(own_key) :]] = fed_flow
        delta = np.minimum(flow, capacity) - self._values[at]
        differs = delta != 0.0
        keys, at, delta = keys[differs], at[differs], delta[differs]
        if not len(keys):
            return None
        failure, head = keys // self._total, self._heads[at]
        # the edges of a depth are sorted by head, so each node's are together
        begin = run_starts(failure * len(self._paths.flow) + head)
        node = head[begin]
        before = self._paths.flow[node]
        after = before + np.add.reduceat(delta, begin)
        after[after < before * ROUNDING] = 0.0
        return failure[begin], node, after

    def _expand(
        self,
        failure: NDArray[np.int64],
        node: NDArray[np.int64],
        flow: NDArray[np.float64],
    ) -> None:
        """Hand the nodes that differ to the edges that leave them."""
        counts = self._out[node + 1] - self._out[node]
        at = self._by_tail[runs(self._out[node], counts)]
        key, feeding = failure.repeat(counts) * self._total + at, flow.repeat(counts)
        depth = self._ends.searchsorted(at, "right")
        for number in np.unique(depth).tolist():
            there = depth == number
            self._waiting[number].append((key[there], feeding[there]))


def without_edges(graph: Graph, capacity: NDArray[np.float64]) -> tuple[Graph, NDArray[np.float64]]:
    """Return the graph without the edges that have capacity 0 in either direction."""
    kept = (capacity > 0.0) & (capacity[graph.reverse] > 0.0)
    number = kept.cumsum() - 1
    size = len(graph.nodes)
    left = capacity[kept]
    smaller = msgspec.structs.replace(
        graph,
        indptr=np.concatenate(([0], np.bincount(graph.src[kept], minlength=size).cumsum())),
        dst=graph.dst[kept],
        metric=graph.metric[kept],
        opposite=Opposite(number[graph.reverse[kept]]),
        capacity=left,
        available=left,
    )
    return smaller, left


def parts(graph: Graph) -> NDArray[np.int64]:
    """Return the connected part of each node (N,)."""
    found = np.full(len(graph.nodes), NONE)
    for start in range(len(found)):
        if found[start] != NONE:
            continue
        frontier = np.array([start])
        while len(frontier):
            found[frontier] = start
            near = np.unique(graph.dst[out_edges(graph.indptr, frontier)])
            frontier = near[found[near] == NONE]
    return found
