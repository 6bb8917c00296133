"""Redistribution: the routes of other sources that a protocol takes in, and those it advertises.

OSPF and IS-IS choose among these routes by the same rules, which are here. Each originates its own
form of the chosen route: an AS-external-LSA (RFC 2328 §12.4.4), or an entry of an LSP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from fared.core.filters import Filter, Withheld, denying
from fared.core.ids import Prefix
from fared.core.routes import LocalRoute, RouteKey, RouteSource, redistributable
from fared.protocols.igp.events import ExternalRoutes


class SourceSettings(Protocol):
    """How the routes of one source are advertised; each protocol adds fields of its own."""

    @property
    def filters(self) -> tuple[Filter, ...]:
        """Advertise only routes that all of these permit."""


SettingsT = TypeVar("SettingsT", bound=SourceSettings)


class RedistributedSources(msgspec.Struct, Generic[SettingsT], frozen=True):
    """The sources that are redistributed. ``default`` is for static default routes.

    ``default_always``: advertise a default route of each family even without a static one.
    """

    connected: SettingsT | None = None
    static: SettingsT | None = None
    default: SettingsT | None = None
    default_always: bool = False

    def __bool__(self) -> bool:
        """Whether any source is redistributed, which in OSPF makes this router an ASBR."""
        return bool(self.connected or self.static or self.default)

    def of(self, source: RouteSource) -> SettingsT | None:
        """Return how to advertise the routes of one source; None: they are not advertised."""
        return self.connected if source is RouteSource.CONNECTED else self.static


class LocalInterfaces(msgspec.Struct, frozen=True):
    """The interfaces that the protocol runs on, and their prefixes that it advertises."""

    ifindexes: frozenset[int] = frozenset()
    prefixes: frozenset[Prefix] = frozenset()


LocalInterfacesT = TypeVar("LocalInterfacesT", bound=LocalInterfaces)


class ExternalRouteTable(Generic[SettingsT, LocalInterfacesT]):
    """Routes of other sources, and the prefixes to examine again.

    ``defaults`` are the default routes of the families that the protocol carries; routes of
    other families are ignored. ``local_interfaces`` are those of a router without interfaces.
    """

    def __init__(self, defaults: tuple[Prefix, ...], local_interfaces: LocalInterfacesT) -> None:
        self._defaults = defaults
        self._families = frozenset(prefix.family for prefix in defaults)
        self._routes: dict[RouteKey, LocalRoute] = {}
        self._changed: dict[Prefix, None] = dict.fromkeys(defaults)
        self.local_interfaces = local_interfaces
        self.stale = False
        """Whether interfaces changed since the last ``take_changed``."""

    def update(self, event: ExternalRoutes) -> None:
        """Process changes of routes that may be redistributed."""
        for key, route in event.changes.items():
            if key[1].family not in self._families:
                continue
            if route is None:
                self._routes.pop(key, None)
            else:
                self._routes[key] = route
            self._changed[key[1]] = None

    def examine(self, prefixes: Iterable[Prefix]) -> None:
        """Examine these prefixes at the next ``take_changed``."""
        self._changed.update(dict.fromkeys(prefixes))

    def examine_all(self, advertised: Iterable[Prefix]) -> None:
        """Examine all routes again, and all prefixes ``advertised``, whose route may be gone."""
        self.examine(prefix for _, prefix in self._routes)
        self.examine(advertised)
        self.examine(self._defaults)

    def forget_changed(self) -> None:
        """Examine no prefix before ``examine_all``: nothing is redistributed."""
        self._changed.clear()

    def take_changed(
        self, local_interfaces: Callable[[], LocalInterfacesT], advertised: Iterable[Prefix]
    ) -> list[Prefix]:
        """Return the prefixes to examine, in order: all of them if ``local_interfaces`` changed."""
        if self.stale:
            self.stale = False
            found = local_interfaces()
            if found != self.local_interfaces:
                self.local_interfaces = found
                self.examine_all(advertised)
        changed, self._changed = self._changed, {}
        return sorted(changed)

    def choose(
        self, prefix: Prefix, wanted: RedistributedSources[SettingsT]
    ) -> tuple[SettingsT, LocalRoute] | None:
        """Return settings and route by which to advertise a prefix; None: do not advertise it.

        A prefix that the protocol advertises of its own interfaces is not advertised twice.
        """
        if prefix in self.local_interfaces.prefixes:
            return None
        if prefix in self._defaults:
            route = self._routes.get((RouteSource.STATIC, prefix))
            if route is None and wanted.default_always:
                route = LocalRoute()
            return None if wanted.default is None or route is None else (wanted.default, route)
        for source, settings, route in self._redistributed(prefix, wanted):
            if denying(settings.filters, prefix) is not None:
                continue
            if source is RouteSource.CONNECTED and any(
                ifindex in self.local_interfaces.ifindexes for ifindex, _ in route.hops
            ):
                return None  # the settings of the interface decide whether it is advertised
            return settings, route
        return None

    def withheld(
        self, prefix: Prefix, wanted: RedistributedSources[SettingsT]
    ) -> Iterator[Withheld]:
        """Yield the filters that keep a prefix of redistributed sources out."""
        for source, settings, _ in self._redistributed(prefix, wanted):
            denied = denying(settings.filters, prefix)
            if denied is not None:
                yield Withheld(f"redistribution of {source} routes", denied.told(prefix))

    def _redistributed(
        self, prefix: Prefix, wanted: RedistributedSources[SettingsT]
    ) -> Iterator[tuple[RouteSource, SettingsT, LocalRoute]]:
        """Yield the routes to a prefix of redistributed sources, before filters."""
        if not redistributable(prefix) or prefix in self._defaults:
            return
        for source in RouteSource:
            settings, route = wanted.of(source), self._routes.get((source, prefix))
            if settings is not None and route is not None:
                yield source, settings, route
