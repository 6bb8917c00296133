"""LSAs that only announce another available bandwidth wait for each other; all others do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.paths.te.attributes import TeAttributes
from fared.protocols.ospf.flooding.bandwidth import BandwidthChanges
from fared.protocols.ospf.packet.body import encode_body, opaque_link_state_id
from fared.protocols.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, MAX_AGE, Lsa, LsType, with_age
from fared.protocols.ospf.packet.opaque import OpaqueType, TeLink
from fared.protocols.ospf.settings import OspfSettings
from tests.ospf.harness import FAST, router_id
from tests.ospf.scripted import ack, make_lsa, update
from tests.ospf.star import Star

FULL = 1.25e9
ORIGINATOR = router_id(200)
COPIES = OspfSettings(router_id(5)).flood_pacing
"""For so long all wait, in seconds."""
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


def flooded(star: Star, known: int = 10) -> Star:
    """TE LSAs from 0 on are known everywhere, and acknowledged."""
    lsas = [te(number, 1) for number in range(known)]
    for first in range(0, known, 5):
        star.send(0, update(*lsas[first : first + 5]))
    star.at(star.now + 0.5)
    acknowledged(star)
    star.at(star.now + 1)
    star.sent.clear()
    return star


def acknowledged(star: Star) -> None:
    """Neighbors 1 and 2 acknowledge all that they were sent."""
    received = star.received()
    for number in (1, 2):
        star.send(number, ack(*received.get(number, ())))


class Announced(Star):
    """A star in which neighbor 0 announces bandwidths of LSAs 0 to 9."""

    def __init__(self, neighbors: int = 3) -> None:
        super().__init__(neighbors, PATIENT)
        self.number = 1
        """Of the last change."""
        flooded(self)

    def next(self) -> Lsa:
        """The next of them changes."""
        self.number += 1
        return te(self.number % 10, self.number, available_bandwidth=float(self.number))

    def announce(self, rate: int, seconds: float) -> None:
        """They change, so many a second; what neighbors are sent is acknowledged at the end."""
        for _ in range(round(rate * seconds)):
            self.send(0, update(self.next()))
            self.at(self.now + 1 / rate)

    def busy(self) -> Announced:
        """So many have changed that they wait for each other; nothing waits any longer."""
        self.announce(1000, 1.0)
        self.at(self.now + 0.3)
        acknowledged(self)
        self.sent.clear()
        return self

    def times(self, neighbor: int) -> list[float]:
        """When a neighbor was sent updates."""
        return [at for at, to, packet in self.sent if to == neighbor and packet.payload[1] == 4]


def test_few_changed_bandwidths_wait_for_copies_only():
    star = Announced()
    came = []
    for _ in range(60):
        came.append(star.now)
        star.send(0, update(star.next()))
        star.at(star.now + 1 / 30)
    assert star.times(1) == pytest.approx([at + COPIES for at in came])
    assert len(star.received()[2]) == 60


def test_copies_that_come_meanwhile_from_the_neighbors_take_them_back():
    star = Announced()
    for _ in range(60):
        lsa = star.next()
        star.send(0, update(lsa))
        star.at(star.now + COPIES / 2)
        star.send(1, update(lsa))
        star.at(star.now + 1 / 30)
    received = star.received()
    assert 1 not in received
    assert len(received[2]) == 60


def test_as_many_that_change_in_the_same_moment_every_second_wait_no_longer():
    star = Announced()
    for _ in range(5):
        star.at(star.now + 1)
        star.sent.clear()
        began = star.now
        for _ in range(6):
            star.send(0, update(*(star.next() for _ in range(10))))
            star.at(star.now + 0.006)
        assert max(star.times(1)) - began < 0.045


def test_the_more_change_the_longer_they_wait():
    gaps = []
    for rate in (90, 110, 130, 150, 400):
        star = Announced()
        star.announce(rate, 6.0)
        times = star.times(1)[-10:]
        gaps.append((times[-1] - times[0]) / 9)
    assert gaps == sorted(gaps)
    assert gaps[0] < 0.03
    assert gaps[-1] == pytest.approx(0.1, abs=0.005)


def test_many_share_packets_as_full_as_they_can_be_and_none_is_lost():
    star = flooded(Star(3, PATIENT), known=400)
    for number in range(400):
        star.send(0, update(te(number, 2, available_bandwidth=float(number))))
        star.at(star.now + 0.0025)
    star.sent.clear()
    for number in range(400):
        star.send(0, update(te(number, 3, available_bandwidth=float(number + 1))))
        star.at(star.now + 0.0025)
    star.at(star.now + 0.2)
    sent = [body for to, body in star.updates() if to == 1]
    assert {lsa.header.key for body in sent for lsa in body.lsas} == {
        te(number, 3).header.key for number in range(400)
    }
    assert sum(len(body.lsas) for body in sent) / len(sent) >= 9


def test_after_a_quiet_time_they_wait_for_copies_only_again():
    star = Announced().busy()
    star.at(star.now + 5)
    began = star.now
    for _ in range(2):
        star.send(0, update(star.next()))
        star.at(star.now + 0.01)
    assert star.times(1) == pytest.approx([began + COPIES, began + 0.01 + COPIES])


def test_many_that_change_share_packets():
    star = Announced().busy()
    started = star.now
    for _ in range(10):
        star.send(0, update(star.next()))
        star.at(star.now + 0.005)
    star.at(star.now + 0.2)
    assert [at - started for at in star.times(1)] == pytest.approx([COPIES, COPIES + 0.1])
    assert len(star.received()[2]) == 10


def test_of_a_bandwidth_that_changes_twice_only_the_last_value_is_sent():
    star = Announced().busy()
    for change in range(6):
        star.send(0, update(te(0, 5000 + change, available_bandwidth=float(change))))
        star.at(star.now + 0.01)
    star.at(star.now + 0.2)
    numbers = [lsa.header.ls_sequence_number for lsa in star.received()[1]]
    assert numbers == [INITIAL_SEQUENCE_NUMBER + 5000, INITIAL_SEQUENCE_NUMBER + 5005]


def test_a_lost_link_is_not_held_back_by_bandwidths():
    star = Announced().busy()
    star.send(0, update(star.next()))
    star.send(0, update(star.next()))
    star.received()
    star.send(0, update(make_lsa(router_id(201)), te(2, 5000, max_bandwidth=1.0)))
    assert len(star.received()[1]) == 2


def test_what_a_neighbor_sends_meanwhile_is_not_sent_to_it():
    star = Announced().busy()
    star.send(0, update(star.next()))
    star.at(star.now + COPIES)
    second = star.next()
    star.send(0, update(second))
    star.received()
    star.send(1, update(second))
    star.at(star.now + 0.3)
    received = star.received()
    assert 1 not in received
    assert len(received[2]) == 1
    assert star.retransmissions(1) == 1  # the first one
