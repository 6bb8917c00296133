"""Routes of other sources that BGP announces to neighbors with the export word ``igp``.

They have ORIGIN INCOMPLETE, and the capacity of all paths in their protocol. They are used where no
neighbor has told a path: to such a prefix the other protocol has a route. A large community says
which protocol a route comes from (``rib.origins``): over any chain of borders, that one recognizes
it, as by a tag.
"""

from __future__ import annotations

from collections.abc import Iterator

from fared.core.filters import Withheld, refusal
from fared.core.ids import Prefix
from fared.core.routes import ORIGIN_TAGS, LocalRoute, RouteKey, RouteSource, redistributable
from fared.protocols.bgp.instance import BgpInstance
from fared.protocols.bgp.networks import Changes, Networks, carrying, originate
from fared.protocols.bgp.packet.attributes import (
    AsPath,
    Med,
    Origin,
    OriginType,
    PathAttributes,
    attributes_of,
)
from fared.protocols.bgp.rib.origins import with_origin
from fared.protocols.bgp.rib.paths import REDISTRIBUTED
from fared.protocols.bgp.settings import BgpRedistribution
from fared.protocols.igp.events import ExternalRoutes

_MARKS = frozenset(ORIGIN_TAGS.values())


class RedistributedRoutes:
    """Chooses among the routes of other sources."""

    def __init__(self, instance: BgpInstance, networks: Networks) -> None:
        self._instance, self._networks = instance, networks
        self._routes: dict[RouteKey, LocalRoute] = {}
        self._known: dict[Prefix, PathAttributes] = {}
        self._changed: dict[Prefix, None] = {}

    def update(self, event: ExternalRoutes) -> None:
        """Process changes of routes."""
        for key, route in event.changes.items():
            if route is None:
                self._routes.pop(key, None)
            else:
                self._routes[key] = route
            self._changed[key[1]] = None

    def examine_all(self) -> None:
        """Settings, or own networks, are others."""
        self._changed.update(dict.fromkeys([prefix for _, prefix in self._routes]))
        self._changed.update(dict.fromkeys(self._known))

    def settle(self) -> None:
        """Announce what is to be, and withdraw the rest."""
        changed, self._changed = self._changed, {}
        changes: Changes = {}
        for prefix in changed:
            wanted = self._attributes(prefix)
            if wanted == self._known.get(prefix):
                continue
            changes[prefix] = wanted
            if wanted is None:
                del self._known[prefix]
            else:
                self._known[prefix] = wanted
        if changes:
            originate(self._instance, REDISTRIBUTED, changes)

    def withheld(self, prefix: Prefix) -> Iterator[Withheld]:
        """Yield the filters and tags that keep a prefix out."""
        for source, rule, route in self._candidates(prefix):
            why = _refusal(prefix, rule, route)
            if why is not None:
                yield Withheld(f"redistribution of {source} routes", why)

    def _candidates(
        self, prefix: Prefix
    ) -> Iterator[tuple[RouteSource, BgpRedistribution, LocalRoute]]:
        rules = self._instance.settings.redistribute
        for source in RouteSource if rules else ():
            rule, route = rules.get(source.value), self._routes.get((source, prefix))
            if rule is not None and route is not None:
                yield source, rule, route

    def _attributes(self, prefix: Prefix) -> PathAttributes | None:
        if prefix in self._networks.own or not redistributable(prefix):
            return None
        for source, rule, route in self._candidates(prefix):
            if _refusal(prefix, rule, route) is None:
                med = [] if rule.med is None else [Med(rule.med)]
                made = attributes_of([Origin(OriginType.INCOMPLETE), AsPath(()), *med])
                mark = next((tag for tag in route.tags if tag in _MARKS), ORIGIN_TAGS.get(source))
                if mark is not None:
                    made = with_origin(made, mark)
                return carrying(self._instance, made, route.capacity)
        return None


def _refusal(prefix: Prefix, rule: BgpRedistribution, route: LocalRoute) -> str | None:
    """Say why a route is not announced; None: it is."""
    if ORIGIN_TAGS[RouteSource.BGP] in route.tags:
        return "its tag says that it comes from BGP, and it is not taken back"
    if rule.tag is not None and rule.tag not in (route.tags or (0,)):
        return f"it has not the tag {rule.tag}"
    return refusal(rule.filters, prefix, route.tag)
