"""One routing protocol of a router: its engine, and the routes computed from its database.

A router has one for each protocol. A protocol that routes two families has a solver for each:
prefixes and next hops belong to one family, the topology may be shared.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fared.core.ids import NodeId, Prefix, format_node
from fared.core.log_limit import LogRateLimiter, Verdict
from fared.core.rng import Rng
from fared.core.tables import shrink
from fared.paths.rib.adapted import AdaptedRoutes
from fared.paths.rib.advertised import INTERNAL_TYPES
from fared.paths.rib.solved import FamilyRoutes
from fared.paths.rib.solver import RibUpdate, RouteSolver, WeightMode
from fared.paths.rib.table import RouteRank
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.events import (
    AdvertisedRoute,
    LocalLinksChanged,
    LocalNetworksChanged,
    PrefixesUpdated,
    RoutesComputed,
    TedUpdated,
)
from fared.paths.ted.model import PathType
from fared.protocols.igp.events import LogRecord
from fared.router.ends import EndsCounter
from fared.router.engine import Engine, EngineSettings
from fared.router.protocols import RoutingProtocol
from fared.router.stages import AdjacencyProgress

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator, Mapping

    from fared.paths.rib.model import Route, RouteDelta
    from fared.paths.rib.settings import SolverSettings
    from fared.paths.ted.model import LocalLink

_REDISTRIBUTED = (PathType.LEVEL_1_REDISTRIBUTED, PathType.LEVEL_2_REDISTRIBUTED)
_TRICKLE = 1e-6
"""Share of its capacity that a full link is assumed to have left, so that it stays a path."""


class ProtocolInstance:
    """Engine and solvers of one protocol."""

    def __init__(
        self,
        protocol: RoutingProtocol,
        engine_settings: EngineSettings,
        rng: Rng,
        settings: SolverSettings,
    ) -> None:
        started = protocol.start(engine_settings, rng)
        self.protocol = protocol
        self.engine: Engine = started.engine
        self.root = root = started.root
        self.solvers = {
            family: RouteSolver(root, _unfloored(settings)) for family in started.families
        }
        self.dirty = True
        """Whether anything changed since the solvers ran."""
        solved = {family: solver.routes for family, solver in self.solvers.items()}
        self._solved = FamilyRoutes(solved) if len(solved) > 1 else self.solver.routes
        self._programmed: dict[Prefix, Route] | None = None
        """The routes to program where they differ from those of the solvers: while weights follow
        load, and until the first run after that."""
        self.adapted: dict[int, AdaptedRoutes] = {}
        """By family, where weights follow load."""
        self._all_changed = False
        self._log_limiter = LogRateLimiter()
        self._adapt(settings)
        self._local_links: dict[tuple[int, int], tuple[LocalLink, ...]] = {}
        self._advertised_asbrs: dict[NodeId, AdvertisedRoute] = {}
        self._tells = False
        """Whether the engine was told of all routes, and of changes since."""
        self.redistributed = False
        """Whether another protocol redistributes the routes of this one (``redistribute``)."""
        self.marks: frozenset[int] = frozenset()
        """Tags of routes that were redistributed into this protocol."""
        self.of_kernel: Container[Prefix] = ()
        """The prefixes to which the kernel has a route of its own."""
        self._ends = EndsCounter(self.engine, self.solvers.values())

    @property
    def name(self) -> str:
        """The protocol's name."""
        return self.protocol.name

    @property
    def solver(self) -> RouteSolver:
        """The solver of the first family."""
        return self.solvers[self.family]

    def solver_of(self, prefix: Prefix) -> RouteSolver | None:
        """The solver of a prefix's family."""
        return self.solvers.get(prefix.family)

    @property
    def local_links(self) -> Iterator[LocalLink]:
        """The full adjacencies of this router, in all families and areas."""
        return (link for links in self._local_links.values() for link in links)

    @property
    def routes(self) -> Mapping[Prefix, Route]:
        """The routes to program, of all families."""
        return self._solved if self._programmed is None else self._programmed

    def progress(self) -> AdjacencyProgress:
        """Interfaces without a neighbor, with one, and neighbors still forming."""
        return AdjacencyProgress(*self.engine.adjacency_progress())

    @property
    def martians(self) -> int:
        """Advertisements of all families rejected as martians."""
        return sum(solver.martians.count for solver in self.solvers.values())

    def take_martian_logs(self, now: float) -> Iterator[LogRecord]:
        """Return log records of the routers that advertise new martians, at a limited rate."""
        for solver in self.solvers.values():
            for node, prefixes in solver.martians.take_new():
                if self._log_limiter.judge(node, "martian", now) is not Verdict.SUPPRESS:
                    fields: dict[str, object] = {
                        "proto": self.name,
                        "router": format_node(node),
                        "prefix": str(prefixes[0]),
                        "count": len(prefixes),
                    }
                    yield LogRecord("warning", "martian-prefixes-ignored", fields)

    # Outputs of the engine

    @property
    def family(self) -> int:
        """The first family."""
        return next(iter(self.solvers))

    def ted_updated(self, update: TedUpdated) -> ChangeKind:
        """Process a changed block; return how much the change matters."""
        self.dirty = True
        solver = self.solvers.get(update.family)
        if solver is None:
            return ChangeKind.NONE
        return solver.put_block(update.area, update.node, update.block, update.changes)

    def prefixes_updated(self, update: PrefixesUpdated) -> ChangeKind:
        """Process changed prefixes of a router; return how much they matter."""
        self.dirty = True
        solver = self.solvers.get(update.family)
        if solver is None:
            return ChangeKind.NONE
        return solver.put_prefixes(update.area, update.node, update.changes)

    def local_links_changed(self, change: LocalLinksChanged) -> ChangeKind:
        """Process this router's own adjacencies; return how much they matter."""
        self.dirty = True
        solver = self.solvers.get(change.family)
        if solver is None:
            return ChangeKind.NONE
        key = (change.family, change.area)
        before = self._local_links.get(key, ())
        self._local_links[key] = change.links
        solver.set_local_links(change.area, change.links)
        return solver.ted(change.area).change_of_adjacencies(self.root, before, change.links)

    def local_networks_changed(self, change: LocalNetworksChanged) -> ChangeKind:
        """Process this router's own networks; return how much they matter."""
        solver = self.solvers.get(change.family)
        if solver is None:
            return ChangeKind.NONE
        kind = solver.set_local_networks(change.area, change.networks)
        self.dirty |= kind is not ChangeKind.NONE
        return kind

    # Redistribution

    def rank(self, prefix: Prefix, route: Route) -> RouteRank:
        """How a route counts beside those of other protocols."""
        if route.nexthops is None:
            own = route.path_type not in INTERNAL_TYPES or route.path_type in _REDISTRIBUTED
            return RouteRank.OWN if own and prefix not in self.of_kernel else RouteRank.LOCAL
        if self.marks and not self.marks.isdisjoint(self.tags(prefix)):
            return RouteRank.REDISTRIBUTED
        return RouteRank.USUAL

    def preference(self, prefix: Prefix, usual: int) -> int:
        """The preference of the route to a prefix: the usual one of the protocol, or another."""
        return self.engine.preference(prefix, usual)

    def tags(self, prefix: Prefix) -> tuple[int, ...]:
        """The tags with which a prefix of the table is advertised, ascending."""
        solver = self.solver_of(prefix)
        return () if solver is None else solver.tags(prefix)

    def redistribute(self, *, wanted: bool) -> None:
        """Set whether another protocol redistributes the routes of this one."""
        self.redistributed = wanted
        for solver in self.solvers.values():
            solver.advertise_externals(externals=wanted)

    def advertised(self, prefix: Prefix) -> AdvertisedRoute | None:
        """What another protocol may advertise of a route; of the last ``advertise``."""
        solver = self.solver_of(prefix)
        return None if solver is None else solver.advertised.get(prefix)

    # Computation

    def solve(self) -> tuple[RouteDelta, list[RibUpdate]]:
        """Compute all changes since the last run, for all families.

        Returns the changes of ``routes``, these and no others.
        """
        self.dirty = False
        self.solver.set_ranges(self.engine.ranges)
        updates = [solver.solve() for solver in self.solvers.values()]
        changed: RouteDelta = {}
        if self._programmed is None:
            for update in updates:
                changed.update(update.changed)
        elif self.adapted:
            for (family, adapted), update in zip(self.adapted.items(), updates, strict=True):
                news = update.changed
                if self._all_changed:
                    news = {**dict(self.solvers[family].routes.items()), **news}
                changed.update(adapted.take(news, capacities_changed=update.capacities_changed))
            self._all_changed = False
            self._keep(changed)
        else:
            changed = _difference(self._programmed, self._solved)
            self._programmed = None
        return changed, updates

    def step(self, seconds: float, *, stale: bool) -> None:
        """Adapt shares to load over an interval; ``program`` returns the routes that change."""
        averaging = longest_average(self.engine)
        for adapted in self.adapted.values():
            # A larger time constant: a step for a shorter time.
            slowed = adapted.settings.slowed(averaging)
            adapted.step(seconds / slowed, stale=stale)

    @property
    def unprogrammed(self) -> bool:
        """Whether ``program`` has something to do."""
        return any(adapted.unprogrammed for adapted in self.adapted.values())

    def program(self, most: int) -> RouteDelta:
        """Program up to ``most`` next hops whose shares a step moved; return the changed routes."""
        for adapted in self.adapted.values():
            if adapted.unprogrammed:
                changed = adapted.program(most)
                self._keep(changed)
                return changed
        return {}

    def _keep(self, changed: RouteDelta) -> None:
        """Apply changes to the routes to program, where they are not those of the solvers."""
        assert self._programmed is not None, "weights follow load"
        for prefix, route in changed.items():
            if route is None:
                del self._programmed[prefix]
            else:
                self._programmed[prefix] = route
        shrink(self._programmed)

    def _adapt(self, settings: SolverSettings) -> None:
        """Start, restart (if its settings changed) or stop adaptation."""
        if settings.mode is not WeightMode.AVAILABLE:
            self.adapted = {}
            return
        if self._programmed is None:
            self._programmed = dict(self._solved.items())
        for family, solver in self.solvers.items():
            known = self.adapted.get(family)
            wanted = (settings.adaptation, settings.flows)
            if known is None or (known.settings, known.flows) != wanted:
                self.adapted[family] = AdaptedRoutes(solver, self._programmed)
                self._all_changed = True

    def apply_settings(self, settings: SolverSettings) -> None:
        """Use these settings from the next run on."""
        self.dirty = True
        for solver in self.solvers.values():
            solver.apply_settings(_unfloored(settings))
        self._adapt(settings)

    def advertise(self, now: float) -> tuple[bool, Collection[Prefix]]:
        """Pass what was computed and an engine advertises, or needs.

        An engine advertises routes in other areas or levels (RFC 2328 §12.4.3, RFC 5302), and
        limits its announcements by the size of the area, which is counted a second later: here,
        and where another protocol redistributes them, data flows back, and it ends there: an
        engine's own advertisements are no input to its routes.

        Returns whether the engine was told, and the prefixes of ``advertised`` that changed.
        """
        takes = self.engine.takes_routes
        if not takes and not self.redistributed:
            self._tells = False
            return False, ()
        changes: dict[Prefix, AdvertisedRoute | None] = {}
        asbrs: dict[NodeId, AdvertisedRoute] = {}
        for solver in self.solvers.values():
            routes, boundaries = solver.take_advertisements()
            changes.update(routes)
            asbrs.update(boundaries)
        return takes and self._tell_engine(changes, asbrs, now), changes

    def _tell_engine(
        self,
        changes: Mapping[Prefix, AdvertisedRoute | None],
        asbrs: dict[NodeId, AdvertisedRoute],
        now: float,
    ) -> bool:
        """Tell the engine of routes inside the AS, and of all of them first."""
        told, self._tells = self._tells, True
        if not told:
            changes = dict(chain.from_iterable(s.advertised.items() for s in self.solvers.values()))
        inside = {prefix: _inside(route) for prefix, route in changes.items()}
        if not inside and asbrs == self._advertised_asbrs:
            return False
        self._advertised_asbrs = asbrs
        self.engine.handle(RoutesComputed(inside, asbrs), now)
        return True

    def count_ends(self, now: float) -> None:
        """Count the link ends that share the budget of announcements."""
        ends = self._ends.count()
        if ends is not None:
            self.engine.handle(ends, now)

    def confirmed(self) -> bool:
        """Whether the database contains every full adjacency from both ends.

        Right after a restart the LSAs of neighbors, and our own, may still be old: routes computed
        from them would lack those links.
        """
        for (family, area), links in self._local_links.items():
            solver = self.solvers[family]
            if links and area not in solver.areas:
                return False
            ends = dict.fromkeys(link.neighbor for link in links)
            if not all(solver.ted(area).connects(self.root, end) for end in ends):
                return False
        return True


def _difference(before: Mapping[Prefix, Route], now: Mapping[Prefix, Route]) -> RouteDelta:
    """Return the routes that are other objects than before, None where there is none now."""
    changed: RouteDelta = {at: route for at, route in now.items() if before.get(at) is not route}
    changed.update({at: None for at in before if at not in now})
    return changed


def _inside(route: AdvertisedRoute | None) -> AdvertisedRoute | None:
    """A route to advertise in other areas, or levels: those to externals are not."""
    return route if route is not None and route.path_type in INTERNAL_TYPES else None


def _unfloored(settings: SolverSettings) -> SolverSettings:
    """Return settings without a floor: adaptation floors paths, a full link is shown as full."""
    following = settings.mode is WeightMode.AVAILABLE
    return replace(settings, floor=_TRICKLE) if following else settings


def longest_average(engine: Engine) -> float:
    """Return the time over which an engine averages loads, seconds: the longest of all areas."""
    return max((budget.averaging for budget in engine.budgets.values()), default=0.0)
