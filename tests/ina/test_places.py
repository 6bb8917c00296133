"""Which jobs have a place in a router: heads share its jobs and memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fared.extensions.ina.control.places import Demand, RouterPlaces, admitted

demands = st.lists(
    st.builds(Demand, st.integers(1, 4), st.integers(1, 60), st.integers(0, 100)),
    max_size=30,
    unique_by=lambda one: one.job_id,
)
places = st.builds(RouterPlaces, st.integers(0, 20), st.integers(0, 400))


def many(head: int, count: int, memory: int = 1) -> list[Demand]:
    return [Demand(head, 100 * head + at, memory) for at in range(count)]


def test_whoever_asks_for_little_gets_it():
    assert admitted(many(1, 100) + many(2, 3), RouterPlaces(16, 1000)) >= {200, 201, 202}
    assert admitted(many(1, 10, 90) + many(2, 1, 40), RouterPlaces(16, 100)) == {200}


def test_heads_that_ask_for_much_get_equal_parts():
    found = admitted(many(1, 100) + many(2, 100), RouterPlaces(16, 1000))
    assert [sum(job // 100 == head for job in found) for head in (1, 2)] == [8, 8]


def test_what_one_head_leaves_others_have():
    assert len(admitted(many(1, 100) + many(2, 3), RouterPlaces(16, 1000))) == 16


@given(demands, places)
def test_what_has_a_place_fits_and_nothing_else_would(asked, given_places):
    found = admitted(asked, given_places)
    taken = [one for one in asked if one.job_id in found]
    assert given_places.hold(taken)
    assert all(not given_places.hold([*taken, one]) for one in asked if one not in taken)


@given(demands, places)
def test_heads_with_room_for_a_fair_part_are_never_left_out(asked, given_places):
    heads = {one.head for one in asked}
    found = admitted(asked, given_places)
    for head in heads:
        own = [one for one in asked if one.head == head]
        part = RouterPlaces(given_places.jobs // len(heads), given_places.memory // len(heads))
        if part.hold(own):
            assert {one.job_id for one in own} <= found
