"""Own LSAs that neighbors have and this router has not: old or forged (RFC 2328 §13.4)."""

import pytest

from fared.protocols.ospf.packet.lsa import MAX_AGE
from fared.protocols.ospf.packet.packets import LsUpdate
from tests.ospf.scripted import Scripted, ack, make_lsa, update


def acknowledge_all(peer: Scripted) -> None:
    sent = [lsa for packet in peer.got(LsUpdate) for lsa in packet.lsas]
    if sent:
        peer.send(ack(*sent))


@pytest.mark.rfc("RFC 2328 §13.4")
@pytest.mark.parametrize("age", [1, MAX_AGE])
def test_an_lsa_from_before_a_restart_is_replaced_even_while_throttled(age):
    """RFC 2328 §13.4. At MaxAge the received LSA leaves the database before ours may go out.

    A router that shut down has flushed its LSAs; a neighbor may keep one of them at MaxAge for
    seconds, and answers every lower sequence number with it.
    """
    peer = Scripted()
    peer.to_full()  # the adjacency has just changed our router LSA: the next change is throttled
    acknowledge_all(peer)
    ours = peer.own_router_lsa().header.ls_sequence_number
    peer.send(update(make_lsa(peer.me, ours + 8, age=age)))
    acknowledge_all(peer)
    for _ in range(20):
        peer.at(peer.now + 0.1)
        acknowledge_all(peer)
    lsa, lsa_age = peer.lsas()[peer.own_router_lsa().header.key]
    assert lsa.header.ls_sequence_number == ours + 9
    assert lsa_age < 5


@pytest.fixture
def peer() -> Scripted:
    """A Full neighbor that has acknowledged everything."""
    peer = Scripted()
    peer.to_full()
    for _ in range(20):
        acknowledge_all(peer)
        peer.at(peer.now + 0.1)
    peer.greet(peer.me)
    acknowledge_all(peer)
    return peer


def sent(peer: Scripted) -> list[tuple]:
    """Key and number of the LSAs that the engine has sent."""
    lsas = [lsa for packet in peer.got(LsUpdate) for lsa in packet.lsas]
    return [(lsa.header.key, lsa.header.ls_sequence_number) for lsa in lsas]


@pytest.mark.rfc("RFC 2328 §13.4")
@pytest.mark.parametrize("age", [1, MAX_AGE])
def test_a_newer_own_lsa_that_a_neighbor_acknowledges_is_superseded(peer, age):
    """It was forged in our name, on a link over which it is not flooded back to us."""
    header = peer.own_router_lsa().header
    ours = header.ls_sequence_number
    forged = make_lsa(peer.me, ours + 3, age=age)
    peer.send(ack(forged))
    for _ in range(2):
        peer.at(peer.now + peer.settings.rxmt_interval + 0.1)
        assert sent(peer) == [(header.key, ours)]
    peer.send(update(forged))  # §13 (8)
    peer.at(peer.now + 1.0)
    assert set(sent(peer)) == {(header.key, ours + 4)}


@pytest.mark.rfc("RFC 2328 §13.7")
@pytest.mark.parametrize(("step", "lsid"), [(0, None), (-1, None), (3, 77)])
def test_an_acknowledgment_of_no_newer_own_lsa_is_ignored(peer, step, lsid):
    """RFC 2328 §13.7: acknowledgments that come twice, or late."""
    ours = peer.own_router_lsa().header.ls_sequence_number
    own = peer.own_router_lsa() if not step else make_lsa(peer.me, ours + step, lsid=lsid)
    peer.send(ack(own))
    peer.at(peer.now + peer.settings.rxmt_interval + 0.1)
    assert sent(peer) == []
