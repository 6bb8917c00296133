"""Redistribution: the routes of other sources that a protocol takes in, and those it advertises.

OSPF and IS-IS choose among these routes by the same rules, which are here. Each originates its own
form of the chosen route: an AS-external-LSA (RFC 2328 §12.4.4), or an entry of an LSP. Which route
of another protocol is used, and so may be redistributed, decides ``router.redistribution``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from fared.core.filters import Filter, Withheld, refusal
from fared.core.ids import Prefix
from fared.core.routes import (
    ORIGIN_TAGS,
    LocalRoute,
    RouteKey,
    RouteSource,
    redistributable,
)
from fared.protocols.igp.events import ExternalRoutes


class SourceSettings(Protocol):
    """How the routes of one source are advertised; each protocol adds fields of its own."""

    @property
    def tag(self) -> int | None:
        """The tag to advertise, 0 for none; None: that of the protocol that a route comes from."""

    @property
    def filters(self) -> tuple[Filter, ...]:
        """Advertise only routes that all of these permit."""

    @property
    def refused(self) -> tuple[int, ...]:
        """The tags of routes that come from this very protocol, and are not taken back."""


SettingsT = TypeVar("SettingsT", bound=SourceSettings)
_MARKS = frozenset(ORIGIN_TAGS.values())


def tag_of(source: RouteSource, route: LocalRoute, settings: SourceSettings) -> int:
    """Return the tag with which to advertise a route; 0: none.

    A route that was redistributed before keeps the tag of its first protocol: over any chain of
    borders, that one recognizes it.
    """
    if settings.tag is not None:
        return settings.tag
    return next((tag for tag in route.tags if tag in _MARKS), ORIGIN_TAGS.get(source, 0))


class RedistributedSources(msgspec.Struct, Generic[SettingsT], frozen=True):
    """The sources that are redistributed. ``default``: static default routes, without a filter.

    ``default_always``: advertise a default route of each family even without a static one.
    """

    connected: SettingsT | None = None
    static: SettingsT | None = None
    bgp: SettingsT | None = None
    ospf: SettingsT | None = None
    isis: SettingsT | None = None
    default: SettingsT | None = None
    default_always: bool = False

    def __bool__(self) -> bool:
        """Whether any source is redistributed, which in OSPF makes this router an ASBR."""
        of_protocols = self.bgp or self.ospf or self.isis
        return bool(self.connected or self.static or of_protocols or self.default)

    def of(self, source: RouteSource) -> SettingsT | None:
        """Return how to advertise the routes of one source; None: they are not advertised."""
        found: SettingsT | None = getattr(self, source.value)
        return found

    @property
    def tags(self) -> dict[RouteSource, int]:
        """The tags by which routes of other protocols are recognized, by protocol; 0: by none."""
        return {
            source: ORIGIN_TAGS[source] if settings.tag is None else settings.tag
            for source in ORIGIN_TAGS
            if (settings := self.of(source)) is not None
        }


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
    ) -> tuple[RouteSource, SettingsT, LocalRoute] | None:
        """Return source, settings and route by which to advertise a prefix; None: do not.

        A prefix that the protocol advertises of its own interfaces is not advertised twice.
        """
        if prefix in self.local_interfaces.prefixes:
            return None
        if prefix in self._defaults and wanted.default is not None:
            route = self._routes.get((RouteSource.STATIC, prefix))
            if route is None and wanted.default_always:
                route = LocalRoute()
            if route is not None:
                return RouteSource.STATIC, wanted.default, route
        for source, settings, route in self._redistributed(prefix, wanted):
            if refusal(settings.filters, prefix, route.tag) is not None:
                continue
            if source is RouteSource.CONNECTED and any(
                ifindex in self.local_interfaces.ifindexes for ifindex, _ in route.hops
            ):
                return None  # the settings of the interface decide whether it is advertised
            return source, settings, route
        return None

    def withheld(
        self, prefix: Prefix, wanted: RedistributedSources[SettingsT]
    ) -> Iterator[Withheld]:
        """Yield the filters and tags that keep a prefix of redistributed sources out."""
        for source, settings, route in self._redistributed(prefix, wanted):
            reason = refusal(settings.filters, prefix, route.tag)
            if reason is not None:
                yield Withheld(f"redistribution of {source} routes", reason)
        for source, settings, route in self._routes_to(prefix, wanted):
            for tag in _returning(settings, route):
                reason = f"tag {tag} says that it comes from here, and it is not taken back"
                yield Withheld(f"redistribution of {source} routes", reason)

    def _redistributed(
        self, prefix: Prefix, wanted: RedistributedSources[SettingsT]
    ) -> Iterator[tuple[RouteSource, SettingsT, LocalRoute]]:
        """Yield the routes to a prefix that may be redistributed, before filters."""
        for source, settings, route in self._routes_to(prefix, wanted):
            if not _returning(settings, route):
                yield source, settings, route

    def _routes_to(
        self, prefix: Prefix, wanted: RedistributedSources[SettingsT]
    ) -> Iterator[tuple[RouteSource, SettingsT, LocalRoute]]:
        if not redistributable(prefix):
            return
        for source in RouteSource:
            settings, route = wanted.of(source), self._routes.get((source, prefix))
            if settings is not None and route is not None:
                yield source, settings, route


def _returning(settings: SourceSettings, route: LocalRoute) -> tuple[int, ...]:
    """Return the tags of a route that say that it comes from the protocol that would take it."""
    return tuple(tag for tag in route.tags if tag in settings.refused)
