"""Send queues of an interface, which ``transmit`` empties in the next turn.

A queue holds one instance of each LSA, the newest. LSAs for point-to-point links are in the
``Outbox`` of the router instead. Link state retransmission lists are in the database.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import msgspec

from fared.core.timers import Timer
from fared.protocols.igp.events import SendPacket
from fared.protocols.ospf.lsdb import LsaEntry
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE as _SIZE
from fared.protocols.ospf.packet.lsa import LsaKey, instance_of
from fared.protocols.ospf.packet.packets import PacketBody


class SendQueue(msgspec.Struct, eq=False):
    """LSAs and acknowledgments for one neighbor, or for all on an interface.

    ``wake`` marks the interface for the next turn. ``acked`` counts the headers in ``acks``.
    """

    wake: Callable[[], None]
    updates: dict[LsaKey, LsaEntry] = msgspec.field(default_factory=dict)
    acks: list[bytes] = msgspec.field(default_factory=list)
    acked: int = 0

    def update(self, entry: LsaEntry) -> None:
        """Queue an LSA."""
        self.updates[entry.key] = entry
        self.wake()

    def ack(self, headers: bytes) -> None:
        """Queue acknowledgments: headers of LSAs as received, one after another."""
        self.acks.append(headers)
        self.acked += len(headers) // _SIZE
        self.wake()

    def take_back_acks(self, instance: bytes) -> None:
        """Acknowledge an instance of an LSA no longer (``packet.lsa.instance_of``)."""
        if any(instance in headers for headers in self.acks):
            split = _split(b"".join(self.acks))
            self.acks = [header for header in split if instance_of(header) != instance]
            self.acked = len(self.acks)

    def take_acks(self, *, once: bool) -> bytes:
        """Take the headers to acknowledge; ``once``: each instance once, its last header."""
        headers = b"".join(self.acks)
        self.acks.clear()
        self.acked = 0
        if once:
            last = {instance_of(header): header for header in _split(headers)}
            headers = b"".join(last.values())
        return headers

    def clear(self) -> None:
        """Empty the queue."""
        self.updates.clear()
        self.acks.clear()
        self.acked = 0


def _split(headers: bytes) -> Iterator[bytes]:
    return (headers[at : at + _SIZE] for at in range(0, len(headers), _SIZE))


class InterfaceTx(SendQueue, eq=False):
    """The queue of an interface; ``updates`` (on a LAN) and ``acks`` go to all routers on it.

    ``first``: LSAs that go before the first hello. ``packets``: packet bodies with their
    destinations. ``held``: only ``first`` is sent. ``acks_ripe``: delayed acknowledgments are due;
    ``acks_wanted``: as many are not delayed any longer, while a timer runs for fewer; 0: none runs.
    ``paced_until``: floods are held until then. ``last_hello``: what the last hello was made of,
    and the packet before it was signed.
    """

    hello_due: bool = False
    held: bool = False
    first: list[LsaEntry] = msgspec.field(default_factory=list)
    packets: list[tuple[int, PacketBody]] = msgspec.field(default_factory=list)
    acks_ripe: bool = False
    acks_wanted: int = 0
    paced_until: float = -math.inf
    pacing_timer: Timer | None = None
    last_hello: tuple[tuple[object, ...], SendPacket] | None = None

    def ack(self, headers: bytes) -> None:
        """Queue acknowledgments; the next turn need not look at those that wait for a timer."""
        self.acks.append(headers)
        self.acked += len(headers) // _SIZE
        if not self.acks_wanted or self.acked >= self.acks_wanted:
            self.wake()

    def take_acks(self, *, once: bool) -> bytes:
        """Take the headers to acknowledge."""
        self.acks_ripe, self.acks_wanted = False, 0
        return super().take_acks(once=once)

    def hello(self) -> None:
        """Queue a hello."""
        self.hello_due = True
        self.wake()

    def packet(self, destination: int, body: PacketBody) -> None:
        """Queue a packet."""
        self.packets.append((destination, body))
        self.wake()

    def discard(self) -> None:
        """Empty all queues: the interface is no longer active."""
        self.hello_due = self.held = False
        self.acks_wanted = 0
        self.first.clear()
        self.packets.clear()
        self.clear()
