"""Route leaking (RFC 5302): a level-1-2 router advertises prefixes of one level in the other.

Changed routes arrive with ``RoutesComputed``, prefix by prefix, and only their prefixes are
considered again. A path capacity that moved by less than the announce threshold stays as it was
advertised (``te.advertise``).

A filter of the direction may deny a prefix, by itself or by the first of its tags (RFC 5130).

The up/down bit prevents loops (RFC 5302 §2, RFC 5305 §4.1): routes of level 2 are leaked into level
1 with the bit set, and routes with the bit (PathType.LEVEL_1_DOWN) are not leaked into level 2.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from fared.core.filters import Filter, Withheld
from fared.core.ids import Prefix
from fared.paths.te.advertise import PathCapacities
from fared.paths.ted.events import AdvertisedRoute, RoutesComputed
from fared.paths.ted.model import PathType
from fared.protocols.isis.ids import Level, LevelSet
from fared.protocols.isis.instance import Instance
from fared.protocols.isis.origination.originate import Originator
from fared.protocols.isis.pdu.tlvs import FLAG_READVERTISED, IpReach
from fared.protocols.isis.settings import MAX_PATH_METRIC
from fared.protocols.isis.ted.attributes import PrefixAttributes
from fared.protocols.isis.ted.fragment_prefixes import kept_attributes

_OTHER = {Level.ONE: Level.TWO, Level.TWO: Level.ONE}
LEAKED_KINDS = {
    Level.TWO: (PathType.LEVEL_1, PathType.LEVEL_1_REDISTRIBUTED),
    Level.ONE: (PathType.LEVEL_2, PathType.LEVEL_2_REDISTRIBUTED),
}
"""The kinds of routes that are leaked into a level."""


class RouteLeaking:
    """Decides which prefixes are leaked into each level."""

    def __init__(
        self, instance: Instance, originator: Originator, attributes: PrefixAttributes
    ) -> None:
        self._instance = instance
        self._originator = originator
        self._attributes = attributes
        self._routes: dict[Prefix, AdvertisedRoute] = {}
        self._leaked: dict[Level, dict[Prefix, IpReach]] = {
            level: {} for level in instance.databases
        }
        self._capacities = {level: PathCapacities() for level in instance.databases}

    def routes_computed(self, event: RoutesComputed) -> None:
        """Process the changes of the routing table."""
        for prefix, facts in event.changes.items():
            if facts is None:
                self._routes.pop(prefix, None)
            else:
                self._routes[prefix] = facts
        for prefix in event.changes:
            self._leak_prefix(prefix)

    def settle(self) -> None:
        """Update leaked prefixes whose attributes changed while their routes did not."""
        for level, prefix in self._attributes.take_changed():
            target = _OTHER[level]
            # a prefix that is not leaked may be permitted by its new tag
            if prefix in self._leaked.get(target, {}) or self._filter(target) is not None:
                self._update(target, prefix)

    def everything_changed(self) -> None:
        """Settings changed: reconsider all routes."""
        for prefix in self._routes:
            self._leak_prefix(prefix)

    def _leak_prefix(self, prefix: Prefix) -> None:
        for level in self._leaked:
            self._update(level, prefix)

    def _update(self, level: Level, prefix: Prefix) -> None:
        """Leak a prefix into a level as it is wanted now, or no longer."""
        leaked = self._leaked[level]
        old, reach = leaked.get(prefix), self._wanted(level, prefix)
        if old is not None and reach is not None:
            capacity = self._capacities[level].advertise(
                prefix, old.capacity, reach.capacity, self._instance.settings.advertise
            )
            reach = replace(reach, capacity=capacity)
        if reach == old:
            return
        if reach is None:
            leaked.pop(prefix, None)
            self._capacities[level].withdraw(prefix)
        else:
            leaked[prefix] = reach
        self._originator.leak(level, prefix, reach)

    def withheld(self, prefix: Prefix) -> Iterator[Withheld]:
        """Yield the filters that keep a prefix out of levels that it would be leaked into."""
        for level in self._leaked:
            found = self._filter(level)
            if found is not None and self._may_leak(level, prefix):
                tag = _tag(self._attributes.of(_OTHER[level], prefix))
                if not found.permits(prefix, tag):
                    yield Withheld(f"leaking into {level.label}", found.told(prefix, tag))

    def _filter(self, level: Level) -> Filter | None:
        """The filter of what is leaked into a level."""
        settings = self._instance.settings
        return settings.filter_up if level is Level.TWO else settings.filter_down

    def _may_leak(self, level: Level, prefix: Prefix) -> AdvertisedRoute | None:
        """The route of a prefix that may be leaked into a level, before filters; None: none."""
        settings, facts = self._instance.settings, self._routes.get(prefix)
        leaks = settings.level1_to_level2 if level is Level.TWO else settings.level2_to_level1
        # RFC 5302 §3.3: a level-1-2 router leaks; into level 1 only if configured
        if facts is None or not leaks or settings.levels is not LevelSet.BOTH:
            return None
        # RFC 5302 §3.3: only routes that this router uses itself. RFC 5305 §4.1: none with the
        # up/down bit into level 2; §4: none with a metric above MAX_PATH_METRIC.
        if facts.path_type not in LEAKED_KINDS[level] or facts.metric > MAX_PATH_METRIC:
            return None
        return facts if prefix.family in settings.families else None

    def _wanted(self, level: Level, prefix: Prefix) -> IpReach | None:
        """The entry to leak into a level for a prefix of the other one; None: none."""
        settings, facts = self._instance.settings, self._may_leak(level, prefix)
        if facts is None:
            return None
        known = self._attributes.of(_OTHER[level], prefix)
        if (found := self._filter(level)) is not None and not found.permits(prefix, _tag(known)):
            return None
        # RFC 5130: tags stay with the prefix; RFC 7794 §2: so do flags and source router ids
        kept = IpReach(prefix, 0) if known is None else kept_attributes(known)
        return replace(
            kept,
            metric=self._originator.behind(facts.metric),
            # RFC 5305 §4.1
            down=level is Level.ONE,
            # RFC 7794 §2.1: the R flag marks a prefix leaked in either direction
            flags=(kept.flags or 0) | FLAG_READVERTISED,
            capacity=None if settings.path_capacity_code is None else facts.capacity,
        )


def _tag(known: IpReach | None) -> int:
    """The administrative tag of a prefix, the first of several (RFC 5130 §3.1); 0: none."""
    return known.tags[0] if known is not None and known.tags else 0
