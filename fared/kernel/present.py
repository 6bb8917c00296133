"""Reads all interfaces once, with what tells people what they are for.

``KernelMonitor`` follows the interfaces of a running daemon; ``fared-cli config template`` needs
them once, and no privileges. ``default_route_ports`` asks for one route: where the kernel holds
100,000, a look at all of them would delay a start.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterable

from pyroute2.netlink.rtnl import RTM_GETADDR, RTM_GETLINK, RTM_NEWROUTE

from fared.core.links import PresentLink
from fared.kernel import rtnl
from fared.kernel.capacity import LinkSpeeds
from fared.kernel.errors import NetlinkError
from fared.kernel.linktable import LinkTable
from fared.kernel.netlink import attributes, u32
from fared.kernel.requests import RequestSocket
from fared.kernel.rtnetlink import FAMILY, RTM_GETROUTE, RTMSG

_LINK_HEAD = 16  # struct ifinfomsg
_IFLA_MASTER, _IFLA_LINKINFO, _INFO_KIND = 10, 18, 1
_RTA_OIF = 4
_ROUTING_DAEMONS = 128
"""Protocol numbers below are of the kernel, of people and of DHCP; FRR, BIRD (12) and fared (201)
have others (rtnetlink.h)."""
_BIRD = 12
_RTM_F_FIB_MATCH = 0x2000
_RTA_DST = 1
_ELSEWHERE = {socket.AF_INET: "198.51.100.1", socket.AF_INET6: "2001:db8:ffff::1"}
"""Addresses for documentation, to which only default routes lead (RFC 5737, RFC 3849)."""


def read_present() -> list[PresentLink]:
    """Return the interfaces of this network namespace by index. Raises OSError."""
    request, speeds = RequestSocket(), LinkSpeeds()
    try:
        table = LinkTable()
        facts: dict[int, tuple[str, bool]] = {}
        for kind, body in request.dump(RTM_GETLINK, rtnl.all_links()):
            if (taken := table.take(kind, body)) is not None:
                facts[taken.ifindex] = _facts(body)
        table.shapers.load(request)
        for kind, body in request.dump(RTM_GETADDR, rtnl.all_addresses()):
            table.take(kind, body)
        for ifindex, speed in speeds.all().items():
            table.set_speed(ifindex, speed)
        leaving = _default_routes(request)
    finally:
        request.close()
        speeds.close()
    return [
        PresentLink(link, *facts[ifindex], ifindex in leaving)
        for ifindex, link in sorted(table.links.items())
    ]


def default_route_ports() -> frozenset[str]:
    """Return the interfaces of default routes that people or DHCP made. No failure is raised."""
    names: set[str] = set()
    with contextlib.suppress(OSError), contextlib.closing(RequestSocket()) as request:
        for af, address in _ELSEWHERE.items():
            packed = socket.inet_pton(af, address)
            head = RTMSG.pack(af, len(packed) * 8, 0, 0, 0, 0, 0, 0, _RTM_F_FIB_MATCH)
            body = head + (4 + len(packed)).to_bytes(2, sys.byteorder)
            body += _RTA_DST.to_bytes(2, sys.byteorder) + packed
            with contextlib.suppress(NetlinkError):  # no route leads there
                found = _leaving(request.query(RTM_GETROUTE, body))
                names.update(map(socket.if_indextoname, found))
    return frozenset(names)


def _facts(body: bytes) -> tuple[str, bool]:
    """Return the kind of an interface, and whether it belongs to another."""
    found = attributes(body, _LINK_HEAD)
    kind = attributes(found.get(_IFLA_LINKINFO, b"")).get(_INFO_KIND, b"")
    return kind.rstrip(b"\0").decode("ascii", "replace"), _IFLA_MASTER in found


def _default_routes(request: RequestSocket) -> set[int]:
    """Return the interfaces that default routes use, but not those of routing daemons."""
    leaving: set[int] = set()
    for af in FAMILY:
        body = RTMSG.pack(af, 0, 0, 0, 0, 0, 0, 0, 0)
        leaving |= _leaving(request.dump(RTM_GETROUTE, body))
    return leaving


def _leaving(answers: Iterable[tuple[int, bytes]]) -> set[int]:
    """Return the interfaces of those routes that are default routes, but not of daemons."""
    leaving: set[int] = set()
    for kind, answer in answers:
        if kind != RTM_NEWROUTE or len(answer) < RTMSG.size:
            continue
        _, length, _, _, _, protocol, _, _, _ = RTMSG.unpack_from(answer)
        found = attributes(answer, RTMSG.size)
        by_hand = protocol < _ROUTING_DAEMONS and protocol != _BIRD
        if not length and by_hand and _RTA_OIF in found:
            leaving.add(u32(found[_RTA_OIF]))
    return leaving
