"""Connected and static routes of the main table, as configured by other programs and operators.

Static routes are those of ``ip route add`` (protocol ``boot`` by default) and those marked
``static``; connected is every network of an address on a working interface. Routes of other
daemons, of DHCP and our own have other protocol numbers and are ignored.

``KernelMonitor`` owns the reader. The kernel notifies neither which routes it removes with a link
nor which route a notification replaced. So a notification only causes a new read of the static
routes: with strict filters its time depends on the number of static routes only.
"""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from fared.core.ids import FAMILY_IPV6, Prefix
from fared.core.links import Link
from fared.core.routes import LocalRoute, RouteKey, RouteSource
from fared.kernel.netlink import attributes, u32
from fared.kernel.requests import RequestSocket
from fared.kernel.rtnetlink import (
    BYTES,
    FAMILY,
    RTA_PRIORITY,
    RTA_TABLE,
    RTM_GETROUTE,
    RTM_NEWROUTE,
    RTMSG,
    RTN_UNICAST,
    destination,
)
from fared.paths.fib.settings import MAIN_TABLE

_RTPROT_BOOT, _RTPROT_STATIC = 3, 4
_DISCARDING = (6, 7, 8)  # RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT
_RTA_OIF, _RTA_GATEWAY, _RTA_MULTIPATH = 4, 5, 9
_RTNEXTHOP = struct.Struct("=HBBi")
_GAP = 0.02
"""Minimum seconds between two reads, besides ten times the duration of a read."""
_PATIENCE = 10
_DOUBLINGS, _LONGEST_GAP = 8, 5.0
"""The gap doubles while reads fail, up to this many seconds."""
_AF = tuple(bytes([af]) for af in FAMILY)
_STATIC = (bytes([_RTPROT_BOOT]), bytes([_RTPROT_STATIC]))

Routes = dict[RouteKey, LocalRoute]
Hops = tuple[tuple[int, int], ...]
_Static = tuple[Prefix, int, Hops]


class LocalRoutesChanged(msgspec.Struct, frozen=True):
    """Routes that may be redistributed were added, changed or (None) removed."""

    changes: dict[RouteKey, LocalRoute | None]


class LocalRoutes:
    """Follows the routes and calls ``callback`` with changes while they are ``wanted``.

    ``links`` returns the present interfaces; ``touch`` reports that routes may have changed.
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
        self._failures = 0
        self._wanted = False
        self._routes: Routes = {}
        self._decoded: dict[bytes, _Static | None] = {}
        """Decoded messages of the last read: most are unchanged in the next."""

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Report from now on, beginning with the present routes."""
        self._loop = loop
        self._read()

    def close(self) -> None:
        """Stop and close the socket."""
        if self._timer is not None:
            self._timer.cancel()
        self._request.close()

    def want(self, *, wanted: bool) -> None:
        """Set whether any engine redistributes; if none does, withdraw all."""
        if wanted != self._wanted:
            self._wanted = wanted
            self._read()

    def touch(self) -> None:
        """Read again in this turn of the loop, or after the minimum gap."""
        if self._loop is None or self._timer is not None or not self._wanted:
            return
        if self._loop.time() >= self._not_before:
            self._timer = self._loop.call_soon(self._read)
        else:
            self._timer = self._loop.call_at(self._not_before, self._read)

    @staticmethod
    def concern(body: bytes) -> bool:
        """Whether a route message (``body`` without header) is about a static route."""
        return body[:1] in _AF and body[5:6] in _STATIC

    def _read(self) -> None:
        """Read the tables, report what changed, and set when they may be read again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        loop = self._loop
        if loop is None:
            return
        begun = loop.time()
        before = self._routes
        try:
            self._routes = self._all() if self._wanted else {}
        except OSError:  # the table changes during each read, or memory is short: keep the routes
            self._failures += 1
        else:
            self._failures = 0
        ended = loop.time()
        pause = min(_GAP * 2.0 ** min(self._failures, _DOUBLINGS), _LONGEST_GAP)
        self._not_before = ended + max(pause, _PATIENCE * (ended - begun))
        if self._failures:
            self.touch()
        changes: dict[RouteKey, LocalRoute | None] = {
            key: route for key, route in self._routes.items() if before.get(key) != route
        }
        changes.update((key, None) for key in before if key not in self._routes)
        if changes:
            self._callback(LocalRoutesChanged(changes))

    def _all(self) -> Routes:
        """Return connected and static routes; of static ones to a prefix the best that can work."""
        links = self._links()
        routes = {(RouteSource.CONNECTED, p): route for p, route in connected(links).items()}
        best: dict[Prefix, tuple[int, Hops]] = {}
        for found in self._static():
            if found is None:
                continue
            prefix, priority, hops = found
            working = tuple(hop for hop in hops if _works(hop[0], links))
            if hops and not working:  # the kernel keeps routes of links that lost their carrier
                continue
            known, others = best.get(prefix, (priority, ()))
            if prefix.family == FAMILY_IPV6 and priority == known:
                # `ip route append`: the kernel sends each IPv6 next hop in a separate message.
                best[prefix] = priority, tuple(dict.fromkeys((*others, *working)))
            elif prefix not in best or priority < known:
                best[prefix] = priority, working
        for prefix, (_, hops) in best.items():
            routes[RouteSource.STATIC, prefix] = LocalRoute(hops)
        return routes

    def _static(self) -> Iterable[_Static | None]:
        before, self._decoded = self._decoded, {}
        for af, protocol in itertools.product(FAMILY, (_RTPROT_BOOT, _RTPROT_STATIC)):
            request = RTMSG.pack(af, 0, 0, 0, 0, protocol, 0, 0, 0)
            for kind, body in self._request.dump(RTM_GETROUTE, request):
                if kind == RTM_NEWROUTE:
                    self._decoded[body] = before[body] if body in before else read_static(body)
        return self._decoded.values()


def connected(links: Mapping[int, Link]) -> dict[Prefix, LocalRoute]:
    """Return the networks of all addresses on working interfaces, host addresses included.

    IPv6 link-local networks are skipped: they are on every interface.
    """
    found: dict[Prefix, dict[tuple[int, int], None]] = {}
    for ifindex, link in sorted(links.items()):
        for address in link.addresses if link.up else ():
            if not address.link_local:
                found.setdefault(address.prefix, {})[ifindex, 0] = None
    return {prefix: LocalRoute(tuple(hops)) for prefix, hops in found.items()}


def read_static(body: bytes) -> _Static | None:
    """Decode a route message: prefix, priority and (ifindex, gateway) of each next hop.

    None if it is no static unicast or discard route of the main table. A route over a next-hop
    object has no hops here, since the kernel does not report them.
    """
    if len(body) < RTMSG.size:
        return None
    af, length, _, tos, table, protocol, _, kind, _ = RTMSG.unpack_from(body)
    found = attributes(body, RTMSG.size)
    table = u32(found[RTA_TABLE]) if RTA_TABLE in found else table
    family = FAMILY.get(af)
    if family is None or (tos, table) != (0, MAIN_TABLE):
        return None
    if protocol not in (_RTPROT_BOOT, _RTPROT_STATIC):
        return None
    if kind != RTN_UNICAST and kind not in _DISCARDING:
        return None
    priority = u32(found[RTA_PRIORITY]) if RTA_PRIORITY in found else 0
    prefix = destination(family, length, found)
    if prefix is None:
        return None
    hops = tuple(_hops(found, BYTES[family])) if kind == RTN_UNICAST else ()
    return prefix, priority, hops


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
    """Return the gateway's address; 0 without one, or with one of the other family (RTA_VIA)."""
    return int.from_bytes(found.get(_RTA_GATEWAY, b"")[:size], "big")


def _works(ifindex: int, links: Mapping[int, Link]) -> bool:
    link = links.get(ifindex)
    return link is not None and link.up
