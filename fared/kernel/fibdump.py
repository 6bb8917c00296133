"""Decodes dumps of the kernel: our objects, and foreign routes in our places.

``KernelFib`` passes each entry to a ``FibReading``. The place of a route is its table, prefix, TOS
and metric: the kernel keeps one route for each, and ``ip route replace`` of another program takes
it over silently, with that program's protocol number. Malformed entries are ignored.

``_take_plain_route`` is a fast path beside ``_take_route``: tests/kernel/test_fibdump.py proves
them equal; row ``routes in a dump``.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Collection, Iterator, Mapping

import msgspec

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.kernel.netlink import Message, attributes, u32
from fared.kernel.rtnetlink import (
    AF,
    BYTES,
    FAMILY,
    GROUP_TYPE_RESILIENT,
    MEMBER,
    NHA_GATEWAY,
    NHA_GROUP,
    NHA_GROUP_TYPE,
    NHA_ID,
    NHA_OIF,
    NHMSG,
    ROUTE4_DUMPED,
    ROUTE6_DUMPED,
    RTA_DST,
    RTA_NH_ID,
    RTA_PRIORITY,
    RTA_TABLE,
    RTM_DELROUTE,
    RTM_GETNEXTHOP,
    RTM_GETROUTE,
    RTM_NEWNEXTHOP,
    RTM_NEWROUTE,
    RTMSG,
    RTN_UNICAST,
    RTNH_F_ONLINK,
    delete_nexthop,
    destination,
    route_body,
)
from fared.paths.fib.model import FibState, Member
from fared.paths.fib.settings import FibSettings

_LAYOUT = (RTA_TABLE, RTA_DST, RTA_PRIORITY, RTA_NH_ID)


class RoutePlace(msgspec.Struct, frozen=True):
    """Place of our routes: routing table, protocol number, and metric by family."""

    table: int
    protocol: int
    metrics: Mapping[int, int]


def holder(body: bytes, place: RoutePlace) -> tuple[Prefix, int] | None:
    """Return prefix and protocol number of a route (``body`` without header) in one of our places.

    None for a route elsewhere, or a malformed one.
    """
    if len(body) < RTMSG.size:
        return None
    af, length, _, tos, table, protocol, _, _, _ = RTMSG.unpack_from(body)
    family = FAMILY.get(af)
    if family is None or tos:
        return None
    found = attributes(body, RTMSG.size)
    # The header's table is a byte; RTA_TABLE has the whole number.
    table = u32(found[RTA_TABLE]) if RTA_TABLE in found else table
    metric = u32(found[RTA_PRIORITY]) if RTA_PRIORITY in found else 0
    if (table, metric) != (place.table, place.metrics[family]):
        return None
    prefix = destination(family, length, found)
    return None if prefix is None else (prefix, protocol)


class ExpectedRoutes:
    """The routes that should be in the kernel, and how many of them a reading has found.

    The kernel dumps IPv4 routes by their networks, and IPv6 routes by their last addresses (those
    below a prefix before it): so one that comes twice is noticed without a list of all.
    """

    __slots__ = ("_at", "_lengths", "found", "routes")

    def __init__(self, routes: dict[Prefix, int]) -> None:
        self.routes = routes
        self.found = 0
        self._at = (0, 0)
        self._lengths: list[int] = []

    def finds(self, prefix: Prefix, object_id: int) -> bool:
        """Count a route, if it is an expected one and has not come before."""
        if self.routes.get(prefix) != object_id:
            return False
        length = prefix.length
        last = 0 if prefix.family == FAMILY_IPV4 else (1 << 128 - length) - 1
        at = (prefix.family, prefix.network | last)
        if at > self._at:
            self._at, self._lengths = at, [length]
        elif at == self._at and length not in self._lengths:
            self._lengths.append(length)
        else:
            return False
        self.found += 1
        return True


class FibReading:
    """One reading of the kernel: pass the answers to ``requests`` to ``take``, in order.

    Then ``state`` holds our objects; ``leftovers`` deletes those with our protocol number in other
    places. The reader sets ``whole`` if nothing changed while it read. Of ``expected`` routes
    ``state`` holds only the others: they may be a hundred thousand, nearly always those that are
    there (``as_expected``).
    """

    def __init__(
        self,
        place: RoutePlace,
        settings: FibSettings,
        blocked: Collection[Prefix] = (),
        expected: ExpectedRoutes | None = None,
    ) -> None:
        """``blocked``: prefixes whose places another route may hold."""
        self.state = FibState()
        self._expected = expected
        self.leftovers: list[Message] = []
        self.holders: dict[Prefix, int] = {}
        self.marks: set[int] = set()
        self.whole = True
        self._place = place
        self._settings = settings
        self.blocked = blocked

    def requests(self) -> Iterator[tuple[int, bytes]]:
        """Message type and body of the dumps to request."""
        yield RTM_GETNEXTHOP, bytes(NHMSG.size)
        # The kernel filters dumps by protocol and type, and zero is no filter: it is needed
        # only to see whose routes are in blocked places.
        protocol, kind = (0, 0) if self.blocked else (self._place.protocol, RTN_UNICAST)
        for af in AF.values():
            yield RTM_GETROUTE, RTMSG.pack(af, 0, 0, 0, 0, protocol, 0, kind, 0)

    def as_expected(self) -> bool:
        """Whether the kernel has exactly the expected routes; ``state`` then has them, too.

        They are not copied: nobody may change them.
        """
        expected = self._expected
        if expected is None or not self.whole or self.state.routes:
            return False
        if expected.found != len(expected.routes):
            return False
        self.state.routes = expected.routes
        return True

    def take(self, kind: int, body: bytes) -> None:
        """Process one entry."""
        if kind == RTM_NEWROUTE:
            if not self._take_plain_route(body):
                self._take_route(body)
        elif kind == RTM_NEWNEXTHOP:
            self._take_nexthop(body)

    def _take_nexthop(self, body: bytes) -> None:
        """Read a next hop or group: ours into the state, those of others as ids that are taken."""
        if len(body) < NHMSG.size:
            return
        family, _, protocol, _, flags = NHMSG.unpack_from(body)
        found = attributes(body, NHMSG.size)
        gateway = found.get(NHA_GATEWAY, b"")
        if NHA_ID not in found or len(gateway) not in (0, BYTES[FAMILY.get(family, 4)]):
            return
        nexthop_id = u32(found[NHA_ID])
        state = self.state
        if not self._settings.owns(nexthop_id):
            if protocol == self._place.protocol:  # of a run with another id range
                self.leftovers.append(delete_nexthop(nexthop_id))
            return
        if protocol != self._place.protocol:  # another program uses an id of our range
            state.reserved.add(nexthop_id)
        elif NHA_GROUP in found:
            members = found[NHA_GROUP]
            # The kernel holds weights less one; the high byte is zero before Linux 6.12.
            entire = len(members) - len(members) % MEMBER.size
            state.groups[nexthop_id] = tuple(
                Member(i, (low | high << 8) + 1)
                for i, low, high, _ in MEMBER.iter_unpack(members[:entire])
            )
            if u32(found.get(NHA_GROUP_TYPE, b"\0\0")) == GROUP_TYPE_RESILIENT:
                state.resilient.add(nexthop_id)
        else:
            ifindex = u32(found[NHA_OIF]) if NHA_OIF in found else 0
            onlink = bool(flags & RTNH_F_ONLINK)
            address = int.from_bytes(gateway, "big")
            state.nexthops[nexthop_id] = (ifindex, FAMILY.get(family, 4), address, onlink)

    def _take_plain_route(self, body: bytes) -> bool:
        """Read a route in the form that ours have in dumps, five times faster; False: another."""
        if len(body) == ROUTE4_DUMPED.size:
            (af, length, _, tos, _, protocol, _, _, _, _, kind1, table, _, kind2, network,
             _, kind3, metric, _, kind4, nexthop_id) = ROUTE4_DUMPED.unpack(body)  # fmt: skip
            family, bits = FAMILY_IPV4, 32
        elif len(body) == ROUTE6_DUMPED.size:
            (af, length, _, tos, _, protocol, _, _, _, _, kind1, table, _, kind2, network,
             _, kind3, metric, _, kind4, nexthop_id, *_) = ROUTE6_DUMPED.unpack(body)  # fmt: skip
            family, bits = FAMILY_IPV6, 128
        else:
            return False
        place = self._place
        if (
            (kind1, kind2, kind3, kind4) != _LAYOUT
            or (table, metric, protocol) != (place.table, place.metrics[family], place.protocol)
            or (af, tos) != (AF[family], 0)
            or length > bits
        ):
            return False
        at = socket.ntohl(network) if family == FAMILY_IPV4 else int.from_bytes(network, "big")
        self._has_route(Prefix(family, at, length), nexthop_id)
        return True

    def _has_route(self, prefix: Prefix, object_id: int) -> None:
        expected = self._expected
        if expected is None or not expected.finds(prefix, object_id):
            self.state.routes[prefix] = object_id

    def _take_route(self, body: bytes) -> None:
        """Read a route: ours into the state; of others, who holds the place of a refused one."""
        try:
            af, length, _, tos, table, protocol, _, _, _ = RTMSG.unpack_from(body)
        except struct.error:
            return
        place = self._place
        if protocol != place.protocol:
            held = holder(body, place) if self.blocked else None
            if held is not None and held[0] in self.blocked:
                self.holders[held[0]] = protocol
            return
        family = FAMILY.get(af)
        if family is None or tos:
            return
        found = attributes(body, RTMSG.size)
        table = u32(found[RTA_TABLE]) if RTA_TABLE in found else table
        metric = u32(found[RTA_PRIORITY]) if RTA_PRIORITY in found else 0
        prefix = destination(family, length, found)
        if prefix is None:
            return
        if self._settings.owns(table):
            self.marks.add(table)  # the table of a mark: ``kernel.marks``
        elif table == place.table and metric == place.metrics[family]:
            self._has_route(prefix, u32(found[RTA_NH_ID]) if RTA_NH_ID in found else 0)
        else:
            # Routes are deleted before next hops, which the kernel deletes together with routes.
            stale = route_body(prefix, table, protocol, metric, None)
            self.leftovers.insert(0, (RTM_DELROUTE, 0, stale))
