"""Path capacities after a lost link: only the slots behind it are summed again.

A sum has the same addends in the same order as in ``propagate``, and zeros from where there is no
path, so the results are equal bit by bit.

A fast path beside ``propagate``: tests/spf/test_patch.py proves them equal; row ``capacities of a
lost link``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fared.paths.ted.graph import distinct, out_edges
from fared.paths.weights.path_capacity import SlotCapacities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.paths.spf.patch import PlanDelta
    from fared.paths.spf.plan import SpfPlan
    from fared.paths.ted.graph import Graph

_MOST_HOPS = 8
"""First hops that are followed one by one; for more, a sweep takes fewer steps."""


def after_loss(
    before: SlotCapacities, plan: SpfPlan, delta: PlanDelta, capacity: NDArray[np.float64]
) -> SlotCapacities | None:
    """Return F of every slot of a cut plan, ``before`` being that of the former plan.

    Requires that the other links have the same capacities as before. None where a sweep is needed
    or cheaper.
    """
    if before.unknown is not None or delta.rebuilt:
        return None
    if delta.node < 0:
        return before
    hops = plan.slot_hop[plan.slots(delta.tail)].tolist()
    if len(hops) > _MOST_HOPS:
        return None
    flow = np.concatenate((before.bound[: delta.low], before.bound[delta.high :]))
    # all slots that the edge fed went with it, and they fed no other
    last = plan.distance[delta.node] == len(plan.laid.steps) * plan.graph.uniform_metric
    if last and delta.high - delta.low == len(hops):
        return SlotCapacities(flow, None)
    if all(_follow(plan, capacity, flow, delta.node, hop) for hop in hops):
        return SlotCapacities(flow, None)
    return None


def _follow(
    plan: SpfPlan, capacity: NDArray[np.float64], flow: NDArray[np.float64], node: int, hop: int
) -> bool:
    """Sum the slots again that a lost edge into ``node`` fed with one first hop, in place.

    False if a capacity is unknown.
    """
    graph, distance = plan.graph, plan.distance
    slots = (plan.slot_hop == hop).nonzero()[0]
    nodes = plan.slot_node[slots]
    slot_of = np.full(len(distance), -1)
    slot_of[nodes] = slots
    heads = np.array([node])
    if slot_of[node] < 0:  # the slot went with the edge
        heads = _behind(plan, heads)
    while len(heads):
        near = (distance[nodes] == distance[heads[0]] - graph.uniform_metric) & graph.transit[nodes]
        carried = np.zeros(len(distance))
        carried[nodes[near]] = flow[slots[near]]
        values = _sums(graph, heads, carried, capacity)
        mine = slot_of[heads]
        different = flow[mine] != values
        flow[mine] = values
        if np.isnan(values).any():
            return False
        heads = _behind(plan, heads[different])
    return True


def _behind(plan: SpfPlan, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the nodes to which paths lead through ``nodes``, all of which are at one distance."""
    graph, distance = plan.graph, plan.distance
    nodes = nodes[graph.transit[nodes]]
    if not len(nodes) or distance[nodes[0]] == len(plan.laid.steps) * graph.uniform_metric:
        return nodes[:0]
    ends = graph.dst[out_edges(graph.indptr, nodes)]
    beyond = ends[distance[ends] == distance[nodes[0]] + graph.uniform_metric]
    return beyond if len(nodes) == 1 else distinct(beyond)


def _sums(
    graph: Graph,
    heads: NDArray[np.int64],
    carried: NDArray[np.float64],
    capacity: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Sum over the edges into each of ``heads`` what its tail and the edge can carry.

    ``carried`` (N,) is 0 where no path leads on: such edges add nothing.
    """
    out = out_edges(graph.indptr, heads)
    value = np.minimum(carried[graph.dst[out]], capacity[graph.reverse[out]])
    degree = graph.indptr[heads + 1] - graph.indptr[heads]
    by_head = np.bincount(np.arange(len(heads)).repeat(degree), value, len(heads))
    return np.asarray(by_head, np.float64)
