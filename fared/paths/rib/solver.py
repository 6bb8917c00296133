"""The route solver: descriptions of routers in, changed routes out.

It has an ``AreaSolver`` for each area (graph, plan, path capacities) and the table of advertised
prefixes, and combines them: preference among path types, the nearest of several advertising
routers, equal ones joined. It makes routes only for prefixes whose best advertisement or next-hop
set changed. It uses no clock and no I/O: the daemon and the offline tool share it.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from fared.core.ids import BACKBONE, HOSTS_AREA, NodeId
from fared.paths.rib.advertised import AdvertisedRoutes
from fared.paths.rib.area import AreaDelta, AreaSolver
from fared.paths.rib.capacity import CapacitySolver
from fared.paths.rib.discard import Discards
from fared.paths.rib.explain import Explanation, SpfVertex, explain_route, view_spf
from fared.paths.rib.facts import aggregate_capacity, find_asbrs
from fared.paths.rib.hop_delays import HopDelay, hop_delays
from fared.paths.rib.hosts import OwnHosts
from fared.paths.rib.martians import Martians
from fared.paths.rib.model import Route
from fared.paths.rib.routes import JoinedSets, make_routes
from fared.paths.rib.rows import NONE
from fared.paths.rib.selection import union
from fared.paths.rib.selector import Advertisements, PrefixSelector
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solved import SolvedRoutes
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.events import AdvertisedRoute, AreaRange
from fared.paths.weights.path_capacity import WeightMode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from fared.core.ids import Prefix
    from fared.paths.rib.facts import Egress as RouteEgress
    from fared.paths.rib.model import NextHopSet, NumberedRoutes, RouteDelta
    from fared.paths.rib.prefixes import Advertiser, Changes
    from fared.paths.spf.plan import SpfPlan
    from fared.paths.ted.database import Ted
    from fared.paths.ted.model import (
        LocalLink,
        LocalNetwork,
        NodeBlock,
        PathType,
        PrefixReachability,
    )

__all__ = ["RibUpdate", "RouteSolver", "SolverSettings", "WeightMode"]

_LISTED = "listed"
"""Marks the key of a prefix that a block lists a second time."""


class RibUpdate(msgspec.Struct, frozen=True):
    """The outcome of one run; ``changed`` maps to None where a route is withdrawn.

    It has the prefixes whose route is another object than before, and no others.
    ``spf_ran`` is False if the present plans sufficed; ``areas`` are those computed, ``plans``
    those of all areas.
    """

    changed: RouteDelta
    spf_ran: bool
    areas: tuple[int, ...]
    plans: tuple[SpfPlan, ...] = ()
    apart: int = 0
    """The nodes of all areas that are in no graph."""
    spf_seconds: float = 0.0
    """Time spent on shortest paths; 0 without a stopwatch."""
    retagged: Collection[Prefix] = ()
    """Prefixes whose ``tags`` may have changed."""
    capacities_changed: tuple[tuple[int, NodeId], ...] | None = None
    """(area, node) where ``capacity_nexthops`` of routes to one node are others, and may be of
    those to several nodes; None: all are as before."""

    @property
    def nodes(self) -> int:
        """The nodes of all areas."""
        return sum([len(plan.distance) for plan in self.plans]) + self.apart

    @property
    def edges(self) -> int:
        """The edges of all areas, directed, listed by both ends."""
        return sum([len(plan.graph.dst) for plan in self.plans])


class RouteSolver:
    """Routes of one router (or, offline, of any router of the database)."""

    def __init__(self, root: NodeId, settings: SolverSettings) -> None:
        self.root = root
        self.settings = settings
        self.stopwatch: Callable[[], float] = float
        self.martians = Martians()
        self._areas: dict[int, AreaSolver] = {}
        self._baseline = CapacitySolver(root, settings)
        self._hosts = OwnHosts(root, self._area)
        self._selector = PrefixSelector(self._areas, self._hosts)
        self._routes = SolvedRoutes(self._selector.table)
        self._joined = JoinedSets(self._areas, settings)
        self._advertised = AdvertisedRoutes(
            self._areas, self.egress, self._selector.crosses, self.tags
        )
        self._pending: dict[Prefix, None] | None = None
        self._asbrs: dict[NodeId, AdvertisedRoute] | None = None
        self._discards = Discards(root, self._areas_of)
        self._asbr_blocks: dict[Advertiser, NodeBlock] = {}
        self._all_changed = True

    def measure_with(self, stopwatch: Callable[[], float]) -> None:
        """Measure durations with ``stopwatch`` (seconds), in all areas; ``float`` returns 0.0."""
        self.stopwatch = stopwatch
        for area in self._areas.values():
            area.stopwatch = stopwatch

    @property
    def routes(self) -> Mapping[Prefix, Route]:
        """The present best routes, connected and discarding ones included: always this object."""
        return self._routes

    def ted(self, area: int) -> Ted:
        """Return the database of one area. Raises KeyError for an unknown area."""
        return self._areas[area].ted

    @property
    def areas(self) -> tuple[int, ...]:
        """The areas with data, ascending."""
        return tuple(sorted([area for area in self._areas if area < HOSTS_AREA]))

    @property
    def plans(self) -> dict[int, SpfPlan]:
        """The shortest paths of each area that describes the root."""
        areas = self._areas.items()
        return {area: s.solution.plan for area, s in areas if s.solution is not None}

    def _area(self, area: int) -> AreaSolver:
        if area not in self._areas:
            self._areas[area] = AreaSolver(self.root)
            self._areas[area].stopwatch = self.stopwatch
        return self._areas[area]

    def put_block(
        self,
        area: int,
        node: NodeId,
        block: NodeBlock | None,
        beyond: Changes = MappingProxyType({}),
    ) -> ChangeKind:
        """Install the newest block of a router in an area; None: the router is gone.

        ``beyond``: the prefix changes that came with it and that the block does not list. Returns
        the kind of change.
        """
        solver = self._area(area)
        former = solver.ted.block(node)
        kind = solver.ted.remove(node) if block is None else solver.ted.put(block)
        if kind is ChangeKind.DELAY and not self.settings.delay_rule:
            kind = ChangeKind.LOAD  # no route follows delay; the block may have another load, too
        if block is not None and (block.is_asbr or block.asbr_routes):
            self._asbr_blocks[area, node] = block
            self._asbrs = None
        elif self._asbr_blocks.pop((area, node), None) is not None:
            self._asbrs = None
        if (block is not None and block.virtual_end) != (node in solver.virtual_ends):
            solver.virtual_ends ^= {node}
            self._all_changed = True  # another transit area, or one less
        before = () if former is None else former.prefixes
        after = () if block is None else block.prefixes
        if before == after and not beyond:
            return kind
        old, new = _by_source(before), _by_source(after)
        changes: dict[Hashable, PrefixReachability | None] = new
        if old:
            changes = {source: item for source, item in new.items() if old.get(source) != item}
            changes.update((source, None) for source in old if source not in new)
        changes.update(beyond)
        prefixes = self.put_prefixes(area, node, changes)
        # The network of a lost link is withdrawn with it, which is no further loss.
        return kind if kind >= ChangeKind.ONE_WAY else max(kind, prefixes)

    def put_prefixes(self, area: int, node: NodeId, changes: Changes) -> ChangeKind:
        """Process changed prefixes of a router that its block does not list.

        Returns the kind of change.
        """
        self._area(area)
        return self._selector.put(area, node, self.martians.screen(area, node, changes))

    def set_local_links(self, area: int, links: tuple[LocalLink, ...]) -> None:
        """Set the full adjacencies of this router in an area."""
        self._area(area).links = links

    def set_local_networks(self, area: int, networks: tuple[LocalNetwork, ...]) -> ChangeKind:
        """Set the networks of this router in an area; return the kind of change."""
        changed = self._hosts.set_networks(area, networks) and self._selector.forwards
        return ChangeKind.PREFIX if changed else ChangeKind.NONE

    def set_ranges(self, ranges: tuple[AreaRange, ...]) -> None:
        """Set the area ranges of this router: active ones get a discard route."""
        self._discards.configure(ranges)

    def apply_settings(self, settings: SolverSettings) -> None:
        """Use other settings from the next run on."""
        if settings != self.settings:
            self.settings = settings
            self._all_changed = True
            self._baseline = CapacitySolver(self.root, settings)
            self._joined = JoinedSets(self._areas, settings)
            for solver in self._areas.values():
                solver.forget()

    def solve(self) -> RibUpdate:
        """Compute what changed since the last run."""
        areas = [self._areas[area] for area in self.areas]
        before = sum([solver.spf_seconds for solver in areas])
        changes = self._update_areas()
        computed = tuple([area for area in changes if area < HOSTS_AREA])
        spf_ran = any(changes[area].spf_ran for area in computed)
        self._all_changed |= self._selector.compact()
        everything = self._all_changed
        served, touched = self._selector.select(changes, self.settings, everything=everything)
        capacities_changed = self._update_baseline(changes)
        rejoined = self._joined.renew(self._selector, changes, everything=self._all_changed)
        different = union(union(served, touched), rejoined)
        changed = self._replace_all() if self._all_changed else self._publish(different)
        self._all_changed = False
        retagged = self._selector.take_considered()
        if self._discards or self._pending is not None:
            # With other egress nodes a connected route stays the object that it is.
            prefixes = self._selector.table.prefixes
            selected = [prefixes[number] for number in different.tolist()]
            if self._discards:
                self._discards.lay(selected, changed, self._routes)
            if self._pending is not None:
                self._pending.update(dict.fromkeys((*selected, *changed, *retagged)))
        if spf_ran:  # distances to the ASBRs, and so the best routes to them, may differ
            self._asbrs = None
        return RibUpdate(
            changed=changed,
            spf_ran=spf_ran,
            areas=computed,
            plans=tuple([s.solution.plan for s in areas if s.solution is not None]),
            apart=sum([s.ted.apart for s in areas if s.solution is not None]),
            spf_seconds=sum([solver.spf_seconds for solver in areas]) - before,
            retagged=retagged,
            capacities_changed=capacities_changed,
        )

    def _update_areas(self) -> dict[int, AreaDelta]:
        changes = {}
        for area in sorted(self._areas):
            change = self._areas[area].update(self.settings)
            if change is not None:
                changes[area] = change
        return changes

    def _update_baseline(
        self, changes: Mapping[int, AreaDelta]
    ) -> tuple[tuple[int, NodeId], ...] | None:
        if self.settings.mode is not WeightMode.AVAILABLE:
            return None
        found = {
            area: self._baseline.update(
                area, solver, changes[area].step if area in changes else None
            )
            for area, solver in self._areas.items()
        }
        if all(nodes is None for nodes in found.values()):
            return None
        return tuple((area, node) for area, nodes in found.items() for node in nodes or ())

    def capacity_nexthops(self, prefix: Prefix, route: Route) -> NextHopSet | None:
        """Return the next-hop set of a present route by capacity, load ignored; for available mode.

        Advertised capacities are ignored, since they change with load.
        """
        return self._baseline.nexthops(self.egress(prefix, route))

    def _replace_all(self) -> RouteDelta:
        served = (self._selector.selection.advertiser != NONE).nonzero()[0]
        self._pending = None  # the advertised capacity may change even with an equal route
        return self._routes.replace(self._selector.table, self._make_routes(served))

    def _publish(self, numbers: NDArray[np.int64]) -> RouteDelta:
        if not len(numbers):
            return {}
        routes = self._make_routes(numbers)
        prefixes = self._selector.table.prefixes
        changed = self._routes.put(routes)
        made, _ = routes
        if len(made) < len(numbers):
            served = set(made)
            for number in numbers.tolist():
                if number not in served and self._routes.drop(number):
                    changed[prefixes[number]] = None
        return changed

    def _make_routes(self, numbers: NDArray[np.int64]) -> NumberedRoutes:
        return make_routes(numbers, self._selector, self._joined)

    def computed_from(self, blocks: Mapping[int, Mapping[NodeId, NodeBlock]]) -> RouteSolver:
        """Return a solver of these blocks, by area: they are frozen, so any thread may use it."""
        other = RouteSolver(self.root, self.settings)
        for area, known in blocks.items():
            ted = other._area(area).ted
            for block in known.values():
                ted.put(block)
        return other

    def seen_from(self, root: NodeId, advertised: Advertisements) -> RouteSolver:
        """Return a read-only solver for another root on the same databases.

        ``advertised`` replaces the prefixes of all blocks, by area and node; the caller sets the
        local links.
        """
        other = RouteSolver(root, self.settings)
        for area in self.areas:
            other._area(area).ted = self._areas[area].ted.seen_from(root)
            other._area(area).virtual_ends = self._areas[area].virtual_ends
        for (area, node), prefixes in advertised.items():
            other.put_prefixes(area, node, dict(enumerate(prefixes)))
        return other

    def prefix_count(self, area: int, node: NodeId) -> int:
        """Return the number of prefixes that a node advertises in an area."""
        return self._selector.count(area, node)

    def own_prefixes(self, externals: Iterable[tuple[NodeId, Prefix]]) -> dict[NodeId, int]:
        """Return how many prefixes each router has that no other one advertises.

        Summaries, leaked prefixes and ``externals`` are not counted.
        """
        return self._selector.own_prefixes(externals)

    def advertised_by(self, area: int, node: NodeId) -> Iterator[PrefixReachability]:
        """Iterate over the prefixes a node advertises, without those with a forwarding address."""
        return self._selector.advertised_by(area, node)

    def advertisements(self, prefix: Prefix | None = None) -> Advertisements:
        """Return the advertisements of a prefix, or of all prefixes: see ``PrefixSelector``."""
        return self._selector.advertisements(prefix)

    def advertisers_of(self, prefix: Prefix) -> Iterator[tuple[Advertiser, PathType]]:
        """Iterate over who advertises a prefix, and how: in proportion to their number."""
        return self._selector.table.advertisers_of(prefix)

    def path_capacity(self, prefix: Prefix) -> float | None:
        """Return the aggregate capacity of all paths to a prefix, bytes/s, as advertised by an ABR.

        None where it is unknown, unlimited (connected) or there is no route.
        """
        route = self._routes.get(prefix)
        if route is None or route.discard:
            return None
        return aggregate_capacity(self._areas, self.egress(prefix, route), route.nexthops)

    def egress(self, prefix: Prefix, route: Route) -> RouteEgress:
        """Return the egress nodes of a route, and the capacity each advertises for the prefix."""
        return self._selector.egress(prefix, route)

    def tags(self, prefix: Prefix) -> tuple[int, ...]:
        """Return the tags with which the nodes that serve a prefix advertise it, ascending."""
        return self._selector.tags(prefix)

    def advertise_externals(self, *, externals: bool) -> None:
        """Set whether ``take_advertisements`` returns external routes, too."""
        if externals != self._advertised.externals:
            self._advertised.externals = externals
            self._pending = None

    @property
    def advertised(self) -> Mapping[Prefix, AdvertisedRoute]:
        """The advertised routes, as of the last ``take_advertisements``."""
        return self._advertised.routes

    def several(self, prefix: Prefix) -> bool:
        """Whether a prefix has several egress nodes, or one that advertises a capacity for it."""
        return self._selector.several(prefix)

    def _areas_of(self, prefix: Prefix, route: Route) -> Iterator[int]:
        return (area for area, _, _ in self.egress(prefix, route))

    def take_advertisements(
        self,
    ) -> tuple[dict[Prefix, AdvertisedRoute | None], dict[NodeId, AdvertisedRoute]]:
        """Return the advertised routes that changed since the last call, and all ASBRs.

        None: the prefix is withdrawn. Discard routes are not advertised, and external ones only
        after ``advertise_externals``.
        """
        if self._pending is None:
            prefixes: Collection[Prefix] = dict.fromkeys((*self.advertised, *self._routes))
        else:
            prefixes = self._pending
        self._pending = {}
        changes = self._advertised.update(prefixes, self._routes)
        if self._asbrs is None:
            backbone = self._areas.get(BACKBONE)
            border = backbone is not None and backbone.reached() > 0
            beyond = (BACKBONE,) if border else tuple(self._areas)  # RFC 2328 §16.2, RFC 3509
            self._asbrs = find_asbrs(self._areas, self._asbr_blocks, beyond, self.root)
        return changes, self._asbrs

    def explain(self, prefix: Prefix) -> Explanation | None:
        """Explain the route to a prefix; None without a route."""
        route = self._routes.get(prefix)
        if route is None:
            return None
        egress = () if route.discard else self.egress(prefix, route)
        return explain_route(self._areas, prefix, route, egress)

    def hop_delays(self, prefix: Prefix, route: Route) -> tuple[HopDelay, ...]:
        """Return the path delays of a route's next hops, also of those not used because of it."""
        return () if route.discard else hop_delays(self._areas, self.egress(prefix, route))

    def spf_view(self, area: int) -> dict[NodeId, SpfVertex]:
        """Return distance and first hops of every reachable node of an area."""
        solver = self._areas.get(area)
        return {} if solver is None or solver.solution is None else view_spf(solver.solution.plan)


def _by_source(
    prefixes: tuple[PrefixReachability, ...],
) -> dict[Hashable, PrefixReachability | None]:
    """Return the prefixes that a block lists, keyed by themselves.

    No key of an LSA equals one of these, since it is of another type.
    """
    listed: dict[Hashable, PrefixReachability | None] = {item.prefix: item for item in prefixes}
    if len(listed) == len(prefixes):
        return listed
    listed.clear()
    for item in prefixes:
        source: Hashable = item.prefix
        while source in listed:
            source = (source, _LISTED)
        listed[source] = item
    return listed
