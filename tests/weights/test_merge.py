"""Vectors that share a group: the least harm, and no other moves when one changes a little."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.paths.weights.merge import (
    AT_ONCE,
    MORE_HARM,
    SLACK,
    assign,
    lost,
    merge_vectors,
    shares_of,
)
from fared.paths.weights.quantise import quantise_rows


def fine(shares):
    return quantise_rows(shares * 1e11, 65535, 0.0, 0)


def chip(shares):
    return quantise_rows(shares * 1e11, 255, 0.0, 0)


def groups_of(found):
    return sum((found.given[at] > 0).sum() > 1 for at in set(found.group.tolist()))


def partitions(items, most):
    """All ways to put items into at most ``most`` groups."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:], most):
        for at in range(len(rest)):
            yield [*rest[:at], [items[0], *rest[at]], *rest[at + 1 :]]
        if len(rest) < most:
            yield [[items[0]], *rest]


def least_harm(weights, counts, most):
    """The oracle: the best of all partitions, each group with what its shares have in common."""
    shares = shares_of(weights)
    return min(
        sum(counts[part].sum() * (1 - shares[part].min(axis=0).sum()) for part in parts)
        for parts in partitions(list(range(len(weights))), most)
    )


full = st.lists(st.lists(st.integers(1, 30), min_size=3, max_size=3), min_size=2, max_size=6)
mixed = st.lists(
    st.lists(st.integers(0, 30), min_size=5, max_size=5).filter(
        lambda row: sum(map(bool, row)) > 1
    ),
    min_size=2,
    max_size=12,
)
COUNTS = st.lists(st.integers(1, 9), min_size=12, max_size=12)


@settings(max_examples=60, deadline=None)
@given(full, COUNTS)
def test_one_group_less_costs_as_little_as_any_pair_does(rows, counts):
    weights, routes = np.array(rows), np.array(counts[: len(rows)])
    most = len(rows) - 1
    found = merge_vectors(weights, routes, most, fine)
    best = least_harm(weights, routes, most)
    assert len(set(found.group.tolist())) <= most
    # A representative is exact for a lone vector, and at least the common part for others.
    assert found.harm <= best + 1e-3 * routes.sum()


@settings(max_examples=60, deadline=None)
@given(full, COUNTS, st.integers(1, 4))
def test_joining_two_at_a_time_costs_little_more_than_the_best_partition(rows, counts, most):
    weights, routes = np.array(rows), np.array(counts[: len(rows)])
    found = merge_vectors(weights, routes, most, fine)
    assert found.harm <= 2 * least_harm(weights, routes, most) + 1e-3 * routes.sum()


@settings(max_examples=80, deadline=None)
@given(mixed, COUNTS, st.integers(1, 6))
def test_next_hops_are_lost_only_if_there_are_more_sets_than_groups(rows, counts, most):
    weights = np.array(rows)
    found = assign(weights, np.array(counts[: len(rows)]), most, chip)
    given_ = found.given[found.group]
    assert groups_of(found) <= most
    assert (given_.sum(axis=1) > 0).all()
    assert not (given_[weights == 0] > 0).any(), "another's next hop may lead nowhere"
    if len({tuple(row) for row in (weights > 0).tolist()}) <= most:
        assert (given_[weights > 0] > 0).all()


def test_what_sets_share_is_left_and_else_the_greatest_next_hop():
    counts = np.array([1, 1])
    both = merge_vectors(np.array([[1, 1, 1, 0], [0, 1, 1, 1]]), counts, 1, chip)
    assert both.given[both.group].tolist() == [[0, 1, 1, 0]] * 2
    assert both.harm == pytest.approx(2 / 3)
    apart = merge_vectors(np.array([[3, 1, 0, 0], [0, 0, 1, 1]]), counts, 1, chip)
    assert apart.given[apart.group].tolist() == [[1, 0, 0, 0], [0, 0, 1, 1]]
    assert apart.harm == pytest.approx(1 / 4)


def test_many_routes_keep_their_own_weights():
    weights = np.array([[100, 100], [100, 90], [100, 80]])
    found = merge_vectors(weights, np.array([1000, 1, 1]), 2, chip)
    assert lost(shares_of(weights), found.given[found.group])[0] == 0.0


def random_vectors(seed, size=40, members=8):
    return np.random.default_rng(seed).integers(20, 256, (size, members))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 39), st.integers(0, 7), st.integers(-3, 3))
def test_a_small_change_of_one_vector_moves_no_other(seed, changed, member, by):
    weights, counts = random_vectors(seed), np.ones(40, np.int64)
    before = assign(weights, counts, 12, chip)
    weights[changed, member] += by
    group = before.group.copy()
    group[changed] = -1
    after = assign(weights, counts, 12, chip, before._replace(group=group))
    others = np.arange(40) != changed
    was, is_ = before.given[before.group][others], after.given[after.group][others]
    left_alone = (before.group == before.group[changed]).sum() == 2
    moved = (was != is_).any(axis=1).sum()
    # One that is alone in its group now gets its own weights: it loses nothing any more.
    assert moved <= left_alone
    assert groups_of(after) <= 12


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000))
def test_present_groups_never_cost_much_more_than_others_would(seed):
    rng = np.random.default_rng(seed)
    weights, counts = random_vectors(seed), rng.integers(1, 50, 40)
    known = assign(weights, counts, 12, chip)
    for _ in range(12):
        at = rng.integers(0, 40, 5)
        weights[at] = rng.integers(20, 256, (5, 8))
        group = known.group.copy()
        group[at] = -1
        known = assign(weights, counts, 12, chip, known._replace(group=group))
        assert groups_of(known) <= 12
        harm = counts @ lost(shares_of(weights), known.given[known.group])
        assert harm == pytest.approx(known.harm)
        assert known.harm <= known.reference * (1 + MORE_HARM) + SLACK * counts.sum()


def test_free_groups_go_to_those_that_lose_most():
    weights, counts = random_vectors(3), np.ones(40, np.int64)
    known = assign(weights, counts, 12, chip)
    more = assign(weights, counts, 20, chip, known)
    assert groups_of(more) == 20
    assert more.harm < known.harm
    whole = assign(weights, counts, 40, chip, known)
    assert whole.harm == 0.0


def test_the_order_of_vectors_does_not_matter():
    weights, counts = random_vectors(5), np.arange(1, 41)
    order = np.random.default_rng(1).permutation(40)
    one, other = (
        merge_vectors(w, c, 9, chip)
        for w, c in ((weights, counts), (weights[order], counts[order]))
    )
    np.testing.assert_array_equal(one.given[one.group][order], other.given[other.group])


def test_more_vectors_than_are_compared_at_once():
    weights = np.random.default_rng(2).integers(100, 256, (3 * AT_ONCE, 4))
    found = merge_vectors(weights, np.ones(len(weights), np.int64), 64, chip)
    assert groups_of(found) <= 64
    assert found.harm < 0.15 * len(weights)
    sets = np.array([[a, b] for a, b in itertools.combinations(range(40), 2)])
    pairs = np.zeros((len(sets), 40), np.int64)
    pairs[np.arange(len(sets))[:, None], sets] = 1
    few = merge_vectors(pairs, np.ones(len(pairs), np.int64), 64, chip)
    assert groups_of(few) <= 64
    assert (few.given[few.group].sum(axis=1) > 0).all()
