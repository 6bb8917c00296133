"""Negotiation of master and slave, its restart and its races (RFC 2328 §10.6, §10.8)."""

import pytest

from fared.protocols.igp.events import PacketReceived
from fared.protocols.ospf.packet.codec import encode_packet
from fared.protocols.ospf.packet.packets import DatabaseDescription, DdFlags, Hello, LsRequest
from tests.ospf.harness import BACKBONE, router_id
from tests.ospf.scripted import ALL_SPF, THEIRS, Scripted, dd, make_lsa, update

MORE, MASTER = DdFlags.M, DdFlags.MS
INITIAL = DdFlags.I | DdFlags.M | DdFlags.MS
MISSING = make_lsa(router_id(9))


def slave(*headers) -> Scripted:
    """A slave in Exchange that has answered the master's second description."""
    peer = Scripted(peer=9)
    peer.to_exchange(1000)
    peer.send(dd(MASTER | MORE, 1001, *headers))
    peer.got()
    return peer


def master(*headers) -> Scripted:
    """A master in Exchange that has sent its second description."""
    peer = Scripted(peer=2)
    sequence = peer.to_exstart()
    peer.send(dd(MORE, sequence, *headers))
    assert peer.state == "Exchange"
    peer.got()
    return peer


def loading(led_by_peer: bool) -> Scripted:
    """A router in Loading that lacks one LSA."""
    peer = Scripted(peer=9 if led_by_peer else 2)
    sequence = peer.to_exstart()
    describe(peer, led_by_peer, 1000 if led_by_peer else sequence)
    assert peer.state == "Loading"
    peer.got()
    return peer


def describe(peer: Scripted, led_by_peer: bool, sequence: int) -> None:
    """Describe the missing LSA in an exchange that begins with ``sequence``, the leader's."""
    peer.send(dd(INITIAL if led_by_peer else MORE, sequence))
    peer.send(dd(MASTER if led_by_peer else 0, sequence + 1, MISSING.header))


def send_at_once(peer: Scripted, *bodies) -> None:
    """Deliver packets as one batch: the engine does its turn after the last."""
    for body in bodies:
        payload = encode_packet(peer.peer, BACKBONE, body)
        peer.engine.handle(PacketReceived(2, THEIRS, ALL_SPF, payload, 1), peer.now)
    peer.take_outputs()


@pytest.mark.rfc("RFC 2328 §10.8")
def test_the_slave_sends_nothing_until_the_master_does():
    """Its timer of ExStart stops when it becomes slave: only the master retransmits."""
    peer = Scripted(peer=9)
    peer.to_exchange(1000)
    (answer,) = peer.got(DatabaseDescription)
    assert answer.dd_sequence_number == 1000
    peer.at(3.5)
    assert peer.got(DatabaseDescription) == []
    assert peer.state == "Exchange"


@pytest.mark.rfc("RFC 2328 §10.8")
def test_the_slave_answers_the_initial_description_that_is_retransmitted():
    peer = Scripted(peer=9)
    peer.to_exchange(1000)
    first = peer.got(DatabaseDescription)
    peer.at(1.0)
    peer.send(dd(INITIAL, 1000))
    assert peer.got(DatabaseDescription) == first
    assert peer.state == "Exchange"


@pytest.mark.rfc("RFC 2328 §10.6")
@pytest.mark.parametrize("make", [slave, master])
def test_an_initial_description_that_is_late_is_no_duplicate(make):
    """Only the last description received has duplicates; I in any other is a mismatch."""
    peer = make()
    peer.send(dd(INITIAL, 1000))
    assert peer.state == "ExStart"


@pytest.mark.rfc("RFC 2328 §10.6")
@pytest.mark.parametrize(
    "make",
    [slave, master, lambda: loading(True), lambda: loading(False)],
    ids=["slave in Exchange", "master in Exchange", "slave in Loading", "master in Loading"],
)
def test_a_neighbor_back_in_exstart_restarts_the_exchange(make):
    peer = make()
    peer.send(dd(INITIAL, 5000))
    assert peer.state == "ExStart"
    (initial,) = peer.got()
    assert (initial.flags, initial.lsa_headers) == (7, ())
    assert len(peer.neighbor.requests) == peer.retransmissions == 0
    # Until the neighbor answers, the initial description is the only packet retransmitted.
    peer.greet(peer.me)
    peer.at(peer.now + 2.5)
    sent = [body for body in peer.got() if not isinstance(body, Hello)]
    assert len(sent) == 2
    assert all(body == initial for body in sent)


@pytest.mark.parametrize("led_by_peer", [True, False])
def test_the_new_exchange_reaches_full(led_by_peer):
    peer = loading(led_by_peer)
    peer.send(dd(INITIAL, 5000))
    sequence = peer.got()[-1].dd_sequence_number
    describe(peer, led_by_peer, 5000 if led_by_peer else sequence)
    assert peer.state == "Loading"
    assert [request.requests for request in peer.got(LsRequest)] == [(MISSING.header.key,)]
    peer.send(update(MISSING))
    assert peer.state == "Full"


def test_a_slave_that_began_late_is_told_again_at_once():
    """It was Full when our description came, and waits in ExStart for the next."""
    peer = Scripted(peer=2)
    peer.to_exstart()
    peer.send(dd(INITIAL, 5000))
    assert peer.got(DatabaseDescription) == []
    peer.at(0.06)
    (initial,) = peer.got(DatabaseDescription)
    assert (initial.flags, initial.lsa_headers) == (7, ())
    peer.send(dd(MORE, initial.dd_sequence_number))
    assert peer.state == "Exchange"


@pytest.mark.rfc("RFC 2328 §10.8")
def test_descriptions_that_cross_are_not_repeated():
    peer = Scripted(peer=2)
    sequence = peer.to_exstart()
    peer.send(dd(INITIAL, 5000))
    peer.send(dd(MORE, sequence))
    assert [body.dd_sequence_number for body in peer.got(DatabaseDescription)] == [sequence + 1]
    peer.at(0.9)
    assert peer.got(DatabaseDescription) == []


def test_a_slave_that_never_answers_is_told_again_at_a_limited_rate():
    peer = Scripted(peer=2)
    peer.to_exstart()
    for step in range(100):
        peer.at(step / 100)
        peer.send(dd(INITIAL, 5000))
    assert 15 <= len(peer.got(DatabaseDescription)) <= 20


def test_what_the_ended_exchange_had_queued_is_not_sent():
    """A description and the one that ends the exchange arrive in one batch."""
    peer = slave()
    send_at_once(peer, dd(MASTER | MORE, 1002, MISSING.header), dd(INITIAL, 5000))
    assert peer.state == "ExStart"
    (initial,) = peer.got()
    assert initial.flags == 7
