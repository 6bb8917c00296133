"""Checks of a received packet before it is processed (RFC 2328 §8.2).

``authenticate`` verifies signatures. The checks here reject packets from beyond the link: routers
do not forward multicasts to 224.0.0.5 and 224.0.0.6, and forwarding decrements the TTL of a
unicast.
"""

from __future__ import annotations

from fared.core.links import InterfaceAddress
from fared.protocols.igp.events import PacketReceived, Unicasts
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface, InterfaceState
from fared.protocols.ospf.packet.packets import Hello, Packet
from fared.protocols.ospf.processing.transmit import (
    ALL_DR_ROUTERS,
    ALL_SPF_ROUTERS,
    LINK_TTL,
    SECURE_TTL,
)
from fared.protocols.ospf.settings import TtlSecurity

OWN_PACKET = "own-packet"
SILENT = (OWN_PACKET, "not-designated")
"""Discarded without an error: our own packets, and packets for the DR and BDR only."""
AREA_MISMATCH, UNKNOWN_NEIGHBOR = "area-mismatch", "unknown-neighbor"


def unicasts_of(interface: Interface) -> Unicasts:
    """Which unicasts can have been sent on the link of an interface.

    The sockets refuse all others, so that a flood from beyond the link takes no time here. On LANs,
    routers send some packets to each other's addresses (RFC 2328 §8.1), with TTL 1 (appendix A.1),
    and a router far away can choose its TTL so that 1 arrives. On point-to-point networks they send
    all packets to AllSPFRouters, so that no unicast is accepted but one that no router has
    forwarded, since its TTL is 255 (RFC 5082 §3): §8.2 permits these.
    """
    own = {interface.address, *(address.address for address in interface.link.ipv4())}
    secure = interface.settings.ttl_security is TtlSecurity.ON or not interface.broadcast
    ttls = (SECURE_TTL,) if secure else (LINK_TTL, SECURE_TTL)
    return Unicasts(tuple(sorted(own)), ttls, _networks(interface))


def _networks(interface: Interface) -> tuple[InterfaceAddress, ...]:
    """The networks of sources on the link; none: any source is on it.

    RFC 2328 §8.2 (1) requires them on LANs only. FRR and BIRD check all links that have a network,
    and so does fared; an unnumbered link, or one with host addresses only, has none. Of several
    networks all count, since the interface follows its neighbors (``adjacency.subnets``).
    """
    if interface.broadcast:
        return interface.addresses
    if interface.unnumbered:
        return ()
    return tuple([address for address in interface.link.ipv4() if not address.host])


def envelope_problem(interface: Interface | None, packet: PacketReceived) -> str | None:
    """Check source, destination and TTL of a packet; return the problem, or None."""
    unicasts = None if interface is None else interface.unicasts
    if interface is None or unicasts is None:
        return "interface-not-running"
    # RFC 2328 §8.2: locally originated packets, received back from a multicast
    if packet.source in unicasts.destinations:
        return OWN_PACKET
    # §8.2: the destination is the interface address, AllSPFRouters or AllDRouters
    problem = _destination_problem(interface, unicasts, packet)
    if problem is not None:
        return problem
    # RFC 2328 appendix A.1: packets are sent with TTL 1; RFC 5082 §3: with TTL 255
    if not _ttl_fits(interface.settings.ttl_security, packet.ttl):
        return "ttl"
    # RFC 2328 §8.2 (1): the source is on the network of the interface
    return None if unicasts.admits(packet.source) else "source-network"


def source_problem(instance: Instance, interface: Interface, source: int) -> str | None:
    """Check whether the source of a hello can be a neighbor; return the problem, or None.

    An adjacency that cannot forward would attract packets and lose them.
    """
    if not instance.own_addresses.can_be_next_hop(source):
        return "own-address"
    on_link = interface.unicasts is None or interface.unicasts.admits(source)
    return None if on_link else "source-network"


def _destination_problem(
    interface: Interface, unicasts: Unicasts, packet: PacketReceived
) -> str | None:
    """Check the destination of a packet (RFC 2328 §8.2); return the problem, or None."""
    if packet.destination == ALL_SPF_ROUTERS:
        return None
    # §8.2: AllDRouters is for the DR and the BDR
    if packet.destination == ALL_DR_ROUTERS and interface.broadcast:
        designated = interface.state in (InterfaceState.DR, InterfaceState.BACKUP)
        return None if designated else "not-designated"
    if packet.destination not in unicasts.destinations:
        return "destination"
    if packet.ttl in unicasts.ttls:
        return None
    return "ttl" if interface.broadcast else "unicast"


def _ttl_fits(security: TtlSecurity, ttl: int) -> bool:
    """Whether the TTL is one of a packet sent on the link: 255 (RFC 5082), or 1 unless secured."""
    return ttl == SECURE_TTL or (security is not TtlSecurity.ON and ttl == LINK_TTL)


def _hello_problem(
    instance: Instance, interface: Interface, received: PacketReceived
) -> str | None:
    # RFC 2328 §9.5: hellos are sent to AllSPFRouters, on broadcast networks too
    if received.destination != ALL_SPF_ROUTERS:
        return "destination"
    return source_problem(instance, interface, received.source)


def header_problem(
    instance: Instance, interface: Interface, received: PacketReceived, packet: Packet
) -> str | None:
    """Check area id and router id of the OSPF header; return the problem, or None."""
    # RFC 2328 §8.2 (1): the area of the interface. (2) is for virtual links; fared is no end.
    if packet.area_id != interface.settings.area:
        return AREA_MISMATCH
    # Not in §8.2, which drops our own packets by their source: here another router has our id.
    if packet.router_id == instance.router_id:
        return "duplicate-router-id"
    if packet.router_id == 0:
        return "router-id-zero"
    if isinstance(packet.body, Hello):
        return _hello_problem(instance, interface, received)
    # §8.2: all other packets must match an active neighbor
    neighbor = interface.neighbors.get(interface.key(packet.router_id, received.source))
    if neighbor is None or neighbor.router_id != packet.router_id:
        return UNKNOWN_NEIGHBOR
    return None if neighbor.address == received.source else "neighbor-address"
