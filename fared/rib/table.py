"""The routing table of a router that runs several protocols: the best route of each prefix.

Connected routes come first, then the protocol with the lower preference (RFC 1812 §5.2.4; other
daemons call it administrative distance). Within a protocol the solver has selected already.
"""

from __future__ import annotations

from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING

from fared.core.tables import shrink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fared.core.ids import Prefix
    from fared.rib.model import Route, RouteDelta


class RoutingTable:
    """Best routes over the tables of several sources, named by the protocol they come from."""

    def __init__(self) -> None:
        self._preferences: dict[str, int] = {}
        self._candidates: dict[str, dict[Prefix, Route]] = {}
        self._routes: dict[Prefix, Route] = {}

    @property
    def routes(self) -> Mapping[Prefix, Route]:
        """The best route of each prefix, connected ones included."""
        return MappingProxyType(self._routes)

    def source(self, prefix: Prefix) -> str | None:
        """Return the protocol of the best route."""
        found = self.candidates(prefix)
        return self._best(found) if found else None

    def candidates(self, prefix: Prefix) -> dict[str, Route]:
        """Return the route of each protocol, by name."""
        return {name: known[prefix] for name, known in self._candidates.items() if prefix in known}

    def prefer(self, preferences: Mapping[str, int]) -> RouteDelta:
        """Set the preference of each source; the lower one wins. Returns the changed routes."""
        if preferences == self._preferences:
            return {}
        self._preferences = dict(preferences)
        return self._choose(dict.fromkeys(chain.from_iterable(self._candidates.values())))

    def routes_of(self, source: str) -> Mapping[Prefix, Route]:
        """The present routes of a source: what it passed on to ``take``."""
        if source not in self._candidates:
            self._add(source)
        return self._candidates[source]

    def take(self, source: str, changed: RouteDelta) -> RouteDelta:
        """Process changed routes of a source (None: withdrawn); return the changed best routes."""
        self.routes_of(source)
        known = self._candidates[source]
        if known is self._routes:
            best = self._take_all(changed)
            shrink(known)
            return best
        for prefix, route in changed.items():
            if route is not None:
                known[prefix] = route
            else:
                known.pop(prefix, None)
        best = self._choose(changed)
        shrink(known)
        shrink(self._routes)
        return best

    def _add(self, source: str) -> None:
        """Add a source. The routes of a single one are the best ones: one dictionary for both."""
        if len(self._candidates) == 1:
            self._routes = dict(self._routes)
        self._candidates[source] = {} if self._candidates else self._routes

    def _take_all(self, changed: RouteDelta) -> RouteDelta:
        """Process changed routes of the only source."""
        best: RouteDelta = {}
        for prefix, route in changed.items():
            before = self._routes.get(prefix)
            if route is not None and before is not route:
                self._routes[prefix] = best[prefix] = route
            elif route is None and before is not None:
                del self._routes[prefix]
                best[prefix] = None
        return best

    def _choose(self, prefixes: Mapping[Prefix, object]) -> RouteDelta:
        changed: RouteDelta = {}
        for prefix in prefixes:
            found = self.candidates(prefix)
            if not found:
                if self._routes.pop(prefix, None) is not None:
                    changed[prefix] = None
                continue
            route = found[self._best(found)]
            # a source passes on another object only where its route changed
            if self._routes.get(prefix) is not route:
                self._routes[prefix] = changed[prefix] = route
        return changed

    def _best(self, found: Mapping[str, Route]) -> str:
        if len(found) == 1:
            return next(iter(found))
        return min(
            found,
            key=lambda name: (found[name].nexthops is not None, self._preferences[name], name),
        )
