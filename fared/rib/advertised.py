"""Routes that a border router advertises into other areas, updated incrementally.

The solver calls it after each run, and ``router.instance`` passes the result to the engine. The
advertised capacity of a route is that of all its paths together, so it can change while the
next-hop set does not. Prefixes are therefore indexed by the egress nodes and next hops of their
route. An update examines only prefixes whose route changed, and those with an egress node whose
aggregate capacity changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fared.rib.facts import aggregate_capacity
from fared.ted.events import AdvertisedRoute
from fared.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from numpy.typing import NDArray

    from fared.core.ids import NodeId, Prefix
    from fared.rib.area import AreaSolver
    from fared.rib.facts import Egress
    from fared.rib.model import NextHopSet, Route

_ADVERTISED_TYPES = (
    PathType.INTRA_AREA,
    PathType.INTER_AREA,
    PathType.LEVEL_1,
    PathType.LEVEL_2,
    PathType.LEVEL_1_REDISTRIBUTED,
    PathType.LEVEL_2_REDISTRIBUTED,
)
_Path = tuple["Egress", "NextHopSet | None"]
_EgressNode = tuple[int, "NodeId"]


class AdvertisedRoutes:
    """All advertised routes (neither external nor discard routes), and their changes."""

    def __init__(
        self, areas: Mapping[int, AreaSolver], egress_of: Callable[[Prefix, Route], Egress]
    ) -> None:
        self._areas = areas
        self._egress_of = egress_of
        self._advertised: dict[Prefix, AdvertisedRoute] = {}
        self._path_of: dict[Prefix, _Path] = {}
        self._users: dict[_Path, dict[Prefix, None]] = {}
        self._capacity: dict[_Path, float | None] = {}
        self._paths_to: dict[_EgressNode, dict[_Path, None]] = {}
        self._flows: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}

    @property
    def prefixes(self) -> Collection[Prefix]:
        """All advertised prefixes."""
        return self._advertised.keys()

    def update(
        self, prefixes: Collection[Prefix], routes: Mapping[Prefix, Route]
    ) -> dict[Prefix, AdvertisedRoute | None]:
        """Process prefixes whose route may have changed, and those whose capacity did.

        Returns the prefixes to advertise with new values; None: to withdraw.
        """
        looked_at: dict[Prefix, Route | None] = {}
        for prefix in prefixes:
            route = looked_at[prefix] = routes.get(prefix)
            self._assign(prefix, route)
        for path in self._refresh():
            for prefix in self._users[path]:
                if prefix not in looked_at:
                    looked_at[prefix] = routes[prefix]
        changed: dict[Prefix, AdvertisedRoute | None] = {}
        for prefix, route in looked_at.items():
            before = self._advertised.pop(prefix, None)
            after = self._advertise(prefix, route)
            if after is not None:
                self._advertised[prefix] = after
            if after != before:
                changed[prefix] = after
        return changed

    def _assign(self, prefix: Prefix, route: Route | None) -> None:
        """Index a prefix by the egress nodes and next hops of its present route."""
        is_advertised = (
            route is not None and route.path_type in _ADVERTISED_TYPES and not route.discard
        )
        path = (
            (self._egress_of(prefix, route), route.nexthops)
            if route is not None and is_advertised
            else None
        )
        if self._path_of.get(prefix) == path:
            return
        self._remove(prefix)
        if path is not None:
            self._add(prefix, path)

    def _advertise(self, prefix: Prefix, route: Route | None) -> AdvertisedRoute | None:
        path = self._path_of.get(prefix)
        if path is None or route is None:
            return None
        areas = tuple(sorted({area for area, _, _ in path[0]}))
        return AdvertisedRoute(route.metric, route.path_type, areas, self._capacity[path])

    def _add(self, prefix: Prefix, path: _Path) -> None:
        self._path_of[prefix] = path
        if path not in self._users:
            self._users[path] = {}
            self._capacity[path] = aggregate_capacity(self._areas, *path)
            for area, node, _ in path[0]:
                self._paths_to.setdefault((area, node), {})[path] = None
        self._users[path][prefix] = None

    def _remove(self, prefix: Prefix) -> None:
        path = self._path_of.pop(prefix, None)
        if path is None:
            return
        users = self._users[path]
        del users[prefix]
        if users:
            return
        del self._users[path], self._capacity[path]
        for area, node, _ in path[0]:
            paths = self._paths_to.get((area, node), {})
            paths.pop(path, None)
            if not paths:
                self._paths_to.pop((area, node), None)

    def _refresh(self) -> list[_Path]:
        """Recompute capacities where an egress node's changed; return the paths that differ."""
        stale: dict[_Path, None] = {}
        for area, solver in self._areas.items():
            for node in self._changed_nodes(area, solver):
                stale.update(self._paths_to.get((area, node), {}))
        different = []
        for path in stale:
            capacity = aggregate_capacity(self._areas, *path)
            if capacity != self._capacity[path]:
                self._capacity[path] = capacity
                different.append(path)
        return different

    def _changed_nodes(self, area: int, solver: AreaSolver) -> Iterable[NodeId]:
        """Return the nodes of an area whose aggregate capacity changed since the last call."""
        if solver.solution is None:
            self._flows.pop(area, None)
            return ()
        nodes, flow = solver.solution.plan.graph.nodes, solver.solution.aggregate_capacities
        before = self._flows.get(area)
        self._flows[area] = nodes, flow
        # Flows are compared by index, which needs the same nodes.
        if before is None or not np.array_equal(before[0], nodes):
            return [node for at, node in self._paths_to if at == area]
        old = before[1]
        found: list[NodeId] = nodes[(old != flow) & ~(np.isnan(old) & np.isnan(flow))].tolist()
        return found
