"""The link ends that share the budget of announcements: those of routers on a path from here.

An engine counts what its database advertises (``te.budget``), whoever invented it. Which links
both ends advertise, and which routers are reached, is known where routes are computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fared.paths.spf.search import UNREACHABLE
from fared.paths.ted.events import EndsCounted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fared.paths.rib.solver import RouteSolver
    from fared.paths.spf.plan import SpfPlan
    from fared.router.engine import Engine


class EndsCounter:
    """Counts the ends of each area or level again when there are others, or other paths."""

    def __init__(self, engine: Engine, solvers: Iterable[RouteSolver]) -> None:
        self._engine = engine
        self._solvers = solvers
        self._plans: list[tuple[int, SpfPlan]] = []
        self._advertised = 0

    def count(self) -> EndsCounted | None:
        """The ends of all areas; None: those of the last call."""
        advertised = sum(budget.ends.total for budget in self._engine.budgets.values())
        plans = [pair for solver in self._solvers for pair in solver.plans.items()]
        same = len(plans) == len(self._plans) and all(
            one[1] is other[1] for one, other in zip(plans, self._plans, strict=True)
        )
        if same and advertised == self._advertised:
            return None
        self._plans, self._advertised = plans, advertised
        ends: dict[int, tuple[int, int]] = {}
        for area, plan in plans:  # of families with different topologies, the larger one
            ends[area] = max(ends.get(area, (0, 0)), ends_of(plan), key=lambda found: found[1])
        return EndsCounted(ends)


def ends_of(plan: SpfPlan) -> tuple[int, int]:
    """Count the edges with a capacity out of the root, and out of all routers that it reaches."""
    graph = plan.graph
    before = np.zeros(len(graph.capacity) + 1, np.int64)
    np.isfinite(graph.capacity).cumsum(out=before[1:])
    of_node = before[graph.indptr[1:]] - before[graph.indptr[:-1]]
    return int(of_node[plan.root]), int(of_node[plan.distance != UNREACHABLE].sum())
