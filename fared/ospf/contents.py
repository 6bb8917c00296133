"""What our own LSAs say: router (RFC 2328 §12.4.1), TE (RFC 3630, 7471), router information."""

from __future__ import annotations

from fared.core.ids import AreaId, length_mask
from fared.ospf.broadcast import transit
from fared.ospf.instance import Instance
from fared.ospf.interface import Interface, InterfaceState
from fared.ospf.neighbor import Neighbor, NeighborState
from fared.ospf.packet.bodies import (
    B_BIT,
    E_BIT,
    NetworkLsa,
    RouterLink,
    RouterLinkType,
    RouterLsa,
)
from fared.ospf.packet.body import encode_network_lsa, encode_router_lsa
from fared.ospf.packet.opaque import RouterInformation, TeLink, TeRouterAddress
from fared.ospf.packet.router_info import encode_router_information
from fared.ospf.packet.te import encode_te_link, encode_te_router_address
from fared.te.attributes import TeAttributes

MAX_LINK_METRIC = 0xFFFF
"""MaxLinkMetric (RFC 6987 §2): a router that is not to be passed through."""
_HOST_MASK = 0xFFFFFFFF
_HOST_LENGTH = 32
_CAPABILITIES = 0x30000000
"""Stub router support and traffic engineering support (RFC 7770 §2.4)."""
_TE_POINT_TO_POINT = 1
_TE_MULTI_ACCESS = 2
_PRIORITIES = 8


def full_neighbors(interface: Interface) -> list[Neighbor]:
    """The neighbors of an interface that are fully adjacent, by router id."""
    return [
        neighbor
        for _, neighbor in sorted(interface.neighbors.items())
        if neighbor.state is NeighborState.FULL
    ]


def next_hop_neighbors(interface: Interface) -> list[Neighbor]:
    """The neighbors that packets may be sent to over an interface, by router id.

    On a transit network these are all that are heard both ways: two routers of which neither is
    designated are not adjacent, but send to each other directly (§16.1.1).
    """
    if not interface.broadcast:
        return full_neighbors(interface)
    if not transit(interface):
        return []
    heard = (n for n in interface.neighbors.values() if n.state >= NeighborState.TWO_WAY)
    return sorted(heard, key=lambda n: (n.router_id, n.address))


def link_metric(instance: Instance, interface: Interface) -> int:
    """What the router LSA says a link costs."""
    return MAX_LINK_METRIC if instance.settings.stub_router else interface.settings.cost


def router_lsa(instance: Instance, area: AreaId) -> bytes:
    """The body of our router LSA for one area, interfaces by ifindex."""
    links: dict[RouterLink, None] = {}
    for interface in instance.area_interfaces(area):
        links.update(dict.fromkeys(_interface_links(instance, interface)))
    flags = B_BIT if instance.border else 0
    if instance.settings.redistribute and not instance.areas[area].settings.stub:
        flags |= E_BIT  # never into a stub area, which has no AS boundary routers
    return encode_router_lsa(RouterLsa(flags=flags, links=tuple(links)))


def _interface_links(instance: Instance, interface: Interface) -> list[RouterLink]:
    """The links that describe one interface (§12.4.1)."""
    if interface.state is InterfaceState.DOWN:
        return []
    if interface.state is InterfaceState.LOOPBACK:
        return [_stub(a.address, _HOST_LENGTH, 0) for a in interface.addresses]
    metric = link_metric(instance, interface)
    cost = interface.settings.cost
    if interface.broadcast and transit(interface):
        # §12.4.1.2: the subnet itself is the network LSA's to announce
        to_network = RouterLink(
            RouterLinkType.TRANSIT, interface.designated_router, interface.address, metric
        )
        own = (interface.address & interface.network_mask, interface.network_mask)
        stubs = [_stub(a.address, a.prefix_length, cost) for a in interface.addresses]
        return [to_network, *(stub for stub in stubs if (stub.link_id, stub.link_data) != own)]
    if interface.broadcast:
        return [_stub(a.address, a.prefix_length, cost) for a in interface.addresses]
    adjacent = [
        RouterLink(RouterLinkType.POINT_TO_POINT, neighbor.router_id, interface.link_data, metric)
        for neighbor in full_neighbors(interface)
    ]
    if interface.unnumbered:
        return adjacent
    # §12.4.1.1 option 2: a link with a subnet of its own is a stub network as well.
    return adjacent + [_stub(a.address, a.prefix_length, cost) for a in interface.addresses]


def _stub(address: int, length: int, metric: int) -> RouterLink:
    mask = length_mask(length)
    return RouterLink(RouterLinkType.STUB, address & mask, mask, metric)


def network_lsa(instance: Instance, interface: Interface) -> bytes | None:
    """The body of the network LSA (§12.4.2); None unless we are the designated router of others."""
    if interface.state is not InterfaceState.DR or not transit(interface):
        return None
    routers = {neighbor.router_id for neighbor in full_neighbors(interface)} | {instance.router_id}
    return encode_network_lsa(NetworkLsa(interface.network_mask, tuple(sorted(routers))))


def router_information(instance: Instance) -> bytes:
    """The body of our router information LSA, with the hostname if there is one."""
    return encode_router_information(
        RouterInformation(capabilities=_CAPABILITIES, hostname=instance.settings.hostname)
    )


def te_router_address(instance: Instance) -> bytes:
    """A stable address of ours (RFC 3630 §2.4.1): the router id if it is one, else a loopback."""
    lent = lent_addresses(instance)
    return encode_te_router_address(TeRouterAddress(lent[0] if lent else instance.router_id))


def lent_addresses(instance: Instance) -> tuple[int, ...]:
    """The loopback addresses, the router id first if it is one."""
    found = [
        address.address
        for _, interface in sorted(instance.interfaces.items())
        if interface.loopback
        for address in interface.addresses
    ]
    return tuple(sorted(found, key=lambda address: address != instance.router_id))


def te_link(interface: Interface) -> bytes | None:
    """The body of the TE LSA of one link; None while there is no full adjacency on it.

    Bandwidths are those last decided to be announced, not the load of this moment.
    """
    if interface.broadcast:
        return _te_link_to_network(interface)
    adjacent = full_neighbors(interface)
    if interface.state is not InterfaceState.POINT_TO_POINT or not adjacent:
        return None
    neighbor = adjacent[0]
    return encode_te_link(
        TeLink(
            link_type=_TE_POINT_TO_POINT,
            link_id=neighbor.router_id,
            local_addresses=() if interface.unnumbered else (interface.address,),
            remote_addresses=() if interface.unnumbered else (neighbor.address,),
            local_identifier=interface.ifindex if interface.unnumbered else None,
            attributes=_te_attributes(interface),
        )
    )


def _te_link_to_network(interface: Interface) -> bytes | None:
    """RFC 3630 §2.5.1, §2.5.2: multi-access, named by the address of the designated router."""
    if not transit(interface):
        return None
    return encode_te_link(
        TeLink(
            link_type=_TE_MULTI_ACCESS,
            link_id=interface.designated_router,
            local_addresses=(interface.address,),
            attributes=_te_attributes(interface),
        )
    )


def _te_attributes(interface: Interface) -> TeAttributes:
    bandwidth = interface.announced.bandwidth if interface.announced else interface.bandwidth
    capacity = bandwidth.capacity
    if capacity is None:
        return TeAttributes(te_metric=interface.settings.cost)
    available, utilized = bandwidth.told
    return TeAttributes(
        te_metric=interface.settings.cost,
        max_bandwidth=capacity,
        max_reservable_bandwidth=capacity,
        unreserved_bandwidth=(capacity,) * _PRIORITIES,
        residual_bandwidth=capacity,
        available_bandwidth=available,
        utilized_bandwidth=utilized,
    )
