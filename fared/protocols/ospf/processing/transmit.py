"""Sending packets (RFC 2328 §8.1): each turn batches, encodes and addresses the packets queued.

Hellos go first, since a neighbor accepts no other packet before them (except a restarted router's
grace LSA, RFC 3623 §2.1), then database descriptions
and requests, then updates, then acknowledgments. A neighbor drops an update that arrives before
the description that moves it to Exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from fared.core.ids import IPv4
from fared.core.timers import Timer
from fared.protocols.igp.events import SendPacket
from fared.protocols.ospf.auth.signature import overhead
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface, InterfaceState, Neighbor
from fared.protocols.ospf.lsdb import CURRENT, LsaEntry
from fared.protocols.ospf.outgoing import InterfaceTx
from fared.protocols.ospf.packet.codec import PACKET_HEADER_SIZE, encode_packet
from fared.protocols.ospf.packet.lls import B_BIT
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, MAX_AGE, LsaKey
from fared.protocols.ospf.packet.packets import (
    Hello,
    LsAck,
    LsUpdate,
    Options,
    PacketBody,
    PacketType,
)
from fared.protocols.ospf.processing.authenticate import signed
from fared.protocols.ospf.processing.pacing import Pacing
from fared.protocols.ospf.settings import TtlSecurity

ALL_SPF_ROUTERS = IPv4(0xE0000005)
ALL_DR_ROUTERS = IPv4(0xE0000006)
LINK_TTL = 1
"""Packets travel a single hop (RFC 2328 appendix A.1)."""
SECURE_TTL = 255
"""A packet that arrives with it has not been forwarded (RFC 5082)."""
_IP_HEADER_SIZE = 20
_UPDATE_COUNT_SIZE = 4
_MIN_BODY = 512
_FEWEST_ACKS = _MIN_BODY // LSA_HEADER_SIZE
"""A full packet has at least so many."""
_ACK_EARLIEST = 0.5
"""Part of the delay of acknowledgments after which they may go with deferred copies, or hellos."""
_LABELS = {kind.value: kind.label for kind in PacketType}


def body_space(interface: Interface) -> int:
    """The largest body of a packet that needs no IP fragmentation on this interface, in bytes.

    Nor does it at the other end: the smaller MTU counts.
    """
    digest = overhead(interface.settings.authentication)
    largest = interface.largest_packet
    return max(_MIN_BODY, largest - _IP_HEADER_SIZE - PACKET_HEADER_SIZE - digest)


class Transmitter:
    """Turns the queues of all interfaces into SendPacket outputs."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._process = instance.process
        self._encoded: dict[tuple[object, ...], list[bytes]] = {}
        self._aged: dict[tuple[LsaEntry, int], bytes] = {}
        self._pacing = Pacing(instance)
        self._ack_timer: Timer | None = None
        self._ack_round: dict[int, InterfaceTx] = {}

    def flush(self) -> None:
        """Encode and emit all queues. A flood out of several interfaces is encoded once."""
        instance = self._instance
        if not instance.unsent and not instance.outbox:
            return
        ready = self._pacing.take()
        receivers = 0
        for neighbors in ready.values():
            receivers |= neighbors
        for neighbor in instance.participants.of(receivers):
            instance.unsent[neighbor.interface.ifindex] = neighbor.interface
        queued = sorted(instance.unsent.items())
        instance.unsent.clear()
        for _, interface in queued:
            self._flush_interface(interface, ready)
        self._encoded.clear()
        self._aged.clear()

    def queue(self, neighbor: Neighbor, body: PacketBody) -> None:
        """Send a packet to one neighbor with the next flush."""
        neighbor.interface.tx.packet(_address_of(neighbor), body)

    def unqueue(self, neighbor: Neighbor) -> None:
        """Discard the packets queued for one neighbor: the exchange they belong to has ended."""
        address, tx = _address_of(neighbor), neighbor.interface.tx
        tx.packets = [queued for queued in tx.packets if queued[0] != address]

    def hello(
        self, interface: Interface, neighbors: tuple[int, ...], *, lls: bool = False
    ) -> Hello:
        """The hello of an interface that lists these router ids (RFC 2328 §9.5)."""
        settings = interface.settings
        return Hello(
            network_mask=interface.network_mask,
            hello_interval=settings.hello_interval,
            options=self.area_options(interface) | (Options.L if lls else 0),
            router_priority=settings.router_priority,
            router_dead_interval=settings.router_dead_interval,
            designated_router=interface.designated_router,
            backup_designated_router=interface.backup_designated_router,
            neighbors=neighbors,
        )

    def area_options(self, interface: Interface) -> int:
        """The E bit, off in stub areas (RFC 2328 §A.2).

        An integer: flags would make a member of ``Options``, 300 bytes that stay, of each value
        that a hello is compared with.
        """
        return 0 if self._instance.areas[interface.settings.area].settings.stub else int(Options.E)

    def final_hello(self, interface: Interface) -> None:
        """Emit the queues, then a final hello; it lists no neighbor: 1-WayReceived (§10.5)."""
        interface.tx.hello_due = False
        self._flush_interface(interface, self._pacing.take_for(interface), force=True)
        self._emit(interface, self._encode(interface, self.hello(interface, ())))
        self._encoded.clear()
        self._aged.clear()

    def _send_hello(self, interface: Interface) -> None:
        """Emit a hello, which is encoded again only if something that it is made of has changed."""
        # RFC 9355 §4: not those that must wait for their BFD session
        listed = tuple([n.router_id for n in interface.neighbors.values() if not n.awaits_bfd])
        bfd = interface.settings.bfd
        strict = bfd is not None and bfd.strict
        made_of = (
            listed,
            interface.link,
            interface.settings,
            interface.borrowable,
            interface.designated_router,
            interface.backup_designated_router,
            self._instance.areas[interface.settings.area].settings,
        )
        last = interface.tx.last_hello
        if last is None or last[0] != made_of:
            payload = self._encode(interface, self.hello(interface, listed, lls=strict))
            last = interface.tx.last_hello = made_of, _addressed(interface, payload)
        self._sign_and_emit(interface, last[1], B_BIT if strict else 0)

    def _flush_interface(
        self, interface: Interface, ready: dict[LsaEntry, int], *, force: bool = False
    ) -> None:
        """Send what an interface has queued, as its pace allows; ``force``: all of it at once.

        ``ready``: LSAs to retransmit, by the bits of neighbors that have not acknowledged them.
        """
        tx = interface.tx
        if not interface.is_active:
            tx.discard()
            return
        self._send_first(interface)
        if (tx.held and not force) or not (ready or _queued(interface)):
            return
        packets, tx.packets = tx.packets, []
        for destination, body in packets:
            self._emit(interface, self._encode(interface, body), destination)
        updates: dict[LsaKey, LsaEntry] = {}
        if force or not tx.updates or not self._paced(tx):
            updates, tx.updates = tx.updates, {}
        # §13.3 (5): new LSAs to all; §13.6, §13.5: retransmissions, direct acks to one neighbor
        multicast = _flood_destination(interface)
        self._send_updates(interface, updates.values(), multicast)
        for neighbor in interface.neighbors.values():
            if ready and not interface.broadcast:
                bit = neighbor.bit
                chosen = [entry for entry, neighbors in ready.items() if neighbors & bit]
                self._send_updates(interface, chosen, multicast)
            if neighbor.tx.updates:
                direct, neighbor.tx.updates = neighbor.tx.updates, {}
                self._send_updates(
                    interface,
                    (entry for key, entry in direct.items() if key not in updates),
                    _address_of(neighbor),
                )
            if neighbor.tx.acks:
                acks = neighbor.tx.take_acks(once=True)
                self._send_acks(interface, acks, _address_of(neighbor))
        if tx.acks and (force or self._acks_ripe(interface)):
            self._send_acks(interface, tx.take_acks(once=interface.broadcast), multicast)

    def _send_first(self, interface: Interface) -> None:
        """Send LSAs that go before the first hello, and the hello."""
        tx = interface.tx
        if tx.first:
            first, tx.first = tx.first, []
            self._send_updates(interface, first, ALL_SPF_ROUTERS)
        if tx.hello_due and not tx.held:
            tx.hello_due = False
            self._send_hello(interface)

    def _paced(self, tx: InterfaceTx) -> bool:
        """Whether floods on a LAN must wait, as those in the ``Outbox`` (``pacing``)."""
        instance = self._instance
        if instance.process.now >= tx.paced_until:
            tx.paced_until = instance.process.now + instance.settings.flood_pacing
            return False
        timer = tx.pacing_timer
        if timer is None or not timer.active:
            tx.pacing_timer = instance.process.timers.arm(tx.paced_until, tx.wake)
        return True

    def _acks_ripe(self, interface: Interface) -> bool:
        """Whether delayed acks are due (§13.5): a packet is full, or ``ack_delay`` has passed.

        The delay ends for all interfaces at once, with that of deferred copies or a hello if it is
        half over: a flood in a dense fabric then takes one wakeup, and one packet acknowledges the
        LSAs of both ends of a failed link.
        """
        tx = interface.tx
        if tx.acks_ripe:
            return True
        wanted = max(_FEWEST_ACKS, _acks_per_packet(interface))
        if tx.acked >= wanted:
            return True
        tx.acks_wanted = wanted
        instance = self._instance
        self._ack_round[interface.ifindex] = interface.tx
        if self._ack_timer is None or not self._ack_timer.active:
            now, delay = instance.process.now, instance.settings.ack_delay
            earliest = now + delay * _ACK_EARLIEST
            self._ack_timer = instance.process.timers.arm(
                now + delay, self._end_ack_round, earliest
            )
        return False

    def _end_ack_round(self) -> None:
        waiting, self._ack_round = self._ack_round, {}
        for tx in waiting.values():
            tx.acks_ripe, tx.acks_wanted = bool(tx.acks), 0
            if tx.acks:
                tx.wake()

    def _send_updates(
        self, interface: Interface, entries: Iterable[LsaEntry], destination: int
    ) -> None:
        # Instances replaced while they were queued are not sent.
        chosen = tuple([entry for entry in entries if entry.marks & CURRENT])
        if not chosen:
            return
        space = body_space(interface)
        delay = interface.settings.inf_trans_delay
        memo = (interface.settings.area, space, delay, chosen)
        packets = self._encoded.get(memo)
        if packets is None:
            aged = [self._aged_by(entry, delay) for entry in chosen]
            packets = self._encoded[memo] = [
                self._encode(interface, LsUpdate((), batch))
                for batch in _batches(aged, space - _UPDATE_COUNT_SIZE)
            ]
        self._process.counters.lsdb["flooded"] += len(chosen)
        for packet in packets:
            self._emit(interface, packet, destination)

    def _aged_by(self, entry: LsaEntry, delay: int) -> bytes:
        """RFC 2328 §13.3 (5), §13.6: increment the age by InfTransDelay, up to MaxAge."""
        if entry.flushed:
            return entry.raw
        aged = self._aged.get((entry, delay))
        if aged is None:
            age = min(MAX_AGE, entry.age(self._process.now) + delay)
            aged = self._aged[entry, delay] = entry.aged(age)
        return aged

    def _send_acks(self, interface: Interface, acks: bytes, destination: int) -> None:
        step = _acks_per_packet(interface) * LSA_HEADER_SIZE
        for start in range(0, len(acks), step):
            body = LsAck((), acks[start : start + step])
            self._emit(interface, self._encode(interface, body), destination)

    def _encode(self, interface: Interface, body: PacketBody) -> bytes:
        return encode_packet(self._instance.router_id, interface.settings.area, body)

    def _emit(
        self, interface: Interface, payload: bytes, destination: int = ALL_SPF_ROUTERS
    ) -> None:
        self._sign_and_emit(interface, _addressed(interface, payload, destination))

    def _sign_and_emit(self, interface: Interface, packet: SendPacket, options: int = 0) -> None:
        """``options``: those in the block that follows the packet (RFC 5613 §2), 0: none."""
        payload = signed(self._instance, interface, packet.payload, options)
        if payload is None:
            return
        interface.counters.sent[_LABELS[payload[1]]] += 1
        plain = payload is packet.payload
        self._process.emit(packet if plain else replace(packet, payload=payload))


def _queued(interface: Interface) -> bool:
    """Whether anything but hellos is queued, for all on the link or for one neighbor."""
    tx = interface.tx
    if tx.packets or tx.updates or tx.acks:
        return True
    for neighbor in interface.neighbors.values():  # noqa: SIM110 - any() would take twice the calls
        if neighbor.tx.updates or neighbor.tx.acks:
            return True
    return False


def _addressed(
    interface: Interface, payload: bytes, destination: int = ALL_SPF_ROUTERS
) -> SendPacket:
    # §8.1: on unnumbered links another address of this router
    source = interface.explicit_source
    secure = interface.settings.ttl_security is not TtlSecurity.OFF
    ttl = SECURE_TTL if secure else LINK_TTL
    # Appendix A.1: IP fragments what is larger, and so that neighbors with a smaller MTU receive it
    largest = interface.largest_packet
    apart = largest < interface.link.mtu and largest < len(payload) + _IP_HEADER_SIZE
    mtu = largest if apart else 0
    return SendPacket(interface.ifindex, destination, payload, source, ttl, mtu)


def _address_of(neighbor: Neighbor) -> int:
    """Where packets for one neighbor go (§8.1): on point-to-point links to AllSPFRouters."""
    return neighbor.address if neighbor.interface.broadcast else ALL_SPF_ROUTERS


def _acks_per_packet(interface: Interface) -> int:
    return body_space(interface) // LSA_HEADER_SIZE


def _flood_destination(interface: Interface) -> int:
    """Where floods and delayed acks go (§13.3 (5), §13.5): to the DR and BDR, or to all."""
    designated = (InterfaceState.DR, InterfaceState.BACKUP)
    if interface.broadcast and interface.state not in designated:
        return ALL_DR_ROUTERS
    return ALL_SPF_ROUTERS


def _batches(lsas: Iterable[bytes], space: int) -> Iterator[tuple[bytes, ...]]:
    """Fill packets up to ``space`` bytes; a larger LSA has its own, which IP fragments (§A.1)."""
    batch: list[bytes] = []
    used = 0
    for lsa in lsas:
        size = len(lsa)
        if batch and used + size > space:
            yield tuple(batch)
            batch, used = [], 0
        batch.append(lsa)
        used += size
    if batch:
        yield tuple(batch)
