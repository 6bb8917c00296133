"""Numbers and layouts of route and next-hop messages, from linux/rtnetlink.h and linux/nexthop.h.

Routes that the kernel dumps in a fixed layout are unpacked in one call; attributes of others are
looked up by type.
"""

from __future__ import annotations

import socket
import struct

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.kernel.netlink import Message, attribute, u32_attribute

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

AF = {FAMILY_IPV4: socket.AF_INET, FAMILY_IPV6: socket.AF_INET6}
FAMILY = {int(af): family for family, af in AF.items()}
BYTES = {FAMILY_IPV4: 4, FAMILY_IPV6: 16}

NHMSG = struct.Struct("=BBBBI")
MEMBER = struct.Struct("=IBBH")
RTMSG = struct.Struct("=BBBBBBBBI")
ROUTE4_DUMPED = struct.Struct("=BBBBBBBBI HHI HHI HHI HHI")
ROUTE6_DUMPED = struct.Struct("=BBBBBBBBI HHI HH16s HHI HHI HH32s HHB3x")
"""The kernel adds RTA_TABLE in front; an IPv6 route ends with RTA_CACHEINFO and RTA_PREF."""


def delete_nexthop(nexthop_id: int) -> Message:
    """Return the request that deletes a next hop or group."""
    return RTM_DELNEXTHOP, 0, bytes(8) + u32_attribute(NHA_ID, nexthop_id)


def route_body(
    prefix: Prefix, table: int, protocol: int, metric: int, nexthop_id: int | None
) -> bytes:
    """Pack any route; without a next hop as for a deletion, which matches any scope."""
    family = prefix.family
    small = table if table < BYTE else 0
    scope = SCOPE_ANY if nexthop_id is None else 0
    body = RTMSG.pack(AF[family], prefix.length, 0, 0, small, protocol, scope, RTN_UNICAST, 0)
    body += attribute(RTA_DST, prefix.network.to_bytes(BYTES[family], "big"))
    body += u32_attribute(RTA_PRIORITY, metric)
    if table >= BYTE:
        body += u32_attribute(RTA_TABLE, table)
    if nexthop_id is not None:
        body += u32_attribute(RTA_NH_ID, nexthop_id)
    return body
