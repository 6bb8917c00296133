"""Packs routes for ``fpmsyncd``, with next hops inline.

Unlike in the kernel's messages, ``rtnh_hops`` is the weight itself (1..255; weight - 1 would arrive
as another ratio), and the table is 0: ``fpmsyncd`` takes any other number as the ifindex of a VRF.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fared.core.ids import Prefix
from fared.kernel.netlink import (
    HEADER,
    NLA_F_NESTED,
    NLM_F_CREATE,
    NLM_F_REPLACE,
    NLM_F_REQUEST,
    attribute,
    u32_attribute,
)
from fared.kernel.rtnetlink import (
    AF,
    BYTES,
    RTA_DST,
    RTA_PRIORITY,
    RTM_DELROUTE,
    RTM_NEWROUTE,
    RTMSG,
    RTN_UNICAST,
)
from fared.paths.fib.model import FibState
from fared.paths.rib.model import HopKey

LARGEST_WEIGHT = 255
MAIN_TABLE = 0
RTA_OIF, RTA_GATEWAY, RTA_MULTIPATH, RTA_VIA = 4, 5, 9, 18
RTN_UNSPEC, RTN_BLACKHOLE = 0, 6
_PUT = NLM_F_REQUEST | NLM_F_REPLACE | NLM_F_CREATE
_DELETE = NLM_F_REQUEST | NLM_F_CREATE  # as zebra sends it
_RTNH = struct.Struct("=HBBI")
_VIA_FAMILY = struct.Struct("=H")


class InlineHop(NamedTuple):
    """A next hop of a route and its weight, 1..255."""

    hop: HopKey
    weight: int


class RouteForm(enum.Enum):
    """What a row of APPL_DB has: fields of one form stay when a route is replaced by the other."""

    UNICAST = "unicast"
    BLACKHOLE = "blackhole"


def form_of(hops: Sequence[InlineHop]) -> RouteForm:
    """Return the form of a route; a next hop without an interface discards."""
    return RouteForm.UNICAST if all(hop[0] for hop, _ in hops) else RouteForm.BLACKHOLE


def inline_hops(state: FibState, nexthop_id: int) -> tuple[InlineHop, ...]:
    """Return the next hops behind the id of a next hop or group, with weights of 1..255."""
    members = state.groups.get(nexthop_id)
    if members is None:
        return (InlineHop(state.nexthops[nexthop_id], 1),)
    weights = scaled([member.weight for member in members])
    pairs = zip(members, weights, strict=True)
    return tuple([InlineHop(state.nexthops[member.nexthop_id], w) for member, w in pairs])


def scaled(weights: Sequence[int]) -> list[int]:
    """Scale weights so that the greatest is at most 255; none becomes 0."""
    greatest = max(weights)
    if greatest <= LARGEST_WEIGHT:
        return list(weights)
    return [max(1, round(weight * LARGEST_WEIGHT / greatest)) for weight in weights]


class FpmEncoder:
    """Packs netlink messages with one protocol number, and a metric for each family."""

    def __init__(self, protocol: int, metrics: Mapping[int, int]) -> None:
        self._protocol = protocol
        self._metrics = metrics

    def change(
        self, prefix: Prefix, before: RouteForm | None, hops: Sequence[InlineHop] | None
    ) -> list[bytes]:
        """Pack what makes the route to ``prefix`` one to ``hops``; None deletes it.

        ``before`` is the form of the announced route: one of another form is deleted first, since
        a row keeps the fields that its successor does not set.
        """
        if hops is None:
            return [self.delete(prefix)]
        if before is None or before is form_of(hops):
            return [self.put(prefix, hops)]
        return [self.delete(prefix), self.put(prefix, hops)]

    def put(self, prefix: Prefix, hops: Sequence[InlineHop]) -> bytes:
        """Pack a route. Raises ValueError without next hops, or if a weight is not 1..255."""
        if not hops or not all(1 <= weight <= LARGEST_WEIGHT for _, weight in hops):
            raise ValueError(f"{prefix}: next hops with weights of 1..{LARGEST_WEIGHT}, not {hops}")
        if form_of(hops) is RouteForm.BLACKHOLE:
            return self._message(RTM_NEWROUTE, _PUT, prefix, RTN_BLACKHOLE, b"")
        if len(hops) == 1:
            hop = hops[0].hop
            nexthop = _gateway(prefix, hop) + u32_attribute(RTA_OIF, hop[0])
        else:
            members = b"".join([_member(prefix, *hop) for hop in hops])
            nexthop = attribute(RTA_MULTIPATH | NLA_F_NESTED, members)
        return self._message(RTM_NEWROUTE, _PUT, prefix, RTN_UNICAST, nexthop)

    def delete(self, prefix: Prefix) -> bytes:
        """Pack the deletion of a route."""
        return self._message(RTM_DELROUTE, _DELETE, prefix, RTN_UNSPEC, b"")

    def _message(self, kind: int, flags: int, prefix: Prefix, route: int, nexthop: bytes) -> bytes:
        family, network, length = prefix.family, prefix.network, prefix.length
        body = RTMSG.pack(AF[family], length, 0, 0, MAIN_TABLE, self._protocol, 0, route, 0)
        body += attribute(RTA_DST, network.to_bytes(BYTES[family], "big"))
        body += u32_attribute(RTA_PRIORITY, self._metrics[family]) + nexthop
        return HEADER.pack(HEADER.size + len(body), kind, flags, 0, 0) + body


def _member(prefix: Prefix, hop: HopKey, weight: int) -> bytes:
    gateway = _gateway(prefix, hop)
    return _RTNH.pack(_RTNH.size + len(gateway), 0, weight, hop[0]) + gateway


def _gateway(prefix: Prefix, hop: HopKey) -> bytes:
    _, family, gateway, _ = hop
    if not gateway:
        return b""
    address = gateway.to_bytes(BYTES[family], "big")
    if family == prefix.family:
        return attribute(RTA_GATEWAY, address)
    return attribute(RTA_VIA, _VIA_FAMILY.pack(AF[family]) + address)
