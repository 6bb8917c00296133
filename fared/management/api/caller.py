"""Who asks: the user at the other end of a control connection, and what he may do."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import socket
import struct
from contextvars import ContextVar
from typing import Final

import msgspec

CALLER: Final[ContextVar[str]] = ContextVar("caller", default="unknown")
"""The user of the request that is being answered. Each connection's task has its own value."""


class Peer(msgspec.Struct, frozen=True):
    """User and groups of the process that connected."""

    user: int
    groups: frozenset[int]


PEER: Final[ContextVar[Peer | None]] = ContextVar("peer", default=None)
"""The same as ids; None: the kernel does not tell, or there is no connection."""
_CREDENTIALS: Final = struct.Struct("iII")
"""pid, uid, gid (``struct ucred``, unix(7))."""
_SO_PEERGROUPS: Final = 59
_MOST_GROUPS: Final = 1024
"""Bytes of group ids, which are all that Python reads: of 256 groups."""
_ROOT: Final = 0


def peer_of(connection: socket.socket) -> Peer | None:
    """Return who connected; None: the kernel does not tell. More than 256 groups count as none."""
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError:
        return None
    _, user, group = _CREDENTIALS.unpack(raw)
    more = b""
    with contextlib.suppress(OSError):
        more = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MOST_GROUPS)
    groups = struct.unpack(f"{len(more) // 4}I", more)
    return Peer(user, frozenset((group, *groups)))


def name_of(peer: Peer | None) -> str:
    """Return the name of a user, or the user id where it has no name."""
    if peer is None:
        return "unknown"
    try:
        return pwd.getpwuid(peer.user).pw_name
    except KeyError:
        return str(peer.user)


def may_change(group: str | None) -> bool:
    """Whether the caller may change the daemon, where only members of a group may.

    Root and the daemon's own user always may; ``group`` None: whoever may connect. A group that
    does not exist has no members.
    """
    if group is None:
        return True
    peer = PEER.get()
    if peer is None:
        return False
    if peer.user in (_ROOT, os.geteuid()):
        return True
    try:
        return grp.getgrnam(group).gr_gid in peer.groups
    except KeyError:
        return False
