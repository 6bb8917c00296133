"""Whether a received packet may be processed at all (RFC 2328 §8.2)."""

from __future__ import annotations

from fared.ospf.instance import Instance
from fared.ospf.interface import Interface, InterfaceState
from fared.ospf.packet.packets import Hello, Packet
from fared.ospf.transmit import ALL_DR_ROUTERS, ALL_SPF_ROUTERS

SILENT = ("own-packet", "not-designated")
"""What is no fault of anybody: our own packets, and those for the designated router only."""


def envelope_problem(interface: Interface | None, source: int, destination: int) -> str | None:
    """Name what is wrong with where a packet came from and went to; None if nothing is."""
    if interface is None or not interface.speaks:
        return "interface-not-running"
    own = {interface.address, *(address.address for address in interface.link.ipv4())}
    if source in own:
        return "own-packet"
    if destination == ALL_DR_ROUTERS and interface.broadcast:
        designated = (InterfaceState.DR, InterfaceState.BACKUP)
        if interface.state not in designated:
            return "not-designated"
    elif destination != ALL_SPF_ROUTERS and destination not in own:
        return "destination"
    if interface.broadcast and (source ^ interface.address) & interface.network_mask:
        return "source-network"
    return None


def header_problem(
    instance: Instance, interface: Interface, source: int, packet: Packet
) -> str | None:
    """Name what is wrong with the OSPF header; None if nothing is."""
    if packet.area_id != interface.settings.area:
        return "area-mismatch"
    if packet.router_id == instance.router_id:
        return "duplicate-router-id"
    if packet.router_id == 0:
        return "router-id-zero"
    if not isinstance(packet.body, Hello):
        neighbor = interface.neighbors.get(interface.key(packet.router_id, source))
        if neighbor is None or neighbor.router_id != packet.router_id:
            return "unknown-neighbor"
    return None
