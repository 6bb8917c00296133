"""Notifications of changes in a table of nftables.

They do not say who changed something: who changes the table discards those that arrive meanwhile.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from pyroute2.netlink import NETLINK_ADD_MEMBERSHIP, SOL_NETLINK

from fared.kernel.netlink import attributes, messages, notifications, open_socket

_NETLINK_NETFILTER = 12
_NFNLGRP_NFTABLES = 7
_NFGENMSG = 4
_NFTA_TABLE = 1
"""The name of the table, in messages of every kind of object."""


def subscribe(protocol: int, *groups: int) -> socket.socket:
    """Return a socket of a netlink protocol that receives the notifications of groups."""
    sock = open_socket(protocol)
    sock.setblocking(False)
    for group in groups:
        sock.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)
    return sock


class NftWatch:
    """Calls ``changed`` when a table of this name may have changed."""

    def __init__(self, changed: Callable[[], None], table: str) -> None:
        self._changed = changed
        self._table = table.encode() + b"\0"
        self._socket = subscribe(_NETLINK_NETFILTER, _NFNLGRP_NFTABLES)

    def start(self) -> None:
        """Report from now on."""
        asyncio.get_running_loop().add_reader(self._socket, self._readable)

    def close(self) -> None:
        """Stop and close the socket."""
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def discard(self) -> bool:
        """Ignore what has changed until now; return whether anything had."""
        changed = False
        for received in notifications(self._socket):
            changed |= received is None
            for _, _, _, _, body in messages(received or b""):
                changed |= attributes(body, _NFGENMSG).get(_NFTA_TABLE) == self._table
        return changed

    def _readable(self) -> None:
        if self.discard():
            self._changed()
