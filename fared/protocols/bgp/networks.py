"""What this router originates: its networks, with what their links carry, and redistributed routes.

A redistributed route has ORIGIN INCOMPLETE, and is used where no neighbor has told a path: to such
a prefix the other protocol has a route.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from fared.core.filters import denying
from fared.core.ids import ADDRESS_BITS, Prefix
from fared.core.links import InterfaceAddress
from fared.core.routes import LocalRoute, RouteKey, redistributable
from fared.paths.ted.events import PrefixesUpdated
from fared.paths.ted.model import PrefixReachability
from fared.protocols.bgp.instance import BgpInstance, BgpLink
from fared.protocols.bgp.neighbor import is_link_local
from fared.protocols.bgp.packet.attributes import (
    AsPath,
    Med,
    Origin,
    OriginType,
    PathAttributes,
    attributes_of,
)
from fared.protocols.bgp.packet.communities import LinkBandwidth
from fared.protocols.bgp.rib.paths import OWN, REDISTRIBUTED, with_bandwidth
from fared.protocols.bgp.rib.tables import OWN_ATTRIBUTES
from fared.protocols.igp.events import ExternalRoutes

_Originated = dict[Prefix, PathAttributes]


class Networks:
    """Originates what links, settings and other protocols say."""

    def __init__(self, instance: BgpInstance) -> None:
        self._instance = instance
        self._routes: dict[RouteKey, LocalRoute] = {}
        self._known: dict[int, _Originated] = {OWN: {}, REDISTRIBUTED: {}}
        self._connected: dict[Prefix, None] = {}
        self._every: set[Prefix] = set()
        """The networks of all links so far: those of links that are down are not originated."""
        self._stale = self._unpublished = True

    def changed(self) -> None:
        """Links, or settings, are others."""
        self._stale = True

    def update(self, event: ExternalRoutes) -> None:
        """Process changes of routes that may be redistributed."""
        for key, route in event.changes.items():
            if route is None:
                self._routes.pop(key, None)
            else:
                self._routes[key] = route
        if self._instance.settings.redistribute:
            self._stale = True

    def settle(self) -> None:
        """Originate what is to be, and withdraw the rest."""
        if not self._stale:
            return
        self._stale = False
        self._originate(OWN, self._own())
        self._originate(REDISTRIBUTED, dict(self._redistributed()))
        self._unpublished = True

    def _originate(self, source: int, wanted: _Originated) -> None:
        before, self._known[source] = self._known[source], wanted
        ribs, by_attributes = self._instance.ribs, dict[PathAttributes, list[Prefix]]()
        lost = [prefix for prefix in before if prefix not in wanted]
        for prefix, attributes in wanted.items():
            if before.get(prefix) != attributes:
                by_attributes.setdefault(attributes, []).append(prefix)
        for family, rib in ribs.items():
            rib.withdraw([prefix for prefix in lost if prefix.family == family], source)
            for attributes, prefixes in by_attributes.items():
                some = [prefix for prefix in prefixes if prefix.family == family]
                if some:
                    rib.originate(some, attributes, source)
        if lost or by_attributes:
            self._instance.changed("own networks")

    def _own(self) -> _Originated:
        """Return the networks of this router, with the bandwidth of their links."""
        settings = self._instance.settings
        found: dict[Prefix, float | None] = {}
        for link, prefix in self._of_links():
            self._every.add(prefix)
            if link.settings.advertise or prefix in settings.networks:
                capacity = None if link.link.loopback else link.bandwidth.capacity
                found[prefix] = _more(found[prefix], capacity) if prefix in found else capacity
        for prefix in settings.networks:
            if prefix not in self._every:
                found[prefix] = None
        return {prefix: self._attributes(capacity) for prefix, capacity in found.items()}

    def _attributes(self, capacity: float | None) -> PathAttributes:
        if capacity is None:
            return OWN_ATTRIBUTES
        return with_bandwidth(
            OWN_ATTRIBUTES, LinkBandwidth(self._instance.settings.local_as, capacity)
        )

    def _of_links(self) -> Iterator[tuple[BgpLink, Prefix]]:
        for _, link in sorted(self._instance.links.items()):
            for own in link.link.addresses:
                if not is_link_local(own.family, own.address):
                    yield link, network_of(own)

    def _redistributed(self) -> Iterator[tuple[Prefix, PathAttributes]]:
        """Yield routes of other sources, of two with one prefix the first."""
        settings, own = self._instance.settings, self._known[OWN]
        if not settings.redistribute:
            return
        for (source, prefix), _ in sorted(self._routes.items(), reverse=True):
            rule = settings.redistribute.get(str(source))
            if rule is None or prefix in own or not redistributable(prefix):
                continue
            if denying(rule.filters, prefix) is not None:
                continue
            med = [] if rule.med is None else [Med(rule.med)]
            yield prefix, attributes_of([Origin(OriginType.INCOMPLETE), AsPath(()), *med])

    def publish(self) -> None:
        """Tell the networks of links, to which no route of BGP is used: packets go there directly.

        They are prefixes of this router's own node.
        """
        if not self._unpublished:
            return
        self._unpublished = False
        instance = self._instance
        present = dict.fromkeys(prefix for _, prefix in self._of_links())
        new = [prefix for prefix in present if prefix not in self._connected]
        lost = [prefix for prefix in self._connected if prefix not in present]
        self._connected = present
        for family in instance.ribs:
            changes: dict[Hashable, PrefixReachability | None] = {
                one: PrefixReachability(one, 0) for one in new if one.family == family
            }
            changes.update(dict.fromkeys([one for one in lost if one.family == family]))
            if changes:
                now, root = instance.process.now, instance.root
                told = PrefixesUpdated(0, root, changes, "own networks", now, family)
                instance.process.emit(told)


def network_of(own: InterfaceAddress) -> Prefix:
    """Return the network of an address of a link."""
    bits = ADDRESS_BITS[own.family] - own.prefix_length
    return Prefix(own.family, own.network >> bits << bits, own.prefix_length)


def _more(one: float | None, other: float | None) -> float | None:
    """Return the higher of two capacities; None is without a limit."""
    return None if one is None or other is None else max(one, other)
