"""Listening sockets that reserve descriptors for the router.

Clients could take all descriptors of the process; an interface that appears then would get no
socket, and so no neighbor. So clients only get the lower descriptor numbers. The kernel gives each
new descriptor the lowest free number (``open(2)``), so a high number on a connection shows that the
process is running short, for any reason.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

from fared.runtime.descriptors import ceiling

_READER = "_read_ready_cb"
"""The attribute in which a transport of asyncio has a method of its own, bound to itself."""
_AT_ONCE = 100
"""Clients refused in one turn of the loop: asyncio accepts as many at once."""


def let_go(transport: asyncio.BaseTransport) -> None:
    """Let the transport of a client that has left be freed at once.

    Until Python 3.13, a transport refers to itself even when it is closed, so that only the
    collector frees it. It collects rarely (``runtime.startup``): 8,000 clients that have left took
    7 MB.
    """
    if transport.is_closing() and hasattr(transport, _READER):
        setattr(transport, _READER, None)


class ClientListener(socket.socket):
    """A listening socket that refuses clients before descriptors run out.

    The loop's exception handler receives EMFILE and the ``socket`` for each refused client.
    """

    @classmethod
    def on(cls, host: str, port: int) -> ClientListener:
        """Listen over TCP; port 0: any free one. Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = cls.of(socket.create_server((host, port), family=family))
        listener.setblocking(False)
        return listener

    @classmethod
    def of(cls, listener: socket.socket) -> ClientListener:
        """Take over a listening socket; the given object is closed."""
        return cls(fileno=listener.detach())

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next client that fits. Raises OSError; BlockingIOError: none left."""
        for _ in range(_AT_ONCE):
            connection, address = super().accept()
            if connection.fileno() < ceiling():
                return connection, address
            connection.close()
            error = OSError(errno.EMFILE, "the last descriptors are for the router's own sockets")
            asyncio.get_running_loop().call_exception_handler(
                {"message": "client turned away", "exception": error, "socket": self}
            )
        raise BlockingIOError
