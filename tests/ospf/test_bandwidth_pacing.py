"""LSAs that only announce another available bandwidth wait for each other; all others do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.ospf.flooding.bandwidth import BandwidthChanges
from fared.ospf.packet.body import encode_body, opaque_link_state_id
from fared.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, MAX_AGE, Lsa, LsType, with_age
from fared.ospf.packet.opaque import OpaqueType, TeLink
from fared.te.attributes import TeAttributes
from tests.ospf.harness import FAST, router_id
from tests.ospf.scripted import ack, make_lsa, update
from tests.ospf.star import Star

FULL = 1.25e9
ORIGINATOR = router_id(200)
PATIENT = replace(FAST, rxmt_interval=5.0, router_dead_interval=4000, hello_interval=1000)
LINK = TeLink(
    link_type=1,
    link_id=router_id(201),
    local_addresses=(1,),
    remote_addresses=(2,),
    attributes=TeAttributes(
        te_metric=10,
        max_bandwidth=FULL,
        max_reservable_bandwidth=FULL,
        unreserved_bandwidth=(FULL,) * 8,
        residual_bandwidth=FULL,
        available_bandwidth=FULL,
        utilized_bandwidth=0.0,
    ),
)


def te(opaque_id: int, number: int, **attributes) -> Lsa:
    link = replace(LINK, attributes=replace(LINK.attributes, **attributes))
    return make_lsa(
        ORIGINATOR,
        INITIAL_SEQUENCE_NUMBER + number,
        ls_type=LsType.OPAQUE_AREA,
        lsid=opaque_link_state_id(OpaqueType.TRAFFIC_ENGINEERING, opaque_id),
        body=encode_body(link),
    )


def only(old: Lsa, new: Lsa) -> bool:
    return BandwidthChanges().only(new.header.key, old.raw, new.raw)


def test_available_unreserved_and_utilized_bandwidth_are_recognized():
    changed = {
        "available_bandwidth": 5.0,
        "utilized_bandwidth": 7.0,
        "unreserved_bandwidth": tuple(map(float, range(8))),
    }
    for name, value in changed.items():
        assert only(te(1, 1), te(1, 2, **{name: value}))
    assert only(te(1, 1), te(1, 2, **changed))
    assert only(te(1, 1), te(1, 2))


@pytest.mark.parametrize(
    "changed",
    [
        {"max_bandwidth": 5.0},
        {"residual_bandwidth": 5.0},
        {"max_reservable_bandwidth": 5.0},
        {"te_metric": 11},
        {"available_bandwidth": None},
        {"delay": 100},
        {"max_bandwidth": 5.0, "available_bandwidth": 5.0},
    ],
)
def test_any_other_difference_is_not_one_of_bandwidth(changed):
    assert not only(te(1, 1), te(1, 2, **changed))
    assert not only(te(1, 1, **changed), te(1, 2))


def test_a_flushed_lsa_is_no_change_of_bandwidth():
    assert not only(te(1, 1), with_age(te(1, 1), MAX_AGE))
    assert not only(make_lsa(ORIGINATOR, 1), make_lsa(ORIGINATOR, 2))


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_any_bytes_are_judged(before: bytes, after: bytes):
    key = te(1, 1).header.key
    BandwidthChanges().only(key, bytes(20) + before, bytes(20) + after)


def flooded(star: Star) -> Star:
    """TE LSAs 0 to 9 are known everywhere, and acknowledged."""
    lsas = [te(number, 1) for number in range(10)]
    star.send(0, update(*lsas[:5]), update(*lsas[5:]))
    star.at(star.now + 0.5)
    for number in (1, 2):
        star.send(number, ack(*star.received().get(number, ())))
    star.at(star.now + 1)
    star.sent.clear()
    return star


def test_changed_bandwidths_share_packets_and_the_first_one_is_sent_at_once():
    star = flooded(Star(3, PATIENT))
    started = star.now
    for number in range(10):
        star.send(0, update(te(number, 2, available_bandwidth=float(number))))
        star.at(star.now + 0.005)
    star.at(star.now + 0.2)
    times = [at - started for at, to, packet in star.sent if to == 1 and packet.payload[1] == 4]
    assert times == pytest.approx([0.0, 0.1])
    assert len(star.received()[2]) == 10


def test_of_a_bandwidth_that_changes_twice_only_the_last_value_is_sent():
    star = flooded(Star(3, PATIENT))
    for change in range(6):
        star.send(0, update(te(0, 2 + change, available_bandwidth=float(change))))
        star.at(star.now + 0.01)
    star.at(star.now + 0.2)
    numbers = [lsa.header.ls_sequence_number for lsa in star.received()[1]]
    assert numbers == [INITIAL_SEQUENCE_NUMBER + 2, INITIAL_SEQUENCE_NUMBER + 7]


def test_a_lost_link_is_not_held_back_by_bandwidths():
    star = flooded(Star(3, PATIENT))
    star.send(0, update(te(0, 2, available_bandwidth=1.0)))
    star.send(0, update(te(1, 2, available_bandwidth=1.0)))
    star.received()
    star.send(0, update(make_lsa(router_id(201)), te(2, 2, max_bandwidth=1.0)))
    assert len(star.received()[1]) == 2


def test_what_a_neighbor_sends_meanwhile_is_not_sent_to_it():
    star = flooded(Star(3, PATIENT))
    star.send(0, update(te(0, 2, available_bandwidth=1.0)))
    second = te(1, 2, available_bandwidth=1.0)
    star.send(0, update(second))
    star.received()
    star.send(1, update(second))
    star.at(star.now + 0.3)
    received = star.received()
    assert 1 not in received
    assert len(received[2]) == 1
    assert star.view(1).retransmissions == 1  # the first one
