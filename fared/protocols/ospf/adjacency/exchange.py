"""Database exchange: database descriptions (RFC 2328 §10.6, §10.8) and answers to requests (§10.7).

Each description is answered at once with the next one, and requests are sent while descriptions
still arrive (§10.10 permits it). Timers only retransmit lost packets.
"""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from fared.protocols.ospf.adjacency.mtu import MtuChanges
from fared.protocols.ospf.adjacency.requests import Requests
from fared.protocols.ospf.database_summary import SummaryCache
from fared.protocols.ospf.flooding.procedure import Flooding
from fared.protocols.ospf.flooding.retransmit import Retransmitter
from fared.protocols.ospf.header_page import KnownPages
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Neighbor
from fared.protocols.ospf.lsdb import OPAQUE_TYPES, LsaEntry, Lsdb, compare, same_age
from fared.protocols.ospf.neighbor import NeighborEvent, NeighborState
from fared.protocols.ospf.packet.lsa import (
    LS_TYPE_OFFSET,
    LSA_HEADER_SIZE,
    decode_header,
    key_of,
    name_of,
)
from fared.protocols.ospf.packet.packets import (
    DatabaseDescription,
    DdFlags,
    LsRequest,
    Options,
    PacketType,
)
from fared.protocols.ospf.processing.transmit import Transmitter, body_space

_DD_HEADER_SIZE = 8
_INITIAL = DdFlags.I | DdFlags.M | DdFlags.MS
_SEQUENCE_SPACE = 1 << 31
_WORD = 0xFFFFFFFF
_CROSSING = 0.05
"""Seconds in which a neighbor answers our initial description if it was in ExStart by then."""


class Exchange:
    """The exchange of databases with each neighbor."""

    def __init__(
        self,
        instance: Instance,
        transmitter: Transmitter,
        flooding: Flooding,
        retransmitter: Retransmitter,
        requests: Requests,
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._transmitter = transmitter
        self._flooding = flooding
        self._retransmitter = retransmitter
        self._summary_cache = SummaryCache()
        self._known_pages = KnownPages()
        self._requests = requests
        self.mtu_changes = MtuChanges(instance, self._repeat_dd)

    def negotiate(self, neighbor: Neighbor) -> None:
        """Enter ExStart: claim to be master with an empty description (§10.3, §10.8)."""
        self.clear(neighbor)
        # RFC 2328 §10.3: increment the DD sequence number; the first one is random, hence unique
        if neighbor.dd_sequence_number is None:
            first = int(self._process.rng.random() * _SEQUENCE_SPACE)
        else:
            first = neighbor.dd_sequence_number + 1
        neighbor.dd_sequence_number = first & _WORD
        neighbor.master = True
        neighbor.last_dd = None
        self._send(neighbor, _INITIAL, b"")

    def describe(self, neighbor: Neighbor) -> None:
        """NegotiationDone (§10.3): fill the database summary list."""
        instance = self._instance
        interface = neighbor.interface
        area = instance.areas[interface.settings.area]
        databases: list[Lsdb] = [area.lsdb, interface.lsdb]
        # §10.3: no AS-external LSAs in stub areas; RFC 5250 §3.2: opaque LSAs if it is capable
        if not area.settings.stub:
            databases.append(instance.as_scope)
        opaque = neighbor.opaque_capable
        neighbor.summaries = self._summary_cache.of(databases, self._process.now, opaque=opaque)
        # §10.3: MaxAge LSAs go on the retransmission list instead; the first copy is sent now
        instance.participants.admit(neighbor)
        for entry in instance.maxage_list:
            if entry.lsdb in databases and (opaque or entry.key.ls_type not in OPAQUE_TYPES):
                self._retransmitter.enlist((entry,), neighbor.bit)
                self._flooding.send_direct(neighbor, entry)

    def finish(self, neighbor: Neighbor) -> NeighborState:
        """ExchangeDone (§10.3): Full if the request list is empty, else Loading."""
        self._process.timers.cancel(neighbor.dd_timer)
        neighbor.summaries.clear()
        neighbor.agreed_mtus = neighbor.mtu, neighbor.interface.advertised_mtu
        # §10.8: the slave keeps its last description for RouterDeadInterval
        dead = neighbor.interface.settings.router_dead_interval
        neighbor.dd_kept_until = self._process.now + dead
        return NeighborState.LOADING if neighbor.requests else NeighborState.FULL

    def clear(self, neighbor: Neighbor) -> None:
        """Clear the retransmission, summary and request lists of a neighbor (§10.3)."""
        timers = self._process.timers
        timers.cancel(neighbor.dd_timer)
        timers.cancel(neighbor.request_timer)
        neighbor.summaries.clear()
        neighbor.requests.clear()
        neighbor.outstanding.clear()
        neighbor.tx.clear()
        self._transmitter.unqueue(neighbor)
        neighbor.sent_back.clear()
        neighbor.sent_dd = None
        neighbor.mtu = 0
        neighbor.announces_mtu = neighbor.confined = False
        self.mtu_changes.forget(neighbor)
        neighbor.interface.review_largest_packet()
        self._retransmitter.clear(neighbor)

    def ended(self) -> None:
        """No neighbor is in state Exchange or Loading any more: forget what helped to compare."""
        for lsdb in self._instance.databases():
            lsdb.described = None
        self._known_pages.clear()

    def receive_description(self, neighbor: Neighbor, dd: DatabaseDescription) -> None:
        """Process a database description by neighbor state (§10.6)."""
        interface = neighbor.interface
        if neighbor.state >= NeighborState.LOADING and _identity(dd) == neighbor.last_dd:
            if self.mtu_changes.announced(neighbor, dd):
                return
        elif neighbor.mtu != dd.interface_mtu:
            neighbor.mtu = dd.interface_mtu
            interface.review_largest_packet()
        # RFC 2328 §10.6: rejected if its MTU is larger than ours, as full updates would be lost
        if dd.interface_mtu > interface.link.mtu and not interface.settings.mtu_ignore:
            self._process.reject(
                "mtu-mismatch",
                neighbor.address,
                interface=interface,
                kind=PacketType.DATABASE_DESCRIPTION.label,
                mtu=dd.interface_mtu,
                own_mtu=interface.link.mtu,
            )
            return
        # §10.6, Init: 2-WayReceived, then ExStart if the adjacency is due
        if neighbor.state is NeighborState.INIT:
            neighbor.fire(NeighborEvent.TWO_WAY_RECEIVED)
        if neighbor.state is NeighborState.EXSTART:
            self._settle_negotiation(neighbor, dd)
        elif neighbor.state is NeighborState.EXCHANGE:
            self._exchange(neighbor, dd)
        elif neighbor.state in (NeighborState.LOADING, NeighborState.FULL):
            self._after_exchange(neighbor, dd)
        # §10.6, 2-Way: ignored; but kept if its turn is to come
        elif neighbor.waits and dd.flags & _INITIAL == _INITIAL:
            neighbor.initial_dd = dd

    def receive_request(self, neighbor: Neighbor, request: LsRequest) -> None:
        """Answer a link state request from the databases (§10.7)."""
        # RFC 2328 §10.7: ignored in states below Exchange
        if neighbor.state < NeighborState.EXCHANGE:
            return
        requested: list[LsaEntry] = []
        for key in request.requests:
            lsdb = self._flooding.lsdb_for(key.ls_type, neighbor.interface)
            entry = lsdb.get(key) if lsdb is not None else None
            # §10.7: BadLSReq if one of the LSAs is not in the database
            if entry is None:
                neighbor.fire(NeighborEvent.BAD_LS_REQ)
                return
            requested.append(entry)
        # §10.7: sent without a place on the retransmission list
        for entry in requested:
            self._flooding.send_direct(neighbor, entry)

    def _settle_negotiation(self, neighbor: Neighbor, dd: DatabaseDescription) -> None:
        """ExStart: the router with the larger router id becomes master (§10.6)."""
        larger = neighbor.router_id > self._instance.router_id
        # RFC 2328 §10.6: I, M and MS set, empty, from a larger router id: this router is the slave
        if dd.flags & _INITIAL == _INITIAL and not dd.packed and larger:
            neighbor.master = False
            neighbor.dd_sequence_number = dd.dd_sequence_number
            # §10.8: the slave sends only in response, never by timer
            self._process.timers.cancel(neighbor.dd_timer)
        # §10.6: I and MS clear, our sequence number, a smaller router id: this router is the master
        elif not (
            dd.flags & (DdFlags.I | DdFlags.MS) == 0
            and dd.dd_sequence_number == neighbor.dd_sequence_number
            and not larger
        ):
            # §10.6: any other description is ignored, but one may mean that ours came too early
            if dd.flags & _INITIAL == _INITIAL and not dd.packed and not larger:
                self._repeat_soon(neighbor)
            return
        neighbor.options = dd.options
        neighbor.last_dd = _identity(dd)
        neighbor.fire(NeighborEvent.NEGOTIATION_DONE)
        self._accept(neighbor, dd)

    def _repeat_soon(self, neighbor: Neighbor) -> None:
        """Send our initial description again, unless the neighbor soon answers the first one.

        A neighbor that was still Full took it for a mismatch, and waits in ExStart for the next.
        """
        timers, timer = self._process.timers, neighbor.dd_timer
        due = self._process.now + _CROSSING
        if timer is not None and timer.active and due < timer.deadline:
            timers.cancel(timer)
            neighbor.dd_timer = timers.arm(due, partial(self._retransmit_dd, neighbor))

    def _exchange(self, neighbor: Neighbor, dd: DatabaseDescription) -> None:
        """Exchange: the next description in sequence, a duplicate, or a mismatch (§10.6)."""
        identity = _identity(dd)
        # RFC 2328 §10.6: the master discards a duplicate, the slave resends its last description
        if identity == neighbor.last_dd:
            if not neighbor.master:
                self._retransmit_dd(neighbor)
            return
        # §10.6: next in sequence is our number for the master, one more for the slave
        expected = neighbor.dd_sequence_number or 0
        if not neighbor.master:
            expected = expected + 1 & _WORD
        # §10.6: SeqNumberMismatch if MS contradicts the roles, I is set, the options changed,
        # or it is not the next in sequence
        if (
            bool(dd.flags & DdFlags.MS) == neighbor.master
            or dd.flags & DdFlags.I
            or dd.options != neighbor.options
            or dd.dd_sequence_number != expected
        ):
            neighbor.fire(NeighborEvent.SEQ_NUMBER_MISMATCH)
            return
        neighbor.last_dd = identity
        self._accept(neighbor, dd)

    def _after_exchange(self, neighbor: Neighbor, dd: DatabaseDescription) -> None:
        """Loading, Full (§10.6): accept duplicates only."""
        # RFC 2328 §10.6: the master discards duplicates
        if _identity(dd) == neighbor.last_dd:
            if neighbor.master:
                return
            # §10.8: the slave resends its last description, for RouterDeadInterval
            if self._process.now < neighbor.dd_kept_until:
                self._retransmit_dd(neighbor)
                return
        # §10.6: all others
        neighbor.fire(NeighborEvent.SEQ_NUMBER_MISMATCH)

    def _accept(self, neighbor: Neighbor, dd: DatabaseDescription) -> None:
        """Process a description that is next in sequence, then answer it (§10.6)."""
        neighbor.progress_at = self._process.now
        # RFC 2328 §10.6: an unknown LS type, or an AS-external LSA in a stub area
        if not self._consider(neighbor, dd.packed):
            neighbor.fire(NeighborEvent.SEQ_NUMBER_MISMATCH)
            return
        if neighbor.requests and not neighbor.outstanding:
            self._requests.send(neighbor)
        assert neighbor.dd_sequence_number is not None
        more_from_peer = bool(dd.flags & DdFlags.M)
        # §10.6, master: ExchangeDone if both have described everything, else the next description
        if neighbor.master:
            sent = neighbor.sent_dd
            if sent is not None and not sent.flags & DdFlags.M and not more_from_peer:
                neighbor.fire(NeighborEvent.EXCHANGE_DONE)
                return
            neighbor.dd_sequence_number = neighbor.dd_sequence_number + 1 & _WORD
            self._send_next(neighbor)
            return
        # §10.6, slave: reply with the master's number; ExchangeDone if neither has more
        neighbor.dd_sequence_number = dd.dd_sequence_number
        more_from_us = self._send_next(neighbor)
        if not more_from_peer and not more_from_us:
            neighbor.fire(NeighborEvent.EXCHANGE_DONE)

    def _consider(self, neighbor: Neighbor, headers: bytes) -> bool:
        """Put newer LSAs on the request list; False if a type is not allowed in this area."""
        if self._all_known(neighbor, headers):
            return True
        now, requests, limits = self._process.now, neighbor.requests, self._flooding.limits
        most = len(requests) + len(headers) // LSA_HEADER_SIZE
        databases: dict[int, tuple[Lsdb, bool] | None] = {}
        for at in range(0, len(headers), LSA_HEADER_SIZE):
            header = headers[at : at + LSA_HEADER_SIZE]
            ls_type = header[LS_TYPE_OFFSET]
            if ls_type not in databases:
                allowed = self._flooding.lsdb_for(ls_type, neighbor.interface)
                ample = allowed is not None and limits.are_ample(allowed, most)
                databases[ls_type] = None if allowed is None else (allowed, ample)
            found = databases[ls_type]
            if found is None:
                return False
            lsdb, ample = found
            # The same instance, as are most LSAs described (§13.1)
            entry = lsdb.instances().get(header[2:])
            if entry is not None and same_age(entry.age(now), header[0] << 8 | header[1]):
                continue
            key = key_of(header)
            entry = lsdb.entries.get(key)
            # RFC 2328 §10.6: no database copy, or a less recent one
            if entry is None and not (ample or limits.admits(lsdb, key, neighbor, len(requests))):
                limits.ignore(lsdb, key, neighbor)
            elif entry is None or compare(decode_header(header), entry.header(now)) > 0:
                requests[name_of(header)] = header
        return True

    def _all_known(self, neighbor: Neighbor, headers: bytes) -> bool:
        """Whether the databases have all instances described, as nearly always after the first."""
        area = self._instance.areas[neighbor.interface.settings.area]
        databases = (area.lsdb,) if area.settings.stub else (area.lsdb, self._instance.as_scope)
        return not headers or self._known_pages.recognized(headers, databases, self._process.now)

    def _send_next(self, neighbor: Neighbor) -> bool:
        """Send the next part of the database summary list; return whether more is left (§10.8).

        ``sent_dd`` holds it until the neighbor answers, so it leaves the list now.
        """
        room = (body_space(neighbor.interface) - _DD_HEADER_SIZE) // LSA_HEADER_SIZE
        headers = neighbor.summaries.take(room, self._process.now)
        more = bool(neighbor.summaries)
        flags = (DdFlags.M if more else 0) | (DdFlags.MS if neighbor.master else 0)
        self._send(neighbor, flags, headers)
        return more

    def _send(self, neighbor: Neighbor, flags: int, headers: bytes) -> None:
        interface = neighbor.interface
        assert neighbor.dd_sequence_number is not None
        neighbor.sent_dd = DatabaseDescription(
            interface_mtu=interface.advertised_mtu,
            options=self._transmitter.area_options(interface) | Options.O,
            flags=int(flags),
            dd_sequence_number=neighbor.dd_sequence_number,
            packed=headers,
        )
        self._retransmit_dd(neighbor)

    def _retransmit_dd(self, neighbor: Neighbor) -> None:
        """Send the last description (again); the master repeats that every RxmtInterval (§10.8)."""
        self._repeat_dd(neighbor)
        if neighbor.master:
            timers = self._process.timers
            timers.cancel(neighbor.dd_timer)
            due = self._process.now + neighbor.interface.settings.rxmt_interval
            neighbor.dd_timer = timers.arm(due, partial(self._retransmit_dd, neighbor))

    def _repeat_dd(self, neighbor: Neighbor) -> None:
        """Send the last description again, with the present MTU: the neighbor may accept it now."""
        sent, mtu = neighbor.sent_dd, neighbor.interface.advertised_mtu
        if sent is None:
            return
        if sent.interface_mtu != mtu:
            sent = neighbor.sent_dd = replace(sent, interface_mtu=mtu)
        self._transmitter.queue(neighbor, sent)


def _identity(dd: DatabaseDescription) -> tuple[int, int, int]:
    """The fields that are equal in duplicate descriptions (§10.6): flags, options, number."""
    return (dd.flags, dd.options, dd.dd_sequence_number)
