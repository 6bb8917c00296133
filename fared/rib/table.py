"""The routing table of a router that runs several protocols: the best route of each prefix.

Connected routes come first, then the protocol with the lower preference (RFC 1812 §5.2.4; other
daemons call it administrative distance). Within a protocol the solver has selected already.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fared.core.ids import Prefix
    from fared.rib.model import Route, RouteDelta


class RoutingTable:
    """Best routes over the tables of several sources, named by the protocol they come from."""

    def __init__(self) -> None:
        self._preferences: dict[str, int] = {}
        self._candidates: dict[Prefix, dict[str, Route]] = {}
        self._routes: dict[Prefix, Route] = {}
        self._sources: dict[Prefix, str] = {}

    @property
    def routes(self) -> Mapping[Prefix, Route]:
        """The best route of each prefix, connected ones included."""
        return MappingProxyType(self._routes)

    def source(self, prefix: Prefix) -> str | None:
        """Return the protocol of the best route."""
        return self._sources.get(prefix)

    def candidates(self, prefix: Prefix) -> Mapping[str, Route]:
        """Return the route of each protocol, by name."""
        return MappingProxyType(self._candidates.get(prefix, {}))

    def prefer(self, preferences: Mapping[str, int]) -> RouteDelta:
        """Set the preference of each source; the lower one wins. Returns the changed routes."""
        if preferences == self._preferences:
            return {}
        self._preferences = dict(preferences)
        return self._choose(self._candidates)

    def take(self, source: str, changed: RouteDelta) -> RouteDelta:
        """Process changed routes of a source (None: withdrawn); return the changed best routes."""
        for prefix, route in changed.items():
            if route is not None:
                self._candidates.setdefault(prefix, {})[source] = route
            else:
                known = self._candidates.get(prefix)
                if known is not None:
                    known.pop(source, None)
                    if not known:
                        del self._candidates[prefix]
        return self._choose(changed)

    def _choose(self, prefixes: Mapping[Prefix, object]) -> RouteDelta:
        changed: RouteDelta = {}
        for prefix in list(prefixes):
            source = self._best(prefix)
            if source is None:
                if self._routes.pop(prefix, None) is not None:
                    changed[prefix] = None
                self._sources.pop(prefix, None)
                continue
            route = self._candidates[prefix][source]
            self._sources[prefix] = source
            # a source passes on another object only where its route changed
            if self._routes.get(prefix) is not route:
                self._routes[prefix] = changed[prefix] = route
        return changed

    def _best(self, prefix: Prefix) -> str | None:
        known = self._candidates.get(prefix)
        if not known:
            return None
        if len(known) == 1:
            return next(iter(known))
        return min(
            known,
            key=lambda name: (known[name].nexthops is not None, self._preferences[name], name),
        )
