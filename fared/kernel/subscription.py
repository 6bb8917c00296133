"""Netlink sockets that receive what the kernel tells of links, addresses, routes and next hops."""

from __future__ import annotations

import socket

from fared.kernel import netlink
from fared.kernel.netlink import join, open_socket
from fared.kernel.socketfilter import ALL, EQUAL, LOAD_WORD, RETURN, attach_filter

_RTNLGRP_LINK, _RTNLGRP_TC, _RTNLGRP_NEXTHOP = 1, 4, 32  # linux/rtnetlink.h
_RTNLGRP_IPV4_IFADDR, _RTNLGRP_IPV6_IFADDR = 5, 9
_RTNLGRP_IPV4_ROUTE, _RTNLGRP_IPV6_ROUTE = 7, 11
LINK_GROUPS = (_RTNLGRP_LINK, _RTNLGRP_TC, _RTNLGRP_IPV4_IFADDR, _RTNLGRP_IPV6_IFADDR)
FIB_GROUPS = (_RTNLGRP_IPV4_ROUTE, _RTNLGRP_IPV6_ROUTE, _RTNLGRP_NEXTHOP)
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
    join(sock, *groups)
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
