"""What a border router tells of its routes, kept up to date instead of worked out anew.

What can be carried to a prefix may change where its next-hop set does not, since it counts all
paths together. So prefixes are kept by what their capacity depends on: the ends of the route
and its next hops. After a run only prefixes with another route are looked at, and of the others
those whose ends now get another flow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fared.rib.facts import Reached, carried
from fared.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from numpy.typing import NDArray

    from fared.core.ids import NodeId, Prefix
    from fared.rib.area import AreaSolver
    from fared.rib.facts import Ends
    from fared.rib.model import NextHopSet, Route

_TOLD = (
    PathType.INTRA_AREA,
    PathType.INTER_AREA,
    PathType.LEVEL_1,
    PathType.LEVEL_2,
    PathType.LEVEL_1_REDISTRIBUTED,
    PathType.LEVEL_2_REDISTRIBUTED,
)
_Way = tuple["Ends", "NextHopSet | None"]
_End = tuple[int, "NodeId"]


class Told:
    """The facts of all routes but external and discarding ones, and what changed of them."""

    def __init__(self, areas: Mapping[int, AreaSolver], ends_of: Callable[[Route], Ends]) -> None:
        self._areas = areas
        self._ends_of = ends_of
        self._told: dict[Prefix, Reached] = {}
        self._way_of: dict[Prefix, _Way] = {}
        self._users: dict[_Way, dict[Prefix, None]] = {}
        self._capacity: dict[_Way, float | None] = {}
        self._ways_to: dict[_End, dict[_Way, None]] = {}
        self._flows: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}

    @property
    def prefixes(self) -> Collection[Prefix]:
        """All prefixes of which something is told."""
        return self._told.keys()

    def update(
        self, prefixes: Collection[Prefix], routes: Mapping[Prefix, Route]
    ) -> dict[Prefix, Reached | None]:
        """Look at these prefixes, which may have other routes, and at all other flows.

        Returns what is told differently; None: nothing any more.
        """
        for prefix in prefixes:
            self._follow(prefix, routes.get(prefix))
        looked_at = dict.fromkeys(prefixes)
        for way in self._refresh():
            looked_at.update(self._users[way])
        changed: dict[Prefix, Reached | None] = {}
        for prefix in looked_at:
            before = self._told.pop(prefix, None)
            after = self._facts(prefix, routes)
            if after is not None:
                self._told[prefix] = after
            if after != before:
                changed[prefix] = after
        return changed

    def _follow(self, prefix: Prefix, route: Route | None) -> None:
        """Keep a prefix by its present way."""
        told = route is not None and route.path_type in _TOLD and not route.discard
        way = (self._ends_of(route), route.nexthops) if route is not None and told else None
        if self._way_of.get(prefix) == way:
            return
        self._leave(prefix)
        if way is not None:
            self._join(prefix, way)

    def _facts(self, prefix: Prefix, routes: Mapping[Prefix, Route]) -> Reached | None:
        way = self._way_of.get(prefix)
        if way is None:
            return None
        route = routes[prefix]
        areas = tuple(sorted({area for area, _, _ in way[0]}))
        return Reached(route.metric, route.path_type, areas, self._capacity[way])

    def _join(self, prefix: Prefix, way: _Way) -> None:
        self._way_of[prefix] = way
        if way not in self._users:
            self._users[way] = {}
            self._capacity[way] = carried(self._areas, *way)
            for area, node, _ in way[0]:
                self._ways_to.setdefault((area, node), {})[way] = None
        self._users[way][prefix] = None

    def _leave(self, prefix: Prefix) -> None:
        way = self._way_of.pop(prefix, None)
        if way is None:
            return
        users = self._users[way]
        del users[prefix]
        if users:
            return
        del self._users[way], self._capacity[way]
        for area, node, _ in way[0]:
            ways = self._ways_to.get((area, node), {})
            ways.pop(way, None)
            if not ways:
                self._ways_to.pop((area, node), None)

    def _refresh(self) -> list[_Way]:
        """Work out again what goes to ends of which the flow changed; return what differs."""
        stale: dict[_Way, None] = {}
        for area, solver in self._areas.items():
            for node in self._other_flows(area, solver):
                stale.update(self._ways_to.get((area, node), {}))
        different = []
        for way in stale:
            capacity = carried(self._areas, *way)
            if capacity != self._capacity[way]:
                self._capacity[way] = capacity
                different.append(way)
        return different

    def _other_flows(self, area: int, solver: AreaSolver) -> Iterable[NodeId]:
        """The nodes of an area to which another amount can be carried than before."""
        if solver.solution is None:
            self._flows.pop(area, None)
            return ()
        nodes, flow = solver.solution.plan.graph.nodes, solver.merged()
        before = self._flows.get(area)
        if before is not None and before[1] is flow:
            return ()
        self._flows[area] = nodes, flow
        if before is None:
            return [node for at, node in self._ways_to if at == area]
        if before[0] is nodes or np.array_equal(before[0], nodes):
            old = before[1]
            different = (old != flow) & ~(np.isnan(old) & np.isnan(flow))
            found: list[NodeId] = nodes[different].tolist()
            return found
        return [node for at, node in self._ways_to if at == area]
