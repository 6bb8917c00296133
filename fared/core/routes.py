"""Routes of this router that no routing protocol of ours made: what may be redistributed."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from fared.core.ids import FAMILY_IPV4, Prefix, ipv4_prefix

_NOWHERE = (
    ipv4_prefix(127 << 24, 8),
    ipv4_prefix(169 << 24 | 254 << 16, 16),
    Prefix(6, 0xFE80 << 112, 10),
)
"""Loopback and link-local addresses mean something else on every host (RFC 3927 §7, RFC 4291)."""
_CLASS_D = 224 << 24
_MULTICAST = 0xFF << 120
_SPECIAL = 0xFFFF_FFFF_FFFF
"""The unspecified and the loopback address and those made of IPv4 addresses are not above this."""


class RouteSource(enum.StrEnum):
    """Where a route comes from; in order of preference where two have the same prefix."""

    CONNECTED = "connected"
    STATIC = "static"


@dataclass(frozen=True, slots=True)
class LocalRoute:
    """A route that forwards now. ``hops`` are (ifindex, gateway) pairs, gateway 0 for none.

    A connected route has the interfaces that have an address in it. Without hops a static one
    discards, or its next hops are not known here.
    """

    hops: tuple[tuple[int, int], ...] = ()


RouteKey = tuple[RouteSource, Prefix]


def announceable(prefix: Prefix, inside: tuple[Prefix, ...]) -> bool:
    """Whether a prefix is one for other routers at all, and inside one of these; none: any.

    Default routes are for the caller to tell apart.
    """
    if prefix.family == FAMILY_IPV4:
        special = prefix.network >= _CLASS_D
    else:
        special = prefix.network >= _MULTICAST or (prefix.length > 0 and prefix.network <= _SPECIAL)
    if special or any(nowhere.covers(prefix) for nowhere in _NOWHERE):
        return False
    return not inside or any(outer.covers(prefix) for outer in inside)
