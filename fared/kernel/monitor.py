"""Watches the kernel: interfaces, addresses, shapers, and the routes of others.

Of the latter: whether others touch our FIB objects, and on request what may be redistributed.

Two sockets, so that a flood of route messages can never push a lost carrier out of the queue.
The second carries a socket filter that drops the echoes of our own changes inside the kernel:
installing 10,000 routes does not wake this process once. When a queue overflows (ENOBUFS) the
tables are read again and the differences delivered, followed by ``Overflow``.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyroute2.netlink import NETLINK_ADD_MEMBERSHIP, SOL_NETLINK
from pyroute2.netlink.rtnl import (
    RTM_DELROUTE,
    RTM_GETADDR,
    RTM_GETLINK,
    RTM_NEWROUTE,
    RTNLGRP_IPV4_IFADDR,
    RTNLGRP_IPV4_ROUTE,
    RTNLGRP_IPV6_IFADDR,
    RTNLGRP_IPV6_ROUTE,
    RTNLGRP_LINK,
    RTNLGRP_TC,
)

from fared.core.links import Link
from fared.kernel import netlink, rtnl
from fared.kernel.capacity import LinkSpeeds
from fared.kernel.linktable import LinkTable, Taken
from fared.kernel.netlink import RequestSocket, announced, messages, open_socket
from fared.kernel.routes import LocalRoutes, LocalRoutesChanged
from fared.kernel.socketfilter import ALL, EQUAL, LOAD_WORD, RETURN, attach_filter

_RTM_NEWNEXTHOP, _RTM_DELNEXTHOP, _RTNLGRP_NEXTHOP = 104, 105, 32
_LINK_GROUPS = (RTNLGRP_LINK, RTNLGRP_TC, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR)
_FIB_GROUPS = (RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, _RTNLGRP_NEXTHOP)
# Of thousands of messages one byte is looked at, so they are not decoded.
_NEXTHOP = 2
_PROTOCOL_OFFSET = {
    RTM_NEWROUTE: 5,
    RTM_DELROUTE: 5,
    _RTM_NEWNEXTHOP: _NEXTHOP,
    _RTM_DELNEXTHOP: _NEXTHOP,
}
_BUFFER = 16 << 20
_SPEED_DELAY = 0.2
"""After a link went or came, so soon is asked what that did to the speed of a bond above it."""


@dataclass(frozen=True, slots=True)
class LinkChanged:
    """An interface appeared (``previous`` None) or is not what it was."""

    link: Link
    previous: Link | None


@dataclass(frozen=True, slots=True)
class LinkRemoved:
    """An interface is gone; ``link`` is how it was last."""

    link: Link


@dataclass(frozen=True, slots=True)
class FibDisturbed:
    """Somebody else changed ``objects`` next hops, groups or routes of our protocol number."""

    objects: int


@dataclass(frozen=True, slots=True)
class Overflow:
    """Messages were lost. ``source`` ``links``: already read again; ``fib``: reconcile."""

    source: str


KernelEvent = LinkChanged | LinkRemoved | FibDisturbed | Overflow | LocalRoutesChanged


class KernelMonitor:
    """Calls ``callback`` for every change in the namespace it was made in.

    ``fib_port``: ``KernelFib.port_id``, whose echoes are not reported; ``protocol``: our number
    in the FIB. ``links`` holds all interfaces from the start; only changes are reported.
    """

    def __init__(
        self,
        callback: Callable[[KernelEvent], None],
        *,
        protocol: int = 201,
        fib_port: int | None = None,
    ) -> None:
        self._callback = callback
        self._mark = bytes([protocol])
        self._loop: asyncio.AbstractEventLoop | None = None
        self.arrived = 0.0
        """When, on the loop's clock, what is being reported of links was found readable."""
        self._table = LinkTable()
        self._request = RequestSocket()
        self._speeds = LinkSpeeds()
        self._local_routes = LocalRoutes(lambda: self._table.links, callback)
        # Subscribed before the tables are read: what changes meanwhile is seen twice, not never.
        self._link_socket = _subscribe(_LINK_GROUPS)
        self._fib_socket = _subscribe(_FIB_GROUPS, fib_port)
        group = self._speeds.monitor_group
        groups = () if group is None else (group,)
        self._speed_socket = _subscribe(groups, protocol=netlink.NETLINK_GENERIC)
        self._speed_timer: asyncio.TimerHandle | None = None
        self._read_all()

    @property
    def links(self) -> Mapping[int, Link]:
        """All interfaces by ifindex."""
        return self._table.links

    def start(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Report changes from now on."""
        self._loop = loop or asyncio.get_running_loop()
        self._loop.add_reader(self._link_socket, self._links_readable)
        self._loop.add_reader(self._fib_socket, self._fib_readable)
        self._loop.add_reader(self._speed_socket, self._speeds_readable)
        self._local_routes.start(self._loop)

    def close(self) -> None:
        """Stop and close everything."""
        if self._loop is not None:
            self._loop.remove_reader(self._link_socket)
            self._loop.remove_reader(self._fib_socket)
            self._loop.remove_reader(self._speed_socket)
        if self._speed_timer is not None:
            self._speed_timer.cancel()
        self._local_routes.close()
        for sock in (self._link_socket, self._fib_socket, self._speed_socket):
            sock.close()
        self._request.close()
        self._speeds.close()

    def watch_routes(self, *, wanted: bool) -> None:
        """Report connected and static routes (``LocalRoutesChanged``), or no more."""
        self._local_routes.want(wanted=wanted)

    def refresh(self) -> None:
        """Ask for what the kernel announces no change of; report what changed.

        That is all speeds, and routes that went with an address or a next-hop object.
        """
        self._local_routes.touch()
        self.refresh_speeds()

    def refresh_speeds(self) -> None:
        """Ask for all speeds, report what changed.

        Links that are down keep what they had: hardware tells nothing without carrier.
        """
        if self._speed_timer is not None:
            self._speed_timer.cancel()
            self._speed_timer = None
        speeds = self._speeds.all()
        for ifindex, link in list(self._table.links.items()):
            speed = speeds.get(ifindex)
            if link.up and link.speed != speed:
                self._table.set_speed(ifindex, speed)
                self._callback(LinkChanged(self._table.links[ifindex], link))

    def resync(self) -> None:
        """Read everything again and report the differences."""
        before = dict(self._table.links)
        self._read_all()
        self._local_routes.touch()
        after = self._table.links
        for ifindex, link in before.items():
            if ifindex not in after:
                self._callback(LinkRemoved(link))
        for ifindex, link in list(after.items()):
            if before.get(ifindex) != link:
                self._callback(LinkChanged(link, before.get(ifindex)))

    def _read_all(self) -> None:
        table = LinkTable()
        for kind, body in self._request.dump(RTM_GETLINK, rtnl.all_links()):
            table.take(kind, body)
        table.shapers.load(self._request)
        for kind, body in self._request.dump(RTM_GETADDR, rtnl.all_addresses()):
            table.take(kind, body)
        speeds = self._speeds.all()
        for ifindex, link in list(table.links.items()):
            known = self._table.links.get(ifindex)
            kept = known.speed if known is not None and not link.up else None
            table.set_speed(ifindex, speeds.get(ifindex, kept))
        self._table = table

    def _links_readable(self) -> None:
        assert self._loop is not None
        self.arrived = self._loop.time()
        for received in announced(self._link_socket):
            if received is None:
                self.resync()
                self._callback(Overflow("links"))
                continue
            for kind, _, _, _, body in messages(received):
                self._report(self._table.take(kind, body))

    def _report(self, taken: Taken | None) -> None:
        if taken is None:
            return
        ifindex, previous = taken
        links = self._table.links
        link = links.get(ifindex)
        if link is None:
            if previous is not None:
                self._local_routes.touch()
                self._callback(LinkRemoved(previous))
            return
        self._local_routes.touch()
        if link.up and (previous is None or not previous.up):
            self._table.set_speed(ifindex, self._speeds.of(ifindex))
            link = links[ifindex]
        if link != previous:
            self._callback(LinkChanged(link, previous))
        if previous is not None and link.up != previous.up:
            self._ask_speeds_soon()

    def _ask_speeds_soon(self) -> None:
        if self._speed_timer is None and self._loop is not None:
            self._speed_timer = self._loop.call_later(_SPEED_DELAY, self.refresh_speeds)

    def _speeds_readable(self) -> None:
        """Somebody set something of an interface: look at once, whatever it was."""
        for _ in announced(self._speed_socket):
            pass
        self.refresh_speeds()

    def _fib_readable(self) -> None:
        disturbed, local = 0, False
        for received in announced(self._fib_socket):
            if received is None:
                local = True
                self._callback(Overflow("fib"))
                continue
            for kind, _, _, _, body in messages(received):
                offset = _PROTOCOL_OFFSET.get(kind)
                disturbed += offset is not None and body[offset : offset + 1] == self._mark
                local |= offset is not None and (offset == _NEXTHOP or LocalRoutes.concern(body))
        if local:
            self._local_routes.touch()
        if disturbed:
            self._callback(FibDisturbed(disturbed))


def _subscribe(
    groups: tuple[int, ...],
    ignored_port: int | None = None,
    protocol: int = netlink.NETLINK_ROUTE,
) -> socket.socket:
    sock = open_socket(protocol, receive_buffer=_BUFFER)
    sock.setblocking(False)
    if ignored_port is not None:
        _drop_echoes(sock, ignored_port)
    for group in groups:
        sock.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)
    return sock


def _drop_echoes(sock: socket.socket, port: int) -> None:
    """Drop messages of which nlmsg_pid is ``port``."""
    # A word load reads network order, the header is in host order: so the constant is swapped.
    attach_filter(
        sock,
        (
            (LOAD_WORD, 0, 0, 12),  # nlmsg_pid
            (EQUAL, 0, 1, socket.htonl(port)),
            (RETURN, 0, 0, 0),
            (RETURN, 0, 0, ALL),
        ),
    )
