"""Scripted neighbors of ``scale`` over IS-IS: spines on point-to-point circuits of level 2."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections import deque
from collections.abc import Iterable

from bench.beside_fabric import AREA
from bench.scale_lsps import (
    FLAGS,
    LSP_ID,
    SEQUENCE,
    LspContents,
    entries_of,
    entry_of,
    neighbors_of,
    psnp,
)
from bench.scale_script import Script
from fared.core.ids import SystemId
from fared.kernel.isis_socket import LLC, frame
from fared.protocols.isis.ids import ALL_ISS, LevelSet, LspId
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
_BURST = 64
_START = 14 + len(LLC)
_INTERVAL = 0.01
"""Seconds between two LSPs of the whole database on one circuit."""


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


class IsisNeighbor:
    """A spine on one circuit.

    Once the adjacency is up it lists its database and sends all of it (ISO 10589 §7.3.17), except
    what the device turns out to have.
    """

    def __init__(
        self,
        script: Script,
        contents: LspContents,
        adjacencies: Adjacencies,
        sock: socket.socket,
        *,
        system: int,
        address: int,
        circuit: int,
    ) -> None:
        self.script = script
        self.bit = 1 << len(script.neighbors)
        self.silent = True
        self.heard_at = 0.0
        self._contents, self._adjacencies = contents, adjacencies
        self._system, self._address, self._circuit = system, address, circuit
        self._socket = sock
        self._own = sock.getsockname()[4]
        self._peer_circuit = 0
        self._up = False
        self._queue: deque[bytes] = deque()
        self._requested: dict[bytes, None] = {}
        """LSPs that the device has requested, by id: sent before others, once."""
        self._all: dict[bytes, None] = {}
        """The LSPs of the database that the device may lack, by id."""
        self._all_at = 0.0
        self._entries: list[bytes] = []
        script.neighbors.append(self)

    # Sending

    def hello(self) -> None:
        """Send a hello, due once in a hello interval."""
        state = ThreeWay(ThreeWayState.DOWN, self._circuit)
        if self.heard_at:
            kind = ThreeWayState.UP if self._up else ThreeWayState.INITIALIZING
            device = SystemId(self.script.device)
            state = ThreeWay(kind, self._circuit, device, self._peer_circuit)
        tlvs = (
            state,
            AreaAddresses((AREA,)),
            ProtocolsSupported((NLPID_IPV4,)),
            InterfaceAddresses(4, (self._address,)),
        )
        holding = 4 * self.script.hello
        self.say(encode_pdu(P2pHello(LevelSet.TWO, SystemId(self._system), holding, 1, tlvs)))

    def say(self, body: bytes) -> None:
        """Send a PDU."""
        if not self.silent:
            with contextlib.suppress(BlockingIOError):
                self._socket.send(frame(self._own, ALL_ISS, body))

    def queue(self, bodies: Iterable[bytes]) -> None:
        """Send LSPs when ``push`` is called."""
        self._queue.extend(bodies)

    @property
    def pending(self) -> bool:
        """Whether ``push`` has something to send."""
        return bool(self._queue or self._requested or self._all)

    def push(self) -> None:
        """Send an LSP that was requested, or one of the database."""
        now = time.monotonic()
        if self._queue:
            self.say(self._queue.popleft())
        elif self._requested or now >= self._all_at:
            identifier = next(iter(self._requested or self._all))
            if not self._requested:
                self._all_at = now + _INTERVAL
            self._requested.pop(identifier, None)
            self._all.pop(identifier, None)
            self.say(self._contents.lsps[LspId(int.from_bytes(identifier, "big"))])

    # Receiving

    def receive(self) -> None:
        """Read and process the PDUs that have arrived."""
        for _ in range(_BURST):
            try:
                data = self._socket.recv(65536)
            except BlockingIOError:
                break
            self.script.received += 1
            if data[14:_START] == LLC:
                self._process(data[_START:])
        if self._entries:
            for body in psnp(self._system, self._entries):
                self.say(body)
            self._entries.clear()

    def _process(self, pdu: bytes) -> None:
        match pdu[4] & 0x1F:
            case PduType.P2P_HELLO:
                self._hello(pdu)
            case PduType.L2_LSP:
                self._lsp(pdu[: int.from_bytes(pdu[8:10], "big")])
            case PduType.L2_CSNP:  # what it lists need not be sent
                self._acknowledged(pdu[: int.from_bytes(pdu[8:10], "big")], _CSNP_TLVS)
            case PduType.L2_PSNP:
                self._acknowledged(pdu[: int.from_bytes(pdu[8:10], "big")], _PSNP_TLVS)

    def _hello(self, pdu: bytes) -> None:
        now, before = time.monotonic(), self.heard_at
        self.heard_at = now
        if before:
            self.script.lapse = max(self.script.lapse, now - before)
        hello = decode_pdu(pdu)
        assert isinstance(hello, P2pHello)
        theirs = next(iter(of_type(hello.tlvs, ThreeWay)), None)
        if theirs is None:
            return
        self._peer_circuit = theirs.extended_local_circuit_id or 0
        up = theirs.neighbor_system_id == self._system and theirs.state != ThreeWayState.DOWN
        if self._up and not up:
            self.script.lost += 1
        changed, self._up = up != self._up or not before, up
        if changed:
            self.hello()
        if changed and up and not self.silent:
            self._offer()

    def _offer(self) -> None:
        """List the database, and begin to send it, each neighbor at another place."""
        for body in self._contents.csnps(self._system):
            self.say(body)
        known = [raw[LSP_ID:SEQUENCE] for raw in self._contents.lsps.values()]
        number = self.bit.bit_length() - 1
        first = len(known) * number // max(1, len(self.script.neighbors))
        self._all = dict.fromkeys(known[first:] + known[:first])

    def _lsp(self, raw: bytes) -> None:
        """Acknowledge an LSP of the device, or one that it floods (ISO 10589 §7.3.15.1)."""
        self._entries.append(entry_of(raw))
        self.script.acknowledged(raw[LSP_ID:FLAGS], self.bit)
        self._requested.pop(raw[LSP_ID:SEQUENCE], None)
        self._all.pop(raw[LSP_ID:SEQUENCE], None)
        if int.from_bytes(raw[LSP_ID : LSP_ID + 6], "big") == self.script.device:
            self._adjacencies.learn(raw)
            self.script.links = len(self._adjacencies)

    def _acknowledged(self, pdu: bytes, start: int) -> None:
        """Process acknowledgments and requests (§7.3.15.2)."""
        lsps = self._contents.lsps
        entries = entries_of(pdu, start)
        for (instance,) in _INSTANCES.iter_unpack(entries):
            self.script.acknowledged(instance, self.bit)
        for identifier, sequence in _ENTRY.iter_unpack(entries):
            ours = lsps.get(LspId(int.from_bytes(identifier, "big")))
            if ours is None:
                continue
            if int.from_bytes(ours[SEQUENCE : SEQUENCE + 4], "big") > sequence:
                if not sequence:
                    self._requested[identifier] = None
            else:
                self._requested.pop(identifier, None)
                self._all.pop(identifier, None)
