"""The routing table of a router that runs several protocols: the best route of each prefix.

Connected routes come first, then the protocol with the lower preference (RFC 1812 §5.2.4; other
daemons call it administrative distance). Within a protocol the solver has selected already. What
was redistributed counts less (``RouteRank``), or borders that redistribute in both directions would
prefer the routes of each other to those of the protocol that they come from.

The table follows the routes of its sources and copies none: the routes of a single source are the
best ones, and a dictionary of a hundred thousand takes five megabytes.
"""

from __future__ import annotations

import enum
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from fared.core.tables import shrink

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fared.core.ids import Prefix
    from fared.paths.rib.model import Route, RouteDelta


class RouteRank(enum.IntEnum):
    """How a route counts beside those of other protocols: first by rank, then by preference."""

    LOCAL = 0
    """Connected here, or a route of the kernel that this router redistributes."""
    USUAL = 1
    REDISTRIBUTED = 2
    """Redistributed by a border, as its tag says: a route of another protocol, the long way."""
    OWN = 3
    """Redistributed by this router itself, from another protocol: it leads nowhere."""


class Source(Protocol):
    """A protocol with routes."""

    @property
    def routes(self) -> Mapping[Prefix, Route]:
        """Its present routes."""

    def rank(self, prefix: Prefix, route: Route) -> RouteRank:
        """How a route counts beside those of other protocols."""

    def preference(self, prefix: Prefix, usual: int) -> int:
        """The preference of the route to a prefix: the usual one of the protocol, or another."""


class RoutingTable:
    """Best routes over the tables of several sources, named by the protocol they come from."""

    def __init__(self) -> None:
        self._preferences: dict[str, int] = {}
        self._sources: dict[str, Source] = {}
        self._single: Source | None = None
        self._chosen: dict[Prefix, Route] = {}
        """The best routes, if there are several sources."""

    @property
    def routes(self) -> Mapping[Prefix, Route]:
        """The best route of each prefix, connected ones included."""
        return MappingProxyType(self._chosen) if self._single is None else self._single.routes

    def follow(self, name: str, source: Source) -> None:
        """Add a source, before the first ``take``."""
        self._sources[name] = source
        self._single = source if len(self._sources) == 1 else None

    def source(self, prefix: Prefix) -> str | None:
        """Return the protocol of the best route."""
        found = self.candidates(prefix)
        return self._best(prefix, found) if found else None

    def candidates(self, prefix: Prefix) -> dict[str, Route]:
        """Return the route of each protocol, by name."""
        known = {name: source.routes.get(prefix) for name, source in self._sources.items()}
        return {name: route for name, route in known.items() if route is not None}

    def prefer(self, preferences: Mapping[str, int]) -> RouteDelta:
        """Set the preference of each source; the lower one wins. Returns the changed routes."""
        if preferences == self._preferences:
            return {}
        self._preferences = dict(preferences)
        if self._single is not None:
            return {}
        known = [source.routes for source in self._sources.values()]
        return self._choose(dict.fromkeys(chain.from_iterable(known)))

    def take(self, changed: RouteDelta) -> RouteDelta:
        """Process the routes that a source has changed (None: withdrawn), these and no others.

        Returns the changed best routes.
        """
        if self._single is not None:
            return changed
        best = self._choose(changed)
        shrink(self._chosen)
        return best

    def reconsider(self, prefixes: Iterable[Prefix] | None = None) -> RouteDelta:
        """Choose again where ranks may have changed; all without ``prefixes``.

        Returns the changed best routes.
        """
        if self._single is not None:
            return {}
        known = self._chosen if prefixes is None else (p for p in prefixes if p in self._chosen)
        return self._choose(list(known))

    def _choose(self, prefixes: Iterable[Prefix]) -> RouteDelta:
        changed: RouteDelta = {}
        for prefix in prefixes:
            found = self.candidates(prefix)
            if not found:
                self._chosen.pop(prefix, None)
                changed[prefix] = None
                continue
            route = found[self._best(prefix, found)]
            # a source has another object only where its route changed
            if self._chosen.get(prefix) is not route:
                self._chosen[prefix] = changed[prefix] = route
        return changed

    def _best(self, prefix: Prefix, found: Mapping[str, Route]) -> str:
        if len(found) == 1:
            return next(iter(found))
        return min(
            found,
            key=lambda name: (
                self._sources[name].rank(prefix, found[name]),
                self._sources[name].preference(prefix, self._preferences[name]),
                name,
            ),
        )
