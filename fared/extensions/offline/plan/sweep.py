"""The capacity that each failure leaves between all pairs of ends.

The capacity of a pair is the aggregate path capacity from one end to the other (the recursion of
``weights.path_capacity`` with the root as the only first hop): what routers with path-capacity
weights can carry. ``paths`` follows all failures of a part of a set along the shortest paths of
each root together. Only pairs that lose all of their paths are computed anew, on the graph without
what failed.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec
import numpy as np
from numpy.typing import NDArray

from fared.extensions.offline.plan.fabric import PlanFabric
from fared.extensions.offline.plan.paths import (
    NONE,
    ROUNDING,
    EdgeChanges,
    RootPaths,
    edge_changes,
    parts,
    without_edges,
)
from fared.extensions.offline.plan.routes import Demands
from fared.extensions.offline.plan.sets import Failures
from fared.extensions.offline.plan.traffic import TrafficOutcome, traffic_after
from fared.paths.ted.graph import run_starts


class FailureRows(msgspec.Struct, frozen=True, eq=False):
    """What K failures of a set leave.

    ``left`` (K,) is the least part that a pair keeps of its healthy capacity, ``worst`` (K, 2) that
    pair (indexes of ends), ``capacity`` (K,) its capacity, bytes/s. ``reduced`` and ``cut`` (K,)
    count the pairs with less capacity than before, and with none; ``mean`` (K,) is the mean part.
    Pairs with a failed end do not count. ``pair_least`` (P, P) is the least reduced capacity of a
    pair and ``pair_cause`` (P, P) the failure that causes it, NONE if none reduces it. The last
    three are what the failures do to traffic (``traffic.TrafficOutcome``), empty without traffic.
    """

    left: NDArray[np.float64]
    worst: NDArray[np.int64]
    capacity: NDArray[np.float64]
    reduced: NDArray[np.int64]
    cut: NDArray[np.int64]
    mean: NDArray[np.float64]
    pair_least: NDArray[np.float64]
    pair_cause: NDArray[np.int64]
    utilization: NDArray[np.float64]
    busiest: NDArray[np.int64]
    unserved: NDArray[np.float64]


class SetOutcome(FailureRows, frozen=True, eq=False):
    """What failures ``first`` to ``first + K - 1`` of a set leave."""

    first: int


def capacities(fabric: PlanFabric) -> NDArray[np.float64]:
    """Return the capacity of every pair of ends (P, P), bytes/s; infinite on the diagonal."""
    found = np.empty((len(fabric.ends), len(fabric.ends)))
    for row, root in enumerate(fabric.ends.tolist()):
        found[row] = RootPaths(fabric.graph, fabric.capacity, root).flow[fabric.ends]
    return found


def sweep(
    fabric: PlanFabric,
    failures: Failures,
    first: int,
    last: int,
    healthy: NDArray[np.float64],
    *,
    demands: Demands | None = None,
) -> SetOutcome:
    """Compute what failures ``first`` to ``last - 1`` leave of the ``healthy`` capacities (P, P).

    With ``demands``, also what they do to that traffic. A pure function of its arguments: parts
    may be computed anywhere, in any order.
    """
    gathered = _Gathered(fabric, failures, first, last, healthy)
    changes = edge_changes(fabric, failures, first, last)
    for row, root in enumerate(fabric.ends.tolist()):
        paths = RootPaths(fabric.graph, fabric.capacity, root)
        gathered.root(row, paths, *paths.changed(changes))
    return gathered.outcome(changes, traffic_after(fabric, failures, first, last, demands or {}))


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
        less = flow < base[end] * (1.0 - ROUNDING)
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

    def outcome(self, changes: EdgeChanges, traffic: TrafficOutcome) -> SetOutcome:
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
            utilization=traffic.utilization,
            busiest=traffic.busiest,
            unserved=traffic.unserved,
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
