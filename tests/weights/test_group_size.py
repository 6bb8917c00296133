"""Weights within the bounds of a chip: the greatest weight, and the sum of a group."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.paths.weights.quantise import quantise_rows

MBPS = 1e6 / 8


def bounded(values, most, whole, tolerance=0.0):
    rows = np.array([values]) * MBPS
    return quantise_rows(rows, most, tolerance, 16, whole)[0].tolist()


def achieved(weights, values):
    """Throughput, in units of the capacities: the slowest member sets the pace."""
    load = max((q / w for q, w in zip(weights, values, strict=True) if q), default=0.0)
    return sum(weights) / load if load else 0.0


small = st.lists(st.integers(0, 40), min_size=1, max_size=4).filter(any)
capacities = st.lists(st.integers(0, 800_000), min_size=1, max_size=24).filter(any)
SUMS = st.integers(1, 9)


@settings(max_examples=150, deadline=None)
@given(small, st.integers(1, 5), SUMS)
def test_no_vector_within_the_bounds_carries_more(values, most, whole):
    weights = bounded(values, most, whole)
    candidates = itertools.product(
        *(range(min(most, whole) + 1) if value else (0,) for value in values)
    )
    best = max(achieved(q, values) for q in candidates if 0 < sum(q) <= whole)
    assert achieved(weights, values) == pytest.approx(best)


@settings(max_examples=150, deadline=None)
@given(capacities, st.sampled_from([1, 15, 255, 65535]), st.sampled_from([1, 24, 128, 512]))
def test_weights_are_within_the_bounds(values, most, whole):
    weights = bounded(values, most, whole, 0.005)
    assert 0 < sum(weights) <= whole
    assert max(weights) <= most
    assert all(v > 0 for v, w in zip(values, weights, strict=True) if w)


@settings(max_examples=150, deadline=None)
@given(capacities, st.integers(1, 600))
def test_the_sum_alone_loses_less_than_the_bound(values, whole):
    """D'Hondt: with a sum of S, n members lose at most n / (S + n)."""
    members = sum(value > 0 for value in values)
    part = achieved(bounded(values, 65535, whole), values) / sum(values)
    assert 1 - part <= members / (whole + members) + 1e-9


@settings(max_examples=100, deadline=None)
@given(capacities.filter(lambda v: len(set(v)) == len(v)), st.sampled_from([24, 128]), st.randoms())
def test_the_order_of_members_does_not_matter(values, whole, random):
    order = list(range(len(values)))
    random.shuffle(order)
    weights = bounded(values, 255, whole)
    assert bounded([values[at] for at in order], 255, whole) == [weights[at] for at in order]


@pytest.mark.parametrize(
    ("values", "most", "whole", "weights"),
    [
        ([100, 400, 400, 400], 255, 13, [1, 4, 4, 4]),  # it fits: exact
        ([100, 400, 400, 400], 255, 12, [0, 1, 1, 1]),
        ([100] * 4, 255, 3, [1, 1, 1, 0]),  # more members than entries: the first ones
        ([10, 4, 4, 4, 4], 1, 99, [1, 1, 1, 1, 1]),
        ([0, 7, 0], 255, 1, [0, 1, 0]),
    ],
)
def test_worked_examples(values, most, whole, weights):
    assert bounded(values, most, whole) == weights


def test_a_row_does_not_depend_on_the_other_rows():
    rows = np.random.default_rng(3).uniform(0, 50e9, (50, 20))
    together = quantise_rows(rows, 255, 0.005, 16, 128)
    for at in range(50):
        alone = quantise_rows(rows[at : at + 1], 255, 0.005, 16, 128)[0]
        np.testing.assert_array_equal(alone, together[at])


def test_a_sum_that_nothing_reaches_changes_nothing_that_is_exact():
    rows = np.array([[100, 400, 200], [25, 50, 0]]) * 1e9 / 8
    np.testing.assert_array_equal(quantise_rows(rows, max_sum=4096), quantise_rows(rows))
