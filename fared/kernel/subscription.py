"""Netlink sockets that receive what the kernel tells of links, addresses, routes and next hops."""

from __future__ import annotations

import socket

from pyroute2.netlink import NETLINK_ADD_MEMBERSHIP, SOL_NETLINK
from pyroute2.netlink.rtnl import (
    RTNLGRP_IPV4_IFADDR,
    RTNLGRP_IPV4_ROUTE,
    RTNLGRP_IPV6_IFADDR,
    RTNLGRP_IPV6_ROUTE,
    RTNLGRP_LINK,
    RTNLGRP_TC,
)

from fared.kernel import netlink
from fared.kernel.netlink import open_socket
from fared.kernel.socketfilter import ALL, EQUAL, LOAD_WORD, RETURN, attach_filter

_RTNLGRP_NEXTHOP = 32
LINK_GROUPS = (RTNLGRP_LINK, RTNLGRP_TC, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR)
FIB_GROUPS = (RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, _RTNLGRP_NEXTHOP)
_BUFFER = 16 << 20


def subscribe(
    groups: tuple[int, ...],
    ignored_port: int | None = None,
    protocol: int = netlink.NETLINK_ROUTE,
) -> socket.socket:
    """Open a socket that receives the notifications of these groups.

    ``ignored_port``: but not those of what the socket with this netlink port did.
    """
    sock = open_socket(protocol, receive_buffer=_BUFFER)
    sock.setblocking(False)
    # The filter first: messages queued before it would get through.
    if ignored_port is not None:
        _drop_echoes(sock, ignored_port)
    for group in groups:
        sock.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)
    return sock


def _drop_echoes(sock: socket.socket, port: int) -> None:
    """Drop messages whose nlmsg_pid is ``port``."""
    # A BPF word load reads network order, but the header is in host order: swap the constant.
    attach_filter(
        sock,
        (
            (LOAD_WORD, 0, 0, 12),  # nlmsg_pid
            (EQUAL, 0, 1, socket.htonl(port)),
            (RETURN, 0, 0, 0),
            (RETURN, 0, 0, ALL),
        ),
    )
