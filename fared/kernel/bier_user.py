"""BIER without nftables: the process forwards, by the same tables.

A socket on each port receives packets and sends copies. Other sockets of type 0xab37 receive
packets as they arrive, with all bits: who reads them there looks for its own bit.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import Mapping

from msgspec.structs import replace

from fared.core.bier import bift_id
from fared.core.wire import DecodeError
from fared.kernel.bier_table import (
    COUNTERS,
    DELIVERED,
    EXPIRED,
    MALFORMED,
    RECEIVED,
    UNKNOWN,
    counter_of,
)
from fared.kernel.nft import CounterValue
from fared.paths.bier.header import ETHERTYPE, BierHeader, decode_header, encode_header
from fared.paths.fib.bier import BierFib, BierPort

_BURST = 64
"""Packets read from a port before other work is done."""
_MOST = 1 << 16
_ETHERNET = 14
_BROADCAST = b"\xff" * 6
_TYPE = ETHERTYPE.to_bytes(2, "big")
_LEAST_TTL = 2


class UserBier:
    """Forwards in the namespace where it was created; ``write`` and ``close`` from the loop."""

    def __init__(self) -> None:
        self._fib: BierFib | None = None
        self._sockets: dict[BierPort, socket.socket] = {}
        self._packets: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    @property
    def counted(self) -> Mapping[str, CounterValue]:
        """Packets and bytes of each counter."""
        names = {*COUNTERS, *self._packets}
        return {name: CounterValue(self._packets[name], self._bytes[name]) for name in names}

    def write(self, fib: BierFib) -> None:
        """Forward by a state from now on. Raises OSError if a port cannot be opened."""
        for port in self._sockets.keys() - {*fib.ports}:
            self._shut(port)
        for port in fib.ports:
            if port not in self._sockets:
                self._sockets[port] = self._open(port)
        self._fib = fib

    def close(self) -> None:
        """Forward no more."""
        self._fib = None
        for port in [*self._sockets]:
            self._shut(port)

    def _open(self, port: BierPort) -> socket.socket:
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            sock.setblocking(False)
            sock.bind((port.name, ETHERTYPE))
        except OSError:
            sock.close()
            raise
        asyncio.get_running_loop().add_reader(sock, self._readable, sock)
        return sock

    def _shut(self, port: BierPort) -> None:
        sock = self._sockets.pop(port)
        asyncio.get_running_loop().remove_reader(sock)
        sock.close()

    def _readable(self, sock: socket.socket) -> None:
        for _ in range(_BURST):
            try:
                data, (_, _, kind, *_) = sock.recvfrom(_MOST)
            except OSError:  # nothing more, or the interface is gone
                return
            if kind not in (socket.PACKET_OUTGOING, socket.PACKET_OTHERHOST):
                self.forward(data)

    def forward(self, data: bytes) -> None:
        """Forward a frame by the rules of the state (RFC 8279 §6.5)."""
        fib = self._fib
        self._count(RECEIVED, data)
        if fib is None:
            return
        try:
            header = decode_header(data, _ETHERNET)
        except DecodeError:
            self._count(MALFORMED, data)
            return
        if header.length != fib.length or header.nibble:
            self._count(MALFORMED, data)
            return
        number = header.bift_id - bift_id(fib.length, fib.sub_domain, 0)
        tables = fib.sets.get(number)
        if tables is None:
            self._count(UNKNOWN, data)
            return
        rules = fib.tables[tables[header.entropy % len(tables)]]
        if header.bit_string & rules.local:
            self._count(DELIVERED, data)
        for mark in rules.marks:
            if header.bit_string & fib.copies[mark].mask:
                self._copy(fib, mark, header, data)

    def _copy(self, fib: BierFib, mark: int, header: BierHeader, data: bytes) -> None:
        if header.ttl < _LEAST_TTL:
            self._count(EXPIRED, data)
            return
        neighbor, mask = fib.copies[mark]
        port = next((port for port in self._sockets if port.ifindex == neighbor.ifindex), None)
        if port is None:
            return
        sent = replace(header, bit_string=header.bit_string & mask, ttl=header.ttl - 1)
        addresses = _BROADCAST + port.mac.to_bytes(6, "big") + _TYPE
        frame = addresses + encode_header(sent) + data[_ETHERNET + header.size :]
        with contextlib.suppress(OSError):  # as a queue that is full
            self._sockets[port].send(frame)
            self._count(counter_of(neighbor), frame)

    def _count(self, name: str, data: bytes) -> None:
        self._packets[name] += 1
        self._bytes[name] += len(data)
