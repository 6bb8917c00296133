"""Registers callbacks for readable sockets: an event loop, or an object that reads several."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Protocol


class Readers(Protocol):
    """Watches sockets."""

    def add_reader(self, sock: socket.socket, callback: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401
        """Call ``callback`` with ``args`` whenever a socket is readable."""

    def remove_reader(self, sock: socket.socket) -> Any:  # noqa: ANN401
        """Stop watching a socket, before it is closed."""
