"""Packs FIB operations into netlink requests for ``KernelFib``."""

from __future__ import annotations

import struct
from collections.abc import Sequence

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
    BYTES,
    GROUP_TYPE_RESILIENT,
    MEMBER,
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
    RTM_DELROUTE,
    RTM_NEWNEXTHOP,
    RTNH_F_ONLINK,
    delete_nexthop,
    route_packer,
    without_nexthop,
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
        metrics = place.metrics[FAMILY_IPV4], place.metrics[FAMILY_IPV6]
        self.put_route = route_packer(place.table, place.protocol, *metrics)
        """Packs a route to a prefix that points at a next hop or group."""
        self._timers = u32_attribute(RES_IDLE, round(idle_timer * 100)) + u32_attribute(
            RES_UNBALANCED, round(unbalanced_timer * 100)
        )

    def delete_route(self, prefix: Prefix) -> Message:
        """Pack the deletion of our route; the protocol number spares routes of others."""
        return RTM_DELROUTE, 0, without_nexthop(self.put_route, prefix)

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


def _pack_members(members: Sequence[Member]) -> bytes:
    """Pack members, weights less one: the low byte, then (since Linux 6.12) the high byte.

    An invalid weight is sent as 65536, which the kernel refuses with its own error.
    """
    pack = MEMBER.pack
    weights = [w - 1 if 1 <= w <= _MAX_WEIGHT else _MAX_WEIGHT for _, w in members]
    pairs = zip(members, weights, strict=True)
    return b"".join([pack(m.nexthop_id, w & 0xFF, w >> 8, 0) for m, w in pairs])
