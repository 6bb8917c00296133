"""The sockets by which a worker receives results that come by BIER.

With CAP_NET_RAW a packet socket takes BIER packets as they are. Without it the leaf has to pop the
header (``bier: php``): the packet inside goes to a multicast group, which needs no privilege.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

from fared.core.wire import DecodeError
from fared.extensions.ina.by_bier import GROUP, PORT, unwrapped
from fared.paths.bier.header import ETHERTYPE

_BUFFER = 4 << 20
_MOST_PACKET = 1 << 16
_AT_ONCE = 64
Arrival = tuple[tuple[str, int], memoryview]
"""The source and a packet, valid until the next one."""


class BierSockets:
    """All sockets of a worker; ``bfr_id`` is that of its host, ``address`` the host's own."""

    def __init__(self, address: str, bfr_id: int) -> None:
        """Open them. Raises OSError."""
        self.refused = 0
        """Packets that were no results for this host."""
        self._bfr_id = bfr_id
        self._buffer = bytearray(_MOST_PACKET)
        self._view = memoryview(self._buffer)
        self._group = _open_group(address)
        self._raw = _open_raw()

    @property
    def all(self) -> list[socket.socket]:
        """The sockets to wait for."""
        return [self._group] if self._raw is None else [self._group, self._raw]

    def close(self) -> None:
        """Close them."""
        for sock in self.all:
            sock.close()

    def arrived(self) -> Iterator[Arrival]:
        """Yield what is queued, up to some packets."""
        for _ in range(_AT_ONCE):
            try:
                size, source = self._group.recvfrom_into(self._buffer)
            except OSError:  # none waits
                break
            yield source, self._view[:size]
        for _ in range(_AT_ONCE if self._raw is not None else 0):
            assert self._raw is not None
            try:
                size, (_, _, kind, *_) = self._raw.recvfrom_into(self._buffer)
            except OSError:
                break
            if kind == socket.PACKET_OUTGOING:
                continue
            try:
                yield unwrapped(self._view[:size], self._bfr_id)
            except DecodeError:
                self.refused += 1


def _open_group(address: str) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        sock.bind((GROUP, PORT))
        joined = socket.inet_aton(GROUP) + socket.inet_aton(address)
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, joined)
    except OSError:
        sock.close()
        raise
    return sock


def _open_raw() -> socket.socket | None:
    """Return a socket of BIER packets without their Ethernet header; None: not permitted."""
    kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
    with contextlib.suppress(PermissionError):
        sock = socket.socket(socket.AF_PACKET, kind, socket.htons(ETHERTYPE))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        return sock
    return None
