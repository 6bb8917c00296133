"""Bringing up adjacencies: database description and link state requests (RFC 2328 §10.6 to §10.9).

Nothing here waits for a timer while packets arrive: each description is answered with the
next, and requests go out while descriptions still come in. Timers only repeat what was lost.
"""

from __future__ import annotations

from functools import partial

from fared.ospf.catalogue import Catalogues, Summaries
from fared.ospf.flooding import Flooding
from fared.ospf.instance import Instance
from fared.ospf.lsdb import OPAQUE_TYPES, LsaEntry, Lsdb, compare
from fared.ospf.neighbor import Neighbor, NeighborEvent, NeighborState
from fared.ospf.packet.lsa import LSA_HEADER_SIZE, MAX_AGE, MAX_AGE_DIFF, LsaHeader
from fared.ospf.packet.packets import DatabaseDescription, DdFlags, LsRequest, Options
from fared.ospf.retransmit import Retransmitter
from fared.ospf.transmit import Transmitter, body_space

_DD_HEADER_SIZE = 8
_REQUEST_SIZE = 12
_NEGOTIATION = DdFlags.I | DdFlags.M | DdFlags.MS
_SEQUENCE_SPACE = 1 << 31
_WORD = 0xFFFFFFFF


class Exchange:
    """The exchange of databases with each neighbor."""

    def __init__(
        self,
        instance: Instance,
        transmitter: Transmitter,
        flooding: Flooding,
        retransmitter: Retransmitter,
    ) -> None:
        self._instance = instance
        self._transmitter = transmitter
        self._flooding = flooding
        self._retransmitter = retransmitter
        self._catalogues = Catalogues()

    def negotiate(self, neighbor: Neighbor) -> None:
        """Enter ExStart: claim to be master with an empty description (§10.8)."""
        self.clear(neighbor)
        if neighbor.dd_sequence_number is None:
            first = int(self._instance.rng.random() * _SEQUENCE_SPACE)
        else:
            first = neighbor.dd_sequence_number + 1
        neighbor.dd_sequence_number = first & _WORD
        neighbor.master = True
        neighbor.last_dd = None
        self._send(neighbor, _NEGOTIATION, b"")

    def describe(self, neighbor: Neighbor) -> None:
        """NegotiationDone: list what our databases hold (§10.3)."""
        instance = self._instance
        interface = neighbor.interface
        area = instance.areas[interface.settings.area]
        databases: list[Lsdb] = [area.lsdb, interface.lsdb]
        if not area.settings.stub:
            databases.append(instance.as_scope)
        opaque = neighbor.opaque_capable
        neighbor.summaries = Summaries(self._catalogues.of(databases, opaque=opaque))
        for entry in instance.dying:
            if entry.lsdb in databases and (opaque or entry.key.ls_type not in OPAQUE_TYPES):
                self._retransmitter.enlist(neighbor, entry)
                self._flooding.send_direct(neighbor, entry)

    def finish(self, neighbor: Neighbor) -> NeighborState:
        """ExchangeDone: Full if nothing is left to ask for, else Loading (§10.3)."""
        self._instance.timers.cancel(neighbor.dd_timer)
        neighbor.summaries.clear()
        dead = neighbor.interface.settings.router_dead_interval
        neighbor.dd_kept_until = self._instance.now + dead
        return NeighborState.LOADING if neighbor.requests else NeighborState.FULL

    def clear(self, neighbor: Neighbor) -> None:
        """Drop the three lists of a neighbor and the timers that serve them."""
        timers = self._instance.timers
        timers.cancel(neighbor.dd_timer)
        timers.cancel(neighbor.request_timer)
        neighbor.summaries.clear()
        neighbor.requests.clear()
        neighbor.outstanding.clear()
        neighbor.direct.clear()
        neighbor.acks.clear()
        neighbor.answered.clear()
        neighbor.sent_dd = None
        self._retransmitter.clear(neighbor)

    def receive_description(self, neighbor: Neighbor, dd: DatabaseDescription) -> None:
        """Process a database description (§10.6)."""
        interface = neighbor.interface
        if dd.interface_mtu > interface.link.mtu and not interface.settings.mtu_ignore:
            self._instance.reject(
                "mtu-mismatch",
                neighbor.address,
                interface=interface.name,
                mtu=dd.interface_mtu,
                own_mtu=interface.link.mtu,
            )
            return
        if neighbor.state is NeighborState.INIT:
            neighbor.fire(NeighborEvent.TWO_WAY_RECEIVED)
        if neighbor.state is NeighborState.EXSTART:
            self._negotiated(neighbor, dd)
        elif neighbor.state is NeighborState.EXCHANGE:
            self._exchange(neighbor, dd)
        elif neighbor.state in (NeighborState.LOADING, NeighborState.FULL):
            self._after_exchange(neighbor, dd)

    def receive_request(self, neighbor: Neighbor, request: LsRequest) -> None:
        """Answer a link state request from the databases (§10.7)."""
        if neighbor.state < NeighborState.EXCHANGE:
            return
        wanted: list[LsaEntry] = []
        for key in request.requests:
            lsdb = self._flooding.lsdb_for(key.ls_type, neighbor.interface)
            entry = lsdb.get(key) if lsdb is not None else None
            if entry is None:
                neighbor.fire(NeighborEvent.BAD_LS_REQ)
                return
            wanted.append(entry)
        for entry in wanted:
            self._flooding.send_direct(neighbor, entry)

    def requests_served(self, neighbor: Neighbor) -> None:
        """Ask for more when all that was asked for has come; Loading ends with the list."""
        if neighbor.requests:
            if not neighbor.outstanding:
                self._request(neighbor)
            return
        self._instance.timers.cancel(neighbor.request_timer)
        if neighbor.state is NeighborState.LOADING:
            neighbor.fire(NeighborEvent.LOADING_DONE)

    def _negotiated(self, neighbor: Neighbor, dd: DatabaseDescription) -> None:
        """ExStart: who leads is settled by the router ids (§10.6)."""
        larger = neighbor.router_id > self._instance.router_id
        if dd.flags & _NEGOTIATION == _NEGOTIATION and not dd.lsa_headers and larger:
            neighbor.master = False
            neighbor.dd_sequence_number = dd.dd_sequence_number
        elif not (
            dd.flags & (DdFlags.I | DdFlags.MS) == 0
            and dd.dd_sequence_number == neighbor.dd_sequence_number
            and not larger
        ):
            return
        neighbor.options = dd.options
        neighbor.last_dd = _identity(dd)
        neighbor.fire(NeighborEvent.NEGOTIATION_DONE)
        self._accept(neighbor, dd)

    def _exchange(self, neighbor: Neighbor, dd: DatabaseDescription) -> None:
        """Exchange: the next description in sequence, a duplicate, or a mismatch (§10.6)."""
        identity = _identity(dd)
        if identity == neighbor.last_dd:
            if not neighbor.master:
                self._repeat(neighbor)
            return
        expected = neighbor.dd_sequence_number or 0
        if not neighbor.master:
            expected = expected + 1 & _WORD
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
        """Loading and Full: only duplicates are in order; the slave repeats its last answer."""
        if _identity(dd) == neighbor.last_dd:
            if neighbor.master:
                return
            if self._instance.now < neighbor.dd_kept_until:
                self._repeat(neighbor)
                return
        neighbor.fire(NeighborEvent.SEQ_NUMBER_MISMATCH)

    def _accept(self, neighbor: Neighbor, dd: DatabaseDescription) -> None:
        """Look at the headers, then answer (§10.6 from "accepted in sequence")."""
        if not all(self._consider(neighbor, header) for header in dd.lsa_headers):
            neighbor.fire(NeighborEvent.SEQ_NUMBER_MISMATCH)
            return
        if neighbor.requests and not neighbor.outstanding:
            self._request(neighbor)
        assert neighbor.dd_sequence_number is not None
        more_from_peer = bool(dd.flags & DdFlags.M)
        if neighbor.master:
            sent = neighbor.sent_dd
            if sent is not None and not sent.flags & DdFlags.M and not more_from_peer:
                neighbor.fire(NeighborEvent.EXCHANGE_DONE)
                return
            neighbor.dd_sequence_number = neighbor.dd_sequence_number + 1 & _WORD
            self._send_next(neighbor)
            return
        neighbor.dd_sequence_number = dd.dd_sequence_number
        more_from_us = self._send_next(neighbor)
        if not more_from_peer and not more_from_us:
            neighbor.fire(NeighborEvent.EXCHANGE_DONE)

    def _consider(self, neighbor: Neighbor, header: LsaHeader) -> bool:
        """Put an LSA we lack on the request list; False if it may not be here at all."""
        lsdb = self._flooding.lsdb_for(header.ls_type, neighbor.interface)
        if lsdb is None:
            return False
        key = header.key
        entry = lsdb.get(key)
        now = self._instance.now
        if entry is not None and _plainly_same(entry, header, now):
            return True
        if entry is None or compare(header, entry.header(now)) > 0:
            neighbor.requests[key] = header
        return True

    def _send_next(self, neighbor: Neighbor) -> bool:
        """Send the next part of our list; return whether more is left."""
        room = (body_space(neighbor.interface) - _DD_HEADER_SIZE) // LSA_HEADER_SIZE
        headers = neighbor.summaries.take(room, self._instance.now)
        more = bool(neighbor.summaries)
        flags = (DdFlags.M if more else 0) | (DdFlags.MS if neighbor.master else 0)
        self._send(neighbor, flags, headers)
        return more

    def _send(self, neighbor: Neighbor, flags: int, headers: bytes) -> None:
        interface = neighbor.interface
        assert neighbor.dd_sequence_number is not None
        neighbor.sent_dd = DatabaseDescription(
            interface_mtu=min(interface.link.mtu, 0xFFFF),
            options=self._transmitter.area_options(interface) | Options.O,
            flags=int(flags),
            dd_sequence_number=neighbor.dd_sequence_number,
            packed=headers,
        )
        self._repeat(neighbor)

    def _repeat(self, neighbor: Neighbor) -> None:
        """Send the last description (again); who leads repeats it until it is answered."""
        if neighbor.sent_dd is None:
            return
        self._transmitter.queue(neighbor, neighbor.sent_dd)
        if neighbor.master:
            timers = self._instance.timers
            timers.cancel(neighbor.dd_timer)
            due = self._instance.now + neighbor.interface.settings.rxmt_interval
            neighbor.dd_timer = timers.arm(due, partial(self._repeat, neighbor))

    def _request(self, neighbor: Neighbor) -> None:
        """Send one request packet and repeat it until it is served (§10.9)."""
        room = body_space(neighbor.interface) // _REQUEST_SIZE
        keys = tuple(key for key, _ in zip(neighbor.requests, range(room), strict=False))
        neighbor.outstanding = dict.fromkeys(keys)
        self._transmitter.queue(neighbor, LsRequest(keys))
        timers = self._instance.timers
        timers.cancel(neighbor.request_timer)
        due = self._instance.now + neighbor.interface.settings.rxmt_interval
        neighbor.request_timer = timers.arm(due, partial(self._request, neighbor))


def _plainly_same(entry: LsaEntry, header: LsaHeader, now: float) -> bool:
    """Whether a header is of the instance we have (§13.1), as most are that several tell of."""
    mine, age = entry.lsa.header, entry.age(now)
    return (
        mine.ls_sequence_number == header.ls_sequence_number
        and mine.ls_checksum == header.ls_checksum
        and age < MAX_AGE > header.ls_age
        and age - header.ls_age <= MAX_AGE_DIFF
    )


def _identity(dd: DatabaseDescription) -> tuple[int, int, int]:
    """What makes two descriptions duplicates (§10.6)."""
    return (dd.flags, dd.options, dd.dd_sequence_number)
