"""What each first hop can carry toward each destination: forward sum-min over the plan.

For first hop p and node t behind it:
``F(p, p) = inf``, ``F(p, t) = sum over DAG predecessors m of t of min(F(p, m), c(m, t))``.
What p can carry to t is ``min(c(root, p), F(p, t))``. With three stages this is the smaller
of uplink and downlink; with five planar stages it is the exact maximum flow.

A link of unknown capacity limits nothing that is known: two sweeps are made, one with unknown
links unlimited (an upper bound) and one that marks the slots some unknown link lies behind.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.spf.plan import Plan
    from fared.ted.graph import Graph


class WeightMode(enum.StrEnum):
    """What weights are made of."""

    NONE = "none"
    CAPACITY = "capacity"
    AVAILABLE = "available"


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Result of a sweep, one value a slot (S,).

    ``bound``: bytes/s that the first hop can carry to the node, at most; ``unknown``: whether
    a link of unknown capacity is among those behind it, None if that is so nowhere.
    """

    bound: NDArray[np.float64]
    unknown: NDArray[np.bool_] | None


def link_capacities(graph: Graph, mode: WeightMode, floor: float) -> NDArray[np.float64]:
    """Capacities of all edges (E,) in this mode, bytes/s, NaN unknown.

    Available bandwidth never counts as less than ``floor`` times the capacity: a link that is
    full today must still be tried.
    """
    if mode is WeightMode.AVAILABLE:
        return np.fmax(graph.available, graph.capacity * floor)
    return graph.capacity


def propagate(plan: Plan, capacity: NDArray[np.float64]) -> Flow:
    """Sweep the plan once: F of every slot."""
    flow = _sweep(plan, capacity)
    if not np.isnan(flow.min(initial=np.inf)):
        return Flow(flow, None)
    unknown = np.isnan(flow)
    return Flow(_sweep(plan, np.where(np.isnan(capacity), np.inf, capacity)), unknown)


def _sweep(plan: Plan, capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    flow = np.zeros(len(plan.slot_node))
    for step in plan.steps:
        value = capacity[step.edge]
        if not step.unlimited:
            value = np.minimum(flow[step.source], value)
        if step.target is None:
            flow[step.low : step.high] = value
        else:
            flow[step.low : step.high] = np.bincount(step.target, value, step.high - step.low)
            flow[step.seeds] = np.inf
    return flow


def merged_flow(plan: Plan, capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the root can carry to every node over all first hops together (N,), bytes/s.

    The same recursion with a single first hop: the root itself. NaN where unknown.
    """
    flow = np.zeros(len(plan.graph.nodes))
    flow[plan.root] = np.inf
    graph = plan.graph
    for edges in plan.levels:
        value = np.minimum(flow[graph.src[edges]], capacity[edges])
        nodes, place = np.unique(graph.dst[edges], return_inverse=True)
        flow[nodes] = np.bincount(place, value, len(nodes))
    return flow


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """Values of one destination, one a first hop (H,).

    ``bound`` as in Flow, 0 where ``present`` is False (no shortest path begins there).
    """

    bound: NDArray[np.float64]
    unknown: NDArray[np.bool_]
    present: NDArray[np.bool_]


def node_row(plan: Plan, flow: Flow, node: int) -> Row:
    """F of one node as a row over the first hops."""
    slots = plan.slots(node)
    row = _empty_row(plan)
    hops = plan.slot_hop[slots]
    row.bound[hops] = flow.bound[slots]
    row.present[hops] = True
    if flow.unknown is not None:
        row.unknown[hops] = flow.unknown[slots]
    return row


def _empty_row(plan: Plan) -> Row:
    size = len(plan.hops)
    return Row(np.zeros(size), np.zeros(size, bool), np.zeros(size, bool))


@dataclass(frozen=True, slots=True, eq=False)
class Contraction:
    """Several nodes that reach a prefix equally well, as one destination.

    ``row``: F of the contracted destination; ``ends`` (T, H) F of each node, None where the
    row is that of one node all paths share.
    """

    row: Row
    ends: NDArray[np.float64] | None

    def announced(self, limits: tuple[float, ...]) -> Row:
        """The row if each node has only so much behind it (bytes/s, infinite if not told)."""
        if self.ends is None or all(np.isinf(limits)):
            return self.row
        behind = np.minimum(self.ends, np.array(limits)[:, None]).sum(axis=0)
        return Row(np.minimum(self.row.bound, behind), self.row.unknown, self.row.present)


def contract(
    plan: Plan, flow: Flow, capacity: NDArray[np.float64], nodes: tuple[int, ...]
) -> Contraction:
    """Contract nodes (indexes) into one destination.

    The links m -> t of one m to several t count together against F(p, m): adding up the rows
    of the nodes would count what m can carry once for each of them.
    """
    ends = np.array(nodes, np.int64)
    edges = plan.edges_into(ends)
    edges = edges[~np.isin(plan.graph.src[edges], ends)]
    tails = plan.graph.src[edges]
    before = np.unique(tails)
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
    return Contraction(row, np.stack([end.bound for end in rows]))


def fill_unknown(row: Row) -> NDArray[np.float64]:
    """Values to weigh by (H,): unknown ones count as the median of their known siblings.

    Never as zero, and never as more than what is known to lie on the path.
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
