"""Weights for few large flows: small paths get less than their share, not to finish last."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.extensions.lab.expected import expected_shares
from fared.paths.weights.adaptation import AdaptationSettings, ExponentialSmoother
from fared.paths.weights.few_flows import DEVIATIONS, skew_for_few_flows
from fared.paths.weights.quantise import quantise_rows

SPEEDS = st.sampled_from([0.0, 1e3, 2.5e9, 12.5e9, 25e9, 50e9, 100e9])
ROWS = st.lists(SPEEDS, min_size=1, max_size=20).filter(any)
FLOWS = st.integers(1, 100_000)
SLOW_LINK = (100.0, 100.0, 100.0, 20.0)


def skewed(capacities: list[float] | tuple[float, ...], flows: int) -> np.ndarray:
    return skew_for_few_flows(np.array([capacities]), flows)[0]


@given(ROWS, FLOWS)
def test_the_rule(capacities, flows):
    """What each path gets when chance is against it takes all of them equally long."""
    share = skewed(capacities, flows) / sum(capacities)
    there = np.array(capacities) > 0
    assert share.sum() == pytest.approx(1)
    assert not share[~there].any()
    count = share[there] * flows
    time = (count + DEVIATIONS * np.sqrt(count)) / np.array(capacities)[there]
    assert time == pytest.approx(np.full(len(time), time[0]), rel=1e-6)


@given(ROWS, FLOWS)
def test_the_computation_of_the_lab_gives_the_same_weights(capacities, flows):
    expected = expected_shares({str(at): value for at, value in enumerate(capacities)}, flows)
    assert skewed(capacities, flows) / sum(capacities) == pytest.approx(
        list(expected.values()), rel=1e-4, abs=1e-9
    )


@given(ROWS, FLOWS)
def test_the_order_stays_and_equal_paths_stay_exactly_equal(capacities, flows):
    share = skewed(capacities, flows)
    order = np.argsort(capacities, kind="stable")
    assert (np.diff(share[order]) >= 0).all()
    assert len(set(share.tolist())) <= len(set(capacities))


@given(ROWS, FLOWS)
def test_the_smaller_a_path_the_less_of_its_part_it_gets(capacities, flows):
    """The smallest never gets more than its part, the largest never less."""
    present = np.sort([c for c in capacities if c > 0])
    part = skewed(present.tolist(), flows) / present
    assert (np.diff(part) >= -1e-9).all()
    assert part[0] <= 1 + 1e-9
    assert part[-1] >= 1 - 1e-9


@given(ROWS)
def test_many_flows_are_spread_in_proportion(capacities):
    assert skewed(capacities, 10**18) == pytest.approx(capacities, rel=1e-3)


@given(st.lists(ROWS, min_size=1, max_size=6), FLOWS)
def test_a_row_does_not_depend_on_the_others(rows, flows):
    width = max(len(row) for row in rows)
    matrix = np.array([row + [0.0] * (width - len(row)) for row in rows])
    alone = [skew_for_few_flows(matrix[at : at + 1], flows)[0] for at in range(len(rows))]
    assert np.array_equal(skew_for_few_flows(matrix, flows), np.array(alone))


@pytest.mark.parametrize("capacities", [(25e9,), (0.0, 25e9, 0.0), (10.0,) * 64, (0.0, 0.0)])
def test_a_single_path_and_equal_paths_stay_as_they_are(capacities):
    assert skewed(capacities, 128).tolist() == list(capacities)


def test_weights_of_one_slow_link_of_four():
    """The slow one is to get 5.8 of 128 flows instead of 8; told of 10,000, nearly its part."""
    rows = np.array([SLOW_LINK]) * 1e6 / 8
    assert quantise_rows(skew_for_few_flows(rows, 128))[0].tolist() == [7, 7, 7, 1]
    assert skewed(SLOW_LINK, 128)[3] / 320 * 128 == pytest.approx(5.85, abs=0.01)
    assert quantise_rows(skew_for_few_flows(rows, 10_000))[0].tolist() == [11, 11, 11, 2]


@pytest.mark.parametrize(
    ("capacities", "flows"),
    [(SLOW_LINK, 128), ((4, 4, 4, 4, 4, 4, 4, 1), 128), ((10, 5, 5, 2, 1), 128)],
)
def test_flows_placed_at_random_end_sooner(capacities, flows):
    """By 20,000 seeded draws, whose medians are steps: numbers of flows are whole ones."""
    rng = np.random.default_rng(6)

    def completions(share: np.ndarray) -> np.ndarray:
        return (rng.multinomial(flows, share / share.sum(), 20_000) / capacities).max(axis=1)

    before, after = completions(np.array(capacities)), completions(skewed(capacities, flows))
    assert np.median(after) <= np.median(before)
    assert after.mean() < 0.98 * before.mean()


def test_128_flows_around_a_slow_link_end_sooner_in_the_median():
    """In units of the least time: from 1.175 to 1.15, and the worst tenth from 1.5 to 1.28."""
    rng = np.random.default_rng(6)
    rate = np.array(SLOW_LINK) / sum(SLOW_LINK)

    def completions(weights: list[int]) -> np.ndarray:
        draws = rng.multinomial(128, np.array(weights) / sum(weights), 20_000)
        return (draws / rate).max(axis=1) / 128

    before, after = completions([5, 5, 5, 1]), completions([7, 7, 7, 1])
    assert np.median(before) == pytest.approx(1.175)
    assert np.median(after) == pytest.approx(1.15)
    assert np.quantile(before, 0.9) == pytest.approx(1.5)
    assert np.quantile(after, 0.9) == pytest.approx(1.275)


def smoothing(*capacities: float) -> tuple[ExponentialSmoother, int, np.ndarray]:
    smoother = ExponentialSmoother(AdaptationSettings(), flows=128)
    columns = np.arange(len(capacities))
    smoother.widen(len(capacities))
    row = smoother.add()
    feed(smoother, row, capacities, capacities)
    return smoother, row, columns


def feed(smoother: ExponentialSmoother, row: int, capacity: tuple[float, ...], left) -> bool:
    columns = np.arange(len(capacity))
    return bool(smoother.feed(np.array([row]), columns, np.array([capacity]), np.array([left]))[0])


def test_weights_that_follow_load_are_adjusted_too():
    smoother, row, columns = smoothing(*SLOW_LINK)
    alone = skewed(SLOW_LINK, 128) / 320
    assert smoother.state(row, columns).smoothed == pytest.approx(alone)
    left = (100.0, 100.0, 50.0, 20.0)
    assert not feed(smoother, row, SLOW_LINK, left)
    assert smoother.state(row, columns).target == pytest.approx(skewed(left, 128) / 270)


def test_weights_are_adjusted_at_once_when_a_link_slows_down():
    """Capacity is a fact and not damped: shares are those of the capacities when nothing is
    sent."""
    smoother, row, columns = smoothing(100.0, 100.0, 100.0, 100.0)
    assert feed(smoother, row, SLOW_LINK, SLOW_LINK)
    expected = skewed(SLOW_LINK, 128) / 320
    assert smoother.state(row, columns).smoothed == pytest.approx(expected)
