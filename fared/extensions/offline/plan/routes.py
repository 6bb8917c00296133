"""The load of links when traffic follows fared's weights: a fluid split at every router.

Each router on the way splits what it has for a destination in proportion to its path capacities, as
``rib`` weighs next hops; the rounding to integer weights is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fared.extensions.offline.plan.fabric import PlanFabric
from fared.paths.spf.plan import SpfPlan, build_plan
from fared.paths.weights.path_capacity import SlotCapacities, propagate

Demands = Mapping[tuple[int, int], float]
"""Bytes/s from one node (index) to another."""
_EXACT = 1e-12


class WeightedRoutes:
    """The next hops and weights of all routers of a fabric, computed at first use."""

    def __init__(self, fabric: PlanFabric) -> None:
        self._fabric = fabric
        self._plans: dict[int, tuple[SpfPlan, SlotCapacities]] = {}

    def loads(self, demands: Demands) -> NDArray[np.float64]:
        """Return the load of each edge (E,), bytes/s. Demands without a path load nothing."""
        found = np.zeros(len(self._fabric.capacity))
        by_target: defaultdict[int, dict[int, float]] = defaultdict(dict)
        for (source, target), rate in demands.items():
            if source != target and rate > 0.0:
                known = by_target[target].get(source, 0.0)
                by_target[target][source] = known + rate
        for target, sources in by_target.items():
            self._carry(target, sources, found)
        return found

    def splits(self, node: int, target: int) -> list[tuple[int, float]]:
        """Return the edges by which a node sends to a target, and the share of each."""
        if node not in self._plans:
            plan = build_plan(self._fabric.graph, node)
            self._plans[node] = plan, propagate(plan, self._fabric.capacity)
        plan, flow = self._plans[node]
        hops = plan.slot_hop[plan.slots(target)]
        if not len(hops):
            return []
        row = plan.slots(int(plan.row_of[target]))
        edges = plan.via[plan.slot_hop[row]]
        values = np.minimum(flow.bound[row], self._fabric.capacity[edges])
        total = float(values.sum())
        if total <= 0.0:
            return []
        return list(zip(edges.tolist(), (values / total).tolist(), strict=True))

    def _carry(self, target: int, sources: dict[int, float], into: NDArray[np.float64]) -> None:
        """Hand traffic for one target from router to router."""
        arriving = dict(sources)
        heads = self._fabric.graph.dst
        least = sum(sources.values()) * _EXACT
        for _ in range(len(heads)):
            following: defaultdict[int, float] = defaultdict(float)
            for node, rate in sorted(arriving.items()):
                for edge, share in self.splits(node, target):
                    into[edge] += rate * share
                    following[int(heads[edge])] += rate * share
            following.pop(target, None)
            arriving = {node: rate for node, rate in following.items() if rate > least}
            if not arriving:
                return
