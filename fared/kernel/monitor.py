"""Watches the kernel: interfaces, addresses, shapers, and the routes of other programs.

The daemon receives its events. Of routes it reports changes of our FIB objects by others and, on
request, the routes that may be redistributed. There are two sockets, so that many route messages
cannot push a lost carrier out of the queue. The second has a socket filter that drops the echoes of
our own changes in the kernel: installing 10,000 routes does not wake this process once.

When a queue overflows (ENOBUFS) the tables are read again and the differences delivered, followed
by ``Overflow``. If that fails it is retried with growing pauses; until then the known state is
used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import islice

import msgspec
from pyroute2.netlink.rtnl import RTM_GETADDR, RTM_GETLINK

from fared.core.link_facts import KERNEL_PLATFORM, PlatformLink
from fared.core.links import Link
from fared.kernel import netlink, rtnl
from fared.kernel.capacity import LinkSpeeds
from fared.kernel.linktable import LinkTable, Taken
from fared.kernel.netlink import messages, notifications
from fared.kernel.readers import Readers
from fared.kernel.requests import RequestSocket
from fared.kernel.routes import LocalRoutes, LocalRoutesChanged
from fared.kernel.rtnetlink import (
    RTM_DELNEXTHOP,
    RTM_DELROUTE,
    RTM_NEWNEXTHOP,
    RTM_NEWROUTE,
)
from fared.kernel.subscription import FIB_GROUPS, LINK_GROUPS, subscribe
from fared.paths.fib.settings import PROTOCOL

# Offset of the protocol number: the only byte read of thousands of messages, not decoded.
_NEXTHOP = 2
_PROTOCOL_OFFSET = {
    RTM_NEWROUTE: 5,
    RTM_DELROUTE: 5,
    RTM_NEWNEXTHOP: _NEXTHOP,
    RTM_DELNEXTHOP: _NEXTHOP,
}
_SPEED_DELAY = 0.2
"""Delay from a link event to a poll of speeds: the kernel does not notify the speed of a bond."""
_FEW = 16
"""Notifications of routes that are read before those of links."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
"""Seconds before unreadable tables are read again, doubling."""


class InterfaceChanged(msgspec.Struct, frozen=True):
    """An interface appeared (``previous`` None) or changed."""

    link: Link
    previous: Link | None


class InterfaceRemoved(msgspec.Struct, frozen=True):
    """An interface was removed; ``link`` is its last state."""

    link: Link


class ForeignFibChange(msgspec.Struct, frozen=True):
    """Another program changed ``objects`` next hops, groups or routes of ours.

    These have our protocol number, or are routes that replaced ours.
    """

    objects: int


class Overflow(msgspec.Struct, frozen=True):
    """Messages were lost. ``source`` ``links``: already read again; ``fib``: reconcile."""

    source: str


class NotRead(msgspec.Struct, frozen=True):
    """A table could not be read (``error``); it is retried, and ``Overflow`` reports success.

    Reported once, however often it fails.
    """

    source: str
    error: str


KernelEvent = (
    InterfaceChanged | InterfaceRemoved | ForeignFibChange | Overflow | NotRead | LocalRoutesChanged
)


class KernelMonitor:
    """Calls ``callback`` for every change in the namespace it was created in.

    ``fib_port``: ``KernelFib.port_id``, whose echoes are ignored; ``protocol``: our number in
    the FIB; ``ours`` takes the messages about our objects, given without their headers; ``taken``
    decides whether a new route of another program is in a place of ours. ``settled`` is called
    after all link changes that were read together, so that they are processed once. ``facts`` tells
    by name what a platform knows of a link beside the kernel. ``links`` holds all interfaces from
    the start; only changes are reported. Raises OSError if the kernel cannot be read even once.
    """

    def __init__(
        self,
        callback: Callable[[KernelEvent], None],
        *,
        protocol: int = PROTOCOL,
        fib_port: int | None = None,
        taken: Callable[[bytes], bool] = lambda _: False,
        ours: Callable[[int, bytes], None] = lambda _kind, _body: None,
        settled: Callable[[], None] = lambda: None,
        facts: Callable[[str], PlatformLink | None] = KERNEL_PLATFORM.link,
    ) -> None:
        self._facts = facts
        self._callback = callback
        self._taken = taken
        self._ours = ours
        self._settled = settled
        self._mark = bytes([protocol])
        self._loop: asyncio.AbstractEventLoop | None = None
        self._readers: Readers | None = None
        self.arrived = 0.0
        """Loop time at which the link changes being reported became readable."""
        self._table = LinkTable(facts)
        self._request = RequestSocket()
        self._speeds = LinkSpeeds()
        self._local_routes = LocalRoutes(lambda: self._table.links, callback)
        # Subscribe before reading the tables: a change in between is seen twice, but never missed.
        self._link_socket = subscribe(LINK_GROUPS)
        self._fib_socket = subscribe(FIB_GROUPS, fib_port)
        group = self._speeds.monitor_group
        groups = () if group is None else (group,)
        self._speed_socket = subscribe(groups, protocol=netlink.NETLINK_GENERIC)
        self._speed_timer: asyncio.TimerHandle | None = None
        self._resync_timer: asyncio.TimerHandle | None = None
        self._failures = 0
        self.version = 0
        """Incremented with every link change: the kernel removes next hops silently with links."""
        self._table = self._read_all()

    @property
    def links(self) -> Mapping[int, Link]:
        """All interfaces by ifindex."""
        return self._table.links

    def start(self, readers: Readers | None = None) -> None:
        """Report changes from now on."""
        self._loop = asyncio.get_running_loop()
        self._readers = readers or self._loop
        self._readers.add_reader(self._link_socket, self._links_readable)
        self._readers.add_reader(self._fib_socket, self._fib_readable)
        self._readers.add_reader(self._speed_socket, self._speeds_readable)
        self._local_routes.start(self._loop)

    def close(self) -> None:
        """Stop and close everything."""
        for timer in (self._speed_timer, self._resync_timer):
            if timer is not None:
                timer.cancel()
        self._local_routes.close()
        for sock in (self._link_socket, self._fib_socket, self._speed_socket):
            if self._readers is not None:
                self._readers.remove_reader(sock)
            sock.close()
        self._request.close()
        self._speeds.close()

    def watch_routes(self, *, wanted: bool) -> None:
        """Report connected and static routes (``LocalRoutesChanged``), or stop reporting them."""
        self._local_routes.want(wanted=wanted)

    def refresh(self) -> None:
        """Read what changes without notification; report changes.

        That is all speeds, and routes that disappeared with an address or a next-hop object.
        """
        self._local_routes.touch()
        self.refresh_speeds()

    def refresh_speeds(self) -> None:
        """Read all speeds, report changes.

        Links that are down keep their speed: hardware reports none without carrier.
        """
        if self._speed_timer is not None:
            self._speed_timer.cancel()
            self._speed_timer = None
        try:
            speeds = self._speeds.all()
        except OSError:
            return  # keep the known speeds until the next poll
        if self._loop is not None:
            self.arrived = self._loop.time()
        for ifindex, link in list(self._table.links.items()):
            if link.up:
                self._table.set_speed(ifindex, speeds.get(ifindex))
                if (changed := self._table.links[ifindex]) != link:
                    self._callback(InterfaceChanged(changed, link))
        self._settled()

    def facts_changed(self) -> None:
        """Report the links of which ``facts`` tells something else now."""
        changed = self._table.rebuild()
        if self._loop is None:
            return
        self.arrived = self._loop.time()
        for ifindex, link in changed:
            self.version += 1
            self._callback(InterfaceChanged(self._table.links[ifindex], link))
        self._settled()

    def read_links(self) -> None:
        """Process queued link changes now: the kernel may already have acted upon them."""
        if self._loop is not None:
            self._links_readable()

    def resync(self) -> None:
        """Read everything again and report the differences; retry later on failure."""
        try:
            table = self._read_all()
        except OSError as error:
            self._resync_later(error)
            return
        self._failures = 0
        before, self._table = self._table.links, table
        self.version += 1
        self._local_routes.touch()
        after = table.links
        for ifindex, link in before.items():
            if ifindex not in after:
                self._callback(InterfaceRemoved(link))
        for ifindex, link in list(after.items()):
            if before.get(ifindex) != link:
                self._callback(InterfaceChanged(link, before.get(ifindex)))
        self._settled()
        self._callback(Overflow("links"))

    def _resync_later(self, error: OSError) -> None:
        if not self._failures:
            self._callback(NotRead("links", error.strerror or str(error)))
        pause = min(_FIRST_PAUSE * 2.0 ** min(self._failures, 16), _LONGEST_PAUSE)
        self._failures += 1
        if self._resync_timer is not None:
            self._resync_timer.cancel()
        if self._loop is not None:
            self._resync_timer = self._loop.call_later(pause, self.resync)

    def _read_all(self) -> LinkTable:
        """All interfaces as they are now. Raises OSError."""
        table = LinkTable(self._facts)
        # Links first: addresses of unknown interfaces are ignored.
        for kind, body in self._request.dump(RTM_GETLINK, rtnl.all_links()):
            table.take(kind, body)
        table.shapers.load(self._request)
        for kind, body in self._request.dump(RTM_GETADDR, rtnl.all_addresses()):
            table.take(kind, body)
        try:
            speeds: dict[int, float] | None = self._speeds.all()
        except OSError:
            speeds = None
        for ifindex, link in list(table.links.items()):
            known = self._table.links.get(ifindex)
            # Without carrier hardware reports no speed: keep the known one.
            stands = speeds is None or not link.up
            kept = known.speed if known is not None and stands else None
            table.set_speed(ifindex, (speeds or {}).get(ifindex, kept))
        return table

    def _links_readable(self) -> None:
        self.arrived = asyncio.get_running_loop().time()
        lost = False
        # Whoever deletes our routes with each new interface does so while that is processed here.
        self._read_fib(_FEW)
        for received in notifications(self._link_socket):
            if received is None:  # process the rest of the queue, then read the tables
                lost = True
                continue
            for kind, _, _, _, body in messages(received):
                self._report(self._table.take(kind, body))
        self._settled()
        if lost:
            self.resync()

    def _report(self, taken: Taken | None) -> None:
        """Report the link that a message was of, and ask for speeds that messages do not tell."""
        if taken is None:
            return
        ifindex, previous = taken
        self.version += 1
        links = self._table.links
        link = links.get(ifindex)
        if link is None:
            if previous is not None:
                self._local_routes.touch()
                self._callback(InterfaceRemoved(previous))
            return
        self._local_routes.touch()
        # With the carrier the speed may be another, which no message has: ask before reporting.
        if link.up and (previous is None or not previous.up):
            self._ask_speed(ifindex)
            link = links[ifindex]
        if link != previous:
            self._callback(InterfaceChanged(link, previous))
        if previous is not None and link.up != previous.up:
            self._ask_speeds_soon()

    def _ask_speed(self, ifindex: int) -> None:
        try:
            self._table.set_speed(ifindex, self._speeds.of(ifindex))
        except OSError:
            self._ask_speeds_soon()

    def _ask_speeds_soon(self) -> None:
        if self._speed_timer is None and self._loop is not None:
            self._speed_timer = self._loop.call_later(_SPEED_DELAY, self.refresh_speeds)

    def _speeds_readable(self) -> None:
        """Read the speeds after a changed setting of an interface."""
        for _ in notifications(self._speed_socket):
            pass
        self.refresh_speeds()

    def _fib_readable(self) -> None:
        """Read notifications of routes and next hops."""
        self._read_fib(None)

    def _read_fib(self, most: int | None) -> None:
        """Read so many of them, None: all, and report what others did to ours."""
        changes, local = 0, False
        for received in islice(notifications(self._fib_socket), most):
            if received is None:
                local = True
                self._callback(Overflow("fib"))
                continue
            for kind, _, _, _, body in messages(received):
                offset = _PROTOCOL_OFFSET.get(kind)
                if offset is None:
                    continue
                if body[offset : offset + 1] == self._mark:
                    changes += 1
                    self._ours(kind, body)
                elif kind == RTM_NEWROUTE:
                    changes += self._taken(body)
                # The kernel deletes the routes of a deleted next-hop object without a message.
                local |= offset == _NEXTHOP or LocalRoutes.concern(body)
        if local:
            self._local_routes.touch()
        if changes:
            self._callback(ForeignFibChange(changes))
