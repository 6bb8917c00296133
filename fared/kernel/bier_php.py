"""Penultimate hop popping: hosts without raw sockets get the payload without the BIER header.

draft-ietf-bier-php: the leaf is the penultimate hop. Its kernel delivers packets with a bit of such
a host as if they were for the leaf; this socket reads them, and sends the IP packet inside to
the interface of each of these hosts, with the group address of all stations. The destination
inside has to be one that the hosts receive: a multicast group.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Mapping
from types import MappingProxyType

from fared.core.bier import bift_id
from fared.core.wire import DecodeError
from fared.paths.bier.bit_string import bfr_ids
from fared.paths.bier.header import ETHERTYPE, PROTO_IPV4, PROTO_IPV6, decode_header
from fared.paths.fib.bier import BierFib, BierPort

_BURST = 64
_RCVBUFFORCE, _BUFFER = 33, 8 << 20
"""Hosts get results of jumbo size at link rate, while this process computes routes."""
_MOST = 1 << 16
_ETHERNET = 14
_BROADCAST = b"\xff" * 6
_ETHERTYPES: Mapping[int, bytes] = MappingProxyType(
    {PROTO_IPV4: b"\x08\x00", PROTO_IPV6: b"\x86\xdd"}
)


class HeaderPopper:
    """Serves the hosts of a state, ``BierFib.popped``; used from the loop."""

    def __init__(self) -> None:
        self._fib: BierFib | None = None
        self._socket: socket.socket | None = None
        self._senders: dict[BierPort, socket.socket] = {}

    def serve(self, fib: BierFib) -> None:
        """Pop headers for the hosts of a state from now on. Raises OSError."""
        self._fib = fib
        for port in self._senders.keys() - {*fib.popped.values()}:
            self._senders.pop(port).close()
        if fib.popped and self._socket is None:
            self._socket = socket.socket(
                socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(ETHERTYPE)
            )
            with contextlib.suppress(PermissionError):
                self._socket.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, _BUFFER)
            asyncio.get_running_loop().add_reader(self._socket, self._readable, self._socket)
        elif not fib.popped:
            self.close()
        for port in fib.popped.values():
            if port not in self._senders:
                self._senders[port] = _sender(port)

    def close(self) -> None:
        """Pop no more headers."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        for sock in self._senders.values():
            sock.close()
        self._senders.clear()

    def _readable(self, sock: socket.socket) -> None:
        for _ in range(_BURST):
            try:
                data, (_, _, kind, *_) = sock.recvfrom(_MOST)
            except OSError:
                return
            if kind not in (socket.PACKET_OUTGOING, socket.PACKET_OTHERHOST):
                self._pop(data)

    def _pop(self, data: bytes) -> None:
        fib = self._fib
        if fib is None:
            return
        with contextlib.suppress(DecodeError):
            header = decode_header(data, _ETHERNET)
            kind = _ETHERTYPES.get(header.proto)
            set_id = header.bift_id - bift_id(fib.length, fib.sub_domain, 0)
            if kind is None or header.length != fib.length or set_id not in fib.sets:
                return
            payload = data[_ETHERNET + header.size :]
            for bfr_id in bfr_ids(header.bit_string, fib.length, set_id):
                port = fib.popped.get(bfr_id)
                if port is not None:
                    self._send(port, kind + payload)

    def _send(self, port: BierPort, content: bytes) -> None:
        with contextlib.suppress(OSError):  # the interface is gone, or its queue full
            self._senders[port].send(_BROADCAST + port.mac.to_bytes(6, "big") + content)


def _sender(port: BierPort) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
    try:
        sock.bind((port.name, 0))
    except OSError:
        sock.close()
        raise
    return sock
