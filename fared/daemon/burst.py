"""Packets that one wakeup of the loop reads, passed on together.

A burst is flooded in full packets and computed in one run, so packets are passed on only after
all readable sockets have been read.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable, Collection, Container, Mapping
from typing import Any

from fared.core.igp import PacketReceived
from fared.router import events

_ROUNDS = 64
"""How often sockets are read before what they held is passed on."""

HandOn = Callable[[list[events.To], float], None]


class Burst:
    """Watches sockets, and collects the packets that their callbacks ``take``.

    The sockets are in an epoll instance of their own, which the loop watches: one callback of the
    loop reads all that are readable, in the order in which they were added, and then passes the
    packets on. With a reader of the loop for each socket, that would take a second turn.

    ``hand_on`` receives the packets in order, and the loop's time of the first. Packets from a
    socket that was closed meanwhile are dropped, since the interface is down. ``io`` holds, by
    protocol, the interfaces with open sockets.
    """

    def __init__(self, hand_on: HandOn) -> None:
        self.io: Mapping[str, Container[int]] = {}
        self._hand_on = hand_on
        self._packets: list[tuple[str, PacketReceived]] = []
        self._arrived = 0.0
        self._epoll = select.epoll()
        self._readers: dict[int, tuple[Callable[..., object], tuple[Any, ...]]] = {}

    def add_reader(
        self, sock: socket.socket, callback: Callable[..., object], *args: object
    ) -> None:
        """Call ``callback`` with ``args`` whenever a socket is readable."""
        if not self._readers:
            asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._readable)
        self._epoll.register(sock.fileno(), select.EPOLLIN)
        self._readers[sock.fileno()] = callback, args

    def remove_reader(self, sock: socket.socket) -> None:
        """Stop watching a socket, before it is closed."""
        del self._readers[sock.fileno()]
        self._epoll.unregister(sock.fileno())
        if not self._readers:
            asyncio.get_running_loop().remove_reader(self._epoll.fileno())

    def take(self, proto: str, packet: PacketReceived) -> None:
        """Add a packet of a protocol."""
        if not self._packets:
            self._arrived = asyncio.get_running_loop().time()
        self._packets.append((proto, packet))

    def end(self) -> None:
        """Pass on the packets now."""
        packets, self._packets = self._packets, []
        if packets:
            still_open = [
                events.To(proto, packet)
                for proto, packet in packets
                if packet.ifindex in self.io[proto]
            ]
            self._hand_on(still_open, self._arrived)

    def _readable(self) -> None:
        for _ in range(_ROUNDS):
            found = {fd for fd, _ in self._epoll.poll(0)}
            if not found:
                break
            self._read(found)
        self.end()

    def _read(self, found: Collection[int]) -> None:
        """Call the readers of descriptors, in the order in which they were added."""
        ordered = found if len(found) == 1 else [fd for fd in self._readers if fd in found]
        for fd in ordered:
            reader = self._readers.get(fd)
            if reader is None:
                continue  # a callback before this one removed it
            callback, args = reader
            try:
                callback(*args)
            except Exception as error:  # noqa: BLE001 - as the loop does for a reader of its own
                asyncio.get_running_loop().call_exception_handler(
                    {"message": f"Exception in callback {callback!r}", "exception": error}
                )
