"""Redistribution between protocols: which routes of one are passed to the engine of another.

A route is passed on while it is the one that is used: the best of all protocols to its prefix, with
next hops, and the kernel has none of its own. ``Redistributor`` follows what changes: the best
routes, what their protocols advertise of them (metric, capacity, tags), the kernel's routes, and
the settings; it examines only the prefixes concerned. Engines choose by their settings
(``protocols.igp.redistribution``). One link may be part of the paths to thousands of prefixes: they
are examined, passed on and advertised in portions, between which the loop does other things.

No route returns to the protocol that it comes from. It is not passed back (its tag is refused
there), and a border prefers what that protocol itself has (``RouteRank``): with two borders, each
would otherwise redistribute the routes of the other, and withdraw its own for it.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from fared.core.routes import (
    KERNEL_SOURCES,
    ORIGIN_TAGS,
    LocalRoute,
    RouteKey,
    RouteSource,
)
from fared.protocols.igp.events import ExternalRoutes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fared.core.ids import Prefix
    from fared.paths.rib.model import RouteDelta
    from fared.paths.rib.table import RoutingTable
    from fared.router.instance import ProtocolInstance

_Passed = tuple[RouteSource, LocalRoute]
PORTION: Final = 1000
"""Prefixes that are examined at once: with what engines do of them, some 25 ms."""


class Redistributor:
    """Passes routes that are used to the engines that redistribute them."""

    def __init__(self, instances: Mapping[str, ProtocolInstance], table: RoutingTable) -> None:
        self._instances = instances
        self._table = table
        self._asks: dict[str, frozenset[RouteSource]] = dict.fromkeys(instances, frozenset())
        """By protocol, the others that it redistributes."""
        self._changed: dict[Prefix, None] = {}
        self._passed: dict[Prefix, _Passed] = {}
        self._kernel: dict[Prefix, set[RouteSource]] = {}
        for instance in instances.values():
            instance.of_kernel = self._kernel

    @property
    def active(self) -> bool:
        """Whether any protocol redistributes another one that runs here."""
        return any(self._asks.values())

    @property
    def count(self) -> int:
        """The routes that are passed to some engine."""
        return len(self._passed)

    def passed(self, prefix: Prefix) -> Iterable[tuple[str, RouteSource, LocalRoute]]:
        """Yield the protocols to which a route is passed, its source, and the route."""
        found = self._passed.get(prefix)
        if found is not None:
            for name, sources in self._asks.items():
                if found[0] in sources:
                    yield name, *found

    def configure(
        self, redistributed: Mapping[str, Mapping[RouteSource, int]], now: float
    ) -> RouteDelta:
        """Apply what each protocol redistributes, with the tags of its sources.

        Returns the best routes that are others, since other tags are recognized.
        """
        if len(self._instances) == 1:
            return {}
        remarked = False
        for name, instance in self._instances.items():
            marks = frozenset((*ORIGIN_TAGS.values(), *redistributed[name].values())) - {0}
            remarked |= marks != instance.marks
            instance.marks = marks
            others = self._instances.keys() - {name}
            asks = frozenset(source for source in redistributed[name] if source.value in others)
            self._ask(name, asks, now)
        wanted: set[str] = {source.value for sources in self._asks.values() for source in sources}
        for name, instance in self._instances.items():
            if instance.redistributed != (name in wanted):
                instance.redistribute(wanted=name in wanted)
                instance.advertise(now)
                self._changed.update(dict.fromkeys((*instance.routes, *self._passed)))
        return self._table.reconsider() if remarked else {}

    def _ask(self, name: str, asks: frozenset[RouteSource], now: float) -> None:
        """Let a protocol have the routes of these others."""
        before, self._asks[name] = self._asks[name], asks
        if asks != before:
            same = {prefix: (found, found) for prefix, found in self._passed.items()}
            self._pass(name, same, before, now)

    def kernel_changed(self, changes: Mapping[RouteKey, LocalRoute | None]) -> RouteDelta:
        """Process changed routes of the kernel; return the best routes that are others for them."""
        if len(self._instances) == 1:
            return {}
        for (source, prefix), route in changes.items():
            if source not in KERNEL_SOURCES:
                continue
            known = self._kernel.setdefault(prefix, set())
            if route is not None:
                known.add(source)
            else:
                known.discard(source)
            if not known:
                del self._kernel[prefix]
        prefixes = [prefix for _, prefix in changes]
        self.examine(prefixes)
        return self._table.reconsider(prefixes)

    def examine(self, prefixes: Iterable[Prefix]) -> None:
        """Examine prefixes at the next ``update``: what is known of their routes changed."""
        if self.active:
            self._changed.update(dict.fromkeys(prefixes))

    @property
    def waits(self) -> bool:
        """Whether prefixes are to be examined."""
        return bool(self._changed)

    def next_deadline(self, now: float) -> float | None:
        """Return when the next portion is due: at once, but in another turn."""
        return now if self._changed else None

    def update(self, now: float) -> list[ProtocolInstance]:
        """Pass on a portion of what changed; return the protocols whose engines were told."""
        changes: dict[Prefix, tuple[_Passed | None, _Passed | None]] = {}
        for prefix in [*islice(self._changed, PORTION)]:
            del self._changed[prefix]
            before, after = self._passed.pop(prefix, None), self._used(prefix)
            if after is not None:
                self._passed[prefix] = after
            if before != after:
                changes[prefix] = before, after
        told = [name for name, asks in self._asks.items() if self._pass(name, changes, asks, now)]
        return [self._instances[name] for name in told]

    def _used(self, prefix: Prefix) -> _Passed | None:
        """The route to pass on for a prefix, and its source; None: there is none."""
        name = self._table.source(prefix)
        if name is None or prefix in self._kernel:
            return None
        instance = self._instances[name]
        route, found = instance.routes.get(prefix), instance.advertised(prefix)
        if not instance.redistributed or found is None or route is None or not route.nexthops:
            return None
        known = LocalRoute(capacity=found.capacity, metric=found.metric, tags=found.tags)
        return RouteSource(name), known

    def _pass(
        self,
        name: str,
        changes: Mapping[Prefix, tuple[_Passed | None, _Passed | None]],
        had: frozenset[RouteSource],
        now: float,
    ) -> bool:
        """Pass changes to the engine of a protocol, as far as it ``had`` them or asks for them."""
        routes: dict[RouteKey, LocalRoute | None] = {}
        for prefix, (before, after) in changes.items():
            if before is not None and before[0] in had:
                routes[before[0], prefix] = None
            if after is not None and after[0] in self._asks[name]:
                routes[after[0], prefix] = after[1]
        if routes:
            self._instances[name].engine.handle(ExternalRoutes(routes), now)
        return bool(routes)
