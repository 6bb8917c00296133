"""Emulated neighbors over IS-IS: spines of a fabric on point-to-point circuits of level 2.

Once the adjacency is up, a speaker lists its database and sends all of it (ISO 10589 §7.3.17),
except what the device turns out to have. A scripted neighbor also sends what its script announces,
and counts what the device answers.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Iterable

from bench.neighbors.fabric import AREA
from bench.neighbors.lsps import (
    FLAGS,
    LSP_ID,
    SEQUENCE,
    LspContents,
    Lsps,
    entries_of,
    entry_of,
    neighbors_of,
    psnp,
)
from bench.neighbors.script import HELLO, Script, Send
from fared.core.ids import SystemId
from fared.protocols.isis.ids import LevelSet, LspId
from fared.protocols.isis.pdu.codec import decode_pdu, encode_pdu
from fared.protocols.isis.pdu.model import P2pHello, PduType
from fared.protocols.isis.pdu.tlvs import (
    NLPID_IPV4,
    AreaAddresses,
    InterfaceAddresses,
    ProtocolsSupported,
    ThreeWay,
    ThreeWayState,
    of_type,
)

_CSNP_TLVS, _PSNP_TLVS = 33, 17
_ENTRY = struct.Struct(">2x8sI2x")
_INSTANCES = struct.Struct("2x14s")


class Adjacencies:
    """The neighbors that the LSPs of the device list."""

    def __init__(self) -> None:
        self._lsps: dict[bytes, tuple[bytes, set[bytes]]] = {}

    def learn(self, raw: bytes) -> None:
        """Process an LSP of the device."""
        identifier, instance = raw[LSP_ID:SEQUENCE], raw[SEQUENCE:FLAGS]
        if self._lsps.get(identifier, (b"",))[0] < instance:
            self._lsps[identifier] = instance, neighbors_of(raw)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(set().union(*(found for _, found in self._lsps.values())))


class IsisSpeaker:
    """A spine on one circuit."""

    portion = 20
    """LSPs that ``push`` sends: no more than a default socket buffer holds."""
    gap = 0.0
    """Seconds between two LSPs of the whole database."""

    def __init__(
        self,
        ends: tuple[int, int],
        address: int,
        circuit: int,
        send: Send,
        lsps: Lsps,
        *,
        hello: int = HELLO,
    ) -> None:
        """``ends``: the system ids of the spine and of the device."""
        self.silent = True
        self.full = False
        """Whether the adjacency is up."""
        self.heard_at = 0.0
        self._system, self._device = map(SystemId, ends)
        self._address, self._circuit = address, circuit
        self._send, self._lsps, self._interval = send, lsps, hello
        self._peer_circuit = 0
        self._queue: deque[bytes] = deque()
        self._requested: dict[bytes, None] = {}
        """LSPs that the device has requested, by id: sent before others, once."""
        self._all: dict[bytes, None] = {}
        """The LSPs of the database that the device may lack, by id."""
        self._all_at = 0.0
        self._entries: list[bytes] = []

    # Sending

    def hello(self) -> None:
        """Send a hello, due once in a hello interval."""
        state = ThreeWay(ThreeWayState.DOWN, self._circuit)
        if self.heard_at:
            kind = ThreeWayState.UP if self.full else ThreeWayState.INITIALIZING
            state = ThreeWay(kind, self._circuit, self._device, self._peer_circuit)
        tlvs = (
            state,
            AreaAddresses((AREA,)),
            ProtocolsSupported((NLPID_IPV4,)),
            InterfaceAddresses(4, (self._address,)),
        )
        self.say(encode_pdu(P2pHello(LevelSet.TWO, self._system, 4 * self._interval, 1, tlvs)))

    def say(self, body: bytes) -> None:
        """Send a PDU."""
        if not self.silent:
            self._send(body)

    def flood(self, lsps: Iterable[bytes]) -> Callable[[], None]:
        """Prepare LSPs; the returned function sends them."""
        prepared = list(lsps)

        def send() -> None:
            for raw in prepared:
                self._send(raw)

        return send

    def offer(self) -> None:
        """List the whole database (§7.3.15.2): the device asks for what it lacks."""
        for body in self._lsps.csnps(self._system):
            self.say(body)

    @property
    def pending(self) -> bool:
        """Whether ``push`` has something to send."""
        return bool(self._queue or self._requested or self._all)

    def push(self) -> None:
        """Send some LSPs: queued ones, those that were requested, those of the database."""
        for _ in range(self.portion):
            now = time.monotonic()
            if self._queue:
                self.say(self._queue.popleft())
            elif self._requested or (self._all and now >= self._all_at):
                identifier = next(iter(self._requested or self._all))
                if not self._requested:
                    self._all_at = now + self.gap
                self._settle(identifier)
                self.say(self._lsps.lsps[_id(identifier)])

    # Receiving

    def receive(self, payload: bytes) -> None:
        """Process a PDU."""
        match payload[4] & 0x1F:
            case PduType.P2P_HELLO:
                self._hello(payload)
            case PduType.L2_LSP:
                self._lsp(payload[: int.from_bytes(payload[8:10], "big")])
            case PduType.L2_CSNP:  # what it lists need not be sent
                self._listed(payload[: int.from_bytes(payload[8:10], "big")], _CSNP_TLVS)
            case PduType.L2_PSNP:
                self._listed(payload[: int.from_bytes(payload[8:10], "big")], _PSNP_TLVS)

    def burst_over(self) -> None:
        """Acknowledge all that arrived together."""
        if self._entries:
            for body in psnp(self._system, self._entries):
                self.say(body)
            self._entries.clear()

    def _hello(self, pdu: bytes) -> None:
        before, self.heard_at = self.heard_at, time.monotonic()
        hello = decode_pdu(pdu)
        assert isinstance(hello, P2pHello)
        theirs = next(iter(of_type(hello.tlvs, ThreeWay)), None)
        if theirs is None:
            return
        self._peer_circuit = theirs.extended_local_circuit_id or 0
        up = theirs.neighbor_system_id == self._system and theirs.state != ThreeWayState.DOWN
        changed, self.full = up != self.full or not before, up
        if changed:
            self.hello()
        if changed and up and not self.silent:
            self.offer()
            self._all = dict.fromkeys(self._in_order())

    def _in_order(self) -> list[bytes]:
        """The LSPs to send, in the order in which they are sent."""
        return [raw[LSP_ID:SEQUENCE] for raw in self._lsps.served()]

    def _lsp(self, raw: bytes) -> None:
        """Acknowledge an LSP of the device, or one that it floods (§7.3.15.1)."""
        self._entries.append(entry_of(raw))
        self._settle(raw[LSP_ID:SEQUENCE])

    def _listed(self, pdu: bytes, start: int) -> None:
        """Process acknowledgments and requests (§7.3.15.2)."""
        lsps = self._lsps.lsps
        for identifier, sequence in _ENTRY.iter_unpack(entries_of(pdu, start)):
            ours = lsps.get(_id(identifier))
            if ours is None:
                continue
            if int.from_bytes(ours[SEQUENCE : SEQUENCE + 4], "big") > sequence:
                if not sequence:
                    self._requested[identifier] = None
            else:
                self._settle(identifier)

    def _settle(self, identifier: bytes) -> None:
        """An LSP need not be sent any more."""
        self._requested.pop(identifier, None)
        self._all.pop(identifier, None)


class IsisNeighbor(IsisSpeaker):
    """A speaker that announces what a script says, and counts what the device answers."""

    portion, gap = 1, 0.01

    def __init__(
        self,
        script: Script,
        contents: LspContents,
        adjacencies: Adjacencies,
        send: Send,
        *,
        system: int,
        address: int,
        circuit: int,
    ) -> None:
        ends = system, script.device
        super().__init__(ends, address, circuit, send, contents, hello=script.hello)
        self.script = script
        self.bit = 1 << len(script.neighbors)
        self._adjacencies = adjacencies
        script.neighbors.append(self)

    def queue(self, bodies: Iterable[bytes]) -> None:
        """Send LSPs when ``push`` is called."""
        self._queue.extend(bodies)

    def receive(self, payload: bytes) -> None:
        """Process a PDU."""
        self.script.received += 1
        super().receive(payload)

    def _hello(self, pdu: bytes) -> None:
        before, was_up = self.heard_at, self.full
        super()._hello(pdu)
        self.script.heard(self, before, lost=was_up and not self.full)

    def _in_order(self) -> list[bytes]:
        """Each neighbor begins at another place."""
        known = super()._in_order()
        first = len(known) * (self.bit.bit_length() - 1) // max(1, len(self.script.neighbors))
        return known[first:] + known[:first]

    def _lsp(self, raw: bytes) -> None:
        super()._lsp(raw)
        self.script.acknowledged(raw[LSP_ID:FLAGS], self.bit)
        if int.from_bytes(raw[LSP_ID : LSP_ID + 6], "big") == self._device:
            self._adjacencies.learn(raw)
            self.script.links = len(self._adjacencies)

    def _listed(self, pdu: bytes, start: int) -> None:
        for (instance,) in _INSTANCES.iter_unpack(entries_of(pdu, start)):
            self.script.acknowledged(instance, self.bit)
        super()._listed(pdu, start)


def _id(raw: bytes) -> LspId:
    return LspId(int.from_bytes(raw, "big"))
