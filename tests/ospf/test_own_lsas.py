"""Self-originated LSAs from before a restart that neighbors still have (RFC 2328 §13.4)."""

import pytest

from fared.ospf.packet.lsa import MAX_AGE
from fared.ospf.packet.packets import LsUpdate
from tests.ospf.scripted import Scripted, ack, make_lsa, update


def acknowledge_all(peer: Scripted) -> None:
    sent = [lsa for packet in peer.got(LsUpdate) for lsa in packet.lsas]
    if sent:
        peer.send(ack(*sent))


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
