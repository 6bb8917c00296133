"""The order in which packets take the next hops of a group."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from fared.paths.fib.round_robin import LONGEST, period_of, rotated, smooth

WEIGHTS = st.lists(st.integers(1, 65535), min_size=2, max_size=64)


def test_a_slow_link_stands_between_equal_ones():
    order = "".join("ABCD"[at] for at in smooth((1, 5, 5, 5)))
    assert order == "BCDBCDBCDABCDBCD"


def test_weights_are_divided_by_their_common_divisor():
    assert period_of((100, 400, 400, 400)) == (1, 4, 4, 4)


def test_a_single_next_hop_has_every_packet():
    assert smooth((0, 3)) == (1, 1, 1)


@given(st.lists(st.integers(0, 60), min_size=2, max_size=20).filter(any))
def test_a_period_has_every_count(counts: list[int]):
    assert Counter(smooth(tuple(counts))) == {at: n for at, n in enumerate(counts) if n}


@given(st.lists(st.integers(1, 60), min_size=2, max_size=20))
def test_at_any_time_each_has_had_its_share_to_less_than_one_packet(counts: list[int]):
    """Tijdeman's bound: 1 - 1 / (2n - 2) packets."""
    total, had = sum(counts), [0] * len(counts)
    bound = 1 - Fraction(1, 2 * len(counts) - 2)
    for turn, taken in enumerate(smooth(tuple(counts)), 1):
        had[taken] += 1
        for count, packets in zip(counts, had, strict=True):
            assert abs(packets - Fraction(turn * count, total)) <= bound


@given(WEIGHTS)
def test_a_long_period_is_shortened_and_no_share_is_off_by_half_a_point(weights: list[int]):
    """By the share of n packets in LONGEST at most, which half a point exceeds up to 2 next hops
    of each weight; with more, shares are small."""
    counts = period_of(weights)
    assert sum(counts) <= LONGEST
    for weight, count in zip(weights, counts, strict=True):
        exact = weight / sum(weights)
        assert count / sum(counts) <= exact * (1 + len(weights) / LONGEST) + 1 / LONGEST


@given(WEIGHTS.map(tuple), st.floats(0, 1, exclude_max=True))
def test_a_phase_changes_where_a_period_begins_and_nothing_else(weights, phase):
    order = smooth(period_of(weights))
    turned = rotated(order, phase)
    start = int(phase * len(order))
    assert turned[len(order) - start :] + turned[: len(order) - start] == order
