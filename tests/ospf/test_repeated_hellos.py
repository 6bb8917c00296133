"""Unchanged hellos: a received one only restarts the inactivity timer (RFC 2328 §10.5); one to
send is not encoded again."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.ids import parse_dotted
from fared.core.links import InterfaceAddress
from fared.protocols.igp.events import LinkChanged, SendPacket, SettingsApplied
from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey
from fared.protocols.ospf.auth.signature import read_auth
from fared.protocols.ospf.packet.codec import decode_packet, encode_packet
from fared.protocols.ospf.packet.packets import Hello
from fared.protocols.ospf.processing.transmit import Transmitter
from fared.protocols.ospf.settings import AreaSettings, TtlSecurity
from tests.ospf.harness import BACKBONE, FAST
from tests.ospf.scripted import OURS, THEIRS, Scripted


def full() -> tuple[Scripted, bytes]:
    """A neighbor in state Full, and its hello."""
    peer = Scripted()
    peer.to_full()
    hello = encode_packet(peer.peer, 0, peer.hello(peer.me))
    peer.raw(hello)
    peer.take_outputs()
    return peer, hello


def reconfigure(peer: Scripted, **changes: object) -> None:
    peer.handle(LinkChanged(peer.link, replace(FAST, **changes)))


def restub(peer: Scripted) -> None:
    """The area becomes a stub area."""
    settings = peer.engine.instance.settings
    stub = replace(settings, areas=(AreaSettings(BACKBONE, stub=True),))
    peer.handle(SettingsApplied(stub))


def received(peer: Scripted) -> int:
    return peer.engine.counters.packets["received", "hello"]


@pytest.mark.rfc("RFC 2328 §10.5")
def test_it_restarts_the_timer_is_counted_and_leaves_the_engine_settled():
    peer, hello = full()
    peer.at(3.0)
    before = received(peer)
    peer.raw(hello)
    assert peer.engine.settled
    assert received(peer) == before + 1
    assert peer.neighbor.dead_at - peer.now == 4.0
    peer.at(6.9)
    assert peer.state == "Full"
    peer.at(7.1)
    assert peer.state == "Down"


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ({"source": OURS}, None),
        ({"source": parse_dotted("192.0.2.1")}, "source-network"),
        ({"destination": OURS}, "unicast"),
        ({"ttl": 2}, "ttl"),
    ],
)
def test_the_same_bytes_from_another_source_are_checked(where, reason):
    peer, hello = full()
    peer.at(3.0)
    peer.raw(hello, **where)
    assert peer.neighbor.dead_at - peer.now == 1.0
    assert peer.errors() == ({} if reason is None else {reason: 1})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hello_interval": 2}, "hello-interval-mismatch"),
        ({"ttl_security": TtlSecurity.ON}, "ttl"),
        ({"authentication": (TimedKey(AuthKey(Algorithm.MD5, 1, b"key")),)}, "auth-type"),
    ],
)
def test_after_a_change_of_the_interface_the_same_bytes_are_checked(changes, reason):
    peer, hello = full()
    peer.at(3.0)
    peer.handle(LinkChanged(peer.link, replace(FAST, **changes)))
    peer.raw(hello)
    assert peer.errors() == {reason: 1}
    assert peer.neighbor.dead_at - peer.now == 1.0


def test_after_a_change_of_addresses_the_same_source_is_checked():
    peer, hello = full()
    ours = (*peer.link.addresses, InterfaceAddress(4, THEIRS, 31))
    peer.handle(LinkChanged(replace(peer.link, addresses=ours), FAST))
    peer.raw(hello)
    assert peer.state == "Down"


def test_in_an_area_that_became_stub_the_same_bytes_do_not_match():
    peer, hello = full()
    restub(peer)
    peer.raw(hello)
    assert peer.errors() == {"options-mismatch": 1}
    assert peer.state == "Down"


def test_a_removed_neighbor_returns_with_the_same_bytes():
    peer, hello = full()
    peer.at(10.0)
    assert peer.state == "Down"
    peer.raw(hello)
    assert peer.state == "ExStart"


def test_a_hello_in_between_that_does_not_list_us_is_processed():
    peer, hello = full()
    peer.greet()
    assert peer.state == "Init"
    peer.raw(hello)
    assert peer.state == "ExStart"


def last_sent(peer: Scripted) -> tuple[SendPacket, Hello]:
    """The next hello, one second on."""
    peer.at(peer.now + 1.0)
    packet = [o for o in peer.outputs if isinstance(o, SendPacket) and o.payload[1] == 1][-1]
    body = decode_packet(packet.payload).body
    assert isinstance(body, Hello)
    return packet, body


def test_an_unchanged_hello_is_not_encoded_again(monkeypatch):
    peer = Scripted()
    peer.greet(peer.me)
    packet, hello = last_sent(peer)
    monkeypatch.setattr(Transmitter, "hello", lambda *_: pytest.fail("encoded"))
    assert last_sent(peer) == (packet, hello)


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        (lambda peer: peer.at(5.0), "neighbors", ()),
        (lambda peer: reconfigure(peer, router_priority=7), "router_priority", 7),
        (lambda peer: reconfigure(peer, router_dead_interval=9), "router_dead_interval", 9),
        (restub, "options", 0),
    ],
)
def test_a_hello_is_encoded_again_after_each_change_of_its_contents(change, field, value):
    peer = Scripted()
    peer.greet(peer.me)
    _, before = last_sent(peer)
    assert getattr(before, field) != value
    change(peer)
    _, after = last_sent(peer)
    assert getattr(after, field) == value


def test_a_hello_has_the_ttl_of_ttl_security_and_a_digest_of_its_own():
    peer = Scripted()
    last_sent(peer)
    reconfigure(peer, ttl_security=TtlSecurity.ON)
    packet, _ = last_sent(peer)
    assert packet.ttl == 255
    reconfigure(peer, authentication=(TimedKey(AuthKey(Algorithm.MD5, 1, b"key")),))
    first, second = last_sent(peer)[0], last_sent(peer)[0]
    assert read_auth(second.payload).sequence > read_auth(first.payload).sequence
