"""What a flood takes packets, wakeups and turns for: LSAs and acknowledgments go with others."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.protocols.igp.events import PacketReceived
from fared.protocols.ospf.packet.bodies import RouterLink, RouterLinkType
from fared.protocols.ospf.packet.codec import decode_packet, encode_packet
from fared.protocols.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, Lsa, with_age
from fared.protocols.ospf.packet.packets import LsAck, LsUpdate
from tests.ospf.harness import FAST, router_id
from tests.ospf.scripted import ALL_SPF, OURS, ack, make_lsa, update
from tests.ospf.star import Star

QUIET = replace(FAST, rxmt_interval=5, router_dead_interval=4000, hello_interval=1000)
"""No hello is due in the time of a test."""
ORIGINATOR = router_id(200)
MAX_AGE = 3600
TE_BODY = bytes.fromhex("00010004 0aff00c8")
"""A router address TLV."""


def router_lsa(number: int, *adjacent: int) -> Lsa:
    """The router LSA of a router beyond some of our neighbors."""
    links = [
        RouterLink(
            link_id=router_id(100 + other),
            link_data=number,
            link_type=RouterLinkType.POINT_TO_POINT,
            metric=10,
        )
        for other in adjacent
    ]
    return make_lsa(ORIGINATOR, INITIAL_SEQUENCE_NUMBER + number, links=links)


def te_lsa() -> Lsa:
    return make_lsa(ORIGINATOR, ls_type=10, lsid=1 << 24 | 10, body=TE_BODY)


def star(neighbors: int) -> Star:
    """Neighbors in state Full that have acknowledged what the router originates."""
    made = Star(neighbors, QUIET)
    made.at(made.now + 3.0)
    for _, packet in made.updates():
        for number in range(neighbors):
            made.send(number, LsAck(tuple(lsa.header for lsa in packet.lsas)))
    made.at(made.now + 1.0)
    made.sent.clear()
    return made


def bodies(made: Star, number: int, kind: type) -> list:
    """The packets of a kind sent to a neighbor, with their times."""
    found = ((at, decode_packet(p.payload).body) for at, to, p in made.sent if to == number)
    return [(at, body) for at, body in found if isinstance(body, kind)]


def hear(made: Star, number: int, body: LsAck) -> None:
    """Pass a packet to the engine, and leave its consequences to the next turn."""
    payload = encode_packet(router_id(100 + number), 0, body)
    packet = PacketReceived(number + 2, OURS + 2 * number + 1, ALL_SPF, payload, 1)
    made.engine.handle(packet, made.now)


def test_a_flushed_te_lsa_goes_in_the_packet_of_the_router_lsa_that_withdraws_its_link():
    made = star(3)
    made.send(0, update(router_lsa(0, 0, 2), te_lsa()))
    made.at(made.now + 3.0)
    for number in (1, 2):
        made.send(number, ack(router_lsa(0, 0, 2), te_lsa()))
    made.at(made.now + 3.0)
    made.sent.clear()
    # neighbor 2 is adjacent to the originator, 1 is not
    made.send(0, update(router_lsa(1, 0, 2), with_age(te_lsa(), MAX_AGE)))
    ((_, sent),) = bodies(made, 1, LsUpdate)
    assert [lsa.header.ls_type for lsa in sent.lsas] == [1, 10]
    assert not bodies(made, 2, LsUpdate)
    began = made.now
    made.at(began + 0.2)
    assert len(bodies(made, 1, LsUpdate)) == 1
    ((at, late),) = bodies(made, 2, LsUpdate)
    assert began < at <= began + 0.1
    assert [lsa.header.ls_type for lsa in late.lsas] == [1, 10]


@pytest.mark.rfc("RFC 2328 §13.5")
def test_delayed_acknowledgments_go_with_deferred_copies():
    """Neighbors 1 and 2 receive the LSA from its originator, so their copies wait."""
    made = star(3)
    began = made.now
    made.send(0, update(router_lsa(0, 1, 2)))
    made.at(began + 0.2)
    ((copied, _),) = bodies(made, 1, LsUpdate)
    ((acknowledged, _),) = bodies(made, 0, LsAck)
    assert began + 0.05 <= copied == acknowledged <= began + 0.1


def test_acknowledgments_that_wait_for_a_timer_are_not_looked_at_before_a_packet_is_full():
    made = star(1)
    began = made.now
    made.send(0, update(router_lsa(0)))
    waiting = made.engine.instance.unsent
    for _ in range(3):
        hear(made, 0, update(router_lsa(0)))
        assert not waiting
        made.take_outputs()
    full = [make_lsa(ORIGINATOR + number) for number in range(1, 73)]
    hear(made, 0, update(*full))
    assert waiting
    made.take_outputs()
    made.at(began + 0.05)
    assert [len(body.lsa_headers) for _, body in bodies(made, 0, LsAck)] == [72, 4]
    made.send(0, update(router_lsa(0)))
    made.at(began + 0.2)
    assert [len(body.lsa_headers) for _, body in bodies(made, 0, LsAck)] == [72, 4, 1]


def test_an_acknowledgment_leaves_nothing_to_do_until_the_last_one():
    made = star(3)
    made.send(0, update(router_lsa(0)))
    made.at(made.now + 0.3)
    while made.engine.take_outputs():
        pass
    assert made.engine.settled
    waiting = made.engine.next_deadline()
    hear(made, 1, ack(router_lsa(0)))
    assert made.engine.settled
    assert made.retransmissions(1) == 0
    assert made.retransmissions(2) == 1
    hear(made, 2, ack(router_lsa(0)))
    assert made.retransmissions(2) == 0
    assert made.engine.next_deadline() != waiting  # nothing is retransmitted
    assert not made.engine.settled


@pytest.mark.rfc("RFC 2328 §14")
def test_the_last_acknowledgment_of_a_flushed_lsa_removes_it():
    made = star(2)
    made.send(0, update(router_lsa(0)))
    made.send(1, ack(router_lsa(0)))
    flushed = with_age(router_lsa(0), MAX_AGE)
    made.send(0, update(flushed))
    made.at(made.now + 1.0)
    area = next(iter(made.engine.instance.areas.values()))
    held = [entry for entry in area.lsdb if entry.key.advertising_router == ORIGINATOR]
    assert len(held) == 1
    hear(made, 1, ack(flushed))
    assert not made.engine.settled
    made.take_outputs()
    assert not [entry for entry in area.lsdb if entry.key.advertising_router == ORIGINATOR]


def test_an_acknowledgment_with_an_error_is_reported():
    made = star(2)
    payload = bytearray(encode_packet(router_id(100), 0, ack(router_lsa(0))))
    payload[-1] ^= 1
    packet = PacketReceived(2, OURS + 1, ALL_SPF, bytes(payload), 1)
    made.engine.handle(packet, made.now)
    assert not made.engine.settled
    assert made.engine.counters.errors["checksum"] == 1
