"""Who asks: the user at the other end of a control connection, for the history of changes."""

from __future__ import annotations

import pwd
import socket
import struct
from contextvars import ContextVar
from typing import Final

CALLER: Final[ContextVar[str]] = ContextVar("caller", default="unknown")
"""The user of the request that is being answered. Each connection's task has its own value."""
_CREDENTIALS: Final = struct.Struct("iII")
"""pid, uid, gid (``struct ucred``, unix(7))."""


def user_of(connection: socket.socket) -> str:
    """Return the name of the user who connected, or the user id where it has no name."""
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError:
        return "unknown"
    _, user, _ = _CREDENTIALS.unpack(raw)
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
