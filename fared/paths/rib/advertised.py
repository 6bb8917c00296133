"""Routes that a router advertises into other areas or protocols, updated incrementally.

The solver calls it after each run, and ``router.instance`` passes the result to the engine. The
advertised capacity of a route is that of all its paths together, so it can change while the
next-hop set does not. Prefixes are therefore indexed by the egress nodes and next hops of their
route. An update examines only prefixes whose route changed, and those with an egress node whose
aggregate capacity changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fared.core.ids import BACKBONE
from fared.paths.rib.facts import aggregate_capacity
from fared.paths.ted.events import AdvertisedRoute
from fared.paths.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from numpy.typing import NDArray

    from fared.core.ids import NodeId, Prefix
    from fared.paths.rib.area import AreaSolver
    from fared.paths.rib.facts import Egress
    from fared.paths.rib.model import NextHopSet, Route

INTERNAL_TYPES = (
    PathType.INTRA_AREA,
    PathType.INTER_AREA,
    PathType.LEVEL_1,
    PathType.LEVEL_2,
    PathType.LEVEL_1_REDISTRIBUTED,
    PathType.LEVEL_2_REDISTRIBUTED,
)
"""The types of routes that a border router advertises into other areas or levels."""
_ALL_TYPES = tuple(PathType)
_EgressNode = tuple[int, "NodeId"]


class _Path:
    """Egress nodes and next hops, by identity; the prefixes whose routes have them.

    ``capacity`` (bytes/s) is that of all paths together.
    """

    __slots__ = ("capacity", "egress", "nexthops", "users")

    def __init__(self, egress: Egress, nexthops: NextHopSet | None, capacity: float | None) -> None:
        self.egress = egress
        self.nexthops = nexthops
        self.capacity = capacity
        self.users: dict[Prefix, None] = {}


class AdvertisedRoutes:
    """All advertised routes, and their changes: no discard routes.

    ``externals``: those to destinations outside the AS as well, which are redistributed into other
    protocols, but not advertised into other areas. Whoever sets it passes all prefixes to
    ``update`` once.
    """

    def __init__(
        self,
        areas: Mapping[int, AreaSolver],
        egress_of: Callable[[Prefix, Route], Egress],
        crosses: Callable[[Prefix], bool],
        tags: Callable[[Prefix], tuple[int, ...]],
    ) -> None:
        """``crosses`` tells whether a route of the backbone crosses a transit area."""
        self.externals = False
        self._tags = tags
        self._areas = areas
        self._egress_of = egress_of
        self._crosses = crosses
        self._advertised: dict[Prefix, AdvertisedRoute] = {}
        self._path_of: dict[Prefix, _Path] = {}
        self._paths: dict[tuple[Egress, int], _Path] = {}
        """By egress nodes, and the id of the next hops, which the path keeps."""
        self._paths_to: dict[_EgressNode, dict[_Path, None]] = {}
        self._flows: dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]] = {}

    @property
    def routes(self) -> Mapping[Prefix, AdvertisedRoute]:
        """All advertised routes."""
        return self._advertised

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
            for prefix in path.users:
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
        types = _ALL_TYPES if self.externals else INTERNAL_TYPES
        is_advertised = route is not None and route.path_type in types and not route.discard
        known = self._path_of.get(prefix)
        if route is None or not is_advertised:
            if known is not None:
                self._remove(prefix, known)
            return
        egress, nexthops = self._egress_of(prefix, route), route.nexthops
        if known is not None:
            if known.nexthops is nexthops and known.egress == egress:
                return
            self._remove(prefix, known)
        self._add(prefix, egress, nexthops)

    def _advertise(self, prefix: Prefix, route: Route | None) -> AdvertisedRoute | None:
        path = self._path_of.get(prefix)
        if path is None or route is None:
            return None
        areas = {area for area, _, _ in path.egress}
        if self._crosses(prefix):  # RFC 2328 §16.3 (5): it remains a route of the backbone
            areas.add(BACKBONE)
        at = tuple(sorted(areas))
        return AdvertisedRoute(route.metric, route.path_type, at, path.capacity, self._tags(prefix))

    def _add(self, prefix: Prefix, egress: Egress, nexthops: NextHopSet | None) -> None:
        path = self._paths.get((egress, id(nexthops)))
        if path is None:
            capacity = aggregate_capacity(self._areas, egress, nexthops)
            path = self._paths[egress, id(nexthops)] = _Path(egress, nexthops, capacity)
            for area, node, _ in egress:
                self._paths_to.setdefault((area, node), {})[path] = None
        path.users[prefix] = None
        self._path_of[prefix] = path

    def _remove(self, prefix: Prefix, path: _Path) -> None:
        del self._path_of[prefix], path.users[prefix]
        if path.users:
            return
        del self._paths[path.egress, id(path.nexthops)]
        for area, node, _ in path.egress:
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
            capacity = aggregate_capacity(self._areas, path.egress, path.nexthops)
            if capacity != path.capacity:
                path.capacity = capacity
                different.append(path)
        return different

    def _changed_nodes(self, area: int, solver: AreaSolver) -> Iterable[NodeId]:
        """Return the nodes of an area whose aggregate capacity changed since the last call."""
        if solver.solution is None:
            self._flows.pop(area, None)
            return ()
        nodes, flow = solver.solution.plan.graph.nodes, solver.solution.aggregate_capacities
        before = self._flows.get(area)
        if before is not None and flow is before[1]:  # the area was not computed again
            return ()
        self._flows[area] = nodes, flow
        # Flows are compared by index, which needs the same nodes.
        if before is None or not np.array_equal(before[0], nodes):
            return [node for at, node in self._paths_to if at == area]
        old = before[1]
        found: list[NodeId] = nodes[(old != flow) & ~(np.isnan(old) & np.isnan(flow))].tolist()
        return found
