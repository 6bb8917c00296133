"""One end of a link, with its addresses: see ``addressing``."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface

from fared.core.ids import AreaId
from fared.core.units import BytesPerSecond


@dataclass(frozen=True)
class PortAddresses:
    """One end of a link, from the view of its node.

    ``rate`` is its egress shaper, bytes/s; ``delay`` that of the link, seconds. The peer of a
    router at a LAN segment (``lan``) is the segment, the peer of a host there its gateway.
    ``to_host``: no other router is there; ``serves``: hosts are, and have it as their gateway.
    Not ``numbered``: the link has link-local addresses only, and those here are on no interface.
    ``mtu`` is that of links which the lab makes; not ``mtu_given``: the file names none, and leaves
    it to who makes the link.
    """

    node: str
    name: str
    index: int
    address: IPv4Interface
    peer: str
    peer_port: str
    peer_address: IPv4Address
    to_host: bool
    rate: BytesPerSecond | None
    area: AreaId
    cost: int
    mtu: int
    level: str
    delay: float = 0.0
    mtu_given: bool = True
    address6: IPv6Interface | None = None
    peer_address6: IPv6Address | None = None
    lan: bool = False
    serves: bool = False
    numbered: bool = True
