"""The sockets of a protocol, a few per interface: opening, reading, writing and closing.

``IsisSockets`` and ``OspfSockets`` derive from ``PacketSockets``; the daemon opens and reads them
for its engines. All are non-blocking; each wake-up reads many packets, which halves the cost of
each.

While the packets of an interface arrive faster than they are read, its hellos have sockets of their
own, which are read before the others: hellos that were dropped with the rest would end adjacencies.
At other times hellos stay in order with the rest, which authentication by sequence numbers and
adjacencies that form rely on.
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Container
from itertools import chain
from typing import ClassVar

from fared.kernel.arrived import WHOLE_QUEUE, arrived, count_error, receive_buffer
from fared.kernel.closing import close_together
from fared.kernel.errors import PrivilegeError
from fared.kernel.readers import Readers
from fared.kernel.reopening import Reopening, Report, ignore
from fared.protocols.igp.events import PacketReceived, Received, SendPacket, Unicasts, number_of

_SO_RCVBUFFORCE = 33
PRIORITY_CONTROL = 7
"""SO_PRIORITY of routing packets: sent before user traffic by a queue with priorities."""
_BUFFER = 4 << 20
"""Bytes of a receive buffer: some thousand packets, which arrive while a turn computes."""
A_LOOK = 16
"""Packets read from a socket before the next one is looked at; a socket with as many has many."""
_LOOK_AGAIN = 0.1
"""Seconds after which the buffer of a socket is looked at again, if all its packets were read."""
_SMALL = 128
"""Packets of fewer bytes, as hellos, mostly come alone: the socket is not read again at once."""
_APART_ABOVE = 0.25
"""The part of a socket's buffer that packets take when hellos get sockets of their own."""
_WAITING = 0.005
"""The same where packets are not read at once: some ten packets."""
_TOGETHER_BELOW, _TOGETHER_AFTER = 0.0625, 5.0
"""Hellos lose them when less of the buffer was taken, and nothing dropped, in so many seconds."""
_HELLOS_A_LOOK = 256
_SO_MEMINFO = 55
_MEMINFO = struct.Struct("=9I")
_ALLOCATED, _LIMIT, _DROPS = 0, 1, 8

Sockets = tuple[socket.socket, ...]
PacketCallback = Callable[[list[Received], bool], None]
"""Gets packets that were read together, and whether hellos may be among them."""


class PacketSockets(ABC):
    """The sockets of a router in its network namespace; a subclass for each protocol opens them.

    ``callback`` gets the packets of a socket that were read together. ``counters``: ``received``,
    ``sent``, ``malformed``, ``send-error-<ERRNO>`` (EMSGSIZE: larger than the MTU),
    ``receive-error-<ERRNO>``, ``filter-error-<ERRNO>``, ``receive-overflow`` (dropped by the
    kernel, since a buffer was full), ``open-error-<ERRNO>``, ``hellos-apart`` (how often hellos got
    sockets of their own); whoever queues packets adds ``dropped-<KIND>``. ``report`` is called when
    a socket cannot be opened, and when a retry succeeds.
    """

    purpose: ClassVar[str]
    """The sockets' name in error messages."""
    look: ClassVar[int] = A_LOOK
    """Packets read from a socket before the next one is looked at."""

    @staticmethod
    @abstractmethod
    def is_hello(packet: PacketReceived) -> bool:
        """Whether a packet is a hello, sent as hellos are: it is processed before others."""

    @staticmethod
    @abstractmethod
    def kind(payload: bytes) -> str:
        """The type of a packet, as in the protocol's counters."""

    @abstractmethod
    def _open(self, ifindex: int) -> Sockets:
        """Open the sockets of an interface and join the groups. Raises OSError."""

    @abstractmethod
    def _open_hellos(self, ifindex: int) -> Sockets:
        """Open sockets that receive hellos only. Raises OSError."""

    @abstractmethod
    def _receive_hellos(self, ifindex: int, sock: socket.socket, *, hellos: bool) -> None:
        """Let a socket of ``_open`` receive hellos as well, or all else only. Raises OSError."""

    @abstractmethod
    def _receive_only_hellos(self, sock: socket.socket, *, hellos: bool) -> None:
        """Let a socket of ``_open_hellos`` receive hellos, or nothing. Raises OSError."""

    @abstractmethod
    def _send(self, sockets: Sockets, packet: SendPacket) -> None:
        """Send one packet. Raises OSError."""

    @abstractmethod
    def _packet(self, ifindex: int, data: bytes) -> PacketReceived | None:
        """Strip the headers of a received packet; None if their lengths are inconsistent."""

    def __init__(
        self,
        callback: PacketCallback,
        loop: asyncio.AbstractEventLoop | None = None,
        report: Report = ignore,
        readers: Readers | None = None,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self._callback = callback
        self._buffer = receive_buffer()
        self._loop = loop or asyncio.get_running_loop()
        self._readers = readers or self._loop
        self._sockets: dict[int, Sockets] = {}
        self.interfaces: Container[int] = self._sockets.keys()
        """Those with open sockets, always as they are now."""
        self._unicasts: dict[int, Unicasts | None] = {}
        """Those that interfaces receive, also where opening is retried."""
        self._apart: dict[int, Sockets] = {}
        """Sockets for hellos, of interfaces whose others are crowded."""
        self._spare: dict[int, Sockets] = {}
        """The same of interfaces that were crowded: they stay open, and receive nothing.

        To close a packet socket takes a grace period of RCU, ten milliseconds, and all interfaces
        of a router that joins a fabric are crowded at once.
        """
        self._hellos = select.epoll()
        self._of_hellos: dict[int, tuple[int, socket.socket]] = {}
        """Sockets for hellos, and their interfaces, by descriptor: those that it watches."""
        self._looked: dict[int, float] = {}
        """When a buffer of an interface was looked at."""
        self._dropped: weakref.WeakKeyDictionary[socket.socket, int] = weakref.WeakKeyDictionary()
        self._again = Reopening(self._loop, self._try_to_open, report)

    def forget_senders(self) -> None:  # noqa: B027 - most protocols remember none
        """Forget what is remembered of the headers of received packets."""

    def open(self, ifindex: int, unicasts: Unicasts | None = None) -> None:
        """Open the interface's sockets and join all groups of the protocol; idempotent.

        They receive ``unicasts`` only, None: all. A failure is counted, not raised,
        and retried until it succeeds or ``close`` is called, unless it is permanent. Raises
        PrivilegeError.
        """
        known = self._unicasts.get(ifindex)
        self._unicasts[ifindex] = unicasts
        if ifindex not in self._sockets:
            self._try_to_open(ifindex)
        elif unicasts != known:
            self._filter(ifindex)

    def _filter(self, ifindex: int) -> None:
        """Let the sockets of an interface receive what they are to receive now."""
        try:
            for sock in self._sockets[ifindex]:
                self._receive_hellos(ifindex, sock, hellos=ifindex not in self._apart)
        except OSError as error:  # as before, then; the engine checks all packets
            count_error(self.counters, "filter-error", error)

    def _try_to_open(self, ifindex: int) -> None:
        try:
            sockets = self._open(ifindex)
        except PermissionError as error:
            raise PrivilegeError("CAP_NET_RAW", f"open {self.purpose}") from error
        except OSError as error:
            count_error(self.counters, "open-error", error)
            self._again.failed(ifindex, error)
            return
        self._sockets[ifindex] = sockets
        self._again.opened(ifindex)
        for sock in sockets:
            self._readers.add_reader(sock, self._receive, ifindex, sock, self.look)

    def close(self, ifindex: int) -> None:
        """Close the interface's sockets, if they are open; the kernel leaves the groups."""
        self._again.forget(ifindex)
        self._looked.pop(ifindex, None)
        self._unicasts.pop(ifindex, None)
        for sock in self._given_up(ifindex):
            sock.close()

    def _given_up(self, ifindex: int) -> list[socket.socket]:
        """Forget the interface's sockets; return them, to be closed."""
        known = (self._sockets, self._apart, self._spare)
        found = list(chain.from_iterable([sockets.pop(ifindex, ()) for sockets in known]))
        for sock in found:
            self._readers.remove_reader(sock)
            if self._of_hellos.pop(sock.fileno(), None) is not None:
                self._hellos.unregister(sock.fileno())
        return found

    def __contains__(self, ifindex: object) -> bool:
        """Whether an interface's sockets are open."""
        return ifindex in self._sockets

    def close_all(self) -> None:
        """Close all sockets."""
        self._again.forget_all()
        close_together([sock for at in list(self._sockets) for sock in self._given_up(at)])

    def send(self, packet: SendPacket) -> None:
        """Send one packet; a failure is counted, not raised: the protocol retransmits."""
        sockets = self._sockets.get(packet.ifindex)
        if sockets is None:
            self.counters["send-error-ENOTCONN"] += 1
            return
        try:
            self._send(sockets, packet)
        except OSError as error:
            count_error(self.counters, "send-error", error)
        else:
            self.counters["sent"] += 1

    def receive_all(self) -> None:
        """Call back for all packets queued in all sockets.

        If the hellos of an interface have sockets of their own, only for these. To read the rest of
        all interfaces may take so long that neighbors miss the hellos of this router.
        """
        for ifindex, sockets in list(self._sockets.items()):
            if ifindex in self._apart:
                for sock in self._apart[ifindex]:
                    self._read(ifindex, sock, WHOLE_QUEUE)
                continue
            if any(fullness(sock) > _TOGETHER_BELOW for sock in sockets):
                self._separate(ifindex)  # so that the next call need not read all this
            for sock in sockets:
                self._receive(ifindex, sock, WHOLE_QUEUE)

    def receive_hellos(self) -> None:
        """Call back for hellos only, while the rest waits; others will have their own sockets."""
        self._read_hellos_apart()
        for ifindex, sockets in list(self._sockets.items()):
            apart = ifindex in self._apart
            if not apart and any(fullness(sock) > _WAITING for sock in sockets):
                self._separate(ifindex)

    def _read_hellos_apart(self) -> None:
        """Read the hellos that have sockets of their own: one call tells which few have any."""
        for descriptor, _ in self._hellos.poll(0):
            known = self._of_hellos.get(descriptor)
            if known is not None:  # a callback may have closed it
                self._read(*known, _HELLOS_A_LOOK)

    def _receive(self, ifindex: int, sock: socket.socket, most: int) -> None:
        if ifindex in self._apart:
            self._read_hellos_apart()
        read = self._read(ifindex, sock, most)
        if read >= A_LOOK and sock.fileno() >= 0:
            now = self._loop.time()
            if read >= self.look or now >= self._looked.get(ifindex, 0.0) + _LOOK_AGAIN:
                self._looked[ifindex] = now
                self._look(ifindex, sock)

    def _read(self, ifindex: int, sock: socket.socket, most: int) -> int:
        """Read packets of a socket, at most ``most``; return how many they were."""
        if sock.fileno() < 0:
            return 0
        packets, read, hellos = self._arrived(ifindex, sock, most)
        counters = self.counters
        number = read if len(packets) == read else number_of(packets)
        if read > number:
            counters["malformed"] += read - number
        if packets:
            counters["received"] += number
            self._callback(packets, hellos)
        return read

    def _arrived(
        self, ifindex: int, sock: socket.socket, most: int
    ) -> tuple[list[Received], int, bool]:
        """The packets that have arrived at a socket.

        Their number with those that are malformed; whether hellos may be among them.
        """
        small = _SMALL if most == self.look else 0
        found = arrived(sock, self._buffer, self.counters, most, small=small)
        one = self._packet
        packets: list[Received] = [
            packet for data in found if (packet := one(ifindex, data)) is not None
        ]
        return packets, len(found), True

    def _look(self, ifindex: int, sock: socket.socket) -> None:
        """Look at the buffer of a socket with many packets: how full, and what it dropped."""
        memory = _memory(sock)
        if not memory:
            return
        dropped = self._count_overflow(sock, memory)
        crowded = memory[_ALLOCATED] > _APART_ABOVE * memory[_LIMIT]
        if (dropped or crowded) and ifindex not in self._apart:
            self._separate(ifindex)

    def _count_overflow(self, sock: socket.socket, memory: tuple[int, ...]) -> int:
        """Count the packets that the kernel dropped since the last call; return how many."""
        new = memory[_DROPS] - self._dropped.get(sock, 0)
        if new:
            self._dropped[sock] = memory[_DROPS]
            self.counters["receive-overflow"] += new
        return new

    def _separate(self, ifindex: int) -> None:
        """Receive the hellos of an interface in sockets of their own."""
        found = self._spare.pop(ifindex, ())
        try:
            if not found:
                found = self._open_hellos(ifindex)
                for sock in found:
                    self._readers.add_reader(sock, self._read, ifindex, sock, _HELLOS_A_LOOK)
                    self._hellos.register(sock.fileno(), select.EPOLLIN)
                    self._of_hellos[sock.fileno()] = ifindex, sock
            else:
                for sock in found:
                    self._receive_only_hellos(sock, hellos=True)
        except OSError as error:
            count_error(self.counters, "open-error", error)
            return
        self._apart[ifindex] = found
        self._filter(ifindex)
        self.counters["hellos-apart"] += 1
        self._loop.call_later(_TOGETHER_AFTER, self._rejoin, ifindex, found)

    def _rejoin(self, ifindex: int, found: Sockets) -> None:
        """Receive hellos with the other packets again, unless those still are too many."""
        if self._apart.get(ifindex) is not found:
            return
        sockets = self._sockets[ifindex]
        memories = [(sock, memory) for sock in sockets if (memory := _memory(sock))]
        dropped = sum([self._count_overflow(sock, memory) for sock, memory in memories])
        full = [memory[_ALLOCATED] > _TOGETHER_BELOW * memory[_LIMIT] for _, memory in memories]
        if dropped or any(full):
            self._loop.call_later(_TOGETHER_AFTER, self._rejoin, ifindex, found)
            return
        self._spare[ifindex] = self._apart.pop(ifindex)
        self._filter(ifindex)
        for sock in found:
            self._receive_only_hellos(sock, hellos=False)
            self._read(ifindex, sock, WHOLE_QUEUE)


def enlarge_buffer(sock: socket.socket) -> None:
    """Enlarge the receive buffer for a burst, beyond the system limit if permitted."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)


def fullness(sock: socket.socket) -> float:
    """Return which part of a socket's receive buffer is in use; 0 if the kernel does not tell."""
    memory = _memory(sock)
    return memory[_ALLOCATED] / max(1, memory[_LIMIT]) if memory else 0.0


def _memory(sock: socket.socket) -> tuple[int, ...]:
    """Return the socket's SO_MEMINFO (linux/sock_diag.h); nothing if it has none."""
    try:
        memory = sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _MEMINFO.size)
    except OSError:
        return ()
    return _MEMINFO.unpack(memory) if len(memory) == _MEMINFO.size else ()
