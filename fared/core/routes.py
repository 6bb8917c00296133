"""Routes of this router from other sources (kernel, other protocols), and prefixes never routed.

What a border redistributes carries a tag that says which protocol it comes from (``ORIGIN_TAGS``):
no border redistributes it back into that protocol, or prefers it to what that protocol itself has.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from fared.core.ids import FAMILY_IPV4, LINK_LOCAL6, NodeId, Prefix, ipv4_prefix

_LINK_LOCAL = ipv4_prefix(169 << 24 | 254 << 16, 16)
"""IPv4 link-local: the same prefix on every link, so never routed (RFC 3927 §7)."""
_MARTIAN_OCTETS = frozenset({0, 127, *range(224, 256)})
"""The first octets of 0.0.0.0/8, 127.0.0.0/8 and 224.0.0.0/3."""
_MULTICAST6 = 0xFF
_SPECIAL = 0xFFFF_FFFF_FFFF
"""The highest of ::, ::1 and the IPv6 addresses that contain an IPv4 address."""


class RouteSource(enum.StrEnum):
    """The source of a route; of two with one prefix the first is preferred."""

    CONNECTED = "connected"
    STATIC = "static"
    BGP = "bgp"
    OSPF = "ospf"
    ISIS = "isis"


KERNEL_SOURCES = (RouteSource.CONNECTED, RouteSource.STATIC)
"""The kernel's routes; a protocol has the name of its source."""
ORIGIN_TAGS: Mapping[RouteSource, int] = MappingProxyType(
    {
        RouteSource.BGP: 4_200_000_020,
        RouteSource.OSPF: 4_200_000_110,
        RouteSource.ISIS: 4_200_000_115,
    }
)
"""The tag of routes that are redistributed from a protocol: the same on all borders, unless the
configuration has another. The last digits are the usual preference of the protocol."""


class LocalRoute(msgspec.Struct, frozen=True):
    """A route that forwards now. ``hops`` are (ifindex, gateway) pairs, gateway 0 for none.

    The hops of a connected route are the interfaces with an address in it. A static route without
    hops discards, or its next hops are unknown here. A route of a protocol has no hops here, but
    the ``metric`` and ``tags`` that it has there, and the ``capacity`` of all its paths together,
    bytes/s (None: unknown).
    """

    hops: tuple[tuple[int, int], ...] = ()
    capacity: float | None = None
    metric: int = 0
    tags: tuple[int, ...] = ()

    @property
    def tag(self) -> int:
        """The tag that filters see; 0: none."""
        return self.tags[0] if self.tags else 0


RouteKey = tuple[RouteSource, Prefix]
TagOf = Callable[[Prefix, int | None, tuple[NodeId, ...]], int | None]
"""Returns the administrative tag of a prefix in an area or level, by its destinations."""


def is_martian(prefix: Prefix) -> bool:
    """Whether a prefix contains only addresses that no router forwards to.

    Those are 0.0.0.0/8, 127.0.0.0/8, 224.0.0.0/3, ::/128, ::1/128, fe80::/10 and ff00::/8, all that
    RFC 6890 excludes from forwarding and BIRD's ``net_classify`` rejects. A default route is none,
    since it contains other addresses as well.
    """
    network, length = prefix.network, prefix.length
    if prefix.family == FAMILY_IPV4:
        return network >> 24 in _MARTIAN_OCTETS and (network >> 24 != 0 or length >= 8)
    if network >> 120 == _MULTICAST6:
        return True
    return (network >> 118 == LINK_LOCAL6 and length >= 10) or (network <= 1 and length == 128)


def redistributable(prefix: Prefix) -> bool:
    """Whether a prefix may be redistributed: no martian, not link-local.

    The caller decides about default routes, and filters.
    """
    if is_martian(prefix) or _LINK_LOCAL.covers(prefix):
        return False
    return prefix.family == FAMILY_IPV4 or prefix.length == 0 or prefix.network > _SPECIAL
