"""The link to a neighbor as the graph has it: where packets are sent, and what it carries."""

from __future__ import annotations

from collections.abc import Mapping

from fared.core.ids import FAMILY_IPV4, NodeId
from fared.core.links import needs_onlink
from fared.paths.te.advertise import AdvertisedBandwidth, advertise_at
from fared.paths.ted.model import LocalLink
from fared.protocols.bgp.instance import BgpInstance, BgpLink
from fared.protocols.bgp.neighbor import BgpSpeaker
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.rib.exits import Resolve


def link_of(instance: BgpInstance, neighbor: BgpSpeaker, family: int) -> LocalLink | None:
    """Return the link to a neighbor for routes of a family; None: it leads nowhere yet."""
    found, place = neighbor.gateways.get(family), neighbor.place
    link = None if place is None else instance.links.get(place.link.ifindex)
    if found is None or link is None:
        return None
    return _local_link(link, *found)


def resolver(instance: BgpInstance, neighbor: BgpSpeaker) -> Resolve:
    """Return where next hops of a neighbor lead: those on its link alone are usable.

    To one that names the address of the session packets are sent there.
    """

    def resolve(next_hop: BgpNextHop) -> LocalLink | None:
        place = neighbor.place
        link = None if place is None else instance.links.get(place.link.ifindex)
        found = None if link is None else neighbor.gateway(next_hop)
        if place is None or link is None or found is None:
            return None
        if (next_hop.family, next_hop.address) == (place.family, place.remote):
            found = place.family, place.remote
        return _local_link(link, *found)

    return resolve


def _local_link(link: BgpLink, family: int, address: int) -> LocalLink:
    own, capacity = link.link, link.bandwidth.capacity
    onlink = family == FAMILY_IPV4 and needs_onlink(own.ipv4(), address)
    return LocalLink(own.ifindex, own.name, NodeId(0), address, 0, 1, capacity, family, onlink)


def is_derated(instance: BgpInstance, neighbor: BgpSpeaker) -> bool:
    """Whether the link to a neighbor is to carry less than it could."""
    place = neighbor.place
    link = None if place is None else instance.links.get(place.link.ifindex)
    return link is not None and link.settings.share < 1


def link_changed(instance: BgpInstance, neighbor: BgpSpeaker, family: int) -> None:
    """The link to a neighbor has another capacity, or leads there now."""
    rib = instance.ribs[family]
    if rib.knows(neighbor.number):
        link, derated = link_of(instance, neighbor, family), is_derated(instance, neighbor)
        resolve = resolver(instance, neighbor)
        rib.set_link(neighbor.number, link, derated=derated, resolve=resolve)
        set_available(instance, neighbor, family)
        instance.changed(f"link to {neighbor.name}")


def set_available(instance: BgpInstance, neighbor: BgpSpeaker, family: int) -> None:
    """Set what the load leaves of the link to a neighbor, as it was considered last."""
    place, rib = neighbor.place, instance.ribs[family]
    link = None if place is None else instance.links.get(place.link.ifindex)
    if link is not None and link.advertised is not None and rib.knows(neighbor.number):
        rib.set_available(neighbor.number, link.advertised.bandwidth.advertised[0])


def loads_measured(instance: BgpInstance, loads: Mapping[int, float | None]) -> bool:
    """Store loads of links; whether the graph is other, for weights that follow them."""
    rules, now, changed = instance.settings.advertise, instance.process.now, set[int]()
    for ifindex, load in loads.items():
        link = instance.links.get(ifindex)
        if link is None:
            continue
        link.measured(load, 0.0, now)
        due = advertise_at(
            link.advertised,
            link.bandwidth,
            threshold=rules.threshold,
            minimum_interval=rules.minimum_interval,
            now=now,
        )
        if due is not None and due <= now:
            link.advertised = AdvertisedBandwidth(link.bandwidth, now)
            changed.add(ifindex)
    for neighbor in instance.up():
        if neighbor.place is not None and neighbor.place.link.ifindex in changed:
            for family in instance.ribs:
                set_available(instance, neighbor, family)
            instance.changed("load")
    return bool(changed)
