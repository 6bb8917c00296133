"""The baseline: next hops by capacity, computed beside a solver that follows load.

Only a comparison with path capacities, load ignored, distinguishes a lost link from a loaded one:
a loss takes effect at once, load is damped. Databases and plans are those of the main solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from fared.paths.rib.area import AreaSolver
from fared.paths.rib.join import join_areas
from fared.paths.weights.path_capacity import WeightMode

if TYPE_CHECKING:
    from fared.core.ids import NodeId
    from fared.paths.rib.facts import Egress
    from fared.paths.rib.model import NextHopSet
    from fared.paths.rib.settings import SolverSettings
    from fared.paths.spf.patch import Advance


class CapacitySolver:
    """Next-hop sets of one root by capacity, load ignored."""

    def __init__(self, root: NodeId, settings: SolverSettings) -> None:
        self._root = root
        # Without ``flows``: the smoother applies the square-root rule.
        self._settings = replace(settings, mode=WeightMode.CAPACITY, flows=None)
        self._areas: dict[int, AreaSolver] = {}
        self._joined: dict[tuple[tuple[int, NodeId], ...], NextHopSet | None] = {}

    def update(self, area: int, solver: AreaSolver, step: Advance | None) -> list[NodeId] | None:
        """Solve an area again, after ``solver``, which follows load and took ``step``.

        Returns the nodes with another next-hop set; None if nothing had to be computed.
        """
        if area not in self._areas:
            self._areas[area] = AreaSolver(self._root)
        own = self._areas[area]
        own.ted, own.links = solver.ted, solver.links
        delta = own.update(self._settings, step)
        if delta is None:
            return None
        self._joined.clear()  # joined sets are made of the areas' rows
        if own.solution is None:
            return []
        found: list[NodeId] = own.solution.plan.graph.nodes[delta.nodes].tolist()
        return found

    def nexthops(self, egress: Egress) -> NextHopSet | None:
        """Return the next-hop set of a route with this egress, advertised capacities ignored."""
        if len(egress) == 1:
            ((area, node, _),) = egress
            index = self._areas[area].index(node)
            return None if index is None else self._areas[area].set_of(index)
        key = tuple([(area, node) for area, node, _ in egress])
        if key not in self._joined:
            self._joined[key] = self._join(egress)
        return self._joined[key]

    def _join(self, egress: Egress) -> NextHopSet | None:
        by_area: dict[int, list[tuple[int, float]]] = {}
        for area, node, _ in egress:
            index = self._areas[area].index(node)
            if index is None:
                return None
            by_area.setdefault(area, []).append((index, np.inf))
        return join_areas(self._areas, by_area, self._settings)
