"""LSPs are sent no faster than the neighbor receives them (RFC 9681), on the virtual clock."""

from __future__ import annotations

from collections import deque

import pytest
from msgspec.structs import replace

from fared.core.ids import SystemId
from fared.core.links import Link
from fared.protocols.igp.events import SendPacket, SettingsApplied
from fared.protocols.isis.circuit import Adjacency, AdjacencyState, Circuit
from fared.protocols.isis.ids import FIRST_LSP, LAST_LSP, LevelSet
from fared.protocols.isis.pdu.codec import decode_pdu, encode_pdu, peek_type
from fared.protocols.isis.pdu.flooding_parameters import FloodingParameters
from fared.protocols.isis.pdu.model import Csnp, P2pHello, PduType, Psnp
from fared.protocols.isis.pdu.tlvs import LspEntries, LspEntry, of_type
from fared.protocols.isis.settings import FastFloodingSettings
from tests.isis.floodnet import P2P, TWO, Network, Router, make_lsp, name
from tests.isis.net import pair

SLOW = FloodingParameters(burst_size=5, transmission_interval=20_000, receive_window=50)
"""What a receiver of 50 LSPs a second advertises."""


class Receiver:
    """A neighbor that processes so many LSPs a second, and acknowledges them ten times a second.

    LSPs that do not fit into its buffer are lost.
    """

    def __init__(self, sender: Router, parameters: FloodingParameters | None, rate: float) -> None:
        self.sender, self._step = sender, 1 / rate
        self.buffer: deque[bytes] = deque()
        self.room = 50
        self.sent = self.lost = self.fullest = 0
        self.known: set[int] = set()
        self.deaf = False
        self._entries: list[LspEntry] = []
        circuit = Circuit(Link(1, "eth1", True, 1500), P2P, 1)
        circuit.up = True
        adjacency = Adjacency(circuit, SystemId(2), 2, LevelSet.TWO, AdjacencyState.UP)
        adjacency.flooding = parameters
        circuit.adjacency = adjacency
        sender.instance.circuits[1] = circuit
        sender.flooding.adjacency_up(circuit, TWO)
        sender.receive(1, 2, encode_pdu(Csnp(2, 2 << 8, FIRST_LSP, LAST_LSP, ())))
        self._carry()

    def run(self, seconds: float) -> None:
        """Let time pass."""
        process = self.sender.instance.process
        end, work, acknowledge = process.now + seconds, process.now, process.now + 0.1
        while process.now < end:
            deadline = process.timers.next_deadline()
            process.now = max(process.now, min(deadline or end, end, work, acknowledge))
            process.timers.fire(process.now)
            if process.now >= work:
                work += self._step
                if self.buffer:
                    self._process(self.buffer.popleft())
            if process.now >= acknowledge:
                acknowledge += 0.1
                self._acknowledge()
            self._carry()

    def _process(self, raw: bytes) -> None:
        lsp = decode_pdu(raw)
        self.known.add(lsp.lsp_id)
        self._entries.append(LspEntry(lsp.lsp_id, lsp.sequence_number, 1200, lsp.checksum))

    def _acknowledge(self) -> None:
        done, self._entries = self._entries, []
        tlvs = tuple(LspEntries(tuple(done[at : at + 15])) for at in range(0, len(done), 15))
        if tlvs:
            self.sender.receive(1, 2, encode_pdu(Psnp(2, 2 << 8, tlvs)))

    def _carry(self) -> None:
        for output in self.sender.take_outputs():
            self.sent += 1
            if peek_type(output.payload) is not PduType.L2_LSP or self.deaf:
                continue
            if len(self.buffer) < self.room:
                self.buffer.append(output.payload)
            else:
                self.lost += 1
            self.fullest = max(self.fullest, len(self.buffer))


def sender(count: int, **speed) -> Router:
    router = Router(1, fast_flooding=FastFloodingSettings(**speed))
    for fragment in range(count):
        router.say("x", fragment)
    return router


@pytest.mark.rfc("RFC 9681 §4.6")
def test_a_receiver_of_fifty_lsps_a_second_is_never_overrun():
    far = Receiver(sender(256), SLOW, 50)
    far.run(256 / 50 + 1)
    assert far.lost == 0
    assert len(far.known) == 256
    assert far.sender.counts["flooded"] == 256
    assert far.sender.counts["retransmitted"] == 0


@pytest.mark.rfc("RFC 9681 §4.6")
def test_its_window_alone_is_enough():
    """It says how many may be unacknowledged, and nothing of bursts and rates."""
    far = Receiver(sender(256), FloodingParameters(receive_window=50), 50)
    far.run(256 / 50 + 1)
    assert (far.lost, far.fullest) == (0, 50)
    assert len(far.known) == 256


def test_without_the_tlv_it_is_overrun():
    far = Receiver(sender(256), None, 50)
    far.run(1.0)
    assert far.lost > 100


def test_what_the_neighbor_advertises_is_ignored_where_fast_flooding_is_off():
    far = Receiver(sender(256, enabled=False), SLOW, 50)
    far.run(1.0)
    assert far.lost > 100


def test_a_sender_recovers_when_the_receiver_does():
    """Unacknowledged LSPs fill the window; they are sent again when they are due."""
    far = Receiver(sender(120), SLOW, 50)
    far.deaf = True
    far.run(3.0)
    assert far.sender.counts["flooded"] == 50 + len(far.known), "the window"
    far.deaf = False
    far.run(2.5 + 120 / 50 + 2)
    assert far.lost == 0
    assert len(far.known) == 120
    assert far.sender.flags() == 0


@pytest.mark.rfc("RFC 9681 §4.1")
def test_a_burst_is_as_large_as_the_neighbor_receives_without_a_gap():
    quick = FloodingParameters(burst_size=64, transmission_interval=100, receive_window=1000)
    far = Receiver(sender(100), quick, 1000)
    assert far.sent == 64, "CSNPs included"
    far = Receiver(sender(100), replace(quick, burst_size=3), 1000)
    assert far.sent == 3


@pytest.mark.rfc("RFC 9681 §4.3")
@pytest.mark.parametrize(("window", "at_once"), [(200, 90), (10, 5), (1, 1)])
def test_half_a_window_is_acknowledged_at_once(window, at_once):
    net = Network()
    net.add(1)
    net.add(2, fast_flooding=FastFloodingSettings(receive_window=window))
    net.join(1, 2)
    net.run(1)
    net.sent.clear()
    for fragment in range(at_once - 1):
        net.inject(2, 1, make_lsp(name(9, fragment), 1, "x"))
    net.run(0.05)
    assert not net.pdus(PduType.L2_PSNP)
    net.inject(2, 1, make_lsp(name(9, 200), 1, "x"))
    net.run(0.01)
    entries = [
        entry
        for _, number, psnp in net.pdus(PduType.L2_PSNP)
        for tlv in of_type(psnp.tlvs, LspEntries)
        for entry in tlv.entries
        if number == 2
    ]
    assert len(entries) == at_once


@pytest.mark.rfc("RFC 9681 §4")
@pytest.mark.parametrize("enabled", [True, False])
def test_hellos_say_how_fast_a_router_receives(enabled):
    speed = FastFloodingSettings(enabled=enabled, receive_window=70, burst_size=7, rate=500)
    net = pair()
    net.settle()
    net.input(1, SettingsApplied(replace(net.nodes[1].settings, fast_flooding=speed)))
    net.run(2)
    hellos = [
        pdu
        for output in net.nodes[1].said(SendPacket)
        if isinstance(pdu := decode_pdu(output.payload), P2pHello)
    ]
    sent = of_type(hellos[-1].tlvs, FloodingParameters)
    expected = FloodingParameters(7, 2000, 35, None, 100, 70)
    assert sent == ((expected,) if enabled else ())
    (adjacency,) = net.adjacencies(2)
    assert adjacency.flooding == (expected if enabled else None)
