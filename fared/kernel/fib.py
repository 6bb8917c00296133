"""The kernel's FIB: writes next-hop objects, weighted groups and routes, and reads them back.

The daemon applies the planner's operations here, and audits the kernel by ``read``. Only objects
with our protocol number count as ours, and only ids of our range. The place of a route (table,
prefix, TOS, metric) becomes ours when our route is installed there or found there at start; until
it is deleted we replace any other program's route there. In a place that is not ours a route is
created exclusively (NLM_F_EXCL): the kernel's replace would silently take over the route of another
daemon, or of the operator. ``foreign`` lists the routes in places that we need.

Families (measured on Linux 6.18). A next-hop object has the family of its gateway, and an IPv4
route may point at an IPv6 one, or at a group of both families: the kernel then resolves the gateway
by neighbor discovery and sends IPv4 packets there. Since every route points at an object, RTA_VIA
(RFC 8950 in a route without one) is never needed; the kernel writes it only into dumps for
nexthop_compat_mode. The converse is refused: "IPv6 routes can not use an IPv4 nexthop" (EINVAL),
also for a group that IPv6 routes point at and that is to get an IPv4 member. On a lost carrier and
on ``ip link set down`` the kernel removes next hops of both families silently, together with the
routes that had no other. It removes none with an address, even the last or the link-local one, nor
when IPv6 is disabled on the interface, which only refuses new ones (EACCES; ENODEV where the MTU is
below 1280).
``fibencode`` packs requests, ``fibdump`` reads dumps, ``rtnetlink`` has the layouts.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import cast

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.kernel import netlink
from fared.kernel.claims import Claims
from fared.kernel.dumps import SlicedDump
from fared.kernel.errors import InterruptedDumpError, PrivilegeError
from fared.kernel.fibdump import ExpectedRoutes, FibReading, RoutePlace, holder
from fared.kernel.fibencode import FibEncoder
from fared.kernel.foreign import ForeignNotices
from fared.kernel.neighbor_cache import NeighborCache
from fared.kernel.netlink import Message, RequestFailure
from fared.kernel.requests import LOST, RequestSocket
from fared.kernel.rtnetlink import RTA_DST, RTM_NEWROUTE
from fared.paths.fib.model import (
    DeleteNextHop,
    DeleteRoute,
    FibOperation,
    FibState,
    OperationResult,
    PutNextHop,
    PutRoute,
    deletions,
)
from fared.paths.fib.settings import MAIN_TABLE, METRIC, PROTOCOL, FibSettings
from fared.paths.rib.model import HopKey

_PUT = netlink.NLM_F_CREATE | netlink.NLM_F_REPLACE
_NEW = netlink.NLM_F_CREATE | netlink.NLM_F_EXCL
_DEFAULT_METRIC6 = 1024
"""The metric that the kernel gives an IPv6 route with metric 0 (IP6_RT_PRIO_USER)."""
_DUMP_ATTEMPTS = 8
_IPV4_DST = struct.pack("=HH", 8, RTA_DST)
"""Header of RTA_DST in an IPv4 route, after RTA_TABLE."""


class KernelFib:
    """Executes FIB operations in the network namespace in which it was created.

    ``table``, ``protocol`` and ``metric`` as in ``ip route``; the timers (seconds) are for
    resilient groups: with ``idle_timer`` 0 a change of weight takes effect at once and moves the
    fewest flows, while the kernel's default would never move busy ones. A ``metric`` of 0 is 1024
    for IPv6 routes, as always in Linux.
    """

    def __init__(
        self,
        *,
        table: int = MAIN_TABLE,
        protocol: int = PROTOCOL,
        metric: int = METRIC,
        settings: FibSettings | None = None,
        idle_timer: float = 0.0,
        unbalanced_timer: float = 0.0,
    ) -> None:
        metrics = {FAMILY_IPV4: metric, FAMILY_IPV6: metric or _DEFAULT_METRIC6}
        self._netlink = RequestSocket()
        self._reader = SlicedDump()
        self._place = RoutePlace(table, protocol, metrics)
        self._neighbors = NeighborCache(self._netlink, protocol)
        self._hops: dict[int, HopKey] = {}
        self.settings = settings or FibSettings()
        self._encoder = FibEncoder(self._place, self.settings, idle_timer, unbalanced_timer)
        self._claimed = Claims()
        self.notices = ForeignNotices(self._place, self.settings, self._claimed)
        """What others did to our objects and routes, until it is repaired."""
        self._taken: dict[Prefix, int] = {}
        self._blocked: dict[Prefix, int | None] = {}
        self._unsure: set[Prefix] = set()
        self._leftovers: list[Message] = []
        self.marks: set[int] = set()
        """Tables of marks that the last reading found (``kernel.marks``)."""
        self.written = 0
        """Incremented with every list of operations: a reading begun before is out of date."""

    @property
    def protocol(self) -> int:
        """The protocol number of our objects."""
        return self._place.protocol

    @property
    def requests(self) -> RequestSocket:
        """The socket whose echoes the monitor ignores, for other objects of ours."""
        return self._netlink

    @property
    def port_id(self) -> int:
        """The netlink port id in the echoes of our own changes."""
        return self._netlink.port_id

    @property
    def foreign(self) -> Mapping[Prefix, int | None]:
        """Protocol number of the foreign route in a place of ours, by prefix.

        None: unknown until the next ``read``.
        """
        return {**self._blocked, **self._taken}

    def close(self) -> None:
        """Close the sockets; the kernel keeps forwarding."""
        self._netlink.close()
        self._reader.close()

    # --- writing

    def apply(self, operations: Sequence[FibOperation]) -> list[OperationResult]:
        """Execute in order; one answer for each operation. Raises PrivilegeError."""
        self.written += 1
        if self._taken or self._unsure:
            self._make_way(operations)
        requests, others = self._encode_all(operations)
        failures = self._netlink.batch(requests)
        results = [OperationResult(operation) for operation in operations]
        for position, failure in failures.items():
            operation = operations[position]
            results[position] = OperationResult(operation, failure.error, failure.text)
            self._failed(operation, failure, requests[position][1])
        if self._taken or self._blocked:
            self._count_as_ours(results)
        # Raised last, after the state of all operations is recorded.
        if any(failure.error == errno.EPERM for failure in failures.values()):
            raise PrivilegeError("CAP_NET_ADMIN", "write routes")
        failed = {id(operations[position]) for position in failures}
        self._follow_neighbors(other for other in others if id(other) not in failed)
        return results

    def _failed(self, operation: FibOperation, failure: RequestFailure, flags: int) -> None:
        """Correct the places that ``_encode_all`` recorded as ours or given up."""
        if isinstance(operation, PutRoute) and flags == _NEW:
            self._claimed.release([operation.prefix])
            if failure == LOST:
                # The kernel may have created the route: the next exclusive attempt would then get
                # EEXIST from our own route, so that attempt deletes it first.
                self._unsure.add(operation.prefix)
            if failure.error == errno.EEXIST:  # a route of another program is in the place
                self._blocked.setdefault(operation.prefix, None)
        elif isinstance(operation, DeleteRoute) and failure.error != errno.ESRCH:
            # ESRCH: the route was gone already. After any other error it may exist: still ours.
            self._claimed.claim([operation.prefix])

    def _count_as_ours(self, results: Iterable[OperationResult]) -> None:
        for result in results:
            if result.error == 0 and isinstance(result.operation, PutRoute):
                self._taken.pop(result.operation.prefix, None)
                self._blocked.pop(result.operation.prefix, None)

    def _make_way(self, operations: Iterable[FibOperation]) -> None:
        """Delete our routes behind which another program put its own (``ip route prepend``).

        NLM_F_REPLACE replaces only the first route of the place, and fails with EEXIST if an
        identical one follows. Routes of unknown state are deleted as well.
        """
        wanted = [o.prefix for o in operations if isinstance(o, PutRoute)]
        hidden = [prefix for prefix in wanted if prefix in self._taken or prefix in self._unsure]
        self._unsure.difference_update(hidden)
        # Failures are ignored: usually the kernel holds no such route any more (ESRCH).
        self._netlink.batch([self._encoder.delete_route(prefix) for prefix in hidden])

    def _follow_neighbors(self, done: Iterable[FibOperation]) -> None:
        """Keep the gateways of present next hops resolved, and release others."""
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
        self, operations: Sequence[FibOperation]
    ) -> tuple[list[Message], list[FibOperation]]:
        """Pack operations; also return those that may concern next hops: all except routes.

        Writing a route makes its place ours, deleting the route gives the place up.
        """
        requests: list[Message] = []
        others: list[FibOperation] = []
        for kind, run in groupby(operations, type):
            if kind is PutRoute:
                requests += self._encode_routes(cast("Iterator[PutRoute]", run))
            elif kind is DeleteRoute:
                requests += self._encode_deletions(cast("Iterator[DeleteRoute]", run))
            else:
                others += (part := list(run))
                requests += map(self._encoder.other, part)
        return requests, others

    def _encode_routes(self, run: Iterable[PutRoute]) -> Iterable[Message]:
        """Pack routes: replace in a place of ours, create exclusively elsewhere: see the module."""
        pack, routes = self._encoder.put_route, list(run)
        known = self._claimed.claim([operation.prefix for operation in routes])
        return [
            (RTM_NEWROUTE, _PUT if ours else _NEW, pack(operation.prefix, operation.nexthop_id))
            for ours, operation in zip(known, routes, strict=True)
        ]

    def _encode_deletions(self, run: Iterable[DeleteRoute]) -> Iterable[Message]:
        """Pack deletions of routes."""
        prefixes = [operation.prefix for operation in run]
        self._claimed.release(prefixes)
        if self._taken:
            for prefix in prefixes:
                self._taken.pop(prefix, None)
        return map(self._encoder.delete_route, prefixes)

    # --- reading

    def dump(self) -> FibState:
        """Read all our objects: next hops and groups in our id range, routes of our table.

        Read in one go, for start-up and queries. Raises OSError.
        """
        last: FibState | None = None
        for _ in range(_DUMP_ATTEMPTS):
            reading = FibReading(self._place, self.settings)
            for kind, body in reading.requests():
                entries, whole = self._netlink.dump_once(kind, body)
                reading.whole &= whole
                for answer, payload in entries:
                    reading.take(answer, payload)
            if reading.whole or reading.state == last:
                return self.accept(reading)
            last = reading.state
        raise InterruptedDumpError(errno.EAGAIN, "the table changes faster than it can be read")

    async def read(self, expected: dict[Prefix, int] | None = None) -> FibReading:
        """Read the same in slices between which the loop runs, and the holders of blocked places.

        The caller passes the reading to ``accept`` if nothing was written meanwhile (``written``).
        If the kernel has exactly the ``expected`` routes, the reading holds that very dictionary,
        and none of its own. Raises OSError.

        A dump that other programs' changes interrupt is read again. If tables change all the time,
        two consecutive readings that agree on all our objects are accepted: both would have to miss
        a change.
        """
        if expected is not None:
            reading = await self._read_once(ExpectedRoutes(expected))
            if reading.as_expected():
                return reading
        last: FibState | None = None
        for _ in range(_DUMP_ATTEMPTS):
            reading = await self._read_once(None)
            if reading.whole or reading.state == last:
                return reading
            last = reading.state
        raise InterruptedDumpError(errno.EAGAIN, "the table changes faster than it can be read")

    async def _read_once(self, expected: ExpectedRoutes | None) -> FibReading:
        reading = FibReading(self._place, self.settings, self._blocked, expected)
        for kind, body in reading.requests():
            reading.whole &= await self._reader.dump(kind, body, reading.take)
        return reading

    def accept(self, reading: FibReading) -> FibState:
        """Accept a reading as the present state of the kernel."""
        state = reading.state
        self._leftovers = reading.leftovers
        self.marks = reading.marks
        self._claimed.update(state.routes)
        self._unsure.clear()
        if self._taken:  # ours may exist behind it, but carries no packets
            found = state.routes.items()
            state.routes = {at: object_id for at, object_id in found if at not in self._taken}
        state.taken.update(self._taken)
        if reading.blocked:
            self._blocked = dict(reading.holders)
        self._hops = dict(state.nexthops)
        self._neighbors.retry()
        return state

    def taken(self, body: bytes) -> bool:
        """Whether a new route of another program (``body`` without header) is in a place of ours.

        If so, our route no longer counts as installed.
        """
        if body[20:24] == _IPV4_DST:  # a quick check: most foreign routes have other prefixes
            network = int.from_bytes(body[24:28], "big")
            if Prefix(FAMILY_IPV4, network, body[1]) not in self._claimed:
                return False
        found = holder(body, self._place)
        if found is None or found[0] not in self._claimed or found[1] == self._place.protocol:
            return False
        self._taken[found[0]] = found[1]
        self.notices.taken(found[0])
        return True

    # --- cleaning

    @property
    def leftovers(self) -> int:
        """How many objects of our protocol the last dump had in another table, metric or id range.

        A former process with other settings left them.
        """
        return len(self._leftovers)

    def remove_leftovers(self) -> int:
        """Delete leftovers, routes first; return how many. Call this after convergence."""
        done = len(self._leftovers)
        self._netlink.batch(self._leftovers)
        self._leftovers = []
        return done

    def clear(self) -> None:
        """Remove all our objects, leftovers included."""
        self.apply(deletions(self.dump()))
        self.remove_leftovers()
