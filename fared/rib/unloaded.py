"""Beside a solver that follows load, the same areas as they would be without any.

What paths can carry, load or not, tells a lost link from a busy one: the one takes effect at
once, the other is damped. Databases and plans are those of the solver itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fared.rib.area import AreaSolver
from fared.rib.join import join_areas
from fared.weights.path_capacity import WeightMode

if TYPE_CHECKING:
    from fared.core.ids import NodeId
    from fared.rib.facts import Ends
    from fared.rib.model import NextHopSet
    from fared.rib.settings import SolverSettings


class Unloaded:
    """The areas of one root by capacity."""

    def __init__(self, root: NodeId, settings: SolverSettings) -> None:
        self._root = root
        # In proportion: leaning away from small paths is left to what follows load.
        self._settings = replace(settings, mode=WeightMode.CAPACITY, flows=None)
        self._areas: dict[int, AreaSolver] = {}
        self._joined: dict[tuple[tuple[int, NodeId], ...], NextHopSet | None] = {}
        self.version = 0
        """Another number whenever a set may have become another."""

    def follow(self, area: int, loaded: AreaSolver) -> None:
        """Work an area out after the solver that follows load has."""
        if area not in self._areas:
            self._areas[area] = AreaSolver(self._root)
        mine = self._areas[area]
        mine.ted, mine.links, mine.loads = loaded.ted, loaded.links, loaded.loads
        plan = None if loaded.solution is None else loaded.solution.plan
        if mine.update(self._settings, plan) is not None:
            self.version += 1
            self._joined.clear()

    def set_of(self, ends: Ends) -> NextHopSet | None:
        """The next-hop set of a route to these ends, what they announced left out."""
        if len(ends) == 1:
            ((area, node, _),) = ends
            index = self._areas[area].ted.graph().index(node)
            return None if index is None else self._areas[area].set_of(index)
        key = tuple([(area, node) for area, node, _ in ends])
        if key not in self._joined:
            self._joined[key] = self._join(ends)
        return self._joined[key]

    def _join(self, ends: Ends) -> NextHopSet | None:
        by_area: dict[int, list[tuple[int, float]]] = {}
        for area, node, _ in ends:
            index = self._areas[area].ted.graph().index(node)
            if index is None:
                return None
            by_area.setdefault(area, []).append((index, np.inf))
        return join_areas(self._areas, by_area, self._settings)
