"""The sockets of ``fared-ina``: of packets, of operators, and where workers join.

A worker connects to its default gateway, which is an address of the link to its host. So
``WorkerListeners`` listens where packets to the workers of present jobs leave, besides the router's
own address, and nowhere else.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

_BACKLOG = 128
_AT_ONCE = 64
_ANY_PORT = 9
"""Nothing is sent to it."""
_BUFFER = 8 << 20
_MODE = 0o660
_RCVBUFFORCE, _SNDBUFFORCE = 33, 32
"""Above the limit of ``net.core.rmem_max``; with CAP_NET_ADMIN only."""

Taken = Callable[[socket.socket, str], None]
"""Gets a connection and the address of its other end."""


def open_udp(address: str, port: int, buffer: int = _BUFFER) -> socket.socket:
    """Open the socket of packets, with buffers as large as permitted. Raises OSError."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for force, plain in ((_RCVBUFFORCE, socket.SO_RCVBUF), (_SNDBUFFORCE, socket.SO_SNDBUF)):
        try:
            sock.setsockopt(socket.SOL_SOCKET, force, buffer)
        except OSError:
            sock.setsockopt(socket.SOL_SOCKET, plain, buffer)
    try:
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    return sock


def listen_unix(path: Path) -> socket.socket:
    """Listen for members of the process's group; a socket that nobody serves is replaced.

    Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(path))
                except OSError:
                    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    umask = os.umask(0o777 & ~_MODE)
    try:
        listener.bind(str(path))
        listener.listen()  # at once: whoever sees the path may connect
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(umask)
    listener.setblocking(False)
    return listener


class WorkerListeners:
    """The listening sockets, at one TCP port. Raises OSError if ``address`` is none of ours."""

    def __init__(
        self, selector: selectors.BaseSelector, address: str, port: int, taken: Taken
    ) -> None:
        self._selector, self._address, self._taken = selector, address, taken
        self._listening: dict[str, socket.socket] = {}
        self._port = port
        self._open(address)

    @property
    def addresses(self) -> set[str]:
        """The addresses at which workers can join now."""
        return set(self._listening)

    def follow(self, workers: Iterable[str]) -> None:
        """Listen where these workers look for their router: links come and go, as jobs do."""
        wanted = {self._address, *filter(None, map(_facing, workers))}
        for address in self.addresses - wanted:
            self._close(address)
        for address in wanted - self.addresses:
            with contextlib.suppress(OSError):  # an address that has just gone
                self._open(address)

    def close(self) -> None:
        """Close all sockets."""
        for address in self.addresses:
            self._close(address)

    def _open(self, address: str) -> None:
        sock = socket.create_server((address, self._port), backlog=_BACKLOG)
        sock.setblocking(False)
        self._listening[address] = sock
        self._selector.register(sock, selectors.EVENT_READ, lambda _: self._accept(sock))

    def _close(self, address: str) -> None:
        sock = self._listening.pop(address)
        self._selector.unregister(sock)
        sock.close()

    def _accept(self, listener: socket.socket) -> None:
        for sock, address in _connections(listener):
            self._taken(sock, address)


def _connections(listener: socket.socket) -> Iterator[tuple[socket.socket, str]]:
    """Yield connections that wait, up to some."""
    for _ in range(_AT_ONCE):
        try:
            sock, (address, _) = listener.accept()
        except OSError:  # none waits
            return
        yield sock, address


def _facing(worker: str) -> str | None:
    """Return the address from which packets to a host leave; None: there is no route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((worker, _ANY_PORT))
        except OSError:
            return None
        found: str = probe.getsockname()[0]
        return found
