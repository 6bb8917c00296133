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
_NHA_ID, _NHA_GROUP, _NHA_GROUP_TYPE, _NHA_OIF, _NHA_GATEWAY, _NHA_RES_GROUP = 1, 2, 3, 5, 6, 12
_RES_BUCKETS, _RES_IDLE, _RES_UNBALANCED = 1, 2, 3
_GROUP_TYPE_RESILIENT = 1
_RTA_DST, _RTA_PRIORITY, _RTA_TABLE, _RTA_NH_ID = 1, 6, 15, 30
_RTNH_F_ONLINK = 4
_RTN_UNICAST = 1
_PUT = netlink.NLM_F_CREATE | netlink.NLM_F_REPLACE
_NEW = netlink.NLM_F_CREATE | netlink.NLM_F_EXCL
_AF = {FAMILY_IPV4: socket.AF_INET, FAMILY_IPV6: socket.AF_INET6}
_FAMILY = {int(af): family for family, af in _AF.items()}
_BYTES = {FAMILY_IPV4: 4, FAMILY_IPV6: 16}

_NHMSG = struct.Struct("=BBBBI")
_MEMBER = struct.Struct("=IBBH")
_RTMSG = struct.Struct("=BBBBBBBBI")
_ROUTE4 = struct.Struct("=BBBBBBBBI HHI HHI HHI")
_BUCKETS_PER_MEMBER = 4


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
        requests = [self._encode(operation, known) for operation in operations]
        failures = self._netlink.batch(requests)
        if any(failure.error == errno.EPERM for failure in failures.values()):
            raise PrivilegeError("CAP_NET_ADMIN", "write routes")
        self._ours = known
        results = [OperationResult(operation) for operation in operations]
        for position, failure in failures.items():
            operation = operations[position]
            results[position] = OperationResult(operation, failure.error, failure.text)
            if isinstance(operation, PutRoute) and not requests[position].flags & (
                netlink.NLM_F_REPLACE
            ):
                self._ours.discard(operation.prefix)
        return results

    def _encode(self, operation: FibOperation, known: set[Prefix]) -> Message:
        match operation:
            case PutRoute(prefix, nexthop_id):
                flags = _PUT if prefix in known else _NEW
                known.add(prefix)
                return Message(_RTM_NEWROUTE, flags, self._route(prefix, nexthop_id))
            case PutGroup():
                return Message(_RTM_NEWNEXTHOP, _PUT, self._group(operation))
            case PutNextHop(nexthop_id, hop):
                return Message(_RTM_NEWNEXTHOP, _PUT, self._nexthop(nexthop_id, hop))
            case DeleteRoute(prefix):
                known.discard(prefix)
                return Message(_RTM_DELROUTE, 0, self._route(prefix, None))
        target = operation.group_id if isinstance(operation, DeleteGroup) else operation.nexthop_id
        return _delete_nexthop(target)

    def _route(self, prefix: Prefix, nexthop_id: int | None) -> bytes:
        family, network, length = prefix
        if family == FAMILY_IPV4 and nexthop_id is not None and self._table < 256:
            return _ROUTE4.pack(
                socket.AF_INET, length, 0, 0, self._table, self._protocol, 0, _RTN_UNICAST, 0,
                8, _RTA_DST, socket.htonl(network),
                8, _RTA_PRIORITY, self._metric,
                8, _RTA_NH_ID, nexthop_id,
            )  # fmt: skip
        return _route_body(prefix, self._table, self._protocol, self._metric, nexthop_id)

    def _nexthop(self, nexthop_id: int, hop: HopKey) -> bytes:
        ifindex, family, gateway, onlink = hop
        flags = _RTNH_F_ONLINK if onlink else 0
        body = _NHMSG.pack(_AF[family], 0, self._protocol, 0, flags)
        body += u32_attribute(_NHA_ID, nexthop_id) + u32_attribute(_NHA_OIF, ifindex)
        if gateway:
            body += attribute(_NHA_GATEWAY, gateway.to_bytes(_BYTES[family], "big"))
        return body

    def _group(self, operation: PutGroup) -> bytes:
        pack = _MEMBER.pack
        # Weights travel less one: low byte, then (since Linux 6.12) the high byte.
        members = b"".join(
            [pack(i, (w - 1) & 0xFF, (w - 1) >> 8 & 0xFF, 0) for i, w in operation.members]
        )
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
                if kind == _RTM_NEWROUTE:
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
            self._leftovers.insert(0, Message(_RTM_DELROUTE, 0, body))

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


def _delete_nexthop(nexthop_id: int) -> Message:
    return Message(_RTM_DELNEXTHOP, 0, bytes(8) + u32_attribute(_NHA_ID, nexthop_id))


def _route_body(
    prefix: Prefix, table: int, protocol: int, metric: int, nexthop_id: int | None
) -> bytes:
    """Pack any route; without a next hop: what a deletion needs to find it."""
    family, network, length = prefix
    small = table if table < 256 else 0
    body = _RTMSG.pack(_AF[family], length, 0, 0, small, protocol, 0, _RTN_UNICAST, 0)
    body += attribute(_RTA_DST, network.to_bytes(_BYTES[family], "big"))
    body += u32_attribute(_RTA_PRIORITY, metric)
    if table >= 256:
        body += u32_attribute(_RTA_TABLE, table)
    if nexthop_id is not None:
        body += u32_attribute(_RTA_NH_ID, nexthop_id)
    return body
