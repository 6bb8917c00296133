"""Packets that one wakeup of the loop reads, passed on together.

A burst is flooded in full packets and computed in one run, so packets are passed on only after
all readable sockets have been read. A burst that takes long is passed on in slices: between them
the loop goes on, and sockets are read again, so that none overflows. A hello equal to the last one
of its sender is passed on before all other packets: it only restarts a timer, and an adjacency must
not end because of what waits before it. Any other hello keeps its place: that of a neighbor that
leaves follows the LSAs that it flushes. (With cryptographic authentication no hello of OSPF equals
another; the packets of an interface must then stay in order, RFC 2328 §D.3.)
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Any

from fared.core.igp import PacketReceived
from fared.router import events

_ROUNDS = 64
"""How often sockets are read before what they held is passed on."""
_QUEUED = 8192
"""Packets that may wait here; others wait in the buffers of their sockets."""
_SLICE = 0.02
"""Seconds that a slice should take, by the time that packets took so far."""
_LEAST, _MOST = 16, 512
"""Packets of a slice."""
_WEIGHT = 0.25
"""Weight of the last slice in the average time of a packet."""

_SENDERS = 4096
"""Senders whose last hello is remembered."""

_Packet = tuple[str, PacketReceived]
HandOn = Callable[[list[events.To], float], None]


class RepeatedHellos:
    """Recognizes hellos that say nothing new, by the last payload of each sender."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, int, int], bytes] = {}
        self._waiting: dict[tuple[str, int, int], PacketReceived] = {}
        """By sender, the last hello that keeps its place and has not been passed on."""

    def overtakes(self, proto: str, packet: PacketReceived, *, waits: bool) -> bool:
        """Whether a hello may be passed on before what ``waits``, an earlier other one included."""
        sender = proto, packet.ifindex, packet.source
        if self._last.get(sender) == packet.payload:
            return waits and sender not in self._waiting
        if len(self._last) >= _SENDERS:
            self._last.clear()
        self._last[sender] = packet.payload
        if waits:
            self._waiting[sender] = packet
        return False

    def passed_on(self, packets: Iterable[_Packet]) -> None:
        """Record what was passed on: hellos that follow may overtake again."""
        if not self._waiting:
            return
        for proto, packet in packets:
            sender = proto, packet.ifindex, packet.source
            if self._waiting.get(sender) is packet:
                del self._waiting[sender]


class Burst:
    """Watches sockets, and collects the packets that their callbacks ``take``.

    The sockets are in an epoll instance of their own, which the loop watches: one callback of the
    loop reads all that are readable, in the order in which they were added, and then passes the
    packets on. With a reader of the loop for each socket, that would take a second turn.

    ``hand_on`` receives the packets in order, and the loop's time of the first. Packets from a
    socket that was closed meanwhile are dropped, since the interface is down. ``io`` holds, by
    protocol, the interfaces with open sockets; ``hellos`` tell whether a payload is a hello.
    """

    def __init__(self, hand_on: HandOn) -> None:
        self.io: Mapping[str, Container[int]] = {}
        self.hellos: Mapping[str, Callable[[bytes], bool]] = {}
        self._hand_on = hand_on
        self._repeated = RepeatedHellos()
        self._urgent: list[_Packet] = []
        self._packets: deque[_Packet] = deque()
        self._arrived = 0.0
        self._cost = 0.0
        self._next: asyncio.Handle | None = None
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
            if self._next is not None:
                self._next.cancel()
                self._next = None

    def take(self, proto: str, packet: PacketReceived) -> None:
        """Add a packet of a protocol."""
        if not self._packets and not self._urgent:
            self._arrived = asyncio.get_running_loop().time()
        is_hello = self.hellos.get(proto)
        if (
            is_hello is not None
            and is_hello(packet.payload)
            and self._repeated.overtakes(proto, packet, waits=bool(self._packets))
        ):
            self._urgent.append((proto, packet))
        else:
            self._packets.append((proto, packet))

    def end(self) -> None:
        """Pass on hellos and a slice of the other packets now, the rest in later turns."""
        loop = asyncio.get_running_loop()
        room = min(max(int(_SLICE / self._cost), _LEAST), _MOST) if self._cost else _MOST
        packets, self._urgent = self._urgent, []
        packets += [self._packets.popleft() for _ in range(min(room, len(self._packets)))]
        self._repeated.passed_on(packets)
        if not packets:
            return
        still_open = [
            events.To(proto, packet)
            for proto, packet in packets
            if packet.ifindex in self.io[proto]
        ]
        arrived, started = self._arrived, loop.time()
        self._hand_on(still_open, arrived)
        spent = (loop.time() - started) / len(packets)
        self._cost += (spent - self._cost) * _WEIGHT if self._cost else spent
        if self._packets and self._next is None:
            self._arrived = started
            self._next = loop.call_soon(self._continue)

    def _continue(self) -> None:
        self._next = None
        self._readable()

    def _readable(self) -> None:
        if self._next is not None:
            return  # the next slice reads the sockets
        for _ in range(_ROUNDS):
            if len(self._packets) >= _QUEUED:
                break
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
