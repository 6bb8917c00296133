"""Routes of the kernels of a fabric over time: netlink messages are recorded, and decoded later.

One netlink socket per namespace. During a measurement, messages are only time-stamped and stored,
so that the recording takes little CPU from the daemons; ``Kernel`` replays them afterwards over a
dump taken before. On carrier loss the kernel removes objects without a notification (next hops,
their group memberships, routes without another next hop): the replay removes them at the link
message.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from fared.extensions.lab.namespaces import Netns
from fared.extensions.lab.port import PortAddresses

NEWLINK, NEWROUTE, DELROUTE, GETROUTE = 16, 24, 25, 26
NEWNEXTHOP, DELNEXTHOP, GETNEXTHOP = 104, 105, 106
DUMP, REQUEST_ACK = 0x301, 0x5
LINK_GROUP, ROUTE_GROUP, NEXTHOP_GROUP = 1, 7, 32
IFF_UP, IFF_LOWER_UP = 0x1, 0x10000
RTA_DST, RTA_OIF, RTA_PRIORITY, RTA_MULTIPATH, RTA_NH_ID = 1, 4, 6, 9, 30
NHA_ID, NHA_GROUP, NHA_OIF = 1, 2, 5
MAIN, UNICAST = 254, 1
DONE, ERROR = 3, 2
RCVBUFFORCE = 33
BUFFER = 8 << 20

Prefix = tuple[bytes, int]
Use = dict[Prefix, frozenset[int]]
"""Prefix to the interface indexes its route uses."""


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Split the data of one recv into (type, body)."""
    offset = 0
    while offset + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, offset)
        yield kind, data[offset + 16 : offset + length]
        offset += (length + 3) & ~3


def attributes(body: bytes, offset: int) -> dict[int, bytes]:
    """Unpack attributes by type."""
    found = {}
    while offset + 4 <= len(body):
        length, kind = struct.unpack_from("=HH", body, offset)
        if length < 4:
            break
        found[kind & 0x3FFF] = body[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return found


def number(data: bytes) -> int:
    """Read a number in host order."""
    value: int = struct.unpack_from("=I", data)[0]
    return value


def netlink(netns: Netns) -> socket.socket:
    """Open a netlink socket in a namespace."""
    sock = netns.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    try:
        sock.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, BUFFER)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    sock.bind((0, 0))
    return sock


@dataclass
class Kernel:
    """One node's tables, limited to the ``wanted`` prefixes."""

    wanted: frozenset[Prefix]
    hops: dict[int, int] = field(default_factory=dict)
    groups: dict[int, tuple[int, ...]] = field(default_factory=dict)
    routes: dict[tuple[Prefix, int], int | tuple[int, ...]] = field(default_factory=dict)
    """By prefix and metric: the id of a next hop or group, or the interfaces of the route."""
    down: set[int] = field(default_factory=set)

    def take(self, kind: int, body: bytes) -> None:
        """Apply one message."""
        if kind in (NEWROUTE, DELROUTE):
            self._route(kind, body)
        elif kind in (NEWNEXTHOP, DELNEXTHOP):
            self._nexthop(kind, body)
        elif kind == NEWLINK and body[0] == 0:
            ifindex, flags = struct.unpack_from("=iI", body, 4)
            if flags & IFF_UP and flags & IFF_LOWER_UP:
                self.down.discard(ifindex)
            else:
                self._lost(ifindex, admin=not flags & IFF_UP)

    def _route(self, kind: int, body: bytes) -> None:
        family, length, _, _, table, _, _, route_type = struct.unpack_from("=8B", body)
        if family != socket.AF_INET or table != MAIN or route_type != UNICAST:
            return
        found = attributes(body, 12)
        prefix = found.get(RTA_DST, bytes(4)), length
        if prefix not in self.wanted:
            return
        key = prefix, number(found[RTA_PRIORITY]) if RTA_PRIORITY in found else 0
        if kind == DELROUTE:
            self.routes.pop(key, None)
        elif RTA_NH_ID in found:
            self.routes[key] = number(found[RTA_NH_ID])
        elif RTA_MULTIPATH in found:
            self.routes[key] = tuple(interfaces_of(found[RTA_MULTIPATH]))
        elif RTA_OIF in found:
            self.routes[key] = (number(found[RTA_OIF]),)

    def _nexthop(self, kind: int, body: bytes) -> None:
        found = attributes(body, 8)
        identity = number(found[NHA_ID])
        if kind == DELNEXTHOP:
            self._gone([identity])
        elif NHA_GROUP in found:
            members = struct.iter_unpack("=IBBH", found[NHA_GROUP])
            self.groups[identity] = tuple(member[0] for member in members)
        elif NHA_OIF in found:
            self.hops[identity] = number(found[NHA_OIF])

    def _lost(self, ifindex: int, *, admin: bool) -> None:
        if ifindex not in self.down:
            self.down.add(ifindex)
            self._gone([identity for identity, oif in self.hops.items() if oif == ifindex])
        if admin:
            for key, use in list(self.routes.items()):
                if isinstance(use, tuple) and self.down.issuperset(use):
                    del self.routes[key]

    def _gone(self, identities: list[int]) -> None:
        removed = set(identities)
        for identity in identities:
            self.hops.pop(identity, None)
            self.groups.pop(identity, None)
        for identity, members in list(self.groups.items()):
            left = tuple(member for member in members if member not in removed)
            self.groups[identity] = left
            if not left:
                del self.groups[identity]
                removed.add(identity)
        for key, use in list(self.routes.items()):
            if use in removed:
                del self.routes[key]

    def use(self) -> Use:
        """Live interfaces of each wanted prefix; prefixes without a route are omitted."""
        best: dict[Prefix, tuple[int, frozenset[int]]] = {}
        for (prefix, metric), route in self.routes.items():
            if prefix not in best or metric < best[prefix][0]:
                best[prefix] = metric, self._interfaces(route)
        return {prefix: found for prefix, (_, found) in best.items() if found}

    def _interfaces(self, route: int | tuple[int, ...]) -> frozenset[int]:
        if isinstance(route, int):
            members = self.groups.get(route, (route,))
            route = tuple(self.hops[member] for member in members if member in self.hops)
        return frozenset(route) - self.down


def interfaces_of(data: bytes) -> Iterator[int]:
    """The interface of each next hop of an RTA_MULTIPATH."""
    offset = 0
    while offset + 8 <= len(data):
        length, _, _, oif = struct.unpack_from("=HBBi", data, offset)
        yield oif
        offset += (length + 3) & ~3


class Watcher:
    """The kernels of several nodes: their routes, and every change with its time."""

    def __init__(self, nodes: Mapping[str, Netns], wanted: frozenset[Prefix]) -> None:
        self._wanted = wanted
        self._nodes = dict(nodes)
        self._poll = select.epoll()
        self._sockets: dict[int, tuple[str, socket.socket]] = {}
        self.kernels: dict[str, Kernel] = {}
        self._raw: list[tuple[float, str, bytes]] = []
        self.log: list[tuple[float, str, Use]] = []
        """Every change of the interfaces a node uses, since ``begin``."""
        for name, netns in nodes.items():
            sock = netlink(netns)
            for group in (LINK_GROUP, ROUTE_GROUP, NEXTHOP_GROUP):
                sock.setsockopt(270, 1, group)
            sock.setblocking(False)
            self._sockets[sock.fileno()] = name, sock
            self._poll.register(sock, select.EPOLLIN)
            self.kernels[name] = self._dumped(netns)

    def close(self) -> None:
        """Close all sockets."""
        self._poll.close()
        for _, sock in self._sockets.values():
            sock.close()

    def begin(self) -> None:
        """Apply stored messages, then clear the log."""
        self.collect(0.0)
        self.work_in()
        self.log.clear()

    def collect(self, seconds: float) -> bool:
        """Store messages; return at once after some have arrived, or after ``seconds``."""
        ready = self._poll.poll(seconds)
        for descriptor, _ in ready:
            name, sock = self._sockets[descriptor]
            while True:
                try:
                    data = sock.recv(1 << 17)
                except BlockingIOError:
                    break
                self._raw.append((time.monotonic(), name, data))
        return bool(ready)

    def work_in(self) -> None:
        """Replay the stored messages."""
        raw, self._raw = self._raw, []
        for at, name, data in raw:
            kernel = self.kernels[name]
            before = kernel.use()
            for kind, body in messages(data):
                kernel.take(kind, body)
                after = kernel.use()
                if after != before:
                    self.log.append((at, name, after))
                    before = after

    def await_quiet(
        self, accepts: Callable[[], bool], quiet: float, timeout: float, look_after: float = 0.05
    ) -> bool:
        """Collect until ``accepts`` and no message for ``quiet`` seconds; False: timed out."""
        deadline = time.monotonic() + timeout
        last = time.monotonic()
        while time.monotonic() < deadline:
            if self.collect(look_after):
                last = time.monotonic()
                continue
            self.work_in()
            if time.monotonic() - last >= quiet and accepts():
                return True
        return False

    def use(self) -> dict[str, Use]:
        """The interfaces that every node uses now."""
        return {name: kernel.use() for name, kernel in self.kernels.items()}

    def disagreements(self) -> list[str]:
        """Compare the replay with the kernels' own tables; names of nodes that differ."""
        self.collect(0.0)
        self.work_in()
        return [
            name
            for name, netns in self._nodes.items()
            if self._dumped(netns, self.kernels[name].down).use() != self.kernels[name].use()
        ]

    def _dumped(self, netns: Netns, down: set[int] | None = None) -> Kernel:
        kernel = Kernel(self._wanted, down=set(down or ()))
        with netlink(netns) as sock:
            for kind, body in (
                (GETNEXTHOP, bytes(8)),
                (GETROUTE, bytes([socket.AF_INET]) + bytes(11)),
            ):
                sock.send(struct.pack("=IHHII", 16 + len(body), kind, DUMP, 1, 0) + body)
                done = False
                while not done:
                    for answer, payload in messages(sock.recv(1 << 17)):
                        done |= answer == DONE
                        kernel.take(answer, payload)
        return kernel


class Switch:
    """Sets a port up or down in a thread, while the watcher goes on time-stamping."""

    def __init__(self, netns: Netns) -> None:
        self._socket = netlink(netns)
        self._socket.settimeout(10)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def set(self, port: PortAddresses, *, up: bool) -> tuple[float, threading.Thread]:
        """Start; return the start time, and the thread, which ends with the kernel's answer."""
        body = struct.pack("=BxHiII", 0, 0, port.index, IFF_UP if up else 0, IFF_UP)
        header = struct.pack("=IHHII", 16 + len(body), NEWLINK, REQUEST_ACK, 1, 0)
        begun = time.monotonic()
        thread = threading.Thread(target=self._exchange, args=(header + body,))
        thread.start()
        return begun, thread

    def _exchange(self, message: bytes) -> None:
        self._socket.send(message)
        self._socket.recv(4096)
