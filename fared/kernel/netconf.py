"""Notifications of changed kernel settings: forwarding and reverse-path checks (RTM_NEWNETCONF).

The kernel notifies only these of the settings a router needs; the others are polled. A notification
only says that a setting was written; ``sysctl`` reads its value from /proc. Layouts:
linux/netconf.h.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Mapping

from pyroute2.netlink import NETLINK_ADD_MEMBERSHIP, SOL_NETLINK

from fared.core.links import Link
from fared.kernel.netlink import attributes, messages, notifications, open_socket

_RTM_NEWNETCONF = 80
_RTNLGRP_IPV4_NETCONF, _RTNLGRP_IPV6_NETCONF = 24, 25
_NETCONFA_IFINDEX, _NETCONFA_FORWARDING, _NETCONFA_RP_FILTER = 1, 2, 3
_ALL, _DEFAULT = -1, -2
_HEADER = 4
_INT = struct.Struct("=i")
_FAMILIES = {int(socket.AF_INET): "ipv4", int(socket.AF_INET6): "ipv6"}
_NAMES = {_NETCONFA_FORWARDING: "forwarding", _NETCONFA_RP_FILTER: "rp_filter"}


def touched(body: bytes, links: Mapping[int, Link]) -> list[str]:
    """Return the paths below /proc/sys of the settings in a message, given without its header."""
    family = _FAMILIES.get(body[0]) if len(body) >= _HEADER else None
    if family is None:
        return []
    found = attributes(body, _HEADER)
    index = found.get(_NETCONFA_IFINDEX, b"")
    if len(index) != _INT.size:
        return []
    (ifindex,) = _INT.unpack(index)
    link = links.get(ifindex)
    name = {_ALL: "all", _DEFAULT: "default"}.get(ifindex, link.name if link is not None else None)
    paths = [f"net/{family}/conf/{name}/{_NAMES[kind]}" for kind in _NAMES if kind in found]
    if ifindex == _ALL and family == "ipv4" and _NETCONFA_FORWARDING in found:
        paths.append("net/ipv4/ip_forward")  # the same setting under its older name
    return paths if name is not None else []


class SettingsWatch:
    """Calls ``callback`` with the paths of written settings; None: messages were lost."""

    def __init__(
        self,
        callback: Callable[[list[str] | None], None],
        links: Callable[[], Mapping[int, Link]],
    ) -> None:
        self._callback = callback
        self._links = links
        self._socket = open_socket()
        self._socket.setblocking(False)
        for group in (_RTNLGRP_IPV4_NETCONF, _RTNLGRP_IPV6_NETCONF):
            self._socket.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Report from now on."""
        self._loop = loop or asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._readable)

    def close(self) -> None:
        """Stop and close the socket."""
        if self._loop is not None:
            self._loop.remove_reader(self._socket)
        self._socket.close()

    def _readable(self) -> None:
        paths: dict[str, None] = {}
        lost = False
        for received in notifications(self._socket):
            lost |= received is None
            for kind, _, _, _, body in messages(received or b""):
                if kind == _RTM_NEWNETCONF:
                    paths.update(dict.fromkeys(touched(body, self._links())))
        if lost:
            self._callback(None)
        elif paths:
            self._callback(list(paths))
