"""Redistribution: which routes of other origin this router announces in its LSPs, and where.

Routes come in with ``ExternalRoutes``; settings say which kinds are announced, in which levels and
how. With wide metrics an external prefix is a prefix like any other, of the same preference, only
marked: by the X bit of IPv6 entries (RFC 5308 §2) and the X flag of either family (RFC 7794 §2.1).
What a circuit announces anyway is not announced a second time.
"""

from __future__ import annotations

from dataclasses import dataclass

from fared.core.ids import FAMILY_IPV6, Prefix
from fared.core.routes import LocalRoute, RouteKey, RouteSource, announceable
from fared.isis.contents import FLAG_EXTERNAL, connected
from fared.isis.events import ExternalRoutes
from fared.isis.instance import Instance
from fared.isis.originate import Originator
from fared.isis.pdu.model import IpReach
from fared.isis.settings import Redistribution

_DEFAULTS = (Prefix(4, 0, 0), Prefix(6, 0, 0))


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What circuits decide: on which interfaces IS-IS runs, and what they announce."""

    ifindexes: frozenset[int]
    prefixes: frozenset[Prefix]


class External:
    """Decides what of other routes this router announces."""

    def __init__(self, instance: Instance, originator: Originator) -> None:
        self._instance = instance
        self._originator = originator
        self._routes: dict[RouteKey, LocalRoute] = {}
        self._told: dict[Prefix, tuple[Redistribution, IpReach]] = {}
        self._surroundings = _Surroundings(frozenset(), frozenset())
        self._dirty: dict[Prefix, None] = dict.fromkeys(_DEFAULTS)
        self.stale = False
        """Whether circuits changed since the last ``settle``."""

    @property
    def known(self) -> ExternalRoutes:
        """All routes that came in."""
        return ExternalRoutes(dict(self._routes))

    def routes_changed(self, event: ExternalRoutes) -> None:
        """Take the changes of routes that may be redistributed."""
        for key, route in event.changes.items():
            if route is None:
                self._routes.pop(key, None)
            else:
                self._routes[key] = route
            self._dirty[key[1]] = None

    def everything_changed(self) -> None:
        """Look at all routes again."""
        self.stale = True
        self._dirty.update((prefix, None) for _, prefix in self._routes)
        self._dirty.update(dict.fromkeys((*self._told, *_DEFAULTS)))

    def settle(self) -> None:
        """Announce, change or take back what reads differently now."""
        if self.stale:
            self.stale = False
            found = self._look_around()
            if found != self._surroundings:
                self._surroundings = found
                self.everything_changed()
                self.stale = False
        dirty, self._dirty = self._dirty, {}
        for prefix in sorted(dirty):
            self._put(prefix)

    def _look_around(self) -> _Surroundings:
        circuits, families = self._instance.circuits, self._instance.settings.families
        return _Surroundings(
            frozenset(circuits),
            frozenset(
                prefix
                for circuit in circuits.values()
                for family in families
                for prefix in connected(circuit, family)
            ),
        )

    def _put(self, prefix: Prefix) -> None:
        wanted, old = self._wanted(prefix), self._told.pop(prefix, None)
        if wanted is not None:
            self._told[prefix] = wanted
        if wanted == old:
            return
        for level in self._instance.databases:
            there = wanted is not None and wanted[0].levels & level
            self._originator.redistribute(level, prefix, wanted[1] if wanted and there else None)

    def _wanted(self, prefix: Prefix) -> tuple[Redistribution, IpReach] | None:
        """The entry for a prefix and how it is announced; None if it is not."""
        if prefix.family not in self._instance.settings.families:
            return None
        settings = self._choose(prefix)
        if settings is None or prefix in self._surroundings.prefixes:
            return None
        return settings, IpReach(
            prefix,
            settings.metric,
            external=prefix.family == FAMILY_IPV6,  # RFC 5308 §2; TLV 135 has no such bit
            tags=(settings.tag,) if settings.tag else (),
            flags=FLAG_EXTERNAL,
        )

    def _choose(self, prefix: Prefix) -> Redistribution | None:
        """The settings of the source that a prefix is announced from."""
        wanted = self._instance.settings.redistribute
        if prefix in _DEFAULTS:
            there = wanted.default_always or (RouteSource.STATIC, prefix) in self._routes
            return wanted.default if there else None
        for source in RouteSource:
            settings, route = wanted.of(source), self._routes.get((source, prefix))
            if settings is None or route is None or not announceable(prefix, settings.prefixes):
                continue
            if source is RouteSource.CONNECTED and any(
                ifindex in self._surroundings.ifindexes for ifindex, _ in route.hops
            ):
                return None  # announced, or kept back, as IS-IS on the interface says
            return settings
        return None
