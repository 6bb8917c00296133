"""The contents of a node's kernel, read without the daemon's help or code.

The demo and the tests rely on the kernel, not on the daemon: next hops and weights come from raw
rtnetlink dumps (iproute2 shows only the low byte of a 16-bit weight), counters from /proc/net/dev.
Routes over next-hop objects and classic multipath routes are read alike.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import NamedTuple

from fared.extensions.lab.namespaces import Netns

_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_EVENT_BUFFER = 4 << 20
_RTM_NEWROUTE, _RTM_GETROUTE = 24, 26
_RTM_NEWNEXTHOP, _RTM_GETNEXTHOP = 104, 106
_RTM_GETQDISC = 38
_RTM_PROTOCOL, _RTPROT_KERNEL = 16 + 5, 2  # offset in a message: of rtm_protocol
_TCA_STATS2, _TCA_STATS_BASIC, _TCA_STATS_QUEUE = 7, 1, 3
_ROOT = 0xFFFFFFFF
_REQUEST_DUMP = 0x301
_DUMP_INTERRUPTED = 0x10
_SOL_NETLINK, _ADD_MEMBERSHIP, _STRICT = 270, 1, 12
_GROUPS = (1, 7, 11, 32)  # links, IPv4 routes, IPv6 routes, next hops
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_MULTIPATH, _RTA_NH_ID = 1, 4, 5, 6, 9, 30
_RTA_VIA = 18
_NHA_ID, _NHA_GROUP, _NHA_OIF, _NHA_GATEWAY = 1, 2, 5, 6
_MAIN_TABLE, _UNICAST = 254, 1
_DEAD = 0x01 | 0x10  # RTNH_F_DEAD, RTNH_F_LINKDOWN
_ATTRIBUTE_TYPE = 0x3FFF
_ATTEMPTS = 20
_MOST_EVENTS = 10_000

_Attributes = dict[int, bytes]


class Hop(NamedTuple):
    """One next hop of a route, with its weight in the kernel (1 to 65536)."""

    interface: str
    gateway: str | None
    weight: int


class InterfaceCounters(NamedTuple):
    """Counters of an interface since it was created."""

    received_packets: int
    sent_packets: int
    sent_bytes: int


class Queue(NamedTuple):
    """Counters of the root queue of an interface: bytes on the wire, packets dropped."""

    sent_bytes: int
    dropped: int


@dataclass
class Writes:
    """Notifications of the kernel since the view was opened, or since ``reset``.

    A group that is replaced, and a route that is written, count once each. Routes that the kernel
    adds itself do not count, such as those of addresses. It does not notify its own removals after
    carrier loss.
    """

    next_hops: int = 0
    routes: int = 0

    def count(self, kind: int, route_protocol: int) -> None:
        """Count one message by its type and, of routes, by protocol."""
        if kind in (_RTM_NEWNEXTHOP, _RTM_NEWNEXTHOP + 1):
            self.next_hops += 1
        elif kind in (_RTM_NEWROUTE, _RTM_NEWROUTE + 1) and route_protocol != _RTPROT_KERNEL:
            self.routes += 1

    def reset(self) -> None:
        """Restart from zero."""
        self.next_hops = self.routes = 0


@dataclass(frozen=True)
class _GroupMember:
    oif: int
    gateway: bytes | None


def shares(hops: tuple[Hop, ...]) -> dict[str, float]:
    """Return the share of flows of each interface by weight; they add up to 1."""
    total = sum(hop.weight for hop in hops)
    parts: dict[str, float] = {}
    for hop in hops:
        parts[hop.interface] = parts.get(hop.interface, 0.0) + hop.weight / total
    return parts


class KernelView:
    """The routes, next hops and counters of one network namespace."""

    def __init__(self, netns: Netns) -> None:
        """Open sockets in the namespace, which must exist."""
        self.netns = netns
        self._requests = self._open()
        self._events = self._open()
        for group in _GROUPS:
            self._events.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)
        self._events.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _EVENT_BUFFER)
        self._events.setblocking(False)
        self.writes = Writes()

    def _open(self) -> socket.socket:
        opened = self.netns.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        opened.setsockopt(_SOL_NETLINK, _STRICT, 1)
        opened.bind((0, 0))
        opened.settimeout(5.0)
        return opened

    def close(self) -> None:
        """Close the sockets."""
        self._requests.close()
        self._events.close()

    def fileno(self) -> int:
        """Return the event socket: readable when links, routes or next hops have changed."""
        return self._events.fileno()

    def read_events(self) -> None:
        """Add the kernel's notifications since the last call to ``writes``."""
        for _ in range(_MOST_EVENTS):
            try:
                data = self._events.recv(65536)
            except BlockingIOError:
                return
            except OSError:  # ENOBUFS: notifications were lost; the counts are too low
                continue
            offset = 0
            while offset + 16 <= len(data):
                length, kind = struct.unpack_from("=IH", data, offset)
                self.writes.count(kind, data[offset + _RTM_PROTOCOL])
                offset += (length + 3) & ~3

    def routes(self) -> dict[str, tuple[Hop, ...]]:
        """Return the IPv4 unicast routes of the main table: prefix to next hops, by interface.

        Of several routes to one prefix the one with the lowest metric is returned.
        """
        return self._held_still(socket.AF_INET)

    def routes6(self) -> dict[str, tuple[Hop, ...]]:
        """Return the IPv6 unicast routes of the main table, as ``routes`` does."""
        return self._held_still(socket.AF_INET6)

    def _held_still(self, family: int) -> dict[str, tuple[Hop, ...]]:
        for _ in range(_ATTEMPTS):
            found = self._routes(family)
            if found is not None:
                return found
        raise TimeoutError(
            f"{self.netns.name}: the routing table changes faster than it can be read"
        )

    def hops(self, prefix: str | IPv4Network | IPv6Network) -> tuple[Hop, ...]:
        """Return the next hops of one prefix; none if there is no such route."""
        routes = self.routes6() if ":" in str(prefix) else self.routes()
        return routes.get(str(prefix), ())

    def counters(self) -> dict[str, InterfaceCounters]:
        """Return the counters of every interface."""
        with self.netns.entered():
            lines = Path("/proc/thread-self/net/dev").read_text("ascii").splitlines()[2:]
        result = {}
        for line in lines:
            name, _, rest = line.partition(":")
            values = [int(word) for word in rest.split()]
            result[name.strip()] = InterfaceCounters(values[1], values[9], values[8])
        return result

    def queues(self) -> dict[str, Queue]:
        """Return the counters of the root queue of every interface that has one.

        Unlike an interface's own counters they include the headers of segments that are split
        later, and the packets that a shaper drops.
        """
        with self.netns.entered():
            names = dict(socket.if_nameindex())
        result = {}
        for body in self._dump(_RTM_GETQDISC, bytes(20), 20):
            _, index, _, parent, _ = struct.unpack("=B3xiIII", body[-1])
            if parent == _ROOT and index in names and _TCA_STATS2 in body:
                stats = dict(_attributes(body[_TCA_STATS2], 0, len(body[_TCA_STATS2])))
                sent = int.from_bytes(stats[_TCA_STATS_BASIC][:8], sys.byteorder)
                dropped = struct.unpack_from("=I", stats[_TCA_STATS_QUEUE], 8)[0]
                result[names[index]] = Queue(sent, dropped)
        return result

    def _routes(self, family: int) -> dict[str, tuple[Hop, ...]] | None:
        """Read routes once; return None if the tables changed between the two dumps."""
        with self.netns.entered():
            names = dict(socket.if_nameindex())
        members: dict[int, _GroupMember] = {}
        groups: dict[int, list[tuple[int, int]]] = {}
        for body in self._dump(_RTM_GETNEXTHOP, struct.pack("=BBBBI", 0, 0, 0, 0, 0), 8):
            identity = _u32(body, _NHA_ID)
            if _NHA_GROUP in body:
                groups[identity] = [
                    (member, (high << 8 | low) + 1)
                    for member, low, high, _ in struct.iter_unpack("=IBBH", body[_NHA_GROUP])
                ]
            elif _NHA_OIF in body:
                members[identity] = _GroupMember(_u32(body, _NHA_OIF), body.get(_NHA_GATEWAY))
        best: dict[str, tuple[int, tuple[Hop, ...]]] = {}
        size, text = (4, IPv4Address) if family == socket.AF_INET else (16, IPv6Address)
        request = struct.pack("=BBBBBBBBI", family, 0, 0, 0, 0, 0, 0, 0, 0)
        for body in self._dump(_RTM_GETROUTE, request, 12):
            header = body[-1]
            if header[4] != _MAIN_TABLE or header[7] != _UNICAST or header[8] & _DEAD:
                continue
            found = _members_of(body, members, groups)
            if found is None or any(member.oif not in names for member, _ in found):
                return None
            prefix = f"{text(body.get(_RTA_DST, bytes(size)))}/{header[1]}"
            metric = _u32(body, _RTA_PRIORITY) if _RTA_PRIORITY in body else 0
            hops = sorted(_hop(member, weight, names) for member, weight in found)
            if prefix in best and metric == best[prefix][0] and family == socket.AF_INET6:
                hops = sorted([*best[prefix][1], *hops])  # without next-hop objects: one a message
            elif prefix in best and metric >= best[prefix][0]:
                continue
            best[prefix] = (metric, tuple(hops))
        return {prefix: hops for prefix, (_, hops) in best.items()}

    def _dump(self, kind: int, body: bytes, header_size: int) -> list[_Attributes]:
        """Return the attributes of every object; its fixed header is under key -1."""
        for _ in range(_ATTEMPTS):
            header = struct.pack("=IHHII", 16 + len(body), kind, _REQUEST_DUMP, 1, 0)
            self._requests.send(header + body)
            objects: list[_Attributes] = []
            if self._collect(objects, header_size):
                return objects
        raise TimeoutError(f"{self.netns.name}: every dump was interrupted")

    def _collect(self, objects: list[_Attributes], header_size: int) -> bool:
        """Receive a dump, and append its objects; return whether no change interrupted it."""
        whole = True
        while True:
            data = self._requests.recv(1 << 18)
            offset = 0
            while offset + 16 <= len(data):
                length, kind, flags = struct.unpack_from("=IHH", data, offset)
                whole = whole and not flags & _DUMP_INTERRUPTED
                if kind == _NLMSG_DONE:
                    return whole
                if kind == _NLMSG_ERROR:
                    number = -struct.unpack_from("=i", data, offset + 16)[0]
                    raise OSError(number, f"{self.netns.name}: netlink dump refused")
                start, end = offset + 16, offset + length
                attributes = dict(_attributes(data, start + header_size, end))
                attributes[-1] = data[start : start + header_size]
                objects.append(attributes)
                offset += (length + 3) & ~3


def _attributes(data: bytes, offset: int, end: int) -> Iterator[tuple[int, bytes]]:
    while offset + 4 <= end:
        length, kind = struct.unpack_from("=HH", data, offset)
        if length < 4:
            return
        yield kind & _ATTRIBUTE_TYPE, data[offset + 4 : offset + length]
        offset += (length + 3) & ~3


def _u32(attributes: _Attributes, kind: int) -> int:
    value: int = struct.unpack_from("=I", attributes[kind])[0]
    return value


def _members_of(
    body: _Attributes, members: dict[int, _GroupMember], groups: dict[int, list[tuple[int, int]]]
) -> list[tuple[_GroupMember, int]] | None:
    """Return a route's next hops with weights, or None if one of them was not dumped."""
    if _RTA_NH_ID in body:
        identity = _u32(body, _RTA_NH_ID)
        wanted = groups.get(identity, [(identity, 1)])
        if any(member not in members for member, _ in wanted):
            return None
        return [(members[member], weight) for member, weight in wanted]
    if _RTA_MULTIPATH in body:
        return list(_multipath(body[_RTA_MULTIPATH]))
    if _RTA_OIF in body:
        return [(_GroupMember(_u32(body, _RTA_OIF), _gateway(body)), 1)]
    return []


def _gateway(attributes: _Attributes) -> bytes | None:
    """Return the gateway, of the route's family or (RTA_VIA: family in two bytes first) another."""
    via = attributes.get(_RTA_VIA)
    return attributes.get(_RTA_GATEWAY) if via is None else via[2:]


def _multipath(data: bytes) -> Iterator[tuple[_GroupMember, int]]:
    """Yield the live hops of a classic multipath route (struct rtnexthop; its weight is 8 bits).

    Unlike next-hop objects the kernel keeps them, flagged, while their link is down.
    """
    offset = 0
    while offset + 8 <= len(data):
        length, flags, weight, oif = struct.unpack_from("=HBBi", data, offset)
        if length < 8:
            return
        attributes = dict(_attributes(data, offset + 8, offset + length))
        if not flags & _DEAD:
            yield _GroupMember(oif, _gateway(attributes)), weight + 1
        offset += (length + 3) & ~3


def _hop(member: _GroupMember, weight: int, names: dict[int, str]) -> Hop:
    gateway = None if member.gateway is None else str(ip_address(member.gateway))
    return Hop(names[member.oif], gateway, weight)
