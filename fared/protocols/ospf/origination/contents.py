"""Bodies of self-originated LSAs: router (RFC 2328 §12.4.1), network (§12.4.2), TE, information."""

from __future__ import annotations

from fared.core.ids import AreaId, ipv4_prefix, length_mask
from fared.paths.te.advertise import te_attributes
from fared.paths.ted.model import HIGHEST_OSPF_METRIC
from fared.protocols.igp.dynamic_flooding import ALGORITHM, LEADER_PRIORITY
from fared.protocols.ospf.adjacency.broadcast import transit
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface, InterfaceState, Neighbor
from fared.protocols.ospf.packet.bodies import (
    B_BIT,
    E_BIT,
    NetworkLsa,
    RouterLink,
    RouterLinkType,
    RouterLsa,
)
from fared.protocols.ospf.packet.body import encode_network_lsa, encode_router_lsa
from fared.protocols.ospf.packet.opaque import (
    TeLink,
    TeRouterAddress,
)
from fared.protocols.ospf.packet.router_info import AreaLeader, RouterInformation
from fared.protocols.ospf.packet.te import encode_te_link, encode_te_router_address

_HOST_LENGTH = 32
_HIDDEN_NETWORK = 0xFFFFFFFF
"""The mask in the network LSA of a suppressed network (RFC 6860 §2.2)."""
_CAPABILITIES = 0x30000000
"""Stub router support and traffic engineering support (RFC 7770 §2.5)."""
_TE_POINT_TO_POINT = 1
_TE_MULTI_ACCESS = 2


def full_neighbors(interface: Interface) -> list[Neighbor]:
    """The neighbors of an interface that are fully adjacent, or restart, by router id."""
    return [neighbor for _, neighbor in sorted(interface.neighbors.items()) if neighbor.adjacent]


def next_hop_neighbors(interface: Interface) -> list[Neighbor]:
    """The neighbors that can be next hops over an interface, by router id.

    On a transit network these are all neighbors in state 2-Way or greater: two DR Other routers
    are not adjacent, but forward to each other directly (§16.1.1).
    """
    if not interface.broadcast:
        return full_neighbors(interface)
    if not transit(interface):
        return []
    two_way = (n for n in interface.neighbors.values() if n.bidirectional)
    return sorted(two_way, key=lambda n: (n.router_id, n.address))


def link_metric(instance: Instance, interface: Interface) -> int:
    """The metric of a link in the router LSA; of a stub router MaxLinkMetric (RFC 6987 §2)."""
    return HIGHEST_OSPF_METRIC if instance.stub_router else interface.settings.cost


def router_lsa(instance: Instance, area: AreaId) -> bytes:
    """The body of our router LSA for one area, interfaces by ifindex."""
    links: dict[RouterLink, None] = {}
    for interface in instance.area_interfaces(area):
        links.update(dict.fromkeys(_interface_links(instance, interface)))
        if interface.state is not InterfaceState.DOWN:
            cost = interface.settings.cost
            hosts = hosts_on(instance, interface)
            links.update(dict.fromkeys(_stub(host, _HOST_LENGTH, cost) for host in hosts))
    # §12.4.1, bit B: of a router attached to several areas; RFC 3509: one must be the backbone
    flags = B_BIT if instance.border else 0
    # §12.4.1, bit E: of an AS boundary router, never in a stub area
    if instance.settings.redistribute and not instance.areas[area].settings.stub:
        flags |= E_BIT
    return encode_router_lsa(RouterLsa(flags=flags, links=tuple(links)))


def _interface_links(instance: Instance, interface: Interface) -> list[RouterLink]:
    """The links that describe one interface (§12.4.1)."""
    # RFC 2328 §12.4.1: none while it is Down
    if interface.state is InterfaceState.DOWN:
        return []
    # §12.4.1: state Loopback, a host route for each address
    if interface.state is InterfaceState.LOOPBACK:
        return [_stub(a.address, _HOST_LENGTH, 0) for a in interface.addresses]
    metric = link_metric(instance, interface)
    if interface.broadcast and transit(interface):
        # §12.4.1.2: a type 2 link to a transit network; its network LSA advertises the subnet
        to_network = RouterLink(
            RouterLinkType.TRANSIT, interface.designated_router, interface.address, metric
        )
        return [to_network, *_stubs(interface, own=False)]
    shown = not interface.settings.prefix_suppression
    # §12.4.1.2: Waiting, or not fully adjacent to the DR: a type 3 link to the subnet
    if interface.broadcast:
        return _stubs(interface, own=shown)
    # §12.4.1.1: a type 1 link to each fully adjacent neighbor
    adjacent = [
        RouterLink(RouterLinkType.POINT_TO_POINT, neighbor.router_id, interface.link_data, metric)
        for neighbor in full_neighbors(interface)
    ]
    if interface.unnumbered:
        return adjacent
    # §12.4.1.1: in addition a type 3 link, option 2: to the subnet of the link, unless suppressed
    # (RFC 6860 §2.1)
    return adjacent + _stubs(interface, own=shown)


def _stubs(interface: Interface, *, own: bool) -> list[RouterLink]:
    """Type 3 links to the subnets of an interface; ``own``: also that of its primary address."""
    cost = interface.settings.cost
    stubs = [_stub(a.address, a.prefix_length, cost) for a in interface.addresses]
    if own:
        return stubs
    primary = (interface.address & interface.network_mask, interface.network_mask)
    return [stub for stub in stubs if (stub.link_id, stub.link_data) != primary]


def hosts_on(instance: Instance, interface: Interface) -> list[int]:
    """The hosts with a BFR-id on an interface, which this router advertises for them."""
    bier = instance.settings.bier
    if bier is None or interface.loopback:
        return []
    subnets = [ipv4_prefix(a.address, a.prefix_length) for a in interface.addresses]
    return [host for host, _ in bier.hosts if any(subnet.contains(host) for subnet in subnets)]


def _stub(address: int, length: int, metric: int) -> RouterLink:
    mask = length_mask(length)
    return RouterLink(RouterLinkType.STUB, address & mask, mask, metric)


def network_lsa(instance: Instance, interface: Interface) -> bytes | None:
    """The body of the network LSA; None if this router is not to originate it (§12.4.2)."""
    # RFC 2328 §12.4.2: by the DR, if it is fully adjacent to at least one other router
    if interface.state is not InterfaceState.DR or not transit(interface):
        return None
    # §12.4.2: the routers fully adjacent to the DR, and the DR itself
    routers = {neighbor.router_id for neighbor in full_neighbors(interface)} | {instance.router_id}
    hidden = interface.settings.prefix_suppression
    mask = _HIDDEN_NETWORK if hidden else interface.network_mask
    return encode_network_lsa(NetworkLsa(mask, tuple(sorted(routers))))


def router_information(instance: Instance) -> bytes:
    """The body of the router information LSA (RFC 7770 §2), with a hostname (RFC 5642)."""
    dynamic = instance.settings.reduction.dynamic
    return RouterInformation(
        capabilities=_CAPABILITIES,
        hostname=instance.settings.hostname,
        # RFC 9667 §5.2.1, §5.2.2
        area_leader=AreaLeader(LEADER_PRIORITY, ALGORITHM) if dynamic else None,
        dynamic_flooding=(ALGORITHM,) if dynamic else None,
    ).encode()


def te_router_address(instance: Instance) -> bytes:
    """The router address TLV (RFC 3630 §2.4.1): a loopback address, preferably the router id."""
    loopbacks = loopback_addresses(instance)
    address = loopbacks[0] if loopbacks else instance.router_id
    return encode_te_router_address(TeRouterAddress(address))


def loopback_addresses(instance: Instance) -> tuple[int, ...]:
    """The addresses of loopbacks, the router id first if it is among them."""
    found = [
        address.address
        for _, interface in sorted(instance.interfaces.items())
        if interface.loopback
        for address in interface.addresses
    ]
    return tuple(sorted(found, key=lambda address: address != instance.router_id))


def te_link(interface: Interface) -> bytes | None:
    """The body of the TE LSA of one link (RFC 3630 §2.4.2); None without a full adjacency.

    Bandwidths are those of the last advertisement (``te.advertise``), not the present ones.
    """
    if interface.broadcast:
        return _te_link_to_network(interface)
    adjacent = full_neighbors(interface)
    if interface.state is not InterfaceState.POINT_TO_POINT or not adjacent:
        return None
    neighbor = adjacent[0]
    # RFC 3630 §2.5.1 to §2.5.4; unnumbered: identifiers (RFC 4203 §1.1)
    return encode_te_link(
        TeLink(
            link_type=_TE_POINT_TO_POINT,
            link_id=neighbor.router_id,
            local_addresses=() if interface.unnumbered else (interface.address,),
            remote_addresses=() if interface.unnumbered else (neighbor.address,),
            local_identifier=interface.ifindex if interface.unnumbered else None,
            attributes=te_attributes(interface, interface.settings.cost),
        )
    )


def _te_link_to_network(interface: Interface) -> bytes | None:
    """A multi-access link; its link id is the address of the DR (RFC 3630 §2.5.1, §2.5.2)."""
    if not transit(interface):
        return None
    return encode_te_link(
        TeLink(
            link_type=_TE_MULTI_ACCESS,
            link_id=interface.designated_router,
            local_addresses=(interface.address,),
            attributes=te_attributes(interface, interface.settings.cost),
        )
    )
