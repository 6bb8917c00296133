"""Router advertisements on unnumbered links, and whom they come from.

Three a second apart, then one in ten seconds (RFC 4861 §6.2.4), and one for who solicits (§6.2.6).
The first ones go with solicitations, until the neighbor has been heard. FRR solicits none when it
begins, and takes no connection before it has heard one: it is known by those that it sends, which
are as close together, and have a router lifetime, and is answered as if it had asked. The engine is
told of a neighbor's address when it is new; on a link where others pretend to be the neighbor, once
a second at most.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from fared.core.streams import AdvertiseRouter, RouterHeard
from fared.daemon.loop.streams.pump import READ, Pump
from fared.kernel.arrived import count_error
from fared.kernel.errors import PrivilegeError
from fared.kernel.reopening import Reopening, Report
from fared.kernel.router_advertisements import (
    ADVERTISEMENT,
    SOLICITATION,
    Heard,
    opened,
    receive,
    send,
)
from fared.kernel.tcp import MakeSocket

_FIRST: Final = 3
_SOON, _INTERVAL = 1.0, 10.0
"""Seconds between the first ones, and between all others."""
_TOGETHER: Final = 1.0
"""Seconds by which one may be early, to share a wakeup."""
_LEAST_GAP: Final = 1.0
_BEGINS: Final = 8.0
"""Seconds between two of a neighbor at most, if it has just begun."""


class _UnnumberedLink(msgspec.Struct):
    wanted: AdvertiseRouter
    sock: socket.socket | None = None
    sent: int = 0
    due: float = 0.0
    sent_at: float = -math.inf
    heard: Heard | None = None
    told_at: float = -math.inf
    heard_at: float = -math.inf


class Advertising:
    """The links on which this router advertises itself; ``tell`` gets what is heard there."""

    def __init__(
        self,
        pump: Pump,
        tell: Callable[[RouterHeard], None],
        counters: Counter[str],
        *,
        make: MakeSocket,
        report: Report,
    ) -> None:
        self._pump, self._tell, self._counters, self._make = pump, tell, counters, make
        self._loop = asyncio.get_running_loop()
        self._again = Reopening(self._loop, self._open, report)
        self._links: dict[int, _UnnumberedLink] = {}
        self._timer: asyncio.TimerHandle | None = None

    def advertise(self, wanted: AdvertiseRouter) -> None:
        """Begin on a link, from the first advertisement on, or end. Raises PrivilegeError."""
        ifindex = wanted.ifindex
        if wanted.address is None:
            self._end(ifindex)
            return
        known = self._links.get(ifindex)
        link = self._links[ifindex] = _UnnumberedLink(wanted, due=self._loop.time())
        if known is not None and known.sock is not None:
            link.sock = known.sock
            self._beat()
        else:
            self._again.forget(ifindex)
            self._open(ifindex)

    def close(self) -> None:
        """End on all links."""
        for ifindex in list(self._links):
            self._end(ifindex)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, ifindex: int) -> None:
        self._again.forget(ifindex)
        link = self._links.pop(ifindex, None)
        if link is not None and link.sock is not None:
            self._pump.forget(link.sock)
            link.sock.close()

    def _open(self, ifindex: int) -> None:
        link = self._links[ifindex]
        try:
            link.sock = sock = opened(self._make, ifindex)
        except PermissionError as error:
            purpose = "open raw sockets for router advertisements"
            raise PrivilegeError("CAP_NET_RAW", purpose) from error
        except OSError as error:
            count_error(self._counters, "open-error", error)
            self._again.failed(ifindex, error)
            return
        self._again.opened(ifindex)
        self._pump.watch(sock, READ, lambda _: self._read(ifindex, sock))
        self._beat()

    def _beat(self) -> None:
        """Send what is due, and wait for the next."""
        now = self._loop.time()
        for link in self._links.values():
            early = _TOGETHER if now >= link.sent_at + _INTERVAL - 2 * _TOGETHER else 0.0
            if link.sock is not None and link.due <= now + early:
                self._send(link, link.sock)
                link.due = now + (_SOON if link.sent < _FIRST else _INTERVAL)
        if self._timer is not None:
            self._timer.cancel()
        due = min((one.due for one in self._links.values() if one.sock), default=None)
        self._timer = None if due is None else self._loop.call_at(due, self._beat)

    def _send(self, link: _UnnumberedLink, sock: socket.socket) -> None:
        wanted = link.wanted
        assert wanted.address is not None
        kinds = [ADVERTISEMENT]
        if link.heard is None and link.sent < _FIRST:
            kinds.append(SOLICITATION)
        try:
            for kind in kinds:
                send(sock, kind, wanted.ifindex, wanted.address, wanted.mac)
        except OSError as error:  # the address is not usable yet, or the link is down
            count_error(self._counters, "advertisement-error", error)
        else:
            link.sent, link.sent_at = link.sent + 1, self._loop.time()
            self._counters["advertisements-sent"] += 1

    def _read(self, ifindex: int, sock: socket.socket) -> None:
        try:
            found, bad = receive(sock)
        except OSError as error:
            count_error(self._counters, "receive-error", error)
            return
        if bad:
            self._counters["advertisements-malformed"] += bad
        link = self._links.get(ifindex)
        if not found or link is None:
            return
        told = [one for one in found if one.kind == ADVERTISEMENT]
        self._counters["advertisements-received"] += len(told)
        asked = len(told) < len(found)
        if asked:
            self._counters["solicitations-received"] += len(found) - len(told)
        if told:
            asked |= self._hear(link, told[-1])
        if asked:
            link.due = min(link.due, link.sent_at + _LEAST_GAP)
            self._beat()

    def _hear(self, link: _UnnumberedLink, last: Heard) -> bool:
        """Tell of a neighbor that is new; return whether it seems to begin."""
        now = self._loop.time()
        begins = last.lifetime > 0 and now - link.heard_at < _BEGINS
        link.heard_at = now
        if last != link.heard and now >= link.told_at + _LEAST_GAP:
            link.heard, link.told_at = last, now
            self._tell(RouterHeard(link.wanted.ifindex, last.address, last.mac))
        return begins
