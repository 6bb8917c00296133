"""The kernel's FIB: next-hop objects, weighted groups and routes, written and read by hand.

Only objects with our protocol number are read as ours, and only ids of our range: what others
installed is never changed. A route that is not known to be ours is created exclusively, because
the kernel's replace would silently take over another daemon's route of the same metric.

Families (measured on Linux 6.18). A next-hop object has the family of its gateway, and an IPv4
route may point at an IPv6 one, or at a group of both kinds: the kernel then resolves the gateway
by neighbor discovery and sends IPv4 packets there. Since every route points at an object, RTA_VIA
(RFC 8950 in a route without one) is never needed; the kernel writes it only into dumps for
nexthop_compat_mode. The other way round is refused: "IPv6 routes can not use an IPv4 nexthop"
(EINVAL), also for a group that IPv6 routes point at and that is to get an IPv4 member. On a lost
carrier and on ``ip link set down`` next hops of both families vanish silently together with the
routes that had no other; none vanishes with an address, be it the last one or the link-local one,
nor when IPv6 is switched off on the interface, which only refuses new ones (EACCES; ENODEV where
the MTU is below 1280).
Layouts: linux/nexthop.h and linux/rtnetlink.h.
"""

from __future__ import annotations

import errno
import socket
import struct
import sys
from collections.abc import Iterable, Sequence

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.fib.model import (
    DeleteGroup,
    DeleteNextHop,
    DeleteRoute,
    FibOperation,
    FibState,
    Member,
    OperationResult,
    PutGroup,
    PutNextHop,
    PutRoute,
)
from fared.fib.settings import FibSettings
from fared.kernel import netlink
from fared.kernel.errors import PrivilegeError
from fared.kernel.neighbors import Neighbors
from fared.kernel.netlink import Message, RequestSocket, attribute, u32, u32_attribute
from fared.rib.model import HopKey

_RTM_NEWROUTE, _RTM_DELROUTE, _RTM_GETROUTE = 24, 25, 26
_RTM_NEWNEXTHOP, _RTM_DELNEXTHOP, _RTM_GETNEXTHOP = 104, 105, 106
_NHA_ID, _NHA_GROUP, _NHA_GROUP_TYPE, _NHA_BLACKHOLE, _NHA_OIF, _NHA_GATEWAY = 1, 2, 3, 4, 5, 6
_NHA_RES_GROUP = 12
_RES_BUCKETS, _RES_IDLE, _RES_UNBALANCED = 1, 2, 3
_GROUP_TYPE_RESILIENT = 1
_RTA_DST, _RTA_PRIORITY, _RTA_TABLE, _RTA_NH_ID = 1, 6, 15, 30
_RTNH_F_ONLINK = 4
_RTN_UNICAST = 1
_SCOPE_ANY = 255
_PUT = netlink.NLM_F_CREATE | netlink.NLM_F_REPLACE
_NEW = netlink.NLM_F_CREATE | netlink.NLM_F_EXCL
_AF = {FAMILY_IPV4: socket.AF_INET, FAMILY_IPV6: socket.AF_INET6}
_FAMILY = {int(af): family for family, af in _AF.items()}
_BYTES = {FAMILY_IPV4: 4, FAMILY_IPV6: 16}

_NHMSG = struct.Struct("=BBBBI")
_MEMBER = struct.Struct("=IBBH")
_MEMBER16 = struct.Struct("=IHxx")
_RTMSG = struct.Struct("=BBBBBBBBI")
_ROUTE4 = struct.Struct("=BBBBBBBBI HHI HHI HHI")
_ROUTE4_DUMPED = struct.Struct("=BBBBBBBBI HHI HHI HHI HHI")
_ROUTE6 = struct.Struct("=BBBBBBBBI HH16s HHI HHI")
_ROUTE6_DUMPED = struct.Struct("=BBBBBBBBI HHI HH16s HHI HHI HH32s HHB3x")
"""Ends with RTA_CACHEINFO and RTA_PREF, which say nothing of use here."""
_MAX_WEIGHT = 65535
_BYTE = 256
_DEFAULT_METRIC6 = 1024
"""What the kernel makes of metric 0 in an IPv6 route (IP6_RT_PRIO_USER)."""


class KernelFib:
    """Carries out FIB operations in the namespace it was made in.

    ``table``, ``protocol`` and ``metric`` as in ``ip route``; the timers (seconds) are for
    resilient groups: with ``idle_timer`` 0 a change of weight acts at once and moves the fewest
    flows, while the kernel's default would never move busy ones. A ``metric`` of 0 is 1024 for
    IPv6 routes, as everywhere in Linux.
    """

    def __init__(
        self,
        *,
        table: int = 254,
        protocol: int = 201,
        metric: int = 20,
        settings: FibSettings | None = None,
        idle_timer: float = 0.0,
        unbalanced_timer: float = 0.0,
    ) -> None:
        self._netlink = RequestSocket()
        self._table = table
        self._protocol = protocol
        self._metrics = {FAMILY_IPV4: metric, FAMILY_IPV6: metric or _DEFAULT_METRIC6}
        self._neighbors = Neighbors(self._netlink, protocol)
        self._hops: dict[int, HopKey] = {}
        self._settings = settings or FibSettings()
        self._timers = u32_attribute(_RES_IDLE, round(idle_timer * 100)) + u32_attribute(
            _RES_UNBALANCED, round(unbalanced_timer * 100)
        )
        self._ours: set[Prefix] = set()
        self._leftovers: list[Message] = []

    @property
    def port_id(self) -> int:
        """The netlink port that our own changes are echoed with."""
        return self._netlink.port_id

    def close(self) -> None:
        """Close the socket; the kernel keeps forwarding."""
        self._netlink.close()

    # --- writing

    def apply(self, operations: Sequence[FibOperation]) -> list[OperationResult]:
        """Carry out in order; one answer an operation. Raises PrivilegeError."""
        known = set(self._ours)
        requests, others = self._encode_all(operations, known)
        failures = self._netlink.batch(requests)
        if any(failure.error == errno.EPERM for failure in failures.values()):
            raise PrivilegeError("CAP_NET_ADMIN", "write routes")
        self._ours = known
        results = [OperationResult(operation) for operation in operations]
        for position, failure in failures.items():
            operation = operations[position]
            results[position] = OperationResult(operation, failure.error, failure.text)
            if isinstance(operation, PutRoute) and requests[position][1] == _NEW:
                self._ours.discard(operation.prefix)
        failed = {id(operations[position]) for position in failures}
        self._follow_neighbors(other for other in others if id(other) not in failed)
        return results

    def _follow_neighbors(self, done: Iterable[FibOperation]) -> None:
        """Keep the neighbors of next hops that are there now, and release those of others."""
        kept: list[HopKey] = []
        released: list[HopKey] = []
        for operation in done:
            if type(operation) is PutNextHop:
                self._hops[operation.nexthop_id] = operation.hop
                kept.append(operation.hop)
            elif type(operation) is DeleteNextHop and operation.nexthop_id in self._hops:
                released.append(self._hops.pop(operation.nexthop_id))
        if released:
            used = set(self._hops.values())
            self._neighbors.release(hop for hop in released if hop not in used)
        if kept:
            self._neighbors.keep(kept)

    def _encode_all(
        self, operations: Sequence[FibOperation], known: set[Prefix]
    ) -> tuple[list[Message], Sequence[FibOperation]]:
        """Pack operations; routes, of which there are thousands, without a call each.

        Also returns those that may concern next hops: all but most routes.
        """
        if self._table >= _BYTE:
            return [self._encode(operation, known) for operation in operations], operations
        pack4, pack6, htonl = _ROUTE4.pack, _ROUTE6.pack, socket.htonl
        table, protocol = self._table, self._protocol
        metric4, metric6 = self._metrics[FAMILY_IPV4], self._metrics[FAMILY_IPV6]
        requests: list[Message] = []
        others: list[FibOperation] = []
        for operation in operations:
            if type(operation) is not PutRoute:
                requests.append(self._encode(operation, known))
                others.append(operation)
                continue
            prefix = operation.prefix
            family, network, length = prefix
            if family == FAMILY_IPV4:
                body = pack4(
                    socket.AF_INET, length, 0, 0, table, protocol, 0, _RTN_UNICAST, 0,
                    8, _RTA_DST, htonl(network),
                    8, _RTA_PRIORITY, metric4,
                    8, _RTA_NH_ID, operation.nexthop_id,
                )  # fmt: skip
            else:
                body = pack6(
                    socket.AF_INET6, length, 0, 0, table, protocol, 0, _RTN_UNICAST, 0,
                    20, _RTA_DST, network.to_bytes(16, "big"),
                    8, _RTA_PRIORITY, metric6,
                    8, _RTA_NH_ID, operation.nexthop_id,
                )  # fmt: skip
            requests.append((_RTM_NEWROUTE, _PUT if prefix in known else _NEW, body))
            known.add(prefix)
        return requests, others

    def _encode(self, operation: FibOperation, known: set[Prefix]) -> Message:
        match operation:
            case PutRoute(prefix, nexthop_id):
                flags = _PUT if prefix in known else _NEW
                known.add(prefix)
                return _RTM_NEWROUTE, flags, self._route(prefix, nexthop_id)
            case PutGroup():
                return _RTM_NEWNEXTHOP, _PUT, self._group(operation)
            case PutNextHop(nexthop_id, hop):
                return _RTM_NEWNEXTHOP, _PUT, self._nexthop(nexthop_id, hop)
            case DeleteRoute(prefix):
                known.discard(prefix)
                return _RTM_DELROUTE, 0, self._route(prefix, None)
        target = operation.group_id if isinstance(operation, DeleteGroup) else operation.nexthop_id
        return _delete_nexthop(target)

    def _route(self, prefix: Prefix, nexthop_id: int | None) -> bytes:
        metric = self._metrics[prefix.family]
        return _route_body(prefix, self._table, self._protocol, metric, nexthop_id)

    def _nexthop(self, nexthop_id: int, hop: HopKey) -> bytes:
        ifindex, family, gateway, onlink = hop
        flags = _RTNH_F_ONLINK if onlink else 0
        body = _NHMSG.pack(_AF[family], 0, self._protocol, 0, flags)
        body += u32_attribute(_NHA_ID, nexthop_id)
        if not ifindex:
            return body + attribute(_NHA_BLACKHOLE, b"")
        body += u32_attribute(_NHA_OIF, ifindex)
        if gateway:
            body += attribute(_NHA_GATEWAY, gateway.to_bytes(_BYTES[family], "big"))
        return body

    def _group(self, operation: PutGroup) -> bytes:
        members = _pack_members(operation.members)
        body = _NHMSG.pack(0, 0, self._protocol, 0, 0)
        body += u32_attribute(_NHA_ID, operation.group_id) + attribute(_NHA_GROUP, members)
        if not operation.resilient:
            return body
        nested = self._timers
        if not operation.replace:
            # The number is fixed for life.
            buckets = self._settings.buckets_of(len(operation.members))
            nested = attribute(_RES_BUCKETS, struct.pack("=H", buckets)) + nested
        body += attribute(_NHA_GROUP_TYPE, struct.pack("=H", _GROUP_TYPE_RESILIENT))
        return body + attribute(_NHA_RES_GROUP | netlink.NLA_F_NESTED, nested)

    # --- reading

    def dump(self) -> FibState:
        """Everything of ours: next hops and groups in our id range, routes of our table."""
        state = FibState()
        self._leftovers = []
        for kind, body in self._netlink.dump(_RTM_GETNEXTHOP, bytes(8)):
            if kind == _RTM_NEWNEXTHOP:
                self._read_nexthop(body, state)
        for family in _AF.values():
            request = _RTMSG.pack(family, 0, 0, 0, 0, self._protocol, 0, _RTN_UNICAST, 0)
            for kind, body in self._netlink.dump(_RTM_GETROUTE, request):
                if kind == _RTM_NEWROUTE and not self._read_plain_route(body, state):
                    self._read_route(body, state)
        self._ours = set(state.routes)
        self._hops = dict(state.nexthops)
        return state

    def _read_nexthop(self, body: bytes, state: FibState) -> None:
        family, _, protocol, _, flags = _NHMSG.unpack_from(body)
        found = netlink.attributes(body, 8)
        nexthop_id = u32(found[_NHA_ID])
        if not self._settings.owns(nexthop_id):
            if protocol == self._protocol:
                self._leftovers.append(_delete_nexthop(nexthop_id))
            return
        if protocol != self._protocol:
            state.reserved.add(nexthop_id)
        elif _NHA_GROUP in found:
            state.groups[nexthop_id] = tuple(
                Member(i, (low | high << 8) + 1)
                for i, low, high, _ in _MEMBER.iter_unpack(found[_NHA_GROUP])
            )
            if u32(found.get(_NHA_GROUP_TYPE, b"\0\0")) == _GROUP_TYPE_RESILIENT:
                state.resilient.add(nexthop_id)
        else:
            gateway = int.from_bytes(found.get(_NHA_GATEWAY, b""), "big")
            ifindex = u32(found[_NHA_OIF]) if _NHA_OIF in found else 0
            onlink = bool(flags & _RTNH_F_ONLINK)
            state.nexthops[nexthop_id] = (ifindex, _FAMILY.get(family, 4), gateway, onlink)

    def _read_plain_route(self, body: bytes, state: FibState) -> bool:
        """Read a route exactly as we write them, five times faster; False for any other."""
        if len(body) == _ROUTE4_DUMPED.size:
            (af, length, _, _, _, protocol, _, _, _, _, kind1, table, _, kind2, network,
             _, kind3, metric, _, kind4, nexthop_id) = _ROUTE4_DUMPED.unpack(body)  # fmt: skip
            family = FAMILY_IPV4
        elif len(body) == _ROUTE6_DUMPED.size:
            (af, length, _, _, _, protocol, _, _, _, _, kind1, table, _, kind2, network,
             _, kind3, metric, _, kind4, nexthop_id, *_) = _ROUTE6_DUMPED.unpack(body)  # fmt: skip
            family = FAMILY_IPV6
        else:
            return False
        layout = (kind1, kind2, kind3, kind4)
        if (
            layout != (_RTA_TABLE, _RTA_DST, _RTA_PRIORITY, _RTA_NH_ID)
            or (table, metric, protocol) != (self._table, self._metrics[family], self._protocol)
            or af != _AF[family]
        ):
            return False
        if family == FAMILY_IPV4:
            prefix = Prefix(FAMILY_IPV4, socket.ntohl(network), length)
        else:
            prefix = Prefix(FAMILY_IPV6, int.from_bytes(network, "big"), length)
        state.routes[prefix] = nexthop_id
        return True

    def _read_route(self, body: bytes, state: FibState) -> None:
        af, length, _, _, table, protocol, _, _, _ = _RTMSG.unpack_from(body)
        if protocol != self._protocol:  # a kernel without strict dumps sends all
            return
        found = netlink.attributes(body, 12)
        if _RTA_TABLE in found:
            table = u32(found[_RTA_TABLE])
        metric = u32(found[_RTA_PRIORITY]) if _RTA_PRIORITY in found else 0
        prefix = Prefix(_FAMILY[af], int.from_bytes(found.get(_RTA_DST, b""), "big"), length)
        if table == self._table and metric == self._metrics[prefix.family]:
            state.routes[prefix] = u32(found[_RTA_NH_ID]) if _RTA_NH_ID in found else 0
        else:
            body = _route_body(prefix, table, protocol, metric, None)
            self._leftovers.insert(0, (_RTM_DELROUTE, 0, body))

    # --- cleaning

    @property
    def leftovers(self) -> int:
        """Objects of our protocol, seen by the last dump, in another table, metric or id range.

        They come from a run with other settings.
        """
        return len(self._leftovers)

    def remove_leftovers(self) -> int:
        """Delete them, routes first; return how many. To be called after convergence."""
        done = len(self._leftovers)
        self._netlink.batch(self._leftovers)
        self._leftovers = []
        return done

    def clear(self) -> None:
        """Remove everything of ours, leftovers of other settings too."""
        state = self.dump()
        operations: list[FibOperation] = [DeleteRoute(prefix) for prefix in state.routes]
        operations += [DeleteGroup(group_id) for group_id in state.groups]
        operations += [DeleteNextHop(nexthop_id) for nexthop_id in state.nexthops]
        self.apply(operations)
        self.remove_leftovers()


def _pack_members(members: Sequence[Member]) -> bytes:
    """Weights travel less one: the low byte, then (since Linux 6.12) the high byte.

    What does not fit becomes 65536, which the kernel refuses in its own words.
    """
    pack = _MEMBER.pack
    if sys.byteorder == "little":
        try:
            return b"".join([_MEMBER16.pack(i, w - 1) for i, w in members])
        except struct.error:
            pass
    weights = [w - 1 if 1 <= w <= _MAX_WEIGHT else _MAX_WEIGHT for _, w in members]
    pairs = zip(members, weights, strict=True)
    return b"".join([pack(m.nexthop_id, w & 0xFF, w >> 8, 0) for m, w in pairs])


def _delete_nexthop(nexthop_id: int) -> Message:
    return _RTM_DELNEXTHOP, 0, bytes(8) + u32_attribute(_NHA_ID, nexthop_id)


def _route_body(
    prefix: Prefix, table: int, protocol: int, metric: int, nexthop_id: int | None
) -> bytes:
    """Pack any route; without a next hop: what a deletion needs to find it."""
    family, network, length = prefix
    small = table if table < _BYTE else 0
    scope = _SCOPE_ANY if nexthop_id is None else 0
    body = _RTMSG.pack(_AF[family], length, 0, 0, small, protocol, scope, _RTN_UNICAST, 0)
    body += attribute(_RTA_DST, network.to_bytes(_BYTES[family], "big"))
    body += u32_attribute(_RTA_PRIORITY, metric)
    if table >= _BYTE:
        body += u32_attribute(_RTA_TABLE, table)
    if nexthop_id is not None:
        body += u32_attribute(_RTA_NH_ID, nexthop_id)
    return body
