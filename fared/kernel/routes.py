"""Connected and static routes of the main table: what other programs and people put there.

Static is what ``ip route add`` makes (protocol ``boot``, unless it is told another) and what is
marked ``static``; connected is every network of an address on an interface that works. Routes of
other daemons, of DHCP and our own have other protocol numbers and are left alone.

The kernel does not say which routes go when a link goes down, nor which one a notification
replaced. So a notification only tells that it is time to read the static routes again: with
strict filters that takes as long as there are static routes, however many others there are.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.core.links import Link
from fared.core.routes import LocalRoute, RouteKey, RouteSource
from fared.kernel.errors import InterruptedDumpError, NetlinkError
from fared.kernel.netlink import RequestSocket, attributes, u32

_RTM_NEWROUTE, _RTM_GETROUTE = 24, 26
_RTPROT_BOOT, _RTPROT_STATIC = 3, 4
_TABLE_MAIN = 254
_RTN_UNICAST = 1
_DISCARDING = (6, 7, 8)  # RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_MULTIPATH, _RTA_TABLE = 1, 4, 5, 6, 9, 15
_RTMSG = struct.Struct("=BBBBBBBBI")
_RTNEXTHOP = struct.Struct("=HBBi")
_GAP = 0.02
"""Least seconds between two reads, and ten times as long as a read takes: bulk changes."""
_PATIENCE = 10
_LINK_LOCAL = 0xFE80 >> 6
_FAMILIES = {socket.AF_INET: FAMILY_IPV4, socket.AF_INET6: FAMILY_IPV6}
_AF = tuple(bytes([af]) for af in _FAMILIES)
_STATIC = (bytes([_RTPROT_BOOT]), bytes([_RTPROT_STATIC]))
_BYTES = {FAMILY_IPV4: 4, FAMILY_IPV6: 16}

Routes = dict[RouteKey, LocalRoute]
Hops = tuple[tuple[int, int], ...]
_Static = tuple[Prefix, int, Hops]


@dataclass(frozen=True, slots=True)
class LocalRoutesChanged:
    """Routes that may be redistributed came, changed or (None) went."""

    changes: dict[RouteKey, LocalRoute | None]


class LocalRoutes:
    """Keeps up with the routes and calls ``callback`` for what changed, while it is ``wanted``.

    ``links`` gives the interfaces as they are; ``touch`` says that anything may be different.
    """

    def __init__(
        self,
        links: Callable[[], Mapping[int, Link]],
        callback: Callable[[LocalRoutesChanged], None],
    ) -> None:
        self._links = links
        self._callback = callback
        self._request = RequestSocket()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.Handle | None = None
        self._not_before = 0.0
        self._wanted = False
        self._routes: Routes = {}
        self._decoded: dict[bytes, _Static | None] = {}
        """What the messages of the last read mean: most of them are the same the next time."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Report from now on, what there is already at once."""
        self._loop = loop
        self._read()

    def close(self) -> None:
        """Stop and close the socket."""
        if self._timer is not None:
            self._timer.cancel()
        self._request.close()

    def want(self, *, wanted: bool) -> None:
        """Whether anybody wants to know; whoever does not any more is told that all are gone."""
        if wanted != self._wanted:
            self._wanted = wanted
            self._read()

    def touch(self) -> None:
        """Read again soon: in this turn of the loop, unless that was done just now."""
        if self._loop is None or self._timer is not None or not self._wanted:
            return
        if self._loop.time() >= self._not_before:
            self._timer = self._loop.call_soon(self._read)
        else:
            self._timer = self._loop.call_at(self._not_before, self._read)

    @staticmethod
    def concern(body: bytes) -> bool:
        """Whether a route message, ``body`` without its header, is about a static route."""
        return body[:1] in _AF and body[5:6] in _STATIC

    def _read(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = self._loop
        if loop is None:
            return
        begun = loop.time()
        before, again = self._routes, False
        try:
            self._routes = self._all() if self._wanted else {}
        except (NetlinkError, InterruptedDumpError):
            again = True  # it changes while it is being read
        ended = loop.time()
        self._not_before = ended + max(_GAP, _PATIENCE * (ended - begun))
        if again:
            self.touch()
        changes: dict[RouteKey, LocalRoute | None] = {
            key: route for key, route in self._routes.items() if before.get(key) != route
        }
        changes.update((key, None) for key in before if key not in self._routes)
        if changes:
            self._callback(LocalRoutesChanged(changes))

    def _all(self) -> Routes:
        links = self._links()
        routes = {(RouteSource.CONNECTED, p): route for p, route in connected(links).items()}
        best: dict[Prefix, tuple[int, Hops]] = {}
        for found in self._static():
            if found is None:
                continue
            prefix, priority, hops = found
            working = tuple(hop for hop in hops if _works(hop[0], links))
            if hops and not working:
                continue
            known, others = best.get(prefix, (priority, ()))
            if prefix.family == FAMILY_IPV6 and priority == known:
                # The kernel tells each next hop of an IPv6 route of `ip route append` by itself.
                best[prefix] = priority, tuple(dict.fromkeys((*others, *working)))
            elif prefix not in best or priority < known:
                best[prefix] = priority, working
        for prefix, (_, hops) in best.items():
            routes[RouteSource.STATIC, prefix] = LocalRoute(hops)
        return routes

    def _static(self) -> Iterable[_Static | None]:
        before, self._decoded = self._decoded, {}
        for af, protocol in itertools.product(_FAMILIES, (_RTPROT_BOOT, _RTPROT_STATIC)):
            request = _RTMSG.pack(af, 0, 0, 0, 0, protocol, 0, 0, 0)
            for kind, body in self._request.dump(_RTM_GETROUTE, request):
                if kind == _RTM_NEWROUTE:
                    self._decoded[body] = before[body] if body in before else read_static(body)
        return self._decoded.values()


def connected(links: Mapping[int, Link]) -> dict[Prefix, LocalRoute]:
    """The networks of all addresses on interfaces that work, host addresses included.

    Link-local ones are left out: they are on every interface.
    """
    found: dict[Prefix, dict[tuple[int, int], None]] = {}
    for ifindex, link in sorted(links.items()):
        for address in link.addresses if link.up else ():
            if address.family == FAMILY_IPV6 and address.address >> 118 == _LINK_LOCAL:
                continue
            end = address.address if address.peer is None else address.peer
            width = 8 * _BYTES[address.family] - address.prefix_length
            prefix = Prefix(address.family, end >> width << width, address.prefix_length)
            found.setdefault(prefix, {})[ifindex, 0] = None
    return {prefix: LocalRoute(tuple(hops)) for prefix, hops in found.items()}


def read_static(body: bytes) -> _Static | None:
    """Decode a route message: prefix, priority and (ifindex, gateway) of each next hop.

    None for what is no static unicast or discarding route of the main table. The hops of a
    route over a next-hop object are not told by the kernel.
    """
    if len(body) < _RTMSG.size:
        return None
    af, length, _, tos, table, protocol, _, kind, _ = _RTMSG.unpack_from(body)
    found = attributes(body, _RTMSG.size)
    table = u32(found[_RTA_TABLE]) if _RTA_TABLE in found else table
    family = _FAMILIES.get(af)
    if family is None or (tos, table) != (0, _TABLE_MAIN) or length > 8 * _BYTES[family]:
        return None
    if protocol not in (_RTPROT_BOOT, _RTPROT_STATIC):
        return None
    if kind != _RTN_UNICAST and kind not in _DISCARDING:
        return None
    priority = u32(found[_RTA_PRIORITY]) if _RTA_PRIORITY in found else 0
    network = int.from_bytes(found.get(_RTA_DST, b"")[: _BYTES[family]], "big")
    hops = tuple(_hops(found, _BYTES[family])) if kind == _RTN_UNICAST else ()
    return Prefix(family, network, length), priority, hops


def _hops(found: dict[int, bytes], size: int) -> Iterator[tuple[int, int]]:
    if _RTA_OIF in found:
        yield u32(found[_RTA_OIF]), _gateway(found, size)
    several = found.get(_RTA_MULTIPATH, b"")
    offset = 0
    while offset + _RTNEXTHOP.size <= len(several):
        length, _, _, ifindex = _RTNEXTHOP.unpack_from(several, offset)
        if length < _RTNEXTHOP.size or offset + length > len(several):
            return
        inner = attributes(several, offset + _RTNEXTHOP.size, offset + length)
        yield ifindex, _gateway(inner, size)
        offset += (length + 3) & ~3


def _gateway(found: dict[int, bytes], size: int) -> int:
    """The gateway's address; 0 without one, or with one of another family (RTA_VIA)."""
    return int.from_bytes(found.get(_RTA_GATEWAY, b"")[:size], "big")


def _works(ifindex: int, links: Mapping[int, Link]) -> bool:
    link = links.get(ifindex)
    return link is not None and link.up
