"""The link to a neighbor as the graph has it: where packets are sent, and what it carries."""

from __future__ import annotations

from fared.core.ids import FAMILY_IPV4, NodeId
from fared.core.links import needs_onlink
from fared.paths.ted.model import LocalLink
from fared.protocols.bgp.instance import BgpInstance
from fared.protocols.bgp.neighbor import BgpSpeaker


def link_of(instance: BgpInstance, neighbor: BgpSpeaker, family: int) -> LocalLink | None:
    """Return the link to a neighbor for routes of a family; None: it leads nowhere yet."""
    found, place = neighbor.gateways.get(family), neighbor.place
    link = None if place is None else instance.links.get(place.link.ifindex)
    if found is None or link is None:
        return None
    kind, address = found
    own = link.link
    onlink = kind == FAMILY_IPV4 and needs_onlink(own.ipv4(), address)
    capacity = link.bandwidth.capacity
    return LocalLink(own.ifindex, own.name, NodeId(0), address, 0, 1, capacity, kind, onlink)


def link_changed(instance: BgpInstance, neighbor: BgpSpeaker, family: int) -> None:
    """The link to a neighbor has another capacity, or leads there now."""
    rib = instance.ribs[family]
    if rib.knows(neighbor.number):
        rib.set_link(neighbor.number, link_of(instance, neighbor, family))
        instance.changed(f"link to {neighbor.name}")
