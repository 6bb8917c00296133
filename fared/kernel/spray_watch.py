"""Notifications of changes in the table of sprayed packets, and of rules.

They do not say who changed something: ``SprayWriter`` discards those that arrive while it changes
something itself. ``KernelMonitor`` reports the routes of marks.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from pyroute2.netlink import NETLINK_ADD_MEMBERSHIP, SOL_NETLINK

from fared.kernel.netlink import attributes, messages, notifications, open_socket
from fared.kernel.nft_table import TABLE
from fared.kernel.rtnetlink import RTMSG

_NETLINK_NETFILTER = 12
_NFNLGRP_NFTABLES = 7
_RTNLGRP_IPV4_RULE, _RTNLGRP_IPV6_RULE = 8, 19
_NFGENMSG = 4
_NFTA_TABLE = 1
"""The name of the table, in messages of every kind of object."""
_FRA_PROTOCOL = 21
_OURS = TABLE.encode() + b"\0"


class SprayWatch:
    """Calls ``changed`` when objects that may be ours change; ``protocol`` is that of our rules."""

    def __init__(self, changed: Callable[[], None], protocol: int) -> None:
        self._changed = changed
        self._protocol = bytes([protocol])
        self._nft = _subscribe(_NETLINK_NETFILTER, _NFNLGRP_NFTABLES)
        self._rules = _subscribe(0, _RTNLGRP_IPV4_RULE, _RTNLGRP_IPV6_RULE)

    def start(self) -> None:
        """Report from now on."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._nft, self._readable)
        loop.add_reader(self._rules, self._readable)

    def close(self) -> None:
        """Stop and close the sockets."""
        loop = asyncio.get_running_loop()
        for sock in (self._nft, self._rules):
            loop.remove_reader(sock)
            sock.close()

    def discard(self) -> None:
        """Ignore what has changed until now."""
        self._nft_changed()
        self._rules_changed()

    def _readable(self) -> None:
        # Both are read, or changes of the second would be reported again.
        nft, rules = self._nft_changed(), self._rules_changed()
        if nft or rules:
            self._changed()

    def _nft_changed(self) -> bool:
        changed = False
        for received in notifications(self._nft):
            changed |= received is None
            for _, _, _, _, body in messages(received or b""):
                changed |= attributes(body, _NFGENMSG).get(_NFTA_TABLE) == _OURS
        return changed

    def _rules_changed(self) -> bool:
        changed = False
        for received in notifications(self._rules):
            changed |= received is None
            for _, _, _, _, body in messages(received or b""):
                changed |= (
                    attributes(body, RTMSG.size).get(_FRA_PROTOCOL, b"")[:1] == self._protocol
                )
        return changed


def _subscribe(protocol: int, *groups: int) -> socket.socket:
    sock = open_socket(protocol)
    sock.setblocking(False)
    for group in groups:
        sock.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)
    return sock
