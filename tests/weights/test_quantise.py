"""Integer weights: exact where they can be, rounded down where not, and never far off."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.paths.weights.quantise import dhondt, quantise_rows, reduce_weights

MBPS = 1e6 / 8


def quantise(*gbps: float, max_weight: int = 256, search: int = 16) -> list[int]:
    rows = np.array([gbps]) * 1e9 / 8
    return quantise_rows(rows, max_weight, search_up_to=search)[0].tolist()


def achieved_share(weights: tuple[int, ...], capacities: tuple[float, ...]) -> float:
    """Throughput with these weights relative to the sum of the capacities, 0..1."""
    load = max((q / w for q, w in zip(weights, capacities, strict=True) if q), default=0.0)
    return sum(weights) / load / sum(capacities) if load else 0.0


@pytest.mark.parametrize(
    ("gbps", "weights"),
    [
        ([100, 400, 400, 400], [1, 4, 4, 4]),
        ([150, 400, 400, 400], [3, 8, 8, 8]),
        ([10, 800], [1, 80]),
        ([0, 400, 400, 300], [0, 4, 4, 3]),
        ([1, 800], [0, 1]),
        ([25, 50, 100, 200, 400, 800], [1, 2, 4, 8, 16, 32]),
    ],
)
def test_usual_link_speeds(gbps, weights):
    assert quantise(*gbps) == weights


def test_sixteen_bits_keep_what_eight_leave_out():
    assert quantise(1, 800, max_weight=65535) == [1, 800]
    assert achieved_share((0, 1), (1, 800)) == pytest.approx(0.99875, abs=1e-5)


def test_the_tolerance_buys_smaller_numbers():
    weights = (333333, 400000, 123456, 398000)
    assert reduce_weights(weights, 256, 0.005) == (30, 36, 11, 36)
    assert reduce_weights(weights, 256, 0.0) == (165, 198, 61, 197)
    assert reduce_weights((399999, 400000), 256, 0.005) == (1, 1)


def test_a_tiny_member_is_left_out_rather_than_overloaded():
    """Nearest rounding to at least 1 would achieve 0.45 % here."""
    weights = reduce_weights((7, 400000, 400000), 256)
    assert weights == (0, 1, 1)
    assert achieved_share(weights, (7, 400000, 400000)) > 0.9999


@pytest.mark.parametrize(
    ("kbps", "weights"),
    [([800, 200], [4, 1]), ([25000, 6250], [4, 1]), ([1.5, 1], [3, 2]), ([8e6, 2e6], [4, 1])],
)
def test_slow_lab_links_keep_their_ratio(kbps, weights):
    rows = np.array([kbps]) * 1e3 / 8
    assert quantise_rows(rows)[0].tolist() == weights


def test_what_nothing_limits_takes_all():
    assert quantise(float("inf")) == [1]
    assert quantise(float("inf"), float("inf")) == [1, 1]
    assert quantise(100, float("inf")) == [0, 1]


def test_a_row_does_not_depend_on_the_other_rows():
    random = np.random.default_rng(3)
    rows = random.uniform(0, 50e9, (50, 20))
    together = quantise_rows(rows)
    for at in range(50):
        np.testing.assert_array_equal(quantise_rows(rows[at : at + 1])[0], together[at])


capacities = st.lists(st.integers(0, 800_000), min_size=1, max_size=24).filter(any)


@settings(max_examples=150)
@given(capacities, st.sampled_from([16, 256, 65535]))
def test_floors_lose_less_than_the_bound(values, most):
    """Loss < n / (sum(q) + n) whatever the smallest member, for the quick and the thorough way."""
    for search in (0, 24):
        if search and most > 256:
            continue
        rows = np.array([values]) * MBPS
        weights = quantise_rows(rows, most, 0.0, search)[0].tolist()
        assert max(weights) <= most
        loss = 1 - achieved_share(tuple(weights), tuple(values))
        floors = [v * most // max(values) for v in values]
        assert loss < len(values) / (sum(floors) + len(values)) + 1e-9
        assert all(v > 0 for v, w in zip(values, weights, strict=True) if w)


@settings(max_examples=100)
@given(capacities, st.integers(1, 4096))
def test_buckets_are_all_given_out_and_proportional(values, buckets):
    shares = dhondt(tuple(map(float, values)), buckets)
    assert sum(shares) == buckets
    loss = 1 - achieved_share(shares, tuple(map(float, values)))
    assert loss <= len(values) / (buckets + len(values)) + 1e-9


def test_buckets_of_nothing():
    assert dhondt((0.0, 0.0), 8) == (0, 0)
    assert reduce_weights((0, 0)) == (0, 0)


@settings(max_examples=150)
@given(
    st.lists(
        st.sampled_from([0.0, 1e9, 2.5e9, 3.1e9, 12.5e9, 50e9, 49999998976.0, 125e3, 33.0]),
        min_size=1,
        max_size=24,
    ),
    st.sampled_from([1, 7, 256]),
    st.sampled_from([0.0, 0.005]),
)
def test_a_few_rows_come_out_as_they_would_among_many(row, max_weight, tolerance):
    alone = quantise_rows(np.array([row]), max_weight, tolerance)
    among = quantise_rows(np.array([row] * 200), max_weight, tolerance)
    assert (among == alone[0]).all()
