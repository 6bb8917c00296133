"""Unchanged hellos: a received one only restarts the holding time (ISO 10589 §8.2.5.2 e)); one to
send is not encoded again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.links import InterfaceAddress
from fared.protocols.igp.events import (
    LinkChanged,
    LoadsMeasured,
    PacketReceived,
    SendPacket,
    SettingsApplied,
)
from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey
from fared.protocols.isis import transmit
from fared.protocols.isis.circuit import Adjacency
from fared.protocols.isis.pdu.codec import decode_pdu, encode_pdu, peek_type
from fared.protocols.isis.pdu.model import P2pHello, PduType
from fared.protocols.isis.pdu.tlvs import ThreeWay, ThreeWayState
from tests.igp.engines import all_outputs
from tests.isis.net import FAST, Network, pair

HELLOS = (PduType.P2P_HELLO, PduType.L1_LAN_HELLO, PduType.L2_LAN_HELLO)


def hello_of(net: Network, number: int) -> bytes:
    """The last hello that a router sent."""
    return next(
        output.payload
        for _, output in reversed(net.nodes[number].outputs)
        if isinstance(output, SendPacket) and peek_type(output.payload) in HELLOS
    )


def adjacency_of(net: Network) -> Adjacency:
    """The adjacency of router 1."""
    circuits = net.nodes[1].engine.instance.circuits.values()
    return next(circuit.adjacency for circuit in circuits if circuit.adjacency is not None)


class Up:
    """Router 1 with a neighbor that is up, and the neighbor's hello."""

    def __init__(self) -> None:
        self.net = pair()
        self.net.settle()
        self.net.run(3)
        self.engine = self.net.nodes[1].engine
        self.payload = hello_of(self.net, 2)
        self.adjacency = adjacency_of(self.net)
        self.ifindex = self.adjacency.circuit.ifindex
        self.source = self.adjacency.snpa

    def quiet(self) -> None:
        for _ in all_outputs(self.engine):
            pass

    def receive(self, payload: bytes | None = None, source: int | None = None) -> None:
        source = self.source if source is None else source
        packet = PacketReceived(self.ifindex, source, 0, payload or self.payload)
        self.engine.handle(packet, self.net.now)

    def received(self) -> int:
        return self.engine.counters.packets["received", "p2p-hello"]


@pytest.mark.rfc("ISO 10589 §8.2.5.2")
def test_it_restarts_the_holding_time_is_counted_and_leaves_the_engine_settled():
    up = Up()
    up.quiet()
    before, up.net.now = up.received(), up.net.now + 0.7
    up.receive()
    assert up.engine.settled
    assert up.received() == before + 1
    assert up.adjacency.expires == up.net.now + up.adjacency.holding_time


def test_a_load_that_is_not_advertised_leaves_the_engine_settled():
    up = Up()
    up.quiet()
    up.engine.handle(LoadsMeasured({up.ifindex: 1.0}), up.net.now)
    assert up.engine.settled


def test_the_same_bytes_from_another_source_are_examined():
    up = Up()
    up.quiet()
    up.receive(source=up.source + 1)
    assert not up.engine.settled


@pytest.mark.parametrize(
    "change",
    [
        lambda link, settings: LinkChanged(link, replace(settings, hello_multiplier=9)),
        lambda link, settings: LinkChanged(
            replace(link, addresses=(*link.addresses, InterfaceAddress(4, 0x0A090909, 24))),
            settings,
        ),
    ],
)
def test_after_a_change_of_the_circuit_the_same_bytes_are_examined(change):
    up = Up()
    circuit = up.adjacency.circuit
    up.engine.handle(change(circuit.link, circuit.settings), up.net.now)
    up.quiet()
    up.receive()
    assert not up.engine.settled
    assert up.adjacency.up


def test_with_another_area_the_same_bytes_no_longer_fit():
    up = Up()
    settings = replace(up.engine.instance.settings, areas=(b"\x49\x77",))
    up.engine.handle(SettingsApplied(settings), up.net.now)
    up.quiet()
    up.receive()
    assert not up.engine.settled


def test_a_hello_in_between_that_begins_anew_is_processed_and_so_is_the_next():
    up = Up()
    hello = decode_pdu(up.payload)
    assert isinstance(hello, P2pHello)
    three_way = ThreeWay(ThreeWayState.DOWN, hello.tlvs[0].extended_local_circuit_id)
    up.receive(encode_pdu(replace(hello, tlvs=(three_way, *hello.tlvs[1:]))))
    assert up.adjacency.state.value == "Initializing"
    up.receive()
    assert up.adjacency.up


def test_an_authenticated_hello_is_verified_each_time():
    keys = (TimedKey(AuthKey(Algorithm.HMAC_SHA_256, 1, b"secret")),)
    net = pair(authentication=keys)
    net.settle()
    net.run(3)
    assert adjacency_of(net).up
    assert adjacency_of(net).settled_by is None


def test_an_unchanged_hello_is_not_encoded_again(monkeypatch):
    up = Up()
    monkeypatch.setattr(transmit, "encode_pdu", lambda *_: pytest.fail("encoded"))
    before = len(up.net.trace)
    up.net.run(1.5)
    sent = [packet for _, _, packet in up.net.trace[before:]]
    assert sum(peek_type(packet.payload) in HELLOS for packet in sent) >= 2


def test_a_hello_is_encoded_again_after_a_change_of_its_contents():
    up = Up()
    before = hello_of(up.net, 1)
    link = up.adjacency.circuit.link
    up.net.link(1, link, replace(FAST, hello_multiplier=9))
    assert decode_pdu(hello_of(up.net, 1)).holding_time == 9
    up.net.link(1, link, FAST)
    assert hello_of(up.net, 1) == before
