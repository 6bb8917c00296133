"""Packs FIB operations into netlink requests for ``KernelFib``."""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Callable, Sequence

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.kernel.fibdump import RoutePlace
from fared.kernel.netlink import (
    NLA_F_NESTED,
    NLM_F_CREATE,
    NLM_F_REPLACE,
    Message,
    attribute,
    u32_attribute,
)
from fared.kernel.rtnetlink import (
    AF,
    BYTE,
    BYTES,
    GROUP_TYPE_RESILIENT,
    MEMBER,
    MEMBER16,
    NHA_BLACKHOLE,
    NHA_GATEWAY,
    NHA_GROUP,
    NHA_GROUP_TYPE,
    NHA_ID,
    NHA_OIF,
    NHA_RES_GROUP,
    NHMSG,
    RES_BUCKETS,
    RES_IDLE,
    RES_UNBALANCED,
    ROUTE4,
    ROUTE4_DELETED,
    ROUTE6,
    ROUTE6_DELETED,
    RTA_DST,
    RTA_NH_ID,
    RTA_PRIORITY,
    RTM_DELROUTE,
    RTM_NEWNEXTHOP,
    RTN_UNICAST,
    RTNH_F_ONLINK,
    SCOPE_ANY,
    delete_nexthop,
    route_body,
)
from fared.paths.fib.model import (
    DeleteGroup,
    DeleteNextHop,
    FibOperation,
    Member,
    PutGroup,
    PutNextHop,
)
from fared.paths.fib.settings import FibSettings
from fared.paths.rib.model import HopKey

_PUT = NLM_F_CREATE | NLM_F_REPLACE
_MAX_WEIGHT = 65535


class FibEncoder:
    """Packs for one ``place`` and one kind of groups.

    The timers (seconds) are for resilient groups.
    """

    def __init__(
        self, place: RoutePlace, settings: FibSettings, idle_timer: float, unbalanced_timer: float
    ) -> None:
        self._place = place
        self._settings = settings
        self.put_route = _route_packer(place)
        """Packs a route to a prefix that points at a next hop or group."""
        self.delete_route = _deletion_packer(place)
        """Packs the deletion of our route; the protocol number spares routes of others."""
        self._timers = u32_attribute(RES_IDLE, round(idle_timer * 100)) + u32_attribute(
            RES_UNBALANCED, round(unbalanced_timer * 100)
        )

    def other(self, operation: FibOperation) -> Message:
        """Pack an operation on a next hop or group."""
        match operation:
            case PutGroup():
                return RTM_NEWNEXTHOP, _PUT, self._group(operation)
            case PutNextHop(nexthop_id, hop):
                return RTM_NEWNEXTHOP, _PUT, self._nexthop(nexthop_id, hop)
            case DeleteGroup(target) | DeleteNextHop(target):
                return delete_nexthop(target)
        raise TypeError(f"not here: {operation}")

    def _nexthop(self, nexthop_id: int, hop: HopKey) -> bytes:
        ifindex, family, gateway, onlink = hop
        flags = RTNH_F_ONLINK if onlink else 0
        body = NHMSG.pack(AF[family], 0, self._place.protocol, 0, flags)
        body += u32_attribute(NHA_ID, nexthop_id)
        if not ifindex:  # the kernel refuses a blackhole with an interface or gateway (EINVAL)
            return body + attribute(NHA_BLACKHOLE, b"")
        body += u32_attribute(NHA_OIF, ifindex)
        if gateway:
            body += attribute(NHA_GATEWAY, gateway.to_bytes(BYTES[family], "big"))
        return body

    def _group(self, operation: PutGroup) -> bytes:
        members = _pack_members(operation.members)
        # A group has no family (AF_UNSPEC): the kernel refuses any other (EINVAL).
        body = NHMSG.pack(0, 0, self._place.protocol, 0, 0)
        body += u32_attribute(NHA_ID, operation.group_id) + attribute(NHA_GROUP, members)
        if not operation.resilient:
            return body
        nested = self._timers
        if not operation.replace:
            # Only a new group: the kernel cannot change the number of buckets (EINVAL).
            buckets = self._settings.buckets_of(len(operation.members))
            nested = attribute(RES_BUCKETS, struct.pack("=H", buckets)) + nested
        body += attribute(NHA_GROUP_TYPE, struct.pack("=H", GROUP_TYPE_RESILIENT))
        return body + attribute(NHA_RES_GROUP | NLA_F_NESTED, nested)


def _route_packer(place: RoutePlace) -> Callable[[Prefix, int], bytes]:
    """Return the function that packs routes; it does all lookups once, for thousands of routes."""
    pack4, pack6, htonl = ROUTE4.pack, ROUTE6.pack, socket.htonl
    table, protocol = place.table, place.protocol
    metric4, metric6 = place.metrics[FAMILY_IPV4], place.metrics[FAMILY_IPV6]

    def pack(prefix: Prefix, nexthop_id: int) -> bytes:
        network, length = prefix.network, prefix.length
        if prefix.family == FAMILY_IPV4:
            return pack4(
                socket.AF_INET, length, 0, 0, table, protocol, 0, RTN_UNICAST, 0,
                8, RTA_DST, htonl(network),
                8, RTA_PRIORITY, metric4,
                8, RTA_NH_ID, nexthop_id,
            )  # fmt: skip
        return pack6(
            socket.AF_INET6, length, 0, 0, table, protocol, 0, RTN_UNICAST, 0,
            20, RTA_DST, network.to_bytes(16, "big"),
            8, RTA_PRIORITY, metric6,
            8, RTA_NH_ID, nexthop_id,
        )  # fmt: skip

    def pack_numbered(prefix: Prefix, nexthop_id: int) -> bytes:
        return route_body(prefix, table, protocol, place.metrics[prefix.family], nexthop_id)

    # A table above 255 does not fit the header and needs an attribute of its own.
    return pack if table < BYTE else pack_numbered


def _deletion_packer(place: RoutePlace) -> Callable[[Prefix], Message]:
    """Like ``_route_packer``, for deletions."""
    pack4, pack6, htonl = ROUTE4_DELETED.pack, ROUTE6_DELETED.pack, socket.htonl
    table, protocol = place.table, place.protocol
    metric4, metric6 = place.metrics[FAMILY_IPV4], place.metrics[FAMILY_IPV6]

    def pack(prefix: Prefix) -> Message:
        network, length = prefix.network, prefix.length
        if prefix.family == FAMILY_IPV4:
            body = pack4(
                socket.AF_INET, length, 0, 0, table, protocol, SCOPE_ANY, RTN_UNICAST, 0,
                8, RTA_DST, htonl(network),
                8, RTA_PRIORITY, metric4,
            )  # fmt: skip
        else:
            body = pack6(
                socket.AF_INET6, length, 0, 0, table, protocol, SCOPE_ANY, RTN_UNICAST, 0,
                20, RTA_DST, network.to_bytes(16, "big"),
                8, RTA_PRIORITY, metric6,
            )  # fmt: skip
        return RTM_DELROUTE, 0, body

    def pack_numbered(prefix: Prefix) -> Message:
        metric = place.metrics[prefix.family]
        return RTM_DELROUTE, 0, route_body(prefix, table, protocol, metric, None)

    return pack if table < BYTE else pack_numbered


def _pack_members(members: Sequence[Member]) -> bytes:
    """Pack members, weights less one: the low byte, then (since Linux 6.12) the high byte.

    An invalid weight is sent as 65536, which the kernel refuses with its own error.
    """
    pack = MEMBER.pack
    if sys.byteorder == "little":  # the two bytes are one 16-bit number
        try:
            return b"".join([MEMBER16.pack(i, w - 1) for i, w in members])
        except struct.error:
            pass
    weights = [w - 1 if 1 <= w <= _MAX_WEIGHT else _MAX_WEIGHT for _, w in members]
    pairs = zip(members, weights, strict=True)
    return b"".join([pack(m.nexthop_id, w & 0xFF, w >> 8, 0) for m, w in pairs])
