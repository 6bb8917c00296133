"""Why a router on a link is no neighbor: said by cause, with the values that differ."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.bfd import BfdSettings
from fared.core.ids import dotted
from fared.protocols.igp.events import LogRecord
from fared.protocols.igp.keys import Algorithm, AuthKey, TimedKey
from fared.protocols.igp.refusals import KEPT
from fared.protocols.ospf.adjacency.problems import problem_of
from fared.protocols.ospf.packet.packets import LsAck
from fared.protocols.ospf.settings import TtlSecurity
from tests.ospf.harness import FAST, LAN, Network, pair, router_id
from tests.ospf.scripted import OURS, THEIRS, Scripted

NEIGHBOR = "10.255.0.9"
KEY = TimedKey(AuthKey(Algorithm.MD5, 1, b"key"))


def refused(peer: Scripted) -> list[tuple]:
    return [(r.cause, r.source, r.node) for r in peer.engine.refused(peer.now)]


def problem(net: Network, number: int) -> str | None:
    (neighbor,) = net.neighbors(number)
    found = problem_of(neighbor, net.now)
    return None if found is None else found.cause


def logged(node, event: str) -> list[dict]:
    return [record.fields for record in node.said(LogRecord) if record.event == event]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"hello_interval": 10}, "its hello interval differs: 10, ours 1"),
        ({"router_dead_interval": 40}, "its dead interval differs: 40, ours 4"),
        ({"options": 0}, "one end is in a stub area, the other is not"),
    ],
)
def test_a_refused_hello_is_kept_with_its_cause_and_both_values(changes, text):
    peer = Scripted()
    for second in range(3):
        peer.at(float(second))
        peer.greet(**changes)
    (kept,) = peer.engine.refused(peer.now)
    assert (kept.interface, kept.source, kept.node) == ("eth2", dotted(THEIRS), NEIGHBOR)
    assert (kept.text, kept.times, kept.first, kept.last) == (text, 3, 0.0, 2.0)


@pytest.mark.rfc("RFC 2328 §10.5")
@pytest.mark.parametrize(
    ("header", "settings", "cause", "node"),
    [
        ({"area": 7}, FAST, "area-mismatch", NEIGHBOR),
        ({"peer": router_id(5)}, FAST, "duplicate-router-id", "10.255.0.5"),
        ({"source": 77}, FAST, "source-network", NEIGHBOR),
        ({"source": OURS}, FAST, "duplicate-address", NEIGHBOR),
        ({}, replace(FAST, ttl_security=TtlSecurity.ON), "ttl", NEIGHBOR),
        ({}, replace(FAST, authentication=(KEY,)), "auth-type", None),
    ],
)
def test_whatever_refuses_a_hello_its_cause_is_kept(header, settings, cause, node):
    peer = Scripted(settings=settings)
    peer.send(peer.hello(), **header)
    assert refused(peer) == [(cause, dotted(header.get("source", THEIRS)), node)]


def test_a_cause_is_forgotten_when_a_hello_is_accepted_and_some_minutes_after_the_last():
    peer = Scripted()
    peer.greet(hello_interval=9)
    peer.greet()
    assert refused(peer) == []
    peer.send(peer.hello(), source=77)
    peer.greet()
    assert refused(peer) == [], "it has another address now"
    peer.send(peer.hello(hello_interval=9), source=THEIRS + 1, area=7)
    peer.at(KEPT + 1)
    assert refused(peer) == []


def test_strangers_fill_no_more_than_a_small_table():
    peer = Scripted(length=8)
    for host in range(2, 100):
        peer.send(peer.hello(hello_interval=9), source=OURS + host)
    assert len(refused(peer)) == 16


def test_our_address_at_the_other_end_is_no_packet_of_ours_that_came_back():
    peer = Scripted()
    peer.send(peer.hello(), source=OURS, peer=peer.me)
    assert refused(peer) == []
    peer.send(peer.hello(), source=OURS)
    assert refused(peer) == [("duplicate-address", dotted(OURS), NEIGHBOR)]
    assert peer.errors() == {}


def test_different_network_types_are_told_at_both_ends():
    """One end elects a designated router, the other does not: no packet is ever forwarded."""
    net = pair(b_settings=LAN)
    net.run(4 * FAST.router_dead_interval)
    assert [problem(net, number) for number in (1, 2)] == ["network-type-mismatch"] * 2
    (told,) = logged(net.nodes[1], "ospf-neighbor-problem")
    assert told["what"] == "one end is point-to-point, the other is broadcast"


def test_a_neighbor_that_does_not_receive_us_is_told_and_no_other():
    net = pair()
    net.run(5)
    net.cables[0].deaf = {2}
    net.run(10)
    assert (net.states(1), problem(net, 1)) == (["Init"], "not-heard")
    assert logged(net.nodes[1], "ospf-neighbor-problem")
    net.cables[0].deaf = set()
    net.run(5)
    assert [problem(net, number) for number in (1, 2)] == [None, None]


@pytest.mark.rfc("RFC 9355 §4")
def test_strict_bfd_that_is_not_up_is_told_and_not_that_hellos_are_lost():
    """Neither end lists the other meanwhile."""
    strict = replace(FAST, bfd=BfdSettings(strict=True))
    net = pair(settings=strict)
    net.run(10)
    assert [problem(net, number) for number in (1, 2)] == ["bfd-down"] * 2


def test_a_packet_that_comes_before_the_hello_of_its_sender_is_no_warning():
    """It is one if it goes on for a hello interval: the sender's hellos do not arrive."""
    peer = Scripted()
    peer.send(LsAck(()))
    warnings = [o for o in peer.outputs if isinstance(o, LogRecord) and o.level == "warning"]
    assert warnings == []
    peer.at(1.5)
    peer.send(LsAck(()))
    (last,) = [o for o in peer.outputs if isinstance(o, LogRecord) and o.level == "warning"]
    assert last.fields["reason"] == "unknown-neighbor"


def test_two_routers_with_one_router_id_are_told_wherever_they_are():
    """They are not adjacent; each replaces the router LSA of the other."""
    net = Network()
    net.add(3, router_id=router_id(1))
    net.join(1, 2)
    net.join(2, 3)
    net.run(60)
    for number in (1, 3):
        assert net.nodes[number].engine.contested(net.now).endswith(" 10.255.0.1")
        (first, *_) = logged(net.nodes[number], "ospf-foreign-copies")
        assert first["effect"] == "another router has our router id"
        assert net.nodes[number].engine.counters.lsdb["foreign-copies"] >= 3
    assert net.nodes[2].engine.contested(net.now) is None
