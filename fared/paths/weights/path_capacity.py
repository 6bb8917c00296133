"""Path capacity of each first hop toward each destination: forward sum-min over the plan.

For first hop p and node t behind it:
``F(p, p) = inf``, ``F(p, t) = sum over DAG predecessors m of t of min(F(p, m), c(m, t))``.
What p can carry to t is ``min(c(root, p), F(p, t))``; the own link is taken in by ``rib.area``
(``clipped`` for a row, ``_packed`` for all slots). With three stages this is the weight of FARE
(draft-xu-lsr-fare-00), the minimum of upstream and downstream link; with five planar stages it is
the exact maximum flow. Oracles: tests/weights/test_path_capacity.py has networkx's maximum flow,
tests/rib/test_worked_examples.py fluid traffic, tests/spf/test_patch.py a fresh start after
each change.

A link of unknown capacity limits nothing that is known: two sweeps are made, one with unknown
links unlimited (an upper bound) and one that marks the slots some unknown link lies behind.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.paths.spf.search import depth_of
from fared.paths.ted.graph import Graph, distinct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fared.paths.spf.plan import SpfPlan
    from fared.paths.spf.search import Depth


class WeightMode(enum.StrEnum):
    """The quantity from which weights are computed."""

    NONE = "none"
    CAPACITY = "capacity"
    AVAILABLE = "available"


class SlotCapacities(msgspec.Struct, frozen=True, eq=False):
    """Result of a sweep, one value for each slot (S,).

    ``bound``: the most that the first hop can carry to the node, bytes/s; ``unknown``: whether a
    link of unknown capacity lies between; None if no capacity is unknown.
    """

    bound: NDArray[np.float64]
    unknown: NDArray[np.bool_] | None


def link_capacities(graph: Graph, mode: WeightMode, floor: float) -> NDArray[np.float64]:
    """Return the capacities of all edges (E,) in this mode, bytes/s, NaN unknown.

    Available bandwidth counts as at least ``floor`` times the capacity: a link that is full today
    must still be tried.
    """
    if mode is WeightMode.AVAILABLE:
        least = graph.capacity * floor
        return np.fmax(graph.available, least, out=least)
    return graph.capacity


def propagate(plan: SpfPlan, capacity: NDArray[np.float64]) -> SlotCapacities:
    """Sweep the plan once: compute F of every slot."""
    # NaN passes through ``minimum`` and sums, so it marks all slots behind an unknown capacity.
    flow = _sweep(plan, capacity)
    if not np.isnan(np.minimum.reduce(flow, initial=np.inf)):
        return SlotCapacities(flow, None)
    unknown = np.isnan(flow)
    return SlotCapacities(_sweep(plan, np.where(np.isnan(capacity), np.inf, capacity)), unknown)


def _sweep(plan: SpfPlan, capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    laid = plan.laid
    # Lost edges carry 0, which something unknown beside them would hide.
    hidden = laid.lost_edges and np.isnan(np.minimum.reduce(capacity, initial=np.inf))
    capacity = laid.by_first_number(capacity)
    flow = np.zeros(laid.size)
    for number, step in enumerate(laid.steps):
        value = capacity[step.edge]
        if not step.unlimited:  # else F of the sources is infinite
            value = np.minimum(flow[step.source], value)
        if hidden:
            value[laid.dead[number]] = 0.0
        if step.target is None:
            flow[step.low : step.high] = value
        else:
            flow[step.low : step.high] = np.bincount(step.target, value, step.high - step.low)
            flow[step.seeds] = np.inf
    return laid.present(flow)


def aggregate_capacities(plan: SpfPlan, capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the aggregate capacity from the root to every node over all paths (N,), bytes/s.

    The same recursion with a single first hop: the root itself. NaN where unknown.
    """
    graph = plan.graph
    levels = (depth_of(edges, graph.src[edges], graph.dst[edges]) for edges in plan.levels)
    return capacities_along(levels, capacity, plan.root, len(graph.nodes))


def capacities_along(
    levels: Iterable[Depth], capacity: NDArray[np.float64], root: int, size: int
) -> NDArray[np.float64]:
    """Return the same along the paths of ``search.shortest_paths``, for ``size`` nodes (N,)."""
    flow = np.zeros(size)
    flow[root] = np.inf
    for level in levels:
        value = np.minimum(flow[level.tails], capacity[level.edges])
        flow[level.nodes] = np.add.reduceat(value, level.begin)
    return flow


class CapacityRow(msgspec.Struct, frozen=True, eq=False):
    """Values of one destination, one for each first hop (H,).

    ``bound`` as in SlotCapacities, 0 where ``present`` is False (no shortest path begins there).
    """

    bound: NDArray[np.float64]
    unknown: NDArray[np.bool_]
    present: NDArray[np.bool_]


def node_row(plan: SpfPlan, flow: SlotCapacities, node: int) -> CapacityRow:
    """Return F of one node as a row over the first hops."""
    slots = plan.slots(node)
    row = _empty_row(plan)
    hops = plan.slot_hop[slots]
    row.bound[hops] = flow.bound[slots]
    row.present[hops] = True
    if flow.unknown is not None:
        row.unknown[hops] = flow.unknown[slots]
    return row


def _empty_row(plan: SpfPlan) -> CapacityRow:
    size = len(plan.hops)
    return CapacityRow(np.zeros(size), np.zeros(size, bool), np.zeros(size, bool))


class Contraction(msgspec.Struct, frozen=True, eq=False):
    """Several nodes that reach a prefix at equal cost, as one destination.

    ``row``: F of the contracted destination; ``ends`` (T, H): F of each node, None where the row is
    that of one node that all paths share.
    """

    row: CapacityRow
    ends: NDArray[np.float64] | None

    def advertised(self, limits: tuple[float, ...]) -> CapacityRow:
        """Return the row limited by the nodes' advertised capacities (bytes/s, infinite: none)."""
        if self.ends is None or all(np.isinf(limits)):
            return self.row
        behind = np.minimum(self.ends, np.array(limits)[:, None]).sum(axis=0)
        return CapacityRow(np.minimum(self.row.bound, behind), self.row.unknown, self.row.present)


def contract(
    plan: SpfPlan, flow: SlotCapacities, capacity: NDArray[np.float64], nodes: tuple[int, ...]
) -> Contraction:
    """Contract nodes (indexes) into one destination.

    The links m -> t of one m to several t are limited together by F(p, m): the sum of the rows of
    the nodes would count what m can carry once for each of them.
    """
    ends = np.array(nodes, np.int64)
    edges = plan.edges_into(ends)
    other = np.ones(len(plan.row_of), bool)
    other[ends] = False
    tails = plan.graph.src[edges]
    edges, tails = edges[other[tails]], tails[other[tails]]
    before = distinct(tails)
    # One common predecessor limits all paths alike, which must not even out the weights.
    if len(before) == 1 and plan.slot_count[before[0]]:
        return Contraction(node_row(plan, flow, int(plan.row_of[before[0]])), None)
    row = _empty_row(plan)
    limits = capacity[edges]
    for tail in before[plan.slot_count[before] > 0].tolist():
        beyond = node_row(plan, flow, tail)
        limit = float(limits[tails == tail].sum())
        row.bound[:] += np.minimum(beyond.bound, np.inf if np.isnan(limit) else limit)
        row.unknown[:] |= beyond.present & (beyond.unknown | np.isnan(limit))
        row.present[:] |= beyond.present
    rows = [node_row(plan, flow, node) for node in nodes]
    for end in rows:
        row.present[:] |= end.present
        row.bound[end.present & np.isinf(end.bound) & ~end.unknown] = np.inf
    return Contraction(row, np.array([end.bound for end in rows]))


def fill_unknown(row: CapacityRow) -> NDArray[np.float64]:
    """Return the capacities to weigh by (H,): unknown ones count as the median of the known ones.

    They never count as zero, and never as more than the known capacities on the path.
    """
    guess = row.unknown & row.present
    if not guess.any():
        return row.bound
    known = row.bound[row.present & ~guess]
    if not len(known):
        known = row.bound[guess & np.isfinite(row.bound)]
    if not len(known):
        return np.where(row.present, 1.0, 0.0)
    return np.where(guess, np.minimum(row.bound, np.median(known)), row.bound)
