"""The networks that this router originates, with what their links carry."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from fared.core.ids import Prefix
from fared.core.links import Link
from fared.paths.ted.events import PrefixesUpdated
from fared.paths.ted.model import PrefixReachability
from fared.protocols.bgp.instance import BgpInstance, BgpLink
from fared.protocols.bgp.packet.attributes import PathAttributes
from fared.protocols.bgp.packet.communities import LinkBandwidth
from fared.protocols.bgp.rib.paths import OWN, with_bandwidth
from fared.protocols.bgp.rib.tables import OWN_ATTRIBUTES


class Networks:
    """Originates what links, settings and other protocols say."""

    def __init__(self, instance: BgpInstance) -> None:
        self._instance = instance
        self.own: dict[Prefix, PathAttributes] = {}
        """The networks that are originated now."""
        self._connected: dict[Prefix, None] = {}
        self._every: set[Prefix] = set()
        """The networks of all links so far: those of links that are down are not originated."""
        self._stale = self._unpublished = True

    def changed(self, link: Link | None = None) -> None:
        """A link, or settings, are others."""
        self._stale = True
        if link is not None:
            self._every.update([one.prefix for one in link.addresses])

    def settle(self) -> None:
        """Originate what is to be, and withdraw the rest."""
        if not self._stale:
            return
        self._stale, self._unpublished = False, True
        before, wanted = self.own, self._own()
        self.own = wanted
        changes: Changes = {
            prefix: found for prefix, found in wanted.items() if before.get(prefix) != found
        }
        changes.update(dict.fromkeys([prefix for prefix in before if prefix not in wanted]))
        originate(self._instance, OWN, changes)

    def _own(self) -> dict[Prefix, PathAttributes]:
        """Return the networks of this router, with the bandwidth of their links."""
        settings = self._instance.settings
        found: dict[Prefix, float | None] = {}
        for link, prefix in self._of_links():
            if link.settings.advertise or prefix in settings.networks:
                capacity = None if link.link.loopback else link.bandwidth.capacity
                found[prefix] = _more(found[prefix], capacity) if prefix in found else capacity
        for prefix in settings.networks:
            if prefix not in self._every:
                found[prefix] = None
        return {
            prefix: carrying(self._instance, OWN_ATTRIBUTES, capacity)
            for prefix, capacity in found.items()
        }

    def _of_links(self) -> Iterator[tuple[BgpLink, Prefix]]:
        for _, link in sorted(self._instance.links.items()):
            for own in link.link.addresses:
                if not own.link_local:
                    yield link, own.prefix

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


Changes = dict[Prefix, PathAttributes | None]
"""What is originated now, None: no more."""


def originate(instance: BgpInstance, source: int, changes: Changes) -> None:
    """Originate prefixes with these attributes, or withdraw them."""
    by_attributes: dict[tuple[int, PathAttributes | None], list[Prefix]] = {}
    for prefix, attributes in changes.items():
        by_attributes.setdefault((prefix.family, attributes), []).append(prefix)
    for (family, attributes), prefixes in by_attributes.items():
        rib = instance.ribs.get(family)
        if rib is None:
            continue
        if attributes is None:
            rib.withdraw(prefixes, source)
        else:
            rib.originate(prefixes, attributes, source)
        instance.changed("own networks")


def carrying(
    instance: BgpInstance, attributes: PathAttributes, capacity: float | None
) -> PathAttributes:
    """Return attributes with a bandwidth, bytes/s; None: without a limit."""
    if capacity is None:
        return attributes
    return with_bandwidth(attributes, LinkBandwidth(instance.settings.local_as, capacity))


def _more(one: float | None, other: float | None) -> float | None:
    """Return the higher of two capacities; None is without a limit."""
    return None if one is None or other is None else max(one, other)
