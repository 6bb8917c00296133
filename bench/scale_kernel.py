"""The routes of a namespace's kernel, as notifications report them: ``scale`` waits for the last.

Reading them costs the observer little, and the daemon nothing: ``ip route`` would do neither.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

_NEWROUTE, _DELROUTE, _NEWNEXTHOP, _DELNEXTHOP = 24, 25, 104, 105
_DST, _OIF, _MULTIPATH, _NH_ID = 1, 4, 9, 30
_GROUP_ID, _GROUP = 1, 2
_BUFFER = 64 << 20
_GROUPS = (7, 32)  # IPv4 routes, next hops
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_NEXTHOP = struct.Struct("=HBBi")


class KernelRoutes:
    """IPv4 routes by prefix, and how many next hops each has."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.changed_at = 0.0
        """When the last change was read."""
        self.changes = 0
        self._groups: dict[int, int] = {}
        self._routes: dict[tuple[int, int], tuple[int, int]] = {}
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
        hops, group = self._routes.get((address, length), (0, 0))
        return self._groups.get(group, 1) if group else hops

    def _process(self, kind: int, data: bytes, at: int, end: int) -> None:
        if kind in (_NEWROUTE, _DELROUTE):
            found = dict(_attributes(data, at + 12, end))
            if data[at + 4] != 254:  # the main table only
                return
            key = int.from_bytes(found.get(_DST, b"\0\0\0\0"), "big"), data[at + 1]
            self.changes += 1
            if kind == _DELROUTE:
                self._routes.pop(key, None)
            else:
                group = int.from_bytes(found.get(_NH_ID, b""), "little")
                self._routes[key] = _hops(found), group
        elif kind in (_NEWNEXTHOP, _DELNEXTHOP):
            found = dict(_attributes(data, at + 8, end))
            number = int.from_bytes(found[_GROUP_ID], "little")
            self.changes += 1
            if kind == _NEWNEXTHOP:
                self._groups[number] = len(found[_GROUP]) // 8 if _GROUP in found else 1
            else:
                self._groups.pop(number, None)


def _attributes(data: bytes, at: int, end: int) -> Iterator[tuple[int, bytes]]:
    while at + 4 <= end:
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += max(4, (length + 3) & ~3)


def _hops(found: dict[int, bytes]) -> int:
    """Count the next hops of a route without a next-hop object."""
    hops = found.get(_MULTIPATH)
    if hops is None:
        return int(_OIF in found)
    count = at = 0
    while at + _NEXTHOP.size <= len(hops):
        at += max(_NEXTHOP.size, (_NEXTHOP.unpack_from(hops, at)[0] + 3) & ~3)
        count += 1
    return count
