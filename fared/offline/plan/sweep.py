"""The capacity that each failure leaves between all pairs of ends.

The capacity of a pair is the aggregate path capacity from one end to the other (the recursion of
``weights.path_capacity`` with the root as the only first hop): what routers with path-capacity
weights can carry. A failure rarely changes distances. As long as a node keeps a predecessor on the
DAG of a root, its distance and its other predecessors stay, so that the capacities of the old DAG
with the failed edges at 0 are those of the new one. So for each root, all failures of a part of a
set follow the DAG together, depth by depth, as a list of the nodes whose capacity differs. Only
pairs that lose all of their paths are computed anew, on the graph without what failed.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec
import numpy as np
from numpy.typing import NDArray

from fared.offline.plan.fabric import PlanFabric
from fared.offline.plan.sets import Failures
from fared.spf.search import Depth, shortest_paths
from fared.ted.graph import Graph, out_edges, run_starts, runs

NONE = -1
_ROUNDING = 1e-9
"""The part of a capacity that is rounding."""


class SetOutcome(msgspec.Struct, frozen=True, eq=False):
    """What failures ``first`` to ``first + K - 1`` of a set leave.

    ``left`` (K,) is the least part that a pair keeps of its healthy capacity, ``worst`` (K, 2) that
    pair (indexes of ends), ``capacity`` (K,) its capacity, bytes/s. ``reduced`` and ``cut`` (K,)
    count the pairs with less capacity than before, and with none; ``mean`` (K,) is the mean part.
    Pairs with a failed end do not count. ``pair_least`` (P, P) is the least reduced capacity of a
    pair and ``pair_cause`` (P, P) the failure that causes it, NONE if none reduces it.
    """

    first: int
    left: NDArray[np.float64]
    worst: NDArray[np.int64]
    capacity: NDArray[np.float64]
    reduced: NDArray[np.int64]
    cut: NDArray[np.int64]
    mean: NDArray[np.float64]
    pair_least: NDArray[np.float64]
    pair_cause: NDArray[np.int64]


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
        after[after < before * _ROUNDING] = 0.0
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


def capacities(fabric: PlanFabric) -> NDArray[np.float64]:
    """Return the capacity of every pair of ends (P, P), bytes/s; infinite on the diagonal."""
    found = np.empty((len(fabric.ends), len(fabric.ends)))
    for row, root in enumerate(fabric.ends.tolist()):
        found[row] = RootPaths(fabric.graph, fabric.capacity, root).flow[fabric.ends]
    return found


def sweep(
    fabric: PlanFabric, failures: Failures, first: int, last: int, healthy: NDArray[np.float64]
) -> SetOutcome:
    """Compute what failures ``first`` to ``last - 1`` leave of the ``healthy`` capacities (P, P).

    A pure function of its arguments: parts may be computed anywhere, in any order.
    """
    gathered = _Gathered(fabric, failures, first, last, healthy)
    changes = edge_changes(fabric, failures, first, last)
    for row, root in enumerate(fabric.ends.tolist()):
        paths = RootPaths(fabric.graph, fabric.capacity, root)
        gathered.root(row, paths, *paths.changed(changes))
    return gathered.outcome(changes)


class _Gathered:
    """The rows of an outcome while roots are added one by one."""

    def __init__(
        self,
        fabric: PlanFabric,
        failures: Failures,
        first: int,
        last: int,
        healthy: NDArray[np.float64],
    ) -> None:
        count, ends = last - first, len(fabric.ends)
        self._fabric, self._first, self._healthy = fabric, first, healthy
        self._number = np.full(len(fabric.names), NONE)
        self._number[fabric.ends] = np.arange(ends)
        self._dead = _dead_ends(fabric, failures, first, last, self._number)
        self._left = np.full(count, np.inf)
        self._worst = np.zeros((count, 2), np.int64)
        self._capacity = np.zeros(count)
        self._reduced, self._cut = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._lost = np.zeros(count)
        dead = np.logical_or.reduce(self._dead, axis=1)
        self._whole, self._some = np.flatnonzero(~dead), np.flatnonzero(dead)
        self._base = np.zeros((ends, ends))
        self._parts = np.zeros(count)
        self._pairs = np.zeros(count, np.int64)
        self.pair_least = np.full((ends, ends), np.inf)
        self.pair_cause = np.full((ends, ends), NONE)
        self._again: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)

    def root(
        self,
        row: int,
        paths: RootPaths,
        failure: NDArray[np.int64],
        node: NDArray[np.int64],
        flow: NDArray[np.float64],
    ) -> None:
        """Add what differs for one root."""
        base, healthy = paths.flow[self._fabric.ends], self._healthy[row]
        self._base[row] = base
        counts = (healthy > 0.0) & np.isfinite(healthy)
        part = np.divide(base, healthy, out=np.ones(len(base)), where=counts)
        self._unchanged(row, base, part, counts)
        end = self._number[node]
        kept = end != NONE
        failure, end, flow = failure[kept], end[kept], flow[kept]
        kept = counts[end] & ~self._dead[failure, row] & ~self._dead[failure, end]
        failure, end, flow = failure[kept], end[kept], flow[kept]
        cut = flow <= 0.0
        for k, t in zip(failure[cut].tolist(), end[cut].tolist(), strict=True):
            self._again[k].append((row, t))
        self._add(row, failure[~cut], end[~cut], flow[~cut], base)

    def _unchanged(
        self,
        row: int,
        base: NDArray[np.float64],
        part: NDArray[np.float64],
        counts: NDArray[np.bool_],
    ) -> None:
        """Count the pairs of a root as they are without failures, but those with failed ends."""
        whole, some = self._whole, self._some
        if len(whole):
            self._count(row, base, part, whole, counts[None, :])
        if len(some):
            dead = self._dead[some]
            self._count(row, base, part, some, counts & ~dead & ~dead[:, row : row + 1])

    def _count(
        self,
        row: int,
        base: NDArray[np.float64],
        part: NDArray[np.float64],
        failures: NDArray[np.int64],
        live: NDArray[np.bool_],
    ) -> None:
        """Count the live pairs of a root; ``live`` is (1, P) if they are the same for all."""
        self._pairs[failures] += live.sum(axis=1)
        self._parts[failures] += np.where(live, np.minimum(part, 1.0), 0.0).sum(axis=1)
        least = np.where(live, part, np.inf)
        at = least.argmin(axis=1)
        value = least[np.arange(len(least)), at]
        better = np.isfinite(value) & (value < self._left[failures])
        value, at = (np.broadcast_to(x, len(failures))[better] for x in (value, at))
        failures = failures[better]
        self._left[failures] = value
        self._worst[failures, 0], self._worst[failures, 1] = row, at
        self._capacity[failures] = base[at]

    def _add(
        self,
        row: int,
        failure: NDArray[np.int64],
        end: NDArray[np.int64],
        flow: NDArray[np.float64],
        base: NDArray[np.float64],
    ) -> None:
        """Add capacities of pairs of one root that differ."""
        if not len(failure):
            return
        size = len(self._left)
        healthy = self._healthy[row, end]
        part = flow / healthy
        less = flow < base[end] * (1.0 - _ROUNDING)
        self._reduced += np.bincount(failure[less], minlength=size)
        self._cut += np.bincount(failure[flow <= 0.0], minlength=size)
        before = np.minimum(base[end] / healthy, 1.0)
        self._lost += np.bincount(failure, before - np.minimum(part, 1.0), size)
        order = np.lexsort((end, part, failure))
        firsts = order[run_starts(failure[order])]
        firsts = firsts[part[firsts] < self._left[failure[firsts]]]
        at = failure[firsts]
        self._left[at] = part[firsts]
        self._worst[at, 0], self._worst[at, 1] = row, end[firsts]
        self._capacity[at] = flow[firsts]
        failure, end, flow = failure[less], end[less], flow[less]
        order = np.lexsort((failure, flow, end))
        firsts = order[run_starts(end[order])]
        of, value, cause = end[firsts], flow[firsts], failure[firsts] + self._first
        known, by = self.pair_least[row, of], self.pair_cause[row, of]
        better = (value < known) | ((value == known) & (cause < by))
        self.pair_least[row, of[better]] = value[better]
        self.pair_cause[row, of[better]] = cause[better]

    def outcome(self, changes: EdgeChanges) -> SetOutcome:
        """Compute anew the pairs that lost all of their paths, and return all rows."""
        fabric = self._fabric
        for failure in sorted(self._again):
            mine = changes.failure == failure
            capacity = fabric.capacity.copy()
            capacity[changes.edge[mine]] = changes.capacity[mine]
            graph, capacity = without_edges(fabric.graph, capacity)
            part = parts(graph)
            by_row: defaultdict[int, list[int]] = defaultdict(list)
            for row, end in self._again[failure]:
                by_row[row].append(end)
            for row, some in sorted(by_row.items()):
                ends = np.array(some)
                root, nodes = int(fabric.ends[row]), fabric.ends[ends]
                flow = np.zeros(len(nodes))
                if (part[nodes] == part[root]).any():
                    flow = RootPaths(graph, capacity, root).flow[nodes]
                self._add(row, np.full(len(ends), failure), ends, flow, self._base[row])
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (self._parts - self._lost) / self._pairs
        return SetOutcome(
            first=self._first,
            left=np.minimum(self._left, 1.0),
            worst=self._worst,
            capacity=self._capacity,
            reduced=self._reduced,
            cut=self._cut,
            mean=np.where(self._pairs > 0, mean, 1.0),
            pair_least=self.pair_least,
            pair_cause=self.pair_cause,
        )


def _dead_ends(
    fabric: PlanFabric, failures: Failures, first: int, last: int, number: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which ends fail themselves (K, P)."""
    dead = np.zeros((last - first, len(fabric.ends)), bool)
    low, high = int(failures.node_start[first]), int(failures.node_start[last])
    of = np.arange(last - first).repeat(np.diff(failures.node_start[first : last + 1]))
    end = number[failures.nodes[low:high]]
    dead[of[end != NONE], end[end != NONE]] = True
    return dead


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
        reverse=number[graph.reverse[kept]],
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
