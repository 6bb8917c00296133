"""Copies that neighbors send at the same time are processed at once, with the effect of each."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.protocols.igp.events import PacketReceived, SendPacket
from fared.protocols.ospf.flooding.retransmit import Retransmitter
from fared.protocols.ospf.packet.codec import decode_packet, encode_packet
from fared.protocols.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, Lsa
from fared.protocols.ospf.packet.packets import LsAck, LsUpdate
from tests.ospf.harness import router_id
from tests.ospf.scripted import ALL_SPF, OURS, ack, make_lsa, update
from tests.ospf.star import Star

NEIGHBORS = 5


def lsa(number: int, instance: int = 0) -> Lsa:
    return make_lsa(router_id(200 + number), INITIAL_SEQUENCE_NUMBER + instance)


BODIES = [
    update(lsa(0)),
    update(lsa(0), lsa(1)),
    update(lsa(1), lsa(2), lsa(3)),
    update(lsa(0, 1), lsa(2)),
    update(lsa(2, 1)),
    ack(lsa(0)),
    ack(lsa(1), lsa(0, 1)),
]
PACKETS = st.lists(
    st.tuples(st.integers(0, NEIGHBORS - 1), st.integers(0, len(BODIES) - 1)), max_size=30
)


def packet(number: int, body) -> PacketReceived:
    payload = encode_packet(router_id(100 + number), 0, body)
    return PacketReceived(number + 2, OURS + 2 * number + 1, ALL_SPF, payload, 1)


def outcome(star: Star) -> tuple:
    """What the router holds and counts, and what it sends within two seconds."""
    lengths = star.engine.instance.retransmissions()
    lists = [(n.interface.ifindex, n.state, length) for n, length in lengths.items()]
    counted = star.engine.counters.lsdb.copy()
    star.at(star.now + 2.0)
    return lists, counted, sent(star)


def sent(star: Star) -> Counter:
    """LSAs and acknowledgments by neighbor; in which packets does not matter."""
    found: Counter = Counter()
    for _, number, each in star.sent:
        assert isinstance(each, SendPacket)
        body = decode_packet(each.payload).body
        if isinstance(body, LsUpdate):
            found.update((number, one.raw[2:]) for one in body.lsas)
        elif isinstance(body, LsAck):
            found.update((number, one) for one in body.lsa_headers)
    return found


@given(st.lists(PACKETS, max_size=3))
def test_packets_that_arrive_together_have_the_effect_of_each_by_itself(batches):
    together, apart = Star(NEIGHBORS), Star(NEIGHBORS)
    for batch in batches:
        packets = [packet(number, BODIES[body]) for number, body in batch]
        together.engine.receive(iter(packets), together.now)
        for each in packets:
            apart.engine.handle(each, apart.now)
        for star in (together, apart):
            star.take_outputs()
            star.at(star.now + 0.002)
    assert outcome(together) == outcome(apart)


@pytest.fixture
def listed(monkeypatch) -> list[int]:
    """How many neighbors each operation takes an LSA off the lists of."""
    found: list[int] = []
    acknowledged = Retransmitter.acknowledged

    def counted(self, entry, neighbors) -> None:
        found.append(neighbors.bit_count())
        acknowledged(self, entry, neighbors)

    monkeypatch.setattr(Retransmitter, "acknowledged", counted)
    return found


def test_an_update_that_all_neighbors_send_takes_its_lsas_off_their_lists_at_once(listed):
    star = Star(NEIGHBORS)
    star.send(0, update(lsa(0), lsa(1)))
    copies = [packet(number, update(lsa(0), lsa(1))) for number in range(1, NEIGHBORS)]
    listed.clear()
    star.engine.receive(iter(copies), star.now)
    assert listed == [NEIGHBORS - 1, NEIGHBORS - 1]
    assert star.engine.counters.lsdb["duplicate"] == 2 * (NEIGHBORS - 1)


def test_copies_count_although_a_packet_among_them_cannot_be_processed():
    star = Star(3)
    star.send(0, update(lsa(0)))
    before = star.retransmissions(1)

    def packets():
        yield packet(1, update(lsa(0)))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        star.engine.receive(packets(), star.now)
    assert star.retransmissions(1) == before - 1
