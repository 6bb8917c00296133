"""Packets that one wakeup of the loop reads, passed on together.

A burst is flooded in full packets and computed in one run, so packets are passed on only after
all readable sockets have been read. A burst that takes long is passed on in slices: between them
the loop goes on, and sockets are read again, so that none overflows. A hello equal to the last one
of its sender is passed on before all other packets: it only restarts a timer, and an adjacency must
not end because of what waits before it. Any other hello keeps its place: that of a neighbor that
leaves follows the LSAs that it flushes. (With cryptographic authentication no hello of OSPF equals
another; the packets of an interface must then stay in order, RFC 2328 §D.3.)

In a flood, sockets are read a little later, so that each has many packets (``gathering``).

What arrives faster than it is processed waits here for about a second, then in the buffers of the
sockets. A buffer that is nearly full would drop hellos with the rest: so it is read all the same,
and of its packets only hellos stay. So it is with what is read while the loop catches up after a
delay (``catch_up``), beyond what there is room for. Neighbors retransmit what is dropped.
"""

from __future__ import annotations

import asyncio
import math
import select
import socket
from collections import deque
from collections.abc import Callable, Collection, Container, Mapping
from typing import Any

from fared.daemon.loop.gathering import Gathering
from fared.daemon.loop.portions import Portion, Waiting, size_of
from fared.daemon.loop.repeated_hellos import RepeatedHellos
from fared.kernel.packet_sockets import fullness
from fared.protocols.igp.events import PacketReceived, Received, each

_ROUNDS = 64
"""How often sockets are read before what they held is passed on."""
_QUEUED = 8192
"""Packets that may wait here; others wait in the buffers of their sockets."""
_BYTES = 32 << 20
"""Bytes of packets that may wait here: an update may have 64 kB."""
_DELAY = 1.0
"""Seconds that the packets that wait here should take, by the time that others took so far."""
_CROWDED, _RELIEVED = 0.75, 0.25
"""The part of a socket's buffer that packets take: when it is read regardless, and until when."""
_HELLOS = 4096
"""Hellos that are kept when there is no room."""
_RELIEF = 16
"""Calls of a reader between two looks at its socket's buffer."""
_SLICE = 0.02
"""Seconds that a slice should take, by the time that others took so far."""
_LONG_SLICE = 0.1
"""The same at most, where each turn computes routes for longer than ``_SLICE``."""
_LEAST, _MOST = 16, 512
"""Packets of a slice; of copies that came together half as many count."""
_RISE, _FALL = 0.75, 0.25
"""Weights of the last slice in the average time of a byte: a flood of costly packets is noticed at
once, after hellos that take no time."""
_READING = 0.005
"""Seconds after which sockets are read no more, once a slice is waiting."""

_Reader = tuple[socket.socket, Callable[..., object], tuple[Any, ...]]
HandOn = Callable[[list[Portion], float], float | None]
Dropped = Callable[[str, PacketReceived], None]


def _count_nothing(proto: str, packet: PacketReceived) -> None:
    """Ignore a packet that was dropped."""


def _averaged(known: float, last: float) -> float:
    """The average time of a byte, with that of the last slice."""
    weight = _RISE if last > known else _FALL
    return known + (last - known) * weight if known else last


class Burst:
    """Watches sockets, and collects the packets that their callbacks ``take``.

    The sockets are in an epoll instance of their own, which the loop watches: one callback of the
    loop reads all that are readable, in the order in which they were added, and then passes the
    packets on. With a reader of the loop for each socket, that would take a second turn.

    ``hand_on`` receives portions of packets in order, and the loop's time of the first; it returns
    the seconds in which routes were computed, which do not depend on how many packets they were. A
    slice takes as long as that, so that at least half of the time is for packets. ``dropped`` is
    called for packets for which there is no room, and ``receive_hellos`` then reads the hellos that
    have sockets of their own. Packets from a socket that was closed meanwhile are dropped, since
    the interface is down. ``io`` holds, by protocol, the interfaces with open sockets; ``hellos``
    tell whether a packet is a hello.
    """

    def __init__(
        self,
        hand_on: HandOn,
        dropped: Dropped = _count_nothing,
        receive_hellos: Callable[[], object] = lambda: None,
    ) -> None:
        self.io: Mapping[str, Container[int]] = {}
        self.hellos: Mapping[str, Callable[[PacketReceived], bool]] = {}
        self._hand_on = hand_on
        self._dropped = dropped
        self._receive_hellos = receive_hellos
        self._relieving = self._catching_up = False
        self._repeated = RepeatedHellos()
        self._urgent: list[Portion] = []
        self._portions: deque[Waiting] = deque()
        self.waiting = self._size = 0
        """Packets that wait, without those that overtake; their size."""
        self.taken = 0
        """Packets so far."""
        self._arrived = 0.0
        self._cost = self._pace = self._computing = 0.0
        self._next: asyncio.Handle | None = None
        self._gathering = Gathering()
        self._gathered: asyncio.TimerHandle | None = None
        """Reads the sockets, once the packets of a flood have gathered there."""
        self._epoll = select.epoll()
        self._readers: dict[int, _Reader] = {}

    def add_reader(
        self, sock: socket.socket, callback: Callable[..., object], *args: object
    ) -> None:
        """Call ``callback`` with ``args`` whenever a socket is readable."""
        if not self._readers:
            asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._readable)
        self._epoll.register(sock.fileno(), select.EPOLLIN)
        self._readers[sock.fileno()] = sock, callback, args

    def remove_reader(self, sock: socket.socket) -> None:
        """Stop watching a socket, before it is closed."""
        del self._readers[sock.fileno()]
        self._epoll.unregister(sock.fileno())
        if not self._readers:
            asyncio.get_running_loop().remove_reader(self._epoll.fileno())
            for handle in (self._next, self._gathered):
                if handle is not None:
                    handle.cancel()
            self._next = self._gathered = None

    def take(self, proto: str, packet: PacketReceived) -> None:
        """Add a packet of a protocol."""
        self.taken += 1
        if not self.waiting and not self._urgent:
            self._arrived = asyncio.get_running_loop().time()
        is_hello = self.hellos.get(proto)
        hello = is_hello is not None and is_hello(packet)
        if hello and self._repeated.overtakes(proto, packet, waits=bool(self.waiting)):
            self._urgent.append((proto, [packet]))
        elif (self._relieving or self._catching_up) and self._has_no_room(hello=hello):
            self._repeated.passed_on([(proto, [packet])])
            self._dropped(proto, packet)
        else:
            self._add(proto, [packet])

    def take_all(self, proto: str, packets: list[Received], hellos: bool) -> None:  # noqa: FBT001 - a callback
        """Add packets that were read together (``Portion``); ``hellos``: some may be hellos."""
        if hellos or self._relieving or self._catching_up:
            if len(packets) == 1 and isinstance(packets[0], PacketReceived):
                self.take(proto, packets[0])  # as nearly all hellos come
                return
            for packet in each(packets):
                self.take(proto, packet)
            return
        if not self.waiting and not self._urgent:
            self._arrived = asyncio.get_running_loop().time()
        self.taken += self._add(proto, packets)

    def _add(self, proto: str, packets: list[Received]) -> int:
        """Add packets, to the last portion if that is of their protocol; return their number."""
        new = Waiting.of(proto, packets)
        self.waiting += new.number
        self._size += new.size
        last = self._portions[-1] if self._portions else None
        if last is None or last.proto != proto or last.number + new.number > _MOST:
            self._portions.append(new)
        else:
            last.append(new)
        return new.number

    def catch_up(self, read: Callable[[], object]) -> None:
        """Read all sockets after the loop was delayed, for their hellos; keep what finds room.

        A process without enough CPU time is late again and again: what it reads must not pile up.
        """
        self._catching_up = True
        try:
            read()
        finally:
            self._catching_up = False
        self.end()

    def _has_no_room(self, *, hello: bool) -> bool:
        """Whether a packet is to be dropped.

        At other times the sockets are not read while too much waits.
        """
        if self._relieving:
            return self._is_full(hello=hello)
        most = _QUEUED + _HELLOS * hello
        return self.waiting >= most or (self._size >= _BYTES and not hello)

    def _is_full(self, *, hello: bool = False) -> bool:
        """Whether no more packets should wait here, or no more hellos."""
        waiting = self.waiting
        if waiting >= _QUEUED or hello:
            return waiting >= _QUEUED + _HELLOS * hello
        if self._size >= _BYTES:
            return True
        return waiting >= _MOST and self._size * self._pace >= _DELAY

    def _slice(self) -> tuple[list[Portion], int]:
        """Take hellos that overtake, and the packets for which there is time now; their size."""
        portions, self._urgent = self._urgent, []
        hellos, taken, number = size_of(portions), 0, 0
        if self.waiting <= _LEAST:  # all of them, as the rest would find
            portions += [(one.proto, one.packets) for one in self._portions]
            self._portions.clear()
            taken, self._size, self.waiting = self._size, 0, 0
            return portions, hellos + taken
        seconds = min(max(_SLICE, self._computing), _LONG_SLICE)
        left = seconds / self._cost if self._cost else math.inf
        while self._portions and number < _MOST and (taken < left or number < _LEAST):
            one = whole = self._portions[0]
            count = number + whole.counted
            if count > _MOST or (taken + whole.size > left and count > _LEAST):
                one = whole.take_first(left - taken, _LEAST - number, _MOST - number)
            if one is whole or not whole.packets:
                self._portions.popleft()
            portions.append((one.proto, one.packets))
            number += one.counted
            taken += one.size
            self.waiting -= one.number
        self._size -= taken
        return portions, hellos + taken

    def end(self) -> None:
        """Pass on hellos and a slice of the other packets now, the rest in later turns."""
        if not self.waiting:
            # Hellos alone, as nearly always in a quiet network; other packets cost more.
            if self._urgent:
                urgent, self._urgent = self._urgent, []
                self._pass_on(urgent)
            return
        loop = asyncio.get_running_loop()
        portions, size = self._slice()
        self._repeated.passed_on(portions)
        started = loop.time()
        self._pass_on(portions)
        whole = loop.time() - started
        self._pace = _averaged(self._pace, whole / size)
        self._cost = _averaged(self._cost, max(0.0, whole - self._computing) / size)
        if self.waiting and self._next is None:
            self._arrived = started
            self._next = loop.call_soon(self._continue)

    def _pass_on(self, portions: list[Portion]) -> None:
        """Pass on those whose sockets are still open."""
        still_open: list[Portion] = []
        for proto, packets in portions:
            io = self.io[proto]
            if kept := [packet for packet in packets if packet.ifindex in io]:
                still_open.append((proto, kept))
        self._computing = self._hand_on(still_open, self._arrived) or 0.0

    def _continue(self) -> None:
        self._next = None
        self._read_readable()

    def _readable(self) -> None:
        if self._next is not None:
            return  # the next slice reads the sockets
        loop = asyncio.get_running_loop()
        wait = self._gathering.wait(
            loop.time(), self.taken, len(self._readers), lambda: len(self._epoll.poll(0))
        )
        if wait:
            loop.remove_reader(self._epoll.fileno())
            self._gathered = loop.call_later(wait, self._end_gathering)
        else:
            self._read_readable()

    def hasten(self) -> None:
        """Read the sockets now, if packets gather there."""
        if self._gathered is not None:
            self._gathered.cancel()
            self._end_gathering()

    def _end_gathering(self) -> None:
        self._gathered = None
        asyncio.get_running_loop().add_reader(self._epoll.fileno(), self._readable)
        if self._next is None:
            self._read_readable()

    def _read_readable(self) -> None:
        """Read all sockets that are readable, and pass on what they held."""
        gathering = self._gathering
        if gathering.flood:  # else nothing gathers, and nobody asks
            gathering.began(asyncio.get_running_loop().time())
        until = math.inf
        for _ in range(_ROUNDS):
            if self.waiting and self._is_full():
                self._relieve()
                self._receive_hellos()
                break
            found = self._epoll.poll(0)
            if not found:
                break
            self._read(dict(found))
            if self._urgent and not self.waiting:
                break  # hellos alone: there is no burst to be passed on together
            if gathering.flood:
                break  # what comes meanwhile gathers
            if self.waiting > _MOST:
                now = asyncio.get_running_loop().time()
                until = min(until, now + _READING)
                if now >= until:
                    self._relieve()
                    break
        else:
            self._relieve()
        self.end()
        if gathering.flood:
            gathering.ended(asyncio.get_running_loop().time())

    def _relieve(self) -> None:
        """Read the sockets whose buffers are nearly full, for the time of a slice at most."""
        # a look is a system call: most sockets, those for hellos, hold nothing
        readable = [self._readers[descriptor] for descriptor, _ in self._epoll.poll(0)]
        crowded = [reader for reader in readable if fullness(reader[0]) > _CROWDED]
        until = asyncio.get_running_loop().time() + _SLICE
        self._relieving = True
        try:
            while crowded and asyncio.get_running_loop().time() < until:
                found = [reader[0].fileno() for reader in crowded]
                for _ in range(_RELIEF):
                    self._read(found)
                    if asyncio.get_running_loop().time() >= until:
                        return
                open_still = [reader for reader in crowded if reader[0].fileno() in self._readers]
                crowded = [one for one in open_still if fullness(one[0]) > _RELIEVED]
        finally:
            self._relieving = False

    def _read(self, found: Collection[int]) -> None:
        """Call the readers of descriptors, in the order in which they were added."""
        ordered = found if len(found) == 1 else [fd for fd in self._readers if fd in found]
        for fd in ordered:
            reader = self._readers.get(fd)
            if reader is None:
                continue  # a callback before this one removed it
            _, callback, args = reader
            try:
                callback(*args)
            except Exception as error:  # noqa: BLE001 - as the loop does for a reader of its own
                asyncio.get_running_loop().call_exception_handler(
                    {"message": f"Exception in callback {callback!r}", "exception": error}
                )
