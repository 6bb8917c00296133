"""Packets on their way out: everything one drain sends is collected, batched and encoded here.

Hellos go first (a neighbor must know us before anything else counts), then database
descriptions and requests, then updates, then acknowledgments. An update sent before the
database description that moves the neighbor to Exchange would be dropped by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from fared.core.ids import IPv4
from fared.core.timers import Timer
from fared.ospf.auth import overhead
from fared.ospf.authenticate import signed
from fared.ospf.events import SendPacket
from fared.ospf.instance import Instance
from fared.ospf.interface import Interface, InterfaceState
from fared.ospf.lsdb import LsaEntry
from fared.ospf.neighbor import Neighbor
from fared.ospf.packet.codec import PACKET_HEADER_SIZE, encode_packet
from fared.ospf.packet.lsa import LSA_HEADER_SIZE, MAX_AGE, Lsa, LsaHeader, LsaKey, with_age
from fared.ospf.packet.packets import Hello, LsAck, LsUpdate, Options, PacketBody, PacketType

ALL_SPF_ROUTERS = IPv4(0xE0000005)
ALL_DR_ROUTERS = IPv4(0xE0000006)
_IP_HEADER_SIZE = 20
_UPDATE_COUNT_SIZE = 4
_MIN_BODY = 512
_LABELS = {kind.value: kind.label for kind in PacketType}


def body_space(interface: Interface) -> int:
    """Bytes for the body of a packet that needs no IP fragmentation on this interface."""
    digest = overhead(interface.settings.authentication)
    return max(_MIN_BODY, interface.link.mtu - _IP_HEADER_SIZE - PACKET_HEADER_SIZE - digest)


class Transmitter:
    """Turns what the parts of the engine queued on interfaces into SendPacket outputs."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._encoded: dict[tuple[object, ...], list[bytes]] = {}
        self._ack_timer: Timer | None = None
        self._ack_round: dict[int, Interface] = {}

    def flush(self) -> None:
        """Encode and emit all that is queued. Floods out of many interfaces are encoded once."""
        unsent, self._instance.unsent = self._instance.unsent, {}
        for _, interface in sorted(unsent.items()):
            self._flush_interface(interface)
        self._encoded.clear()

    def queue(self, neighbor: Neighbor, body: PacketBody) -> None:
        """Send a packet to one neighbor with the next flush."""
        interface = neighbor.interface
        interface.queue.append((_address_of(neighbor), body))
        self._instance.unsent[interface.ifindex] = interface

    def hello(self, interface: Interface, neighbors: tuple[int, ...]) -> Hello:
        """The hello of an interface (RFC 2328 §9.5)."""
        settings = interface.settings
        return Hello(
            network_mask=interface.network_mask,
            hello_interval=settings.hello_interval,
            options=self.area_options(interface),
            router_priority=settings.router_priority,
            router_dead_interval=settings.router_dead_interval,
            designated_router=interface.designated_router,
            backup_designated_router=interface.backup_designated_router,
            neighbors=neighbors,
        )

    def area_options(self, interface: Interface) -> int:
        """The E bit, off in stub areas (RFC 2328 §A.2)."""
        return 0 if self._instance.areas[interface.settings.area].settings.stub else Options.E

    def goodbye(self, interface: Interface) -> None:
        """Emit at once what is queued and then a hello that lists nobody."""
        interface.hello_due = False
        self._flush_interface(interface, force=True)
        self._emit(interface, self._encode(interface, self.hello(interface, ())))

    def _flush_interface(self, interface: Interface, *, force: bool = False) -> None:
        if not interface.speaks:
            _discard(interface)
            return
        if interface.hello_due:
            interface.hello_due = False
            heard = tuple(neighbor.router_id for neighbor in interface.neighbors.values())
            self._emit(interface, self._encode(interface, self.hello(interface, heard)))
        queue, interface.queue = interface.queue, []
        for destination, body in queue:
            self._emit(interface, self._encode(interface, body), destination)
        updates: dict[LsaKey, LsaEntry] = {}
        paced = bool(interface.updates) and not force and self._paced(interface)
        if not paced:
            updates, interface.updates = interface.updates, {}
        everybody = _flood_destination(interface)
        self._send_updates(interface, updates.values(), everybody)
        for neighbor in interface.neighbors.values():
            direct, neighbor.direct = neighbor.direct, {}
            self._send_updates(
                interface,
                (entry for key, entry in direct.items() if key not in updates),
                _address_of(neighbor),
            )
            acks, neighbor.acks = neighbor.acks, {}
            self._send_acks(interface, tuple(acks.values()), _address_of(neighbor))
        if interface.acks and (force or self._acks_ripe(interface)):
            acks, interface.acks = interface.acks, {}
            interface.acks_ripe = False
            self._send_acks(interface, tuple(acks.values()), everybody)

    def _paced(self, interface: Interface) -> bool:
        """Whether floods must wait: what comes within a few milliseconds travels together.

        The first of a burst goes out at once. In a dense fabric every LSA arrives over many
        links within moments: what is collected meanwhile is sent in full packets, and what the
        neighbor sends us first is not sent at all.
        """
        instance = self._instance
        if instance.now >= interface.paced_until:
            interface.paced_until = instance.now + instance.settings.flood_pacing
            return False
        timer = interface.pacing_timer
        if timer is None or not timer.active:
            wake = partial(self._wake, interface)
            interface.pacing_timer = instance.timers.arm(interface.paced_until, wake)
        return True

    def _acks_ripe(self, interface: Interface) -> bool:
        """Whether acks go now: a packet is full, or the first has waited for ``ack_delay`` (§13.5).

        All interfaces wait for the same moment, so that a flood in a dense fabric wakes this
        router once to acknowledge it, and both ends of a failed link are answered in one packet.
        """
        if interface.acks_ripe or len(interface.acks) >= _acks_per_packet(interface):
            return True
        instance = self._instance
        self._ack_round[interface.ifindex] = interface
        if self._ack_timer is None or not self._ack_timer.active:
            due = instance.now + instance.settings.ack_delay
            self._ack_timer = instance.timers.arm(due, self._end_ack_round)
        return False

    def _end_ack_round(self) -> None:
        waiting, self._ack_round = self._ack_round, {}
        for interface in waiting.values():
            interface.acks_ripe = bool(interface.acks)
            if interface.acks:
                self._wake(interface)

    def _wake(self, interface: Interface) -> None:
        self._instance.unsent[interface.ifindex] = interface

    def _send_updates(
        self, interface: Interface, entries: Iterable[LsaEntry], destination: int
    ) -> None:
        # What was replaced while it waited is not worth sending.
        chosen = tuple(entry for entry in entries if entry.lsdb.get(entry.key) is entry)
        if not chosen:
            return
        space = body_space(interface)
        delay = interface.settings.inf_trans_delay
        memo = (interface.settings.area, space, delay, *(id(entry) for entry in chosen))
        packets = self._encoded.get(memo)
        if packets is None:
            aged = (self._aged(entry, delay) for entry in chosen)
            packets = [
                self._encode(interface, LsUpdate(batch))
                for batch in _batches(aged, space - _UPDATE_COUNT_SIZE)
            ]
            self._encoded[memo] = packets
        self._instance.counters.lsas["flooded"] += len(chosen)
        for packet in packets:
            self._emit(interface, packet, destination)

    def _aged(self, entry: LsaEntry, delay: int) -> Lsa:
        """RFC 2328 §13.3: the copy sent is InfTransDelay older, MaxAge at most."""
        return with_age(entry.lsa, min(MAX_AGE, entry.age(self._instance.now) + delay))

    def _send_acks(
        self, interface: Interface, acks: tuple[LsaHeader, ...], destination: int
    ) -> None:
        step = _acks_per_packet(interface)
        for start in range(0, len(acks), step):
            body = LsAck(acks[start : start + step])
            self._emit(interface, self._encode(interface, body), destination)

    def _encode(self, interface: Interface, body: PacketBody) -> bytes:
        return encode_packet(self._instance.router_id, interface.settings.area, body)

    def _emit(
        self, interface: Interface, payload: bytes, destination: int = ALL_SPF_ROUTERS
    ) -> None:
        packet = signed(self._instance, interface, payload)
        if packet is None:
            return
        self._instance.counters.packets["sent", _LABELS[payload[1]]] += 1
        source = interface.address if interface.unnumbered else 0
        self._instance.emit(SendPacket(interface.ifindex, destination, packet, source))


def _address_of(neighbor: Neighbor) -> int:
    """Where packets for one neighbor go (§8.1): on point-to-point links always to all."""
    return neighbor.address if neighbor.interface.broadcast else ALL_SPF_ROUTERS


def _acks_per_packet(interface: Interface) -> int:
    return body_space(interface) // LSA_HEADER_SIZE


def _flood_destination(interface: Interface) -> int:
    """Where floods and delayed acks go (§13.3 (4), §13.5)."""
    speaks_to_all = (InterfaceState.DR, InterfaceState.BACKUP)
    if interface.broadcast and interface.state not in speaks_to_all:
        return ALL_DR_ROUTERS
    return ALL_SPF_ROUTERS


def _discard(interface: Interface) -> None:
    """Drop what was queued for an interface that has gone quiet."""
    interface.hello_due = False
    interface.queue.clear()
    interface.updates.clear()
    interface.acks.clear()


def _batches(lsas: Iterable[Lsa], space: int) -> Iterator[tuple[Lsa, ...]]:
    """Fill packets up to ``space`` bytes; an LSA that is larger travels alone."""
    batch: list[Lsa] = []
    used = 0
    for lsa in lsas:
        if batch and used + len(lsa.raw) > space:
            yield tuple(batch)
            batch, used = [], 0
        batch.append(lsa)
        used += len(lsa.raw)
    if batch:
        yield tuple(batch)
