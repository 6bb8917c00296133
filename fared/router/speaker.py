"""One routing protocol of a router: its engine, and the routes that follow from its database.

A router has one for each protocol it speaks. A protocol that routes two families has a solver
for each: prefixes and next hops are of one family, the topology may be shared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from fared.core.ids import NodeId, Prefix
from fared.rib.adapted import AdaptedRoutes
from fared.rib.solver import RibUpdate, RouteSolver, WeightMode
from fared.router.news import News, news_of_block, news_of_links
from fared.router.stages import AdjacencyProgress
from fared.ted.database import Change
from fared.ted.events import LocalLinksChanged, RouteFacts, RoutesComputed, TedUpdated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fared.core.events import ExternalRoutes, LinkRemoved, LoadMeasured, ShutdownRequested
    from fared.isis import events as isis
    from fared.ospf import events as ospf
    from fared.rib.facts import Reached
    from fared.rib.model import Route
    from fared.rib.settings import SolverSettings
    from fared.ted.model import LocalLink

_TRICKLE = 1e-6
"""Part of a full link's capacity that it is taken to have left: it stays a path."""
OSPF = "ospf"
ISIS = "isis"


class Engine(Protocol):
    """What a router asks of every engine; inputs of a protocol's own come to it directly."""

    def handle(
        self,
        event: LinkRemoved | LoadMeasured | ShutdownRequested | ExternalRoutes | RoutesComputed,
        now: float,
    ) -> None:
        """Process one input."""

    def tick(self, now: float) -> None:
        """Fire what is due."""

    def next_deadline(self) -> float | None:
        """When to call ``tick`` at the latest."""

    def drain(self) -> Sequence[ospf.Output | isis.Output]:
        """Return all outputs, in order."""

    def adjacency_progress(self) -> tuple[int, int, int]:
        """Interfaces that could have a full neighbor, those that have, neighbors still forming."""

    def activity(self) -> int:
        """Count what the database went through: stands still in a quiet network."""

    @property
    def in_several_areas(self) -> bool:
        """Whether routes are to be told to this engine."""


class Speaker:
    """Engine and solvers of one protocol."""

    def __init__(
        self,
        name: str,
        engine: Engine,
        root: NodeId,
        families: Iterable[int],
        settings: SolverSettings,
    ) -> None:
        self.name = name
        self.engine = engine
        self.root = root
        self.solvers = {family: RouteSolver(root, _unfloored(settings)) for family in families}
        self.dirty = True
        """Whether anything came that the solvers have not seen."""
        self.adapted: dict[int, AdaptedRoutes] = {}
        """By family, where weights follow load."""
        self._anew = False
        self._adapt(settings)
        self._local_links: dict[tuple[int, int], tuple[LocalLink, ...]] = {}
        self.only_load = False
        """Whether the newest description told nothing but how loaded its links are."""
        self.only_announced = False
        """Whether nothing but that and what is announced along with prefixes."""
        self._told_asbrs: dict[NodeId, RouteFacts] = {}

    @property
    def solver(self) -> RouteSolver:
        """The solver of the first family."""
        return next(iter(self.solvers.values()))

    def solver_of(self, prefix: Prefix) -> RouteSolver | None:
        """The solver of a prefix's family."""
        return self.solvers.get(prefix.family)

    def routes(self, family: int) -> Mapping[Prefix, Route]:
        """The routes of a family as they are to be programmed."""
        adapted = self.adapted.get(family)
        return self.solvers[family].routes if adapted is None else adapted.routes

    def progress(self) -> AdjacencyProgress:
        """How many interfaces await a neighbor, have one, or are forming one."""
        return AdjacencyProgress(*self.engine.adjacency_progress())

    # What the engine said

    def ted_updated(self, update: TedUpdated) -> News:
        """Take the newest description of a router; what it means for routes."""
        self.dirty = True
        self.only_load = self.only_announced = False
        solver = self.solvers.get(update.family)
        if solver is None:
            return News.FLOATS
        ted = solver.ted(update.area) if update.area in solver.areas else None
        before = None if ted is None else ted.block(update.node)
        change = solver.put_block(update.area, update.node, update.block)
        self.only_load = change in (Change.LOAD, Change.NONE)
        self.only_announced = not change & (Change.TOPOLOGY | Change.CAPACITY)
        if not update.topology:
            return News.FLOATS
        return news_of_block(ted, before, update.block)

    def local_links_changed(self, change: LocalLinksChanged) -> News:
        """Take this router's own full adjacencies; what they mean for routes."""
        self.dirty = True
        solver = self.solvers.get(change.family)
        if solver is None:
            return News.FLOATS
        key = (change.family, change.area)
        before = self._local_links.get(key, ())
        self._local_links[key] = change.links
        solver.set_local_links(change.area, change.links)
        ted = solver.ted(change.area) if change.area in solver.areas else None
        return news_of_links(ted, self.root, before, change.links)

    # What follows from it

    def solve(self) -> tuple[dict[Prefix, Route | None], list[RibUpdate]]:
        """Compute what changed since the last run, of all families."""
        self.dirty = False
        updates = [solver.solve() for solver in self.solvers.values()]
        changed: dict[Prefix, Route | None] = {}
        for (family, solver), update in zip(self.solvers.items(), updates, strict=True):
            news = {**solver.routes, **update.changed} if self._anew else update.changed
            adapted = self.adapted.get(family)
            changed.update(news if adapted is None else adapted.take(news))
        self._anew = False
        return changed, updates

    def step(self, seconds: float, *, stale: bool) -> dict[Prefix, Route | None]:
        """Let weights follow load for so long; the routes that become others by it."""
        changed: dict[Prefix, Route | None] = {}
        for adapted in self.adapted.values():
            changed.update(adapted.step(seconds, stale=stale))
        return changed

    def _adapt(self, settings: SolverSettings) -> None:
        """Begin to follow load, anew where the settings of it changed, or no longer."""
        if settings.mode is not WeightMode.AVAILABLE:
            self._anew |= bool(self.adapted)
            self.adapted = {}
            return
        for family, solver in self.solvers.items():
            known = self.adapted.get(family)
            wanted = (settings.adaptation, settings.flows)
            if known is None or (known.settings, known.flows) != wanted:
                self.adapted[family] = AdaptedRoutes(solver)
                self._anew = True

    def apply_settings(self, settings: SolverSettings) -> None:
        """Weigh by other settings from the next run on."""
        self.dirty = True
        for solver in self.solvers.values():
            solver.apply_settings(_unfloored(settings))
        self._adapt(settings)

    def tell_engine(self, now: float) -> bool:
        """Tell an engine in several areas what the routes became; whether that was news.

        It announces them (RFC 2328 §12.4.3, RFC 5302). The one place where data flows back, and
        it ends there: what an engine announces of itself is no input to its own routes.
        """
        if not self.engine.in_several_areas:
            return False
        changes: dict[Prefix, RouteFacts | None] = {}
        asbrs: dict[NodeId, RouteFacts] = {}
        for solver in self.solvers.values():
            routes, boundaries = solver.reached_now()
            for prefix, reached in routes.items():
                changes[prefix] = None if reached is None else _facts(reached)
            asbrs.update((node, _facts(reached)) for node, reached in boundaries.items())
        if not changes and asbrs == self._told_asbrs:
            return False
        self._told_asbrs = asbrs
        self.engine.handle(RoutesComputed(changes, asbrs), now)
        return True

    def confirmed(self) -> bool:
        """Whether the database shows every full adjacency from both ends.

        Right after a restart the neighbors' descriptions, and our own, may still be those of
        before: routes computed from them would lack those links.
        """
        for (family, area), links in self._local_links.items():
            solver = self.solvers[family]
            graph = solver.ted(area).graph() if area in solver.areas else None
            here = None if graph is None else graph.index(self.root)
            if graph is None or here is None:
                if links:
                    return False
                continue
            ends = {graph.index(link.neighbor) for link in links}
            if any(end is None or graph.way(here, end) is None for end in ends):
                return False
        return True


def _unfloored(settings: SolverSettings) -> SolverSettings:
    """Leave the floor to the adaptation, which has one of paths: a full link looks full."""
    following = settings.mode is WeightMode.AVAILABLE
    return replace(settings, floor=_TRICKLE) if following else settings


def _facts(reached: Reached) -> RouteFacts:
    return RouteFacts(reached.metric, reached.path_type, reached.areas, reached.capacity)
