"""Leaking between levels (RFC 5302): what a level-1-2 router announces from one in the other.

Routes come in with ``RoutesComputed``, prefix by prefix; only what changed is looked at again. A
path capacity that moved by less than the announce threshold stays as it was announced.

Nothing loops: into level 1 goes what is routed in level 2, marked with the down bit, and what is
so marked (PathType.LEVEL_1_DOWN) goes nowhere; into level 2 goes what is routed in level 1.
"""

from __future__ import annotations

from dataclasses import replace

from fared.core.ids import Prefix
from fared.isis.contents import FLAG_READVERTISED
from fared.isis.described import kept_attributes
from fared.isis.events import RouteFacts, RoutesComputed
from fared.isis.ids import Level, LevelSet
from fared.isis.instance import Instance
from fared.isis.originate import Originator
from fared.isis.pdu.model import IpReach
from fared.isis.settings import MAX_PATH_METRIC
from fared.isis.ted import TedBuilder
from fared.ted.model import PathType

_OTHER = {Level.ONE: Level.TWO, Level.TWO: Level.ONE}
_SOURCES = {
    Level.TWO: (PathType.LEVEL_1, PathType.LEVEL_1_REDISTRIBUTED),
    Level.ONE: (PathType.LEVEL_2, PathType.LEVEL_2_REDISTRIBUTED),
}
"""What is leaked into a level."""


class Leaking:
    """Decides what each level is told of the other."""

    def __init__(self, instance: Instance, originator: Originator, ted: TedBuilder) -> None:
        self._instance = instance
        self._originator = originator
        self._ted = ted
        self._routes: dict[Prefix, RouteFacts] = {}
        self._told: dict[Level, dict[Prefix, IpReach]] = {level: {} for level in instance.databases}

    def routes_computed(self, event: RoutesComputed) -> None:
        """Take the routing table's changes."""
        for prefix, facts in event.changes.items():
            if facts is None:
                self._routes.pop(prefix, None)
            else:
                self._routes[prefix] = facts
        for prefix in event.changes:
            self._tell(prefix)

    def settle(self) -> None:
        """Follow attributes of leaked prefixes that changed though their routes did not."""
        for level, prefix in self._ted.take_noted():
            target = _OTHER[level]
            if prefix in self._told.get(target, {}):
                self._put(target, prefix)

    def everything_changed(self) -> None:
        """Settings changed: look at all routes again."""
        for prefix in self._routes:
            self._tell(prefix)

    def _tell(self, prefix: Prefix) -> None:
        for level in self._told:
            self._put(level, prefix)

    def _put(self, level: Level, prefix: Prefix) -> None:
        told = self._told[level]
        old, reach = told.get(prefix), self._wanted(level, prefix)
        if old is not None and reach is not None:
            reach = replace(reach, capacity=self._damped(old.capacity, reach.capacity))
        if reach == old:
            return
        if reach is None:
            told.pop(prefix, None)
        else:
            told[prefix] = reach
        self._originator.leak(level, prefix, reach)

    def _wanted(self, level: Level, prefix: Prefix) -> IpReach | None:
        """What a level is to be told of a prefix of the other one."""
        settings, facts = self._instance.settings, self._routes.get(prefix)
        leaks = settings.level1_to_level2 if level is Level.TWO else settings.level2_to_level1
        if facts is None or not leaks or settings.levels is not LevelSet.BOTH:
            return None
        if facts.path_type not in _SOURCES[level] or facts.metric > MAX_PATH_METRIC:
            return None
        if prefix.family not in settings.families:
            return None
        known = self._ted.noted(_OTHER[level], prefix)
        kept = IpReach(prefix, 0) if known is None else kept_attributes(known)
        return replace(
            kept,
            metric=facts.metric,
            down=level is Level.ONE,
            flags=(kept.flags or 0) | FLAG_READVERTISED,  # RFC 7794 §2.1
            capacity=None if settings.path_capacity_code is None else facts.capacity,
        )

    def _damped(self, announced: float | None, current: float | None) -> float | None:
        """Stay with what was announced unless the change exceeds the threshold."""
        if announced is None or current is None:
            return current
        threshold = self._instance.settings.announce.threshold
        return announced if abs(current - announced) <= threshold * announced else current
