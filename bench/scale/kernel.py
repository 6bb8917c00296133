"""The routes of a namespace's kernel, as notifications report them: ``scale`` waits for the last.

Reading them costs the observer little, and the daemon nothing: ``ip route`` would do neither. What
counts are changed next hops. Where weights follow load they take steps for many seconds after a
database was loaded, whatever happens meanwhile: that is not a reaction.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

from bench.fib.replay import interfaces_of

_NEWROUTE, _DELROUTE, _NEWNEXTHOP, _DELNEXTHOP = 24, 25, 104, 105
_DST, _OIF, _MULTIPATH, _NH_ID = 1, 4, 9, 30
_GROUP_ID, _GROUP = 1, 2
_BUFFER = 64 << 20
_GROUPS = (7, 32)  # IPv4 routes, next hops
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_Route = tuple[frozenset[int], int]
"""The interfaces of next hops, or the id of a next-hop object."""
_NONE: _Route = frozenset(), 0


class KernelRoutes:
    """IPv4 routes by prefix, and the next hops of each."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.changed_at = 0.0
        """When the last change was read."""
        self.changes = 0
        """Routes, and groups of existing routes, whose next hops have changed."""
        self._groups: dict[int, frozenset[bytes]] = {}
        self._routes: dict[tuple[int, int], _Route] = {}
        sock.setsockopt(socket.SOL_SOCKET, 33, _BUFFER)  # SO_RCVBUFFORCE
        sock.bind((0, 0))
        for group in _GROUPS:
            sock.setsockopt(270, 1, group)
        sock.setblocking(False)

    def read(self) -> None:
        """Process all notifications."""
        before = self.changes
        while True:
            try:
                data = self.socket.recv(1 << 18)
            except BlockingIOError:
                break
            at = 0
            while at + _HEADER.size <= len(data):
                length, kind, *_ = _HEADER.unpack_from(data, at)
                self._process(kind, data, at + _HEADER.size, at + length)
                at += (length + 3) & ~3
        if self.changes != before:
            self.changed_at = time.monotonic()

    def width(self, address: int, length: int) -> int:
        """Number of next hops of a route; 0 without a route."""
        hops, group = self._routes.get((address, length), _NONE)
        if not group:
            return len(hops)
        return len(self._groups[group]) if group in self._groups else 1

    def _process(self, kind: int, data: bytes, at: int, end: int) -> None:
        if kind in (_NEWROUTE, _DELROUTE):
            found = dict(_attributes(data, at + 12, end))
            if data[at + 4] != 254:  # the main table only
                return
            key = int.from_bytes(found.get(_DST, b"\0\0\0\0"), "big"), data[at + 1]
            route = _hops(found), int.from_bytes(found.get(_NH_ID, b""), "little")
            if kind == _DELROUTE:
                self.changes += self._routes.pop(key, None) is not None
            else:
                before = self._routes.get(key)
                self._routes[key] = route
                self.changes += before is None or self._next_hops(before) != self._next_hops(route)
        elif kind in (_NEWNEXTHOP, _DELNEXTHOP):
            found = dict(_attributes(data, at + 8, end))
            self._next_hop(kind, int.from_bytes(found[_GROUP_ID], "little"), found.get(_GROUP))

    def _next_hop(self, kind: int, number: int, group: bytes | None) -> None:
        if kind == _DELNEXTHOP or group is None:
            self._groups.pop(number, None)
            return
        members = frozenset(group[at : at + 4] for at in range(0, len(group), 8))
        before = self._groups.get(number)
        self._groups[number] = members
        self.changes += before is not None and before != members

    def _next_hops(self, route: _Route) -> frozenset[bytes] | _Route:
        """The members of a route's group, else what identifies its next hop."""
        return self._groups.get(route[1], route)


def _attributes(data: bytes, at: int, end: int) -> Iterator[tuple[int, bytes]]:
    while at + 4 <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += max(4, (length + 3) & ~3)


def _hops(found: dict[int, bytes]) -> frozenset[int]:
    """The interfaces of the next hops of a route without a next-hop object: links are to one."""
    hops = found.get(_MULTIPATH)
    if hops is None:
        alone = found.get(_OIF)
        return frozenset() if alone is None else frozenset((int.from_bytes(alone, "little"),))
    return frozenset(interfaces_of(hops))
