"""Numbers and layouts of route and next-hop messages, from linux/rtnetlink.h and linux/nexthop.h.

Routes that the kernel dumps in a fixed layout are unpacked in one call; attributes of others are
looked up by type.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.kernel.netlink import Message, u32_attribute

RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE = 24, 25, 26
RTM_NEWNEXTHOP, RTM_DELNEXTHOP, RTM_GETNEXTHOP = 104, 105, 106
NHA_ID, NHA_GROUP, NHA_GROUP_TYPE, NHA_BLACKHOLE, NHA_OIF, NHA_GATEWAY = 1, 2, 3, 4, 5, 6
NHA_RES_GROUP = 12
RES_BUCKETS, RES_IDLE, RES_UNBALANCED = 1, 2, 3
GROUP_TYPE_RESILIENT = 1
RTA_DST, RTA_PRIORITY, RTA_TABLE, RTA_NH_ID = 1, 6, 15, 30
RTNH_F_ONLINK = 4
RTN_UNICAST = 1
SCOPE_ANY = 255
"""A deletion matches any scope."""
BYTE = 256
"""The table number in the header is one byte."""

_NH_ID_SIZE = 8
_INET, _INET6 = int(socket.AF_INET), int(socket.AF_INET6)
AF = {FAMILY_IPV4: socket.AF_INET, FAMILY_IPV6: socket.AF_INET6}
FAMILY = {int(af): family for family, af in AF.items()}
BYTES = {FAMILY_IPV4: 4, FAMILY_IPV6: 16}

NHMSG = struct.Struct("=BBBBI")
MEMBER = struct.Struct("=IBBH")
RTMSG = struct.Struct("=BBBBBBBBI")
_ROUTE4 = struct.Struct("=BBBBBBBBI HHI HHI HHI HHI")
_ROUTE6 = struct.Struct("=BBBBBBBBI HH16s HHI HHI HHI")
ROUTE4_DUMPED = struct.Struct("=BBBBBBBBI HHI HHI HHI HHI")
ROUTE6_DUMPED = struct.Struct("=BBBBBBBBI HHI HH16s HHI HHI HH32s HHB3x")
"""The kernel adds RTA_TABLE in front; an IPv6 route ends with RTA_CACHEINFO and RTA_PREF."""


def destination(family: int, length: int, found: Mapping[int, bytes]) -> Prefix | None:
    """Return the prefix of a route by its attributes; None if it is malformed.

    The kernel leaves out the destination of a default route.
    """
    network = found.get(RTA_DST, b"" if length else bytes(BYTES[family]))
    if len(network) != BYTES[family] or length > 8 * BYTES[family]:
        return None
    return Prefix(family, int.from_bytes(network, "big"), length)


def delete_nexthop(nexthop_id: int) -> Message:
    """Return the request that deletes a next hop or group."""
    return RTM_DELNEXTHOP, 0, bytes(8) + u32_attribute(NHA_ID, nexthop_id)


def route_packer(table: int, protocol: int, metric4: int, metric6: int) -> Callable[..., bytes]:
    """Return the function that packs routes to a next hop; it does all lookups for thousands.

    ``scope`` is that of the destination. A table above 255 does not fit the header (0).
    """
    pack4, pack6, htonl = _ROUTE4.pack, _ROUTE6.pack, socket.htonl
    small = table if table < BYTE else 0

    def pack(prefix: Prefix, nexthop_id: int, scope: int = 0) -> bytes:
        if prefix.family == FAMILY_IPV4:
            return pack4(
                _INET, prefix.length, 0, 0, small, protocol, scope, RTN_UNICAST, 0,
                8, RTA_DST, htonl(prefix.network),
                8, RTA_PRIORITY, metric4,
                8, RTA_TABLE, table,
                8, RTA_NH_ID, nexthop_id,
            )  # fmt: skip
        return pack6(
            _INET6, prefix.length, 0, 0, small, protocol, scope, RTN_UNICAST, 0,
            20, RTA_DST, prefix.network.to_bytes(16, "big"),
            8, RTA_PRIORITY, metric6,
            8, RTA_TABLE, table,
            8, RTA_NH_ID, nexthop_id,
        )  # fmt: skip

    return pack


def route_body(
    prefix: Prefix, table: int, protocol: int, metric: int, nexthop_id: int | None
) -> bytes:
    """Pack one route; without a next hop as for a deletion, which matches any scope."""
    pack = route_packer(table, protocol, metric, metric)
    return pack(prefix, nexthop_id) if nexthop_id is not None else without_nexthop(pack, prefix)


def without_nexthop(pack: Callable[..., bytes], prefix: Prefix) -> bytes:
    """Pack a deletion: of a route to any next hop, with any scope."""
    return pack(prefix, 0, SCOPE_ANY)[:-_NH_ID_SIZE]
