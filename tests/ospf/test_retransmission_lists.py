"""Link state retransmission lists as bitmaps: equal to a list for each neighbor, at any time."""

from __future__ import annotations

import sys

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.protocols.ospf.packet.bodies import RouterLink, RouterLinkType
from fared.protocols.ospf.packet.codec import decode_packet
from fared.protocols.ospf.packet.lsa import INITIAL_SEQUENCE_NUMBER, MAX_AGE, Lsa, with_age
from fared.protocols.ospf.packet.packets import LsUpdate
from tests.ospf.harness import BACKBONE, FAST, router_id
from tests.ospf.scripted import ack, make_lsa, update
from tests.ospf.star import Star

NEIGHBORS, ORIGINATORS = 4, 2
RXMT = 2.0
PATIENT = replace(FAST, rxmt_interval=RXMT, router_dead_interval=4000, hello_interval=1000)
STEPS = ("new", "new", "same", "ack", "ack", "old ack", "flush", "lost", "back", "wait")
steps = st.lists(
    st.tuples(
        st.sampled_from(STEPS), st.integers(0, NEIGHBORS - 1), st.integers(0, ORIGINATORS - 1)
    ),
    min_size=15,
    max_size=50,
)


def instance(originator: int, number: int, age: int = 1) -> Lsa:
    """An LSA of a router adjacent to neighbors 0 and 1, to which copies are deferred."""
    links = [
        RouterLink(
            link_id=router_id(100 + other),
            link_data=number,
            link_type=RouterLinkType.POINT_TO_POINT,
            metric=10,
        )
        for other in (0, 1)
    ]
    sequence = INITIAL_SEQUENCE_NUMBER + number
    return make_lsa(router_id(200 + originator), sequence, links=links, age=age)


class Naive:
    """The lists as RFC 2328 describes them, one for each neighbor, beside the engine."""

    def __init__(self) -> None:
        self.star = Star(NEIGHBORS, PATIENT)
        self.lists: list[dict[int, Lsa]] = [{} for _ in range(NEIGHBORS)]
        self.full = set(range(NEIGHBORS))
        self.numbers = [0] * ORIGINATORS
        self.newest: dict[int, Lsa] = {}

    def flood(self, sender: int, originator: int, lsa: Lsa) -> None:
        """§13.3 (1): on the lists of all but the sender; §13 (5)(c): the old instance on none."""
        self.newest[originator] = lsa
        for number in range(NEIGHBORS):
            self.lists[number].pop(originator, None)
            if number in self.full and number != sender:
                self.lists[number][originator] = lsa
        self.star.send(sender, update(lsa))

    def step(self, what: str, number: int, originator: int) -> None:
        newest = self.newest.get(originator)
        if what == "wait":
            self.star.at(self.star.now + 0.3)
        elif what == "back":
            self.back(number)
        elif number not in self.full:
            return
        elif what == "new":
            self.numbers[originator] += 1
            self.flood(number, originator, instance(originator, self.numbers[originator]))
        elif what == "lost":
            self.full.remove(number)
            self.lists[number].clear()
            self.star.greet(number)
        elif newest is None:
            return
        elif what == "flush":
            if newest.header.ls_age < MAX_AGE:
                self.flood(number, originator, with_age(newest, MAX_AGE))
        elif what == "old ack":
            # of its predecessor, or of what has been flushed since
            before = self.numbers[originator] - (newest.header.ls_age < MAX_AGE)
            self.star.send(number, ack(instance(originator, before)))
        else:
            self.lists[number].pop(originator, None)
            self.star.send(number, update(newest) if what == "same" else ack(newest))

    def back(self, number: int) -> None:
        """§10.3, NegotiationDone: MaxAge LSAs in the database go on the list."""
        if number in self.full:
            return
        flushed = {
            originator: lsa
            for other in self.lists
            for originator, lsa in other.items()
            if lsa.header.ls_age == MAX_AGE
        }
        self.full.add(number)
        self.lists[number].update(flushed)
        self.star.to_full(number)

    def kept(self) -> list[dict[int, Lsa]]:
        """The lists that the engine keeps."""
        instance_ = self.star.engine.instance
        links = [instance_.interfaces[number + 2] for number in range(NEIGHBORS)]
        neighbors = [next(iter(link.neighbors.values())) for link in links]
        listed = [
            entry
            for area in instance_.areas.values()
            for entry in area.lsdb.listed.values()
            if entry.key.advertising_router >= router_id(200)
        ]
        return [
            {
                entry.key.advertising_router - router_id(200): entry.lsa
                for entry in listed
                if entry.unacknowledged & neighbor.bit
            }
            for neighbor in neighbors
        ]


def sent_to(star: Star, number: int) -> list[Lsa]:
    """The LSAs in the updates that a neighbor was sent; they are not taken."""
    bodies = (decode_packet(p.payload).body for _, to, p in star.sent if to == number)
    return [lsa for body in bodies if isinstance(body, LsUpdate) for lsa in body.lsas]


def of_test(lsas) -> set:
    return {
        (lsa.header.key, lsa.header.ls_sequence_number)
        for lsa in lsas
        if lsa.header.advertising_router >= router_id(200)
    }


@settings(max_examples=75)
@given(steps)
def test_bitmaps_equal_a_list_for_each_neighbor(sequence):
    naive = Naive()
    for step in sequence:
        naive.step(*step)
        assert naive.kept() == naive.lists


@settings(max_examples=50)
@given(steps)
def test_exactly_the_listed_lsas_are_retransmitted(sequence):
    naive = Naive()
    for step in sequence:
        naive.step(*step)
    star = naive.star
    star.received()
    star.at(star.now + 0.2)
    for number in (0, 1):  # copies to these are deferred, and not sent once acknowledged
        copies = [lsa for lsa in sent_to(star, number) if lsa.header.ls_age < MAX_AGE]
        assert of_test(copies) <= of_test(naive.lists[number].values())
    star.received()
    star.at(star.now + 1.3 * RXMT)
    received = star.received()
    for number in range(NEIGHBORS):
        assert of_test(received.get(number, ())) == of_test(naive.lists[number].values())


def test_a_bit_is_given_to_another_neighbor_only_when_no_lsa_has_it_any_more():
    naive = Naive()
    naive.step("new", 0, 0)
    naive.step("lost", 3, 0)
    naive.step("back", 3, 0)
    naive.star.received()
    naive.star.at(naive.star.now + 2 * RXMT)
    received = naive.star.received()
    assert of_test(received[2])
    assert not of_test(received.get(3, ()))


def test_the_flood_of_many_lsas_is_acknowledged_without_a_timer_left():
    star = Star(4, PATIENT)
    lsas = [make_lsa(router_id(300 + number)) for number in range(200)]
    star.send(0, *(update(*lsas[at : at + 20]) for at in range(0, 200, 20)))
    star.at(star.now + 0.5)
    received = star.received()
    assert [len(of_test(received[number])) for number in (1, 2, 3)] == [200, 200, 200]
    own = [entry.lsa for entry in star.engine.instance.areas[BACKBONE].lsdb]
    for number in range(4):
        star.send(number, ack(*own))
    assert all(star.retransmissions(number) == 0 for number in range(4))
    (area,) = star.engine.instance.areas.values()
    assert sys.getsizeof(area.lsdb.listed) == sys.getsizeof({})  # nor its table
    assert not star.engine._flooding._retransmitter._last
    star.at(star.now + 2 * RXMT)
    assert star.received() == {}
