"""The kernel's FIB: next-hop objects, weighted groups and routes, written and read by hand.

Only objects with our protocol number are read as ours, and only ids of our range: what others
installed is never changed. A route that is not known to be ours is created exclusively, because
the kernel's replace would silently take over another daemon's route of the same metric.
Layouts: linux/nexthop.h and linux/rtnetlink.h.
"""

from __future__ import annotations

import errno
import socket
import struct
import sys
from collections.abc import Sequence

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
_BUCKETS_PER_MEMBER = 4
_MAX_WEIGHT = 65535
_BYTE = 256


class KernelFib:
    """Carries out FIB operations in the namespace it was made in.

    ``table``, ``protocol`` and ``metric`` as in ``ip route``; ``buckets`` and the timers
    (seconds) are for resilient groups: with ``idle_timer`` 0 a change of weight acts at once and
    moves the fewest flows, while the kernel's default would never move busy ones.
    """

    def __init__(
        self,
        *,
        table: int = 254,
        protocol: int = 201,
        metric: int = 20,
        settings: FibSettings | None = None,
        buckets: int = 512,
        idle_timer: float = 0.0,
        unbalanced_timer: float = 0.0,
    ) -> None:
        self._netlink = RequestSocket()
        self._table = table
        self._protocol = protocol
        self._metric = metric
        self._settings = settings or FibSettings()
        self._buckets = buckets
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
        requests = self._encode_all(operations, known)
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
        return results

    def _encode_all(self, operations: Sequence[FibOperation], known: set[Prefix]) -> list[Message]:
        """Pack operations; IPv4 routes, of which there are thousands, without a call each."""
        if self._table >= _BYTE:
            return [self._encode(operation, known) for operation in operations]
        pack, htonl = _ROUTE4.pack, socket.htonl
        table, protocol, metric = self._table, self._protocol, self._metric
        requests: list[Message] = []
        for operation in operations:
            if type(operation) is not PutRoute or operation.prefix[0] != FAMILY_IPV4:
                requests.append(self._encode(operation, known))
                continue
            prefix = operation.prefix
            _, network, length = prefix
            body = pack(
                socket.AF_INET, length, 0, 0, table, protocol, 0, _RTN_UNICAST, 0,
                8, _RTA_DST, htonl(network),
                8, _RTA_PRIORITY, metric,
                8, _RTA_NH_ID, operation.nexthop_id,
            )  # fmt: skip
            requests.append((_RTM_NEWROUTE, _PUT if prefix in known else _NEW, body))
            known.add(prefix)
        return requests

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
        return _route_body(prefix, self._table, self._protocol, self._metric, nexthop_id)

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
            # The number is fixed for life, and too few would leave members without traffic.
            least = 1 << (_BUCKETS_PER_MEMBER * len(operation.members) - 1).bit_length()
            buckets = max(self._buckets, least)
            nested = attribute(_RES_BUCKETS, struct.pack("=H", min(buckets, 65535))) + nested
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
        if len(body) != _ROUTE4_DUMPED.size:
            return False
        (af, length, _, _, _, protocol, _, _, _, _, kind1, table, _, kind2, network,
         _, kind3, metric, _, kind4, nexthop_id) = _ROUTE4_DUMPED.unpack(body)  # fmt: skip
        layout = (kind1, kind2, kind3, kind4)
        if (
            layout != (_RTA_TABLE, _RTA_DST, _RTA_PRIORITY, _RTA_NH_ID)
            or (table, metric, protocol) != (self._table, self._metric, self._protocol)
            or af != socket.AF_INET
        ):
            return False
        state.routes[Prefix(FAMILY_IPV4, socket.ntohl(network), length)] = nexthop_id
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
        if table == self._table and metric == self._metric:
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
