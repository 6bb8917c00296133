"""Identifiers as they travel on the wire, and how people write them.

IPv4 addresses, router ids and area ids are plain 32-bit integers inside the engines: they
are compared, hashed and packed millions of times. They become dotted text only at the edge.
"""

from __future__ import annotations

import functools
import ipaddress
from typing import NamedTuple, NewType

IPv4 = NewType("IPv4", int)
RouterId = NewType("RouterId", int)
AreaId = NewType("AreaId", int)
NodeId = NewType("NodeId", int)
"""A vertex of the TED: an OSPF router id, or ``NETWORK_NODE | DR address`` for a transit network."""

BACKBONE = AreaId(0)
NETWORK_NODE = 1 << 32
FAMILY_IPV4 = 4
FAMILY_IPV6 = 6
_BITS = {FAMILY_IPV4: 32, FAMILY_IPV6: 128}


@functools.lru_cache(maxsize=65536)
def dotted(value: int) -> str:
    """Write a 32-bit id the way operators do: ``0x0AFF0001`` is ``10.255.0.1``."""
    return f"{value >> 24 & 255}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"


def parse_dotted(text: str) -> int:
    """Read a dotted quad. Raises ValueError on anything else."""
    return int(ipaddress.IPv4Address(text))


def parse_area(text: str | int) -> AreaId:
    """Read an area id, dotted or as an integer. Raises ValueError."""
    if isinstance(text, int):
        if not 0 <= text <= 0xFFFFFFFF:
            raise ValueError(f"area id {text} is outside 0..4294967295")
        return AreaId(text)
    return parse_area(int(text)) if text.isdecimal() else AreaId(parse_dotted(text))


def format_node(node: int) -> str:
    """Name a TED vertex: a router by its id, a transit network by its DR's address."""
    return f"net:{dotted(node & 0xFFFFFFFF)}" if node & NETWORK_NODE else dotted(node)


class Prefix(NamedTuple):
    """An IP prefix that is cheap to hash and sort; host bits are zero.

    ``family`` is 4 or 6, ``network`` the address as an integer.
    """

    family: int
    network: int
    length: int

    def __str__(self) -> str:
        return f"{format_address(self.family, self.network)}/{self.length}"

    @property
    def mask(self) -> int:
        """The network mask as an integer of the family's width."""
        bits = _BITS[self.family]
        return ((1 << self.length) - 1) << (bits - self.length)

    def contains(self, address: int) -> bool:
        """Whether an address of the same family lies inside."""
        return address & self.mask == self.network

    def covers(self, other: Prefix) -> bool:
        """Whether all of another prefix lies inside."""
        return (
            self.family == other.family
            and self.length <= other.length
            and self.contains(other.network)
        )


def ipv4_prefix(address: int, length: int) -> Prefix:
    """Make an IPv4 prefix, clearing host bits."""
    return Prefix(FAMILY_IPV4, address & (0xFFFFFFFF << (32 - length) & 0xFFFFFFFF), length)


def mask_length(mask: int) -> int | None:
    """Length of a contiguous IPv4 netmask, or None if the ones are not contiguous."""
    inverse = ~mask & 0xFFFFFFFF
    return 32 - inverse.bit_length() if inverse & (inverse + 1) == 0 else None


def length_mask(length: int) -> int:
    """IPv4 netmask of a prefix length."""
    return 0xFFFFFFFF << (32 - length) & 0xFFFFFFFF


def parse_prefix(text: str) -> Prefix:
    """Read ``10.0.0.0/24`` (or a bare address as a host prefix). Raises ValueError."""
    net = ipaddress.ip_network(text, strict=False)
    return Prefix(net.version, int(net.network_address), net.prefixlen)


def format_address(family: int, address: int) -> str:
    """Write an address of either family."""
    return dotted(address) if family == FAMILY_IPV4 else str(ipaddress.IPv6Address(address))
