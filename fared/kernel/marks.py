"""Rules and tables that lead packets with a mark through one next hop (``fared.paths.fib.spray``).

The mark, its table and the next hop have one number. The rules come just before that of the main
table, so that an operator's own rules come first, and lookups in the table local always do. They
are many, and each lookup compares them one by one: the first one skips the others for packets
without such a mark. If the kernel removes a next hop with its link, the table of the mark is empty
and the lookup continues in the main table.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable, Iterator

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.kernel.netlink import (
    NLM_F_CREATE,
    NLM_F_EXCL,
    NLM_F_REPLACE,
    Message,
    RequestFailure,
    attributes,
    u32,
    u32_attribute,
)
from fared.kernel.requests import RequestSocket
from fared.kernel.rtnetlink import (
    AF,
    FAMILY,
    RTA_NH_ID,
    RTA_TABLE,
    RTM_DELROUTE,
    RTM_GETROUTE,
    RTM_NEWROUTE,
    RTMSG,
    RTN_UNICAST,
    route_body,
)
from fared.paths.fib.settings import FibSettings
from fared.paths.fib.spray import DeleteMark, DeleteMatch, PutMark, PutMatch, SprayOperation

RTM_NEWRULE, RTM_DELRULE, RTM_GETRULE = 32, 33, 34
_FRA_GOTO, _FRA_PRIORITY, _FRA_FWMARK, _FRA_TABLE, _FRA_FWMASK, _FRA_PROTOCOL = 4, 6, 10, 15, 16, 21
_TO_TABLE, _GOTO = 1, 2
_MAIN = 32766
"""Priority of the rule of the main table."""
_SKIP, _LEAD = _MAIN - 2, _MAIN - 1
_WHOLE = 0xFFFF_FFFF
_GONE = frozenset((errno.ENOENT, errno.ESRCH))
_NO_FAMILY = frozenset((errno.EAFNOSUPPORT, errno.EOPNOTSUPP))
_Found = dict[int, set[int]]


class KernelMarks:
    """Executes the part of the operations that is not in nftables."""

    def __init__(self, requests: RequestSocket, protocol: int, settings: FibSettings) -> None:
        self._requests = requests
        self.protocol = protocol
        self._settings = settings

    @property
    def port(self) -> int:
        """The netlink port of our own changes."""
        return self._requests.port_id

    def put(self, operations: Iterable[SprayOperation]) -> list[str]:
        """Write rules and routes, before packets get the marks; return what was refused."""
        requests: list[Message] = []
        for operation in operations:
            match operation:
                case PutMatch():
                    requests += [self._skip(family) for family in AF]
                case PutMark(nexthop_id, hop_family):
                    for family in _routed(hop_family):
                        requests += self._lead(family, nexthop_id)
        return self._send(requests, frozenset((errno.EEXIST,)))

    def delete(self, operations: Iterable[SprayOperation]) -> list[str]:
        """Delete rules and routes, after packets do not get the marks; return what was refused."""
        requests: list[Message] = []
        for operation in operations:
            match operation:
                case DeleteMatch():
                    requests += [(RTM_DELRULE, 0, self._skip(family)[2]) for family in AF]
                case DeleteMark(nexthop_id):
                    for family in AF:
                        (_, _, route), (_, _, rule) = self._lead(family, nexthop_id)
                        requests += [(RTM_DELRULE, 0, rule), (RTM_DELROUTE, 0, route)]
        return self._send(requests, _GONE)

    def lift(self) -> None:
        """Delete the rules of all marks: their packets follow their flow. Raises OSError."""
        requests: list[Message] = []
        for family in AF:
            for table, action in self._rules(family):
                if action == _TO_TABLE:
                    requests.append((RTM_DELRULE, 0, self._lead(family, table)[1][2]))
        self._send(requests, _GONE)

    def _send(self, requests: list[Message], harmless: frozenset[int]) -> list[str]:
        failures = self._requests.batch(requests)
        return [
            f"{_kind(requests[at])}: {failure.text}"
            for at, failure in failures.items()
            if not self._is_harmless(failure, harmless)
        ]

    @staticmethod
    def _is_harmless(failure: RequestFailure, harmless: frozenset[int]) -> bool:
        """Whether the kernel is as wanted; without IPv6 it needs no rule for IPv6."""
        return failure.error in harmless or failure.error in _NO_FAMILY

    def _skip(self, family: int) -> Message:
        """Pack the rule that leads packets without such a mark past the others."""
        mask = ~(self._settings.id_count - 1) & _WHOLE
        body = _rule(family, 0, _GOTO, self.protocol)
        body += u32_attribute(_FRA_PRIORITY, _SKIP) + u32_attribute(_FRA_GOTO, _MAIN)
        body += u32_attribute(_FRA_FWMARK, 0) + u32_attribute(_FRA_FWMASK, mask)
        return RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, body

    def _lead(self, family: int, nexthop_id: int) -> list[Message]:
        """Pack route and rule of a mark."""
        everything = Prefix(family, 0, 0)
        route = route_body(everything, nexthop_id, self.protocol, _METRIC, nexthop_id)
        rule = _rule(family, nexthop_id, _TO_TABLE, self.protocol)
        rule += u32_attribute(_FRA_PRIORITY, _LEAD)
        rule += u32_attribute(_FRA_FWMARK, nexthop_id) + u32_attribute(_FRA_FWMASK, _WHOLE)
        return [
            (RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, route),
            (RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, rule),
        ]

    def read(self) -> tuple[dict[int, int], bool]:
        """Return the family of each mark, 0 if a part is missing, and whether packets skip them.

        Raises OSError.
        """
        rules: _Found = {}
        skipped = set()
        for family in AF:
            for table, action in self._rules(family):
                if action == _GOTO:
                    skipped.add(family)
                else:
                    rules.setdefault(table, set()).add(family)
        marks = {}
        for table, families in rules.items():
            routes = {family for family in families if self._has_route(family, table)}
            whole = routes == families and FAMILY_IPV4 in families
            marks[table] = max(families) if whole else 0
        return marks, skipped == {*AF}

    def _rules(self, family: int) -> Iterator[tuple[int, int]]:
        """Yield table and action of our rules."""
        skip, seen = self._skip(family)[2], set()
        for kind, body in self._requests.dump(RTM_GETRULE, _rule(family, 0, 0, None)):
            if kind != RTM_NEWRULE or len(body) < RTMSG.size:
                continue
            _, _, _, _, _, _, _, action, _ = RTMSG.unpack_from(body)
            found = attributes(body, RTMSG.size)
            if found.get(_FRA_PROTOCOL, b"")[:1] != bytes([self.protocol]):
                continue
            table = u32(found.get(_FRA_TABLE, b""))
            wanted = skip if action == _GOTO else self._lead(family, table)[1][2]
            names = attributes(wanted, RTMSG.size)
            if all(found.get(name, bytes(4)) == value for name, value in names.items()):
                seen.add((table, action))
        yield from seen

    def _has_route(self, family: int, table: int) -> bool:
        request = RTMSG.pack(AF[family], 0, 0, 0, 0, self.protocol, 0, RTN_UNICAST, 0)
        try:
            dumped = self._requests.dump(RTM_GETROUTE, request + u32_attribute(RTA_TABLE, table))
        except OSError as error:
            if error.errno == errno.ENOENT:  # no such table
                return False
            raise
        for kind, body in dumped:
            if kind != RTM_NEWROUTE or len(body) < RTMSG.size:
                continue
            found = attributes(body, RTMSG.size)
            length = RTMSG.unpack_from(body)[1]
            if not length and u32(found.get(RTA_NH_ID, b"")) == u32(found.get(RTA_TABLE, b"")):
                return True
        return False


_METRIC = 20


def _routed(hop_family: int) -> Iterator[int]:
    """Yield the families that may use a next hop: IPv4 any, IPv6 its own."""
    yield FAMILY_IPV4
    if hop_family == FAMILY_IPV6:
        yield FAMILY_IPV6


def _rule(family: int, table: int, action: int, protocol: int | None) -> bytes:
    """Pack the head of a rule (struct fib_rule_hdr has the size of struct rtmsg)."""
    body = RTMSG.pack(AF[family], 0, 0, 0, 0, 0, 0, action, 0)
    if table:
        body += u32_attribute(_FRA_TABLE, table)
    if protocol is not None:
        body += struct.pack("=HHB3x", 5, _FRA_PROTOCOL, protocol)
    return body


def _kind(request: Message) -> str:
    family = FAMILY.get(request[2][0])
    return f"IPv{family} {'route' if request[0] in (RTM_NEWROUTE, RTM_DELROUTE) else 'rule'}"
