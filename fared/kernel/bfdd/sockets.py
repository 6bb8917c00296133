"""The UDP sockets of BFD (RFC 5881 §4, §5): single hop, so TTL 255 is sent and required.

One socket of each family receives, which reports interface and TTL of each packet; each session
sends from a socket of its own, bound to its interface, since its source port is its own.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from fared.core.rng import Rng
from fared.kernel.on_link import with_ttl
from fared.kernel.socketfilter import attach_filter

PORT = 3784
TTL = 255
FIRST_PORT, PORTS = 49152, 16384
"""RFC 5881 §4: the source ports."""
_ATTEMPTS = 64
_AT_ONCE = 1024
"""Packets read before timers run."""
_SIZE = 512
_ANCILLARY = 128
_BUFFER = 1 << 20
_TOS = 0xC0
"""Precedence internetwork control, as the hellos of OSPF."""
_PRIORITY_CONTROL = 7
_IP_PKTINFO, _IP_RECVTTL = 8, 12
_INT = struct.Struct("=i")
_FAMILIES = {4: socket.AF_INET, 16: socket.AF_INET6}
"""By the length of an address."""

Receive = Callable[[int, bytes, int, bytes], None]
"""Called with interface, source, TTL and payload."""


def receiving_socket(size: int) -> socket.socket:
    """Open the socket that receives packets to addresses of ``size`` bytes. Raises OSError."""
    sock = socket.socket(_FAMILIES[size], socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        attach_filter(sock, with_ttl(sock.family, TTL))
        if size == 4:
            sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
            sock.setsockopt(socket.IPPROTO_IP, _IP_RECVTTL, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        sock.bind(("" if size == 4 else "::", PORT))
    except OSError:
        sock.close()
        raise
    return sock


def read_all(sock: socket.socket, receive: Receive) -> None:
    """Read the packets that wait."""
    ipv4 = sock.family == socket.AF_INET
    for _ in range(_AT_ONCE):
        try:
            data, ancillary, _, address = sock.recvmsg(_SIZE, _ANCILLARY)
        except OSError:  # none waits, or an ICMP error of a packet sent before
            return
        ifindex = ttl = 0
        for _, kind, content in ancillary:
            if kind in (_IP_PKTINFO, socket.IPV6_PKTINFO):
                # struct in_pktinfo begins with the interface, struct in6_pktinfo ends with it
                ifindex = _INT.unpack_from(content, 0 if ipv4 else 16)[0]
            else:
                ttl = _INT.unpack_from(content)[0]
        host = address[0].partition("%")[0]
        receive(ifindex, socket.inet_pton(sock.family, host), ttl, data)


class Sender:
    """Sends the packets of one session from a port of its own."""

    def __init__(self, ifindex: int, interface: str, local: bytes, remote: bytes, rng: Rng) -> None:
        self.interface, self.local = interface, local
        self.source_port = 0
        self._rng = rng
        self._sock: socket.socket | None = None
        self._family = _FAMILIES[len(remote)]
        host = socket.inet_ntop(self._family, remote)
        scoped = (host, PORT, 0, ifindex)
        self._address = scoped[:2] if len(remote) == 4 else scoped

    def send(self, payload: bytes) -> None:
        """Send a packet. Raises OSError; the next packet tries again."""
        if self._sock is None:
            self._sock = self._open()
        try:
            self._sock.sendto(payload, self._address)
        except BlockingIOError:
            return  # the queue of the interface is full
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the socket."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def _open(self) -> socket.socket:
        sock = socket.socket(self._family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            name = self.interface.encode()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name + b"\0")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, _PRIORITY_CONTROL)
            if self._family == socket.AF_INET:
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, TTL)
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, _TOS)
            else:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, TTL)
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, _TOS)
            self._bind(sock)
        except OSError:
            sock.close()
            raise
        return sock

    def _bind(self, sock: socket.socket) -> None:
        """Bind to the local address and a free source port."""
        host = socket.inet_ntop(self._family, self.local) if self.local else ""
        scope = (0, self._address[3]) if len(self._address) == 4 else ()
        # RFC 5881 §4: the same port for the life of a session
        port = self.source_port
        for attempt in range(_ATTEMPTS):
            if not port or attempt:
                port = FIRST_PORT + int(self._rng.random() * PORTS)
            try:
                sock.bind((host, port, *scope))
            except OSError:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                self.source_port = port
                return
