"""Emulated neighbors of the device under test: enough of a spine to bring up an adjacency.

They use fared's codecs and only respond, except for hellos. An OSPF speaker is the slave of the
database exchange, answers requests and acknowledges. An IS-IS speaker lists its database in
sequence number PDUs and sends the LSPs that the neighbor lacks. A speaker that ``serves`` has the
whole database, all others an empty one. Speakers have no timers: ``beside`` calls ``hello``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from bench.beside_fabric import AREA
from fared.core.ids import SystemId
from fared.core.wire import DecodeError
from fared.protocols.isis.ids import LevelSet, LspId
from fared.protocols.isis.pdu.codec import decode_raw, encode_pdu, peek_lsp, read_pdu
from fared.protocols.isis.pdu.model import Csnp, P2pHello, PduType, Psnp
from fared.protocols.isis.pdu.tlvs import (
    NLPID_IPV4,
    AreaAddresses,
    InterfaceAddresses,
    LspEntries,
    LspEntry,
    ProtocolsSupported,
    ThreeWay,
    ThreeWayState,
    of_type,
)
from fared.protocols.ospf.packet.codec import decode_packet, encode_packet
from fared.protocols.ospf.packet.lsa import Lsa, LsaKey
from fared.protocols.ospf.packet.packets import (
    DatabaseDescription,
    DdFlags,
    Hello,
    LsAck,
    LsRequest,
    LsUpdate,
    Options,
    PacketBody,
)

MTU = 9000
HELLO, DEAD = 10, 40
_HEADERS = 20 + 24
_LSA_HEADER = 20
_PUSH_UPDATES = 6
_PUSH_LSPS = 20
_ENTRIES = 15
_ENTRIES_PER_PDU = 75

Send = Callable[[bytes], None]


class OspfSpeaker:
    """A spine on one link; its router id must be lower than the neighbor's."""

    def __init__(
        self, router_id: int, send: Send, database: dict[LsaKey, Lsa], *, serves: bool
    ) -> None:
        self.router_id = router_id
        self.full = False
        self.silent = True
        """While true, the speaker sends nothing."""
        self._send = send
        self._database = database
        self._serves = serves
        self._peer = 0
        self._sequence = -1
        self._waiting: deque[bytes] = deque()
        self._left: Iterator[DatabaseDescription] = iter(())
        self._last: DatabaseDescription | None = None

    @property
    def heard(self) -> bool:
        """Whether a packet of the neighbor has arrived."""
        return bool(self._peer)

    def hello(self) -> None:
        """Send a hello; due every ten seconds."""
        heard = (self._peer,) if self._peer else ()
        self._say(Hello(0xFFFFFFFE, HELLO, Options.E, 1, DEAD, 0, 0, heard))

    def restart(self) -> None:
        """Forget the router, and say so."""
        self._peer, self._sequence, self.full = 0, -1, False
        self.hello()

    def flood(self, lsas: Iterable[Lsa]) -> Callable[[], None]:
        """Prepare an update with these LSAs; the returned function sends it."""
        raw = encode_packet(self.router_id, 0, LsUpdate(tuple(lsas)))
        return lambda: self._send(raw)

    def receive(self, payload: bytes) -> None:
        """Process a packet."""
        try:
            packet = decode_packet(payload, verify_checksum=False)
        except DecodeError:
            return
        match packet.body:
            case Hello():
                if not self._peer:
                    self._peer = packet.router_id
                    self.hello()
            case DatabaseDescription():
                self._describe(packet.body)
            case LsRequest():
                self._serve(packet.body)
            case LsUpdate():
                headers = tuple(lsa.header for lsa in packet.body.lsas)
                step = (MTU - _HEADERS) // _LSA_HEADER
                for at in range(0, len(headers), step):
                    self._say(LsAck(headers[at : at + step]))
            case LsAck():
                pass

    def _say(self, body: PacketBody) -> None:
        if not self.silent:
            self._send(encode_packet(self.router_id, 0, body))

    def _describe(self, theirs: DatabaseDescription) -> None:
        """Answer a Database Description packet as the slave (RFC 2328 §10.6)."""
        if theirs.dd_sequence_number == self._sequence and self._last is not None:
            self._say(self._last)  # a duplicate: repeat the last response
            return
        if theirs.flags & DdFlags.I:
            self._left = self._descriptions()
        self._sequence = theirs.dd_sequence_number
        mine = next(self._left, None)
        flags = 0 if mine is None else mine.flags
        headers = () if mine is None else mine.lsa_headers
        options = Options.E | Options.O
        self._last = DatabaseDescription(MTU, options, flags, self._sequence, headers)
        self._say(self._last)
        self.full = not flags & DdFlags.M and not theirs.flags & DdFlags.M

    def _descriptions(self) -> Iterator[DatabaseDescription]:
        headers = [lsa.header for lsa in self._database.values()] if self._serves else []
        step = (MTU - _HEADERS - 8) // _LSA_HEADER
        for at in range(0, len(headers), step):
            flags = DdFlags.M if at + step < len(headers) else 0
            yield DatabaseDescription(MTU, 0, flags, 0, tuple(headers[at : at + step]))

    def _serve(self, request: LsRequest) -> None:
        batch: list[Lsa] = []
        room = MTU - _HEADERS - 4
        used = 0
        for key in request.requests:
            lsa = self._database[key]
            if batch and used + len(lsa.raw) > room:
                self._queue(batch)
                batch, used = [], 0
            batch.append(lsa)
            used += len(lsa.raw)
        self._queue(batch)

    def _queue(self, lsas: list[Lsa]) -> None:
        self._waiting.append(encode_packet(self.router_id, 0, LsUpdate(tuple(lsas))))

    @property
    def pending(self) -> bool:
        """Whether ``push`` has something to send."""
        return bool(self._waiting)

    def push(self) -> None:
        """Send some of the requested LSAs: no more than a default socket buffer holds."""
        for _ in range(min(_PUSH_UPDATES, len(self._waiting))):
            self._send(self._waiting.popleft())


class IsisSpeaker:
    """A spine on one level 2 circuit."""

    def __init__(
        self,
        system: int,
        address: int,
        circuit: int,
        send: Send,
        database: dict[LspId, bytes],
        *,
        serves: bool,
    ) -> None:
        self.system = system
        self.full = False
        self.silent = True
        self.wanted: dict[LspId, None] = {}
        """LSPs to send, in portions."""
        self._address = address
        self._circuit = circuit
        self._send = send
        self._database = database
        self._serves = serves
        self._peer = 0
        self._peer_circuit = 0

    @property
    def heard(self) -> bool:
        """Whether a packet of the neighbor has arrived."""
        return bool(self._peer)

    def hello(self) -> None:
        """Send a hello."""
        if self.silent:
            return
        state = ThreeWay(ThreeWayState.DOWN, self._circuit)
        if self._peer:
            kind = ThreeWayState.UP if self.full else ThreeWayState.INITIALIZING
            state = ThreeWay(kind, self._circuit, self._peer, self._peer_circuit)
        tlvs = (
            state,
            AreaAddresses((AREA,)),
            ProtocolsSupported((NLPID_IPV4,)),
            InterfaceAddresses(4, (self._address,)),
        )
        self._send(encode_pdu(P2pHello(LevelSet.TWO, SystemId(self.system), DEAD, 1, tlvs)))

    def offer(self) -> None:
        """List the whole database (ISO 10589 §7.3.15.2), so that the neighbor does not send it."""
        known = sorted(self._database)
        start = LspId(0)
        for at in range(0, len(known), _ENTRIES_PER_PDU):
            part = known[at : at + _ENTRIES_PER_PDU]
            last = at + _ENTRIES_PER_PDU >= len(known)
            end = LspId(0xFFFFFFFFFFFFFFFF) if last else part[-1]
            entries = [_entry(self._database[identifier]) for identifier in part]
            self._send(encode_pdu(Csnp(2, self.system << 8, start, end, _entry_tlvs(entries))))
            start = LspId(end + 1)

    @property
    def pending(self) -> bool:
        """Whether ``push`` has something to send."""
        return bool(self.wanted)

    def push(self) -> None:
        """Send some of the pending LSPs: no more than a default socket buffer holds."""
        for identifier in list(islice(self.wanted, _PUSH_LSPS)):
            del self.wanted[identifier]
            self._send(self._database[identifier])

    def flood(self, lsps: Iterable[bytes]) -> Callable[[], None]:
        """Prepare LSPs; the returned function sends them."""
        prepared = list(lsps)

        def send() -> None:
            for raw in prepared:
                self._send(raw)

        return send

    def receive(self, payload: bytes) -> None:
        """Process a PDU."""
        try:
            raw = read_pdu(payload)
            if raw.kind is PduType.L2_LSP:
                self._acknowledge(raw.data)
                return
            pdu = decode_raw(raw)
        except DecodeError:
            return
        match pdu:
            case P2pHello():
                self._greeted(pdu)
            case Psnp():
                for tlv in of_type(pdu.tlvs, LspEntries):
                    for entry in tlv.entries:
                        ours = self._database.get(entry.lsp_id)
                        if (
                            ours is not None
                            and _entry(ours).sequence_number > entry.sequence_number
                        ):
                            self.wanted[entry.lsp_id] = None
            case _:
                pass

    def _acknowledge(self, raw: bytes) -> None:
        peek = peek_lsp(raw)
        entry = LspEntry(peek.lsp_id, peek.sequence_number, peek.remaining_lifetime, peek.checksum)
        self._send(encode_pdu(Psnp(2, self.system << 8, (LspEntries((entry,)),))))

    def _greeted(self, hello: P2pHello) -> None:
        theirs = next(iter(of_type(hello.tlvs, ThreeWay)), None)
        if theirs is None:
            return
        before = (self._peer, self.full)
        self._peer = hello.source_id
        self._peer_circuit = theirs.extended_local_circuit_id or 0
        self.full = theirs.neighbor_system_id == self.system and theirs.state != ThreeWayState.DOWN
        if before == (self._peer, self.full):
            return
        self.hello()
        if self.full:
            self.offer()
            if self._serves:
                self.wanted.update(dict.fromkeys(self._database))


def _entry(raw: bytes) -> LspEntry:
    peek = peek_lsp(raw)
    return LspEntry(peek.lsp_id, peek.sequence_number, peek.remaining_lifetime, peek.checksum)


def _entry_tlvs(entries: list[LspEntry]) -> tuple[LspEntries, ...]:
    return tuple(
        LspEntries(tuple(entries[at : at + _ENTRIES])) for at in range(0, len(entries), _ENTRIES)
    )
