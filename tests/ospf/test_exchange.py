"""Database exchange (RFC 2328 §10.6 to §10.9): master, retransmission, SeqNumberMismatch."""

from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from fared.protocols.igp.events import AdjacencyChanged
from fared.protocols.ospf.adjacency.problems import mtu_mismatch
from fared.protocols.ospf.packet.lsa import LsaKey
from fared.protocols.ospf.packet.packets import DatabaseDescription, DdFlags, LsRequest, LsUpdate
from tests.ospf.harness import FAST, pair, router_id
from tests.ospf.scripted import Scripted, dd, make_lsa, request, update

INIT, MORE, MASTER = DdFlags.I, DdFlags.M, DdFlags.MS
DD = DatabaseDescription


@pytest.mark.rfc("RFC 2328 §10.6")
def test_the_larger_router_id_becomes_master():
    net = pair()
    net.until(net.all_full)
    assert not net.neighbors(1)[0].master
    assert net.neighbors(2)[0].master


@pytest.mark.rfc("RFC 2328 §10.8")
def test_as_slave_we_use_the_masters_sequence_number():
    peer = Scripted(peer=9)
    peer.to_exstart()
    peer.send(dd(INIT | MORE | MASTER, 4242))
    (answer,) = peer.got(DD)
    assert peer.state == "Exchange"
    assert answer.dd_sequence_number == 4242
    assert not answer.flags & (INIT | MASTER)
    assert {h.key.ls_type for h in answer.lsa_headers} == {1, 10}


@pytest.mark.rfc("RFC 2328 §10.6")
def test_as_master_we_continue_when_the_slave_answers_with_our_number():
    peer = Scripted(peer=2)
    sequence = peer.to_exstart()
    peer.send(dd(MORE, sequence))
    (following,) = peer.got(DD)
    assert peer.state == "Exchange"
    assert following.dd_sequence_number == sequence + 1
    assert following.flags == MASTER
    peer.send(dd(0, sequence + 1))
    assert peer.state == "Full"


@pytest.mark.rfc("RFC 2328 §10.6")
def test_as_master_we_ignore_the_neighbors_claim_to_be_master():
    peer = Scripted(peer=2)
    peer.to_exstart()
    peer.send(dd(INIT | MORE | MASTER, 5))
    assert peer.state == "ExStart"


@pytest.mark.rfc("RFC 2328 §10.8")
def test_the_first_description_is_retransmitted_until_answered():
    peer = Scripted()
    peer.to_exstart()
    peer.at(2.9)
    repeated = peer.got(DD)
    assert len(repeated) == 2
    assert {d.flags for d in repeated} == {7}


@pytest.mark.rfc("RFC 2328 §10.8")
def test_as_master_we_retransmit_unanswered_descriptions_and_ignore_duplicates():
    peer = Scripted(peer=2)
    sequence = peer.to_exstart()
    peer.send(dd(MORE, sequence))
    peer.got()
    peer.send(dd(MORE, sequence))
    assert peer.got(DD) == []
    peer.at(1.5)
    (repeated,) = peer.got(DD)
    assert repeated.dd_sequence_number == sequence + 1


@pytest.mark.rfc("RFC 2328 §10.8")
def test_as_slave_we_answer_a_duplicate_with_the_same_answer():
    peer = Scripted()
    peer.to_exchange(1000)
    (first,) = peer.got(DD)
    peer.send(dd(INIT | MORE | MASTER, 1000))
    (second,) = peer.got(DD)
    assert first == second


@pytest.mark.rfc("RFC 2328 §10.8")
def test_as_slave_we_keep_the_last_answer_for_the_dead_interval():
    peer = Scripted()
    peer.to_full()
    peer.got()
    peer.at(1.0)
    peer.send(dd(MASTER, 1001))
    assert len(peer.got(DD)) == 1
    assert peer.state == "Full"
    peer.at(3.0)
    peer.greet(peer.me)
    peer.at(4.5)
    peer.send(dd(MASTER, 1001))
    assert peer.state == "ExStart"


@pytest.mark.rfc("RFC 2328 §10.6")
@pytest.mark.parametrize(
    "wrong",
    [
        dd(MASTER, 1005),
        dd(0, 1001),
        dd(INIT | MASTER, 1001),
        dd(MASTER, 1001, options=0x02),
    ],
    ids=["sequence number", "master bit", "init bit", "options"],
)
def test_a_description_out_of_order_restarts_the_exchange(wrong):
    peer = Scripted()
    peer.to_exchange(1000)
    peer.got()
    peer.send(wrong)
    assert peer.state == "ExStart"
    assert peer.got(DD)[0].flags == 7


@pytest.mark.rfc("RFC 2328 §10.6")
def test_an_unknown_ls_type_in_a_description_restarts_the_exchange():
    peer = Scripted()
    peer.to_exchange(1000)
    peer.send(dd(MASTER, 1001, make_lsa(1, ls_type=6, body=b"").header))
    assert peer.state == "ExStart"


@pytest.mark.rfc("RFC 2328 §10.6")
def test_a_larger_mtu_is_refused_and_counted():
    peer = Scripted(mtu=1500)
    peer.to_exstart()
    peer.send(dd(INIT | MORE | MASTER, 1, mtu=9000))
    assert peer.state == "ExStart"
    assert peer.errors() == {"mtu-mismatch": 1}


@pytest.mark.rfc("RFC 2328 §10.6")
def test_unequal_mtu_keeps_both_from_full_unless_ignored():
    net = pair(mtu=1500, b_mtu=9000)
    net.run(20)
    assert "Full" not in net.states(1) + net.states(2)
    lenient = pair(settings=replace(FAST, mtu_ignore=True), mtu=1500, b_mtu=9000)
    lenient.until(lenient.all_full)


def test_an_mtu_mismatch_is_shown_in_exstart_until_the_exchange_succeeds():
    """Both ends show it: the smaller one rejects descriptions, the other receives a smaller MTU."""
    net = pair(mtu=1500, b_mtu=9000)
    net.run(20)

    def seen() -> list[tuple[int, int] | None]:
        return [mtu_mismatch(neighbor) for number in (1, 2) for neighbor in net.neighbors(number)]

    assert seen() == [(9000, 1500), (1500, 9000)]
    link, settings = next(both for both in net.nodes[2].links.values() if not both[0].loopback)
    net.link(2, replace(link, mtu=1500), settings)
    net.until(net.all_full)
    assert seen() == [None, None]


@pytest.mark.rfc("RFC 2328 §10.9")
def test_missing_lsas_are_requested_and_loading_ends_with_the_last_one():
    peer = Scripted()
    lsa = make_lsa(router_id(9))
    peer.to_full(headers=[lsa.header])
    assert peer.state == "Loading"
    (asked,) = peer.got(LsRequest)
    assert asked.requests == (lsa.header.key,)
    peer.send(update(lsa))
    assert peer.state == "Full"
    assert peer.lsas()[lsa.header.key][0] == lsa


@pytest.mark.rfc("RFC 2328 §10.9")
def test_a_request_is_retransmitted_until_answered():
    peer = Scripted()
    peer.to_full(headers=[make_lsa(router_id(9)).header])
    peer.at(2.9)
    assert len(peer.got(LsRequest)) == 3
    assert peer.state == "Loading"


@pytest.mark.rfc("RFC 2328 §10.9")
def test_requests_are_sent_in_batches_that_fit_the_mtu():
    peer = Scripted()
    lsas = [make_lsa(router_id(9), lsid=n, ls_type=10, body=bytes(8)) for n in range(300)]
    peer.to_exchange(1000)
    for part in range(5):
        flags = MASTER | (MORE if part < 4 else 0)
        peer.send(dd(flags, 1001 + part, *(x.header for x in lsas[part * 60 : part * 60 + 60])))
    batches = []
    while peer.state != "Full":
        asked = {key for r in peer.got(LsRequest) for key in r.requests}
        assert asked
        batches.append(len(asked))
        wanted = [x for x in lsas if x.header.key in asked]
        for start in range(0, len(wanted), 40):
            peer.send(update(*wanted[start : start + 40]))
    assert sum(batches) == 300
    assert max(batches) <= 121


@pytest.mark.rfc("RFC 2328 §10.7")
def test_requests_are_answered_and_one_for_an_unknown_lsa_restarts_the_exchange():
    peer = Scripted()
    peer.to_full()
    peer.got()
    own = peer.own_router_lsa()
    peer.send(request(own.header.key))
    (answer,) = peer.got(LsUpdate)
    assert answer.lsas[0].header.key == own.header.key
    assert answer.lsas[0].header.ls_age == 1
    peer.send(request(LsaKey(1, 1, 1)))
    assert peer.state == "ExStart"


@pytest.mark.rfc("RFC 2328 §13 (6)")
def test_an_answer_older_than_the_description_is_a_bad_request():
    peer = Scripted()
    old, new = make_lsa(router_id(3), 5), make_lsa(router_id(3), 6)
    peer.to_full(headers=[make_lsa(router_id(9)).header])
    peer.send(update(old))
    assert peer.state == "Loading"
    peer2 = Scripted()
    peer2.to_full()
    peer2.send(update(old))
    peer2.greet()
    peer2.to_full(headers=[new.header])
    assert peer2.state == "Loading"
    peer2.send(update(old))
    assert peer2.state == "ExStart"


@pytest.mark.rfc("RFC 5250 §3")
def test_no_opaque_lsas_are_described_to_a_neighbor_without_the_o_bit():
    peer = Scripted()
    peer.to_exstart()
    peer.send(dd(INIT | MORE | MASTER, 1000, options=0x02))
    (answer,) = peer.got(DD)
    assert {h.ls_type for h in answer.lsa_headers} == {1}


def test_big_databases_are_described_in_full_packets():
    """300 LSA headers of 20 bytes fit in five packets of 1500 bytes."""
    third = Scripted(peer=9)
    third.to_full()
    lsas = [make_lsa(router_id(9), lsid=n, ls_type=10, body=bytes(8)) for n in range(300)]
    for start in range(0, 300, 40):
        third.send(update(*lsas[start : start + 40]))
    third.greet()
    third.to_exchange(50)
    described = []
    packets = 0
    while True:
        (answer,) = third.got(DD)
        packets += 1
        described += answer.lsa_headers
        if not answer.flags & MORE:
            break
        third.send(dd(MASTER | MORE, 50 + packets))
    assert len({h.key for h in described}) == len(described) == 303
    assert packets == 5


@pytest.mark.parametrize("seed", range(4))
def test_exchange_survives_loss(seed):
    """30 % of the packets are lost in both directions; retransmissions replace them."""
    net = pair(seed, settings=FAST, loss=0.3)
    net.until(lambda: net.all_full() and net.in_sync() and len(net.database(1)) == 8, 120)


def test_what_helps_to_compare_is_forgotten_with_the_last_exchange_and_not_with_a_lost_link():
    """The ends of a lost link have more urgent things to do."""
    net = pair()
    exchange = net.nodes[1].engine._exchange
    forgotten = Mock(wraps=exchange.ended)
    exchange.ended = forgotten
    net.until(net.all_full)
    assert forgotten.call_count == 1
    link, settings = net.nodes[1].links[2]
    net.link(1, replace(link, up=False), settings)
    assert net.nodes[1].said(AdjacencyChanged)[-1].state == "Down"
    assert forgotten.call_count == 1
