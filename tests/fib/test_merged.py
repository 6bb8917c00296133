"""A bound on groups: what the planner writes, and that no other route moves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.paths.fib.model import PutGroup, PutRoute
from fared.paths.fib.settings import FibSettings
from fared.paths.rib.model import NextHop, NextHopSet
from tests.fib.helpers import Bench, hop_key, hops, prefix, route

WHOLE = {1: 100, 2: 100, 3: 100, 4: 100}


def in_kernel(bench, number):
    path = bench.kernel.path(prefix(number))
    return {hop: weight for hop, weight in path.items() if weight}


def written(bench, number):
    return dict(bench.planner.written(bench.planner.routes[prefix(number)].nexthops))


def used_groups(bench):
    """The distinct vectors of several next hops: groups of a chip."""
    paths = {frozenset(bench.kernel.path(at).items()) for at in bench.kernel.state.routes}
    return {path for path in paths if len(path) > 1}


def filled(**bounds):
    """Eight vectors over the same next hops, of ten routes each."""
    bench = Bench(**bounds)
    for number in range(8):
        bench.put(range(10 * number, 10 * number + 10), {**WHOLE, 4: 100 - number})
    return bench


def test_routes_share_the_nearest_of_few_groups():
    bench = filled(max_groups=3)
    assert len(used_groups(bench)) == 3
    bench.wait(0.0)
    assert len(bench.kernel.state.groups) == 3
    for number in range(80):
        assert in_kernel(bench, number) == written(bench, number)
        assert set(in_kernel(bench, number)) == {hop_key(at) for at in WHOLE}


def test_without_a_need_every_vector_has_its_group():
    bench = filled(max_groups=8)
    assert len(used_groups(bench)) == 8
    assert in_kernel(bench, 75)[hop_key(4)] == 93


def test_a_small_change_writes_the_routes_that_change_and_no_others():
    bench = filled(max_groups=3)
    before = {number: in_kernel(bench, number) for number in range(80)}
    done = bench.put(range(30, 40), {**WHOLE, 4: 98})
    assert {op.prefix for op in done if isinstance(op, PutRoute)} <= {
        prefix(at) for at in range(30, 40)
    }
    assert not any(isinstance(op, PutGroup) for op in done)
    assert all(in_kernel(bench, at) == before[at] for at in range(80) if not 30 <= at < 40)


def test_a_new_set_of_next_hops_moves_routes_that_did_not_change():
    """Groups of the others are merged to make room, and their routes follow at once."""
    bench = filled(max_groups=3)
    bench.put(range(80, 90), {1: 1, 2: 1})
    assert in_kernel(bench, 85) == {hop_key(1): 1, hop_key(2): 1}
    assert len(used_groups(bench)) <= 3
    for number in range(90):
        assert in_kernel(bench, number) == written(bench, number)


def test_too_many_groups_are_removed_as_soon_as_the_kernel_has_answered():
    bench = filled(max_groups=3)
    bench.put(range(80, 90), {1: 1, 2: 1})
    bench.wait(0.0)
    assert len(bench.kernel.state.groups) <= 3


def test_withdrawn_vectors_give_their_groups_to_others():
    bench = filled(max_groups=3)
    bench.remove(range(20, 80))
    assert in_kernel(bench, 5) == dict.fromkeys(map(hop_key, WHOLE), 100)
    assert in_kernel(bench, 15) == written(bench, 15)
    assert in_kernel(bench, 15)[hop_key(4)] == 99


def test_another_bound_applies_to_all_routes_at_once():
    bench = filled()
    assert len(used_groups(bench)) == 8
    bench.carry_out(bench.planner.bound(FibSettings(max_groups=3), bench.now))
    assert len(used_groups(bench)) == 3
    bench.wait(0.0)
    assert len(bench.kernel.state.groups) == 3
    assert all(in_kernel(bench, at) == written(bench, at) for at in range(80))
    bench.carry_out(bench.planner.bound(FibSettings(), bench.now))
    assert len(used_groups(bench)) == 8
    assert in_kernel(bench, 75)[hop_key(4)] == 93
    assert bench.planner.bound(FibSettings(), bench.now) == []


def shared(*weights):
    """Neighbors behind one next hop, and one behind another."""
    (one,), (other,) = hops({1: 1}).hops, hops({2: 1}).hops
    made = [
        NextHop(1, "e1", 4, one.gateway, 10 + at, None, None, weight)
        for at, weight in enumerate(weights[:-1])
    ]
    last = NextHop(2, "e2", 4, other.gateway, 2, None, None, weights[-1])
    return NextHopSet((*made, last))


@pytest.mark.parametrize(
    ("bounds", "weights"),
    [({}, (400, 100)), ({"max_weight": 255}, (4, 1)), ({"max_weight": 3}, (3, 0))],
)
def test_neighbors_that_share_a_next_hop_stay_within_the_greatest_weight(bounds, weights):
    bench = Bench(**bounds)
    bench.update({prefix(1): route(1, shared(200, 200, 100))})
    found = in_kernel(bench, 1)
    assert (found[hop_key(1)], found.get(hop_key(2), 0)) == weights or bounds == {"max_weight": 3}
    assert max(found.values()) <= bounds.get("max_weight", 65535)
    assert found == written(bench, 1)


changes = st.lists(
    st.tuples(
        st.integers(0, 11),
        st.one_of(
            st.none(),
            st.dictionaries(st.integers(1, 5), st.integers(1, 40), min_size=1, max_size=5),
        ),
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(changes, st.integers(1, 5))
def test_the_kernel_always_has_what_is_written_within_the_bound(steps, most):
    bench = Bench(max_groups=most)
    for number, weights in steps:
        if weights is None:
            bench.remove([number])
        else:
            bench.put([number], weights)
        several = {written_ for at in bench.planner.routes if len(written_ := key(bench, at)) > 1}
        assert len(several) <= most
        for at in bench.planner.routes:
            wanted = {hop for hop, _ in bench.planner.routes[at].nexthops.key}
            if len(key(bench, at)) > 1:
                assert bench.kernel.path(at) == dict(key(bench, at))
            assert set(bench.kernel.path(at)) <= wanted
        bench.wait(0.0)
        single = [members for members in bench.kernel.state.groups.values() if len(members) == 1]
        assert len(bench.kernel.state.groups) - len(single) <= most


def key(bench, at):
    return bench.planner.written(bench.planner.routes[at].nexthops)
