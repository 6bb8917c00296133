"""Identifiers as they travel on the wire, and their text form.

Inside the engines IPv4 addresses, router ids and area ids are plain 32-bit integers, which are
compared, hashed and packed millions of times. Only input and output use dotted text.
"""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Mapping
from types import MappingProxyType
from typing import NewType

import msgspec

IPv4 = NewType("IPv4", int)
RouterId = NewType("RouterId", int)
AreaId = NewType("AreaId", int)
NodeId = NewType("NodeId", int)
"""A vertex of the TED.

OSPF: a router id, ``NETWORK_NODE | DR address`` for a transit network, or ``HOST_NODE | address``
for a host on a network of this router. IS-IS: ``ISIS_NODE |
system id << 8 | pseudonode number`` (a router has pseudonode number 0). BGP: an identifier,
``GROUP_NODE | number`` for a group of prefixes with equal paths, ``SESSIONS_NODE | number << 36 |
identifier`` for some of the sessions with a router that has several, ``SHARED_NODE | group << 36 |
identifier`` for a router that several neighbors reach the group through.
"""
SystemId = NewType("SystemId", int)
"""An IS-IS system id, 48 bits."""

BACKBONE = AreaId(0)
HOSTS_AREA = 1 << 40
"""Added to an area: that of hosts on the networks of this router in it (``rib.hosts``)."""
NETWORK_NODE = 1 << 32
HOST_NODE = 1 << 33
GROUP_NODE = 1 << 34
SESSIONS_NODE = 1 << 35
SHARED_NODE = GROUP_NODE | SESSIONS_NODE
SHARED_SHIFT = 36
ISIS_NODE = 1 << 60
FAMILY_IPV4 = 4
FAMILY_IPV6 = 6
LINK_LOCAL6 = 0xFE80 >> 6
"""The first ten bits of fe80::/10."""
ADDRESS_BITS: Mapping[int, int] = MappingProxyType({FAMILY_IPV4: 32, FAMILY_IPV6: 128})
"""The length of an address by family."""


@functools.lru_cache(maxsize=2048)
def dotted(value: int) -> str:
    """Format a 32-bit id: ``0x0AFF0001`` is ``10.255.0.1``.

    The cache takes 0.5 MB at most: packets with forged ids fill it.
    """
    return f"{value >> 24 & 255}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"


def parse_dotted(text: str) -> int:
    """Parse a dotted quad. Raises ValueError on anything else."""
    return int(ipaddress.IPv4Address(text))


def parse_area(text: str | int) -> AreaId:
    """Parse an area id, dotted or as an integer. Raises ValueError."""
    if isinstance(text, int):
        if not 0 <= text <= 0xFFFFFFFF:
            raise ValueError(f"area id {text} is outside 0..4294967295")
        return AreaId(text)
    return parse_area(int(text)) if text.isdecimal() else AreaId(parse_dotted(text))


def isis_node(system_id: int, pseudonode: int = 0) -> NodeId:
    """Return the TED vertex of an IS-IS router, or of one of its pseudonodes."""
    return NodeId(ISIS_NODE | system_id << 8 | pseudonode)


def format_system_id(system_id: int) -> str:
    """Format a system id: ``0102.5500.0001``."""
    digits = f"{system_id:012x}"
    return f"{digits[:4]}.{digits[4:8]}.{digits[8:]}"


def parse_system_id(text: str) -> SystemId:
    """Parse ``0102.5500.0001``. Raises ValueError on anything else."""
    groups = text.split(".")
    if [len(group) for group in groups] != [4, 4, 4]:
        raise ValueError(f"{text!r} is not a system id such as 0102.5500.0001")
    return SystemId(int("".join(groups), 16))


def format_node(node: int) -> str:
    """Format a TED vertex: a router by its id, a network by its DR's address or pseudonode id."""
    if node & ISIS_NODE:
        name = format_system_id(node >> 8 & 0xFFFFFFFFFFFF)
        return f"{name}.{node & 0xFF:02x}" if node & 0xFF else name
    if is_shared(node):
        return dotted(node & 0xFFFFFFFF)
    if node & GROUP_NODE:
        return f"group:{node & 0xFFFFFFFF}"
    if node & SESSIONS_NODE:
        return f"{dotted(node & 0xFFFFFFFF)}#{node >> SHARED_SHIFT}"
    return f"net:{dotted(node & 0xFFFFFFFF)}" if node & NETWORK_NODE else dotted(node)


def is_group(node: int) -> bool:
    """Whether a TED vertex is a group of prefixes of BGP: it is no router, and forwards nothing."""
    return bool(node & GROUP_NODE) and not node & ISIS_NODE


def speaker_of(node: int) -> int:
    """Return the router that a TED vertex of BGP stands for; other vertices unchanged."""
    parts = node & (SHARED_NODE | ISIS_NODE)
    return node & 0xFFFFFFFF if parts in (SHARED_NODE, SESSIONS_NODE) else node


def is_shared(node: int) -> bool:
    """Whether a TED vertex is a router of BGP that several neighbors reach a group through."""
    return node & SHARED_NODE == SHARED_NODE and not node & ISIS_NODE


class Prefix(msgspec.Struct, frozen=True, order=True, gc=False, array_like=True):
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
        bits = ADDRESS_BITS[self.family]
        return ((1 << self.length) - 1) << (bits - self.length)

    def contains(self, address: int) -> bool:
        """Whether the prefix contains an address of the same family."""
        return address & self.mask == self.network

    def covers(self, other: Prefix) -> bool:
        """Whether the prefix contains all of another one, or equals it."""
        return (
            self.family == other.family
            and self.length <= other.length
            and self.contains(other.network)
        )


def ipv4_prefix(address: int, length: int) -> Prefix:
    """Make an IPv4 prefix, clearing host bits."""
    network = address & (0xFFFFFFFF << (32 - length) & 0xFFFFFFFF)
    # The same object, if it has no host bits: there may be a hundred thousand prefixes.
    return Prefix(FAMILY_IPV4, address if network == address else network, length)


def mask_length(mask: int) -> int | None:
    """Return the length of an IPv4 netmask, or None if its ones are not contiguous."""
    inverse = ~mask & 0xFFFFFFFF
    return 32 - inverse.bit_length() if inverse & (inverse + 1) == 0 else None


def length_mask(length: int) -> int:
    """Return the IPv4 netmask of a prefix length."""
    return 0xFFFFFFFF << (32 - length) & 0xFFFFFFFF


def parse_prefix(text: str) -> Prefix:
    """Parse ``10.0.0.0/24`` (or a bare address as a host prefix). Raises ValueError."""
    net = ipaddress.ip_network(text, strict=False)
    return Prefix(net.version, int(net.network_address), net.prefixlen)


def is_link_local(family: int, address: int) -> bool:
    """Whether an address is in fe80::/10: IPv6, and meaningful on one link only."""
    return family == FAMILY_IPV6 and address >> 118 == LINK_LOCAL6


def format_address(family: int, address: int) -> str:
    """Format an address of either family."""
    return dotted(address) if family == FAMILY_IPV4 else str(ipaddress.IPv6Address(address))
