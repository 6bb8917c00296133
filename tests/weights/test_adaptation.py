"""Smoothing of shares: what is damped, what is not, and when weights go back to capacities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fared.paths.weights.adaptation import AdaptationSettings, ExponentialSmoother

TWO = np.array([0, 1])
THREE = np.array([0, 1, 2])


def array(*values: float) -> np.ndarray:
    return np.array(values, np.float64)


def feed(
    smoother: ExponentialSmoother,
    row: int,
    columns: np.ndarray,
    capacity: np.ndarray,
    left: np.ndarray,
) -> bool:
    """Feed one vector; whether facts changed."""
    return bool(smoother.feed(np.array([row]), columns, capacity[None], left[None])[0])


def vector(target: np.ndarray, **settings: float) -> tuple[ExponentialSmoother, int]:
    """Two equal members, programmed, that should be at ``target``."""
    smoother = ExponentialSmoother(AdaptationSettings(**settings))
    smoother.widen(3)
    row = smoother.add()
    assert feed(smoother, row, TWO, array(100, 100), array(100, 100))
    smoother.program(np.array([row]))
    assert not feed(smoother, row, TWO, array(100, 100), target)
    return smoother, row


def smoothed(smoother: ExponentialSmoother, row: int, columns: np.ndarray = TWO) -> list[float]:
    return smoother.state(row, columns).smoothed.tolist()


def test_a_new_vector_begins_at_its_target():
    smoother = ExponentialSmoother(AdaptationSettings())
    smoother.widen(2)
    row = smoother.add()
    assert feed(smoother, row, TWO, array(100, 100), array(75, 25))
    assert smoothed(smoother, row) == [0.75, 0.25]


def test_load_moves_shares_with_the_time_constant():
    """After one time constant 1/e of the way is left, in however many steps."""
    smoother, row = vector(array(75, 25))
    for _ in range(20):
        smoother.step(1.0)
    assert smoothed(smoother, row)[1] == pytest.approx(0.25 + 0.25 / math.e)


def test_without_a_time_constant_shares_follow_at_once():
    smoother, row = vector(array(75, 25), time_constant=0.0)
    smoother.step(1.0)
    assert smoothed(smoother, row) == [0.75, 0.25]


def test_where_loads_are_averaged_weights_are_damped_more():
    """Half of the averaging time is delay of the loop, of which the time constant is ten times."""
    settings = AdaptationSettings()
    assert settings.slowed(0.0) == 1.0
    assert settings.tau * settings.slowed(0.5) == pytest.approx(20.0)  # ten times 1.8 s is less
    assert settings.tau * settings.slowed(60.0) == pytest.approx(315.5)
    assert AdaptationSettings(time_constant=0.0).slowed(60.0) == 1.0


def test_the_time_constant_is_never_less_than_ten_loop_delays():
    settings = AdaptationSettings(time_constant=1.0, measure_period=4.0)
    assert settings.loop_delay == pytest.approx(3.05)
    assert settings.tau == pytest.approx(30.5)
    assert AdaptationSettings().tau == 20


def test_small_steps_add_up_until_they_leave_the_dead_band():
    smoother, row = vector(array(60, 40))
    steps = 0
    while not len(smoother.step(1.0)):
        steps += 1
    assert steps > 3
    assert smoothed(smoother, row)[0] == pytest.approx(0.525, rel=0.02)
    smoother.program(np.array([row]))
    assert not len(smoother.step(1.0))


def test_lost_capacity_takes_its_part_of_the_share_along_at_once():
    smoother, row = vector(array(100, 100))
    assert feed(smoother, row, TWO, array(100, 25), array(100, 25))
    assert smoothed(smoother, row) == pytest.approx([0.8, 0.2])


def test_a_lost_member_leaves_its_share_to_the_others():
    smoother, row = vector(array(100, 100))
    assert feed(smoother, row, np.array([1]), array(100), array(70))
    assert smoothed(smoother, row) == [0.0, 1.0]


def test_a_new_member_begins_at_its_target_and_the_others_keep_their_ratio():
    smoother, row = vector(array(75, 25), time_constant=0.0)
    smoother.step(1.0)
    assert feed(smoother, row, THREE, array(100, 100, 100), array(75, 25, 25))
    assert smoothed(smoother, row, THREE) == pytest.approx([0.6, 0.2, 0.2])


def test_a_new_member_that_nobody_uses_yet_gets_no_more_than_its_part_of_the_capacity():
    """Its target would be half of everything, for every router at once."""
    smoother, row = vector(array(75, 25), time_constant=0.0)
    smoother.step(1.0)
    assert feed(smoother, row, THREE, array(100, 100, 100), array(75, 25, 100))
    assert smoothed(smoother, row, THREE) == pytest.approx([0.5, 1 / 6, 1 / 3])


@pytest.mark.parametrize(
    ("target", "stale", "why"),
    [
        (array(2, 2), False, "saturated"),
        (array(80, math.nan), False, "unknown"),
        (array(90, 10), True, "stale"),
    ],
)
def test_blind_vectors_go_to_the_ratio_of_capacities(target: np.ndarray, stale: bool, why: str):
    smoother, row = vector(array(90, 10), time_constant=0.0)
    smoother.step(1.0)
    feed(smoother, row, TWO, array(100, 100), target)
    smoother.step(1.0, stale=stale)
    assert smoother.state(row, TWO).fallback == why
    assert smoothed(smoother, row) == [0.5, 0.5]


def test_one_free_member_is_enough_not_to_fall_back():
    smoother, row = vector(array(2, 50), time_constant=0.0)
    smoother.step(1.0)
    assert smoother.state(row, TWO).fallback is None
    assert smoothed(smoother, row) == pytest.approx([2 / 52, 50 / 52])


def test_the_loop_gain_is_load_over_what_is_left():
    smoother, row = vector(array(20, 20))
    assert smoother.state(row, TWO).loop_gain == pytest.approx(4.0)


def test_rows_are_used_again_without_memory():
    smoother, row = vector(array(100, 0))
    smoother.remove(row)
    again = smoother.add()
    assert again == row
    assert feed(smoother, again, TWO, array(100, 300), array(100, 300))
    assert smoothed(smoother, again) == [0.25, 0.75]


def test_when_all_is_full_slow_and_fast_members_fall_back_in_proportion():
    """Links of 100 and 400 behind full uplinks of 400: not even shares, which the 100 loses."""
    smoother = ExponentialSmoother(AdaptationSettings(time_constant=0.0))
    smoother.widen(2)
    row = smoother.add()
    feed(smoother, row, TWO, array(100, 400), array(0.0004, 0.0004))
    smoother.step(1.0)
    assert smoother.state(row, TWO).fallback == "saturated"
    assert smoothed(smoother, row) == pytest.approx([0.2, 0.8])


def test_full_members_of_one_speed_leave_traffic_to_those_of_the_other():
    """Only the slow ones are full: they keep their floor, to be tried, and no fallback."""
    smoother = ExponentialSmoother(AdaptationSettings(time_constant=0.0))
    smoother.widen(3)
    row = smoother.add()
    feed(smoother, row, THREE, array(100, 100, 400), array(0.0, 0.0, 196.0))
    smoother.step(1.0)
    assert smoother.state(row, THREE).fallback is None
    assert smoothed(smoother, row, THREE) == pytest.approx([0.01, 0.01, 0.98])


def equalising(capacity: np.ndarray) -> tuple[ExponentialSmoother, int]:
    smoother = ExponentialSmoother(AdaptationSettings(equalise=True))
    smoother.widen(3)
    row = smoother.add()
    feed(smoother, row, THREE, capacity, capacity)
    smoother.program(np.array([row]))
    return smoother, row


def test_equalising_ends_where_paths_are_used_alike():
    """Others take half of the first path, 150 more are sent: the optimum is 2/3 used,
    everywhere."""
    capacity, others = array(100, 100, 100), array(50, 0, 0)
    smoother, row = equalising(capacity)
    for _ in range(200):
        load = others + 150 * np.array(smoothed(smoother, row, THREE))
        feed(smoother, row, THREE, capacity, np.maximum(capacity - load, 0))
        smoother.step(1.0)
    assert max(load / capacity) < 2 / 3 + 0.05, "not further off than announcing and the leak allow"
    assert max(load / capacity) - min(load / capacity) < 0.1
    assert smoother.state(row, THREE).loop_gain < 1


def test_differences_that_nobody_announces_are_not_added_up():
    """A value that is stale by less than the announce threshold moves nothing, ever."""
    smoother, row = equalising(array(100, 100, 100))
    feed(smoother, row, THREE, array(100, 100, 100), array(40, 37.5, 40))
    for _ in range(1000):
        smoother.step(1.0)
    assert smoothed(smoother, row, THREE) == pytest.approx([1 / 3] * 3)


def test_a_difference_that_stays_whatever_is_done_has_a_bound():
    """Traffic that is not ours fills a path: it keeps its floor and is found when it is free."""
    smoother, row = equalising(array(100, 100, 100))
    feed(smoother, row, THREE, array(100, 100, 100), array(0, 90, 90))
    for _ in range(1000):
        smoother.step(1.0)
    assert 0.005 < smoothed(smoother, row, THREE)[0] < 0.03
    feed(smoother, row, THREE, array(100, 100, 100), array(90, 40, 40))
    for _ in range(60):
        smoother.step(1.0)
    assert smoothed(smoother, row, THREE)[0] > 0.3


def test_stale_values_are_not_added_up():
    smoother, row = equalising(array(100, 100, 100))
    feed(smoother, row, THREE, array(100, 100, 100), array(0, 90, 90))
    for _ in range(200):
        smoother.step(1.0, stale=True)
    assert smoothed(smoother, row, THREE) == pytest.approx([1 / 3] * 3)


def test_lost_capacity_is_not_damped_whatever_the_rule():
    smoother, row = equalising(array(100, 100, 100))
    assert feed(smoother, row, THREE, array(100, 100, 50), array(100, 100, 50))
    assert smoothed(smoother, row, THREE) == pytest.approx([0.4, 0.4, 0.2])


def test_vectors_fed_together_are_what_they_are_one_by_one():
    """A lost local link concerns all vectors, some of which never had it or have nothing else."""
    rng = np.random.default_rng(5)
    before, after = rng.choice([0.0, 100.0, 400.0], (2, 30, 4))
    before[:, 3] = after[:, 3] = 100.0
    left = rng.random((30, 4)) * 100
    left[::7] = np.nan
    columns = np.arange(4)
    found = []
    for together in (True, False):
        smoother = ExponentialSmoother(AdaptationSettings(time_constant=5.0))
        smoother.widen(4)
        rows = np.array([smoother.add() for _ in range(30)])
        for capacity in (before, after, after):
            for part in (rows,) if together else np.split(rows, 30):
                smoother.feed(part, columns, capacity[part], left[part])
            smoother.step(1.0)
        found.append([smoother.state(row, columns).smoothed for row in rows.tolist()])
    assert np.allclose(found[0], found[1])
    assert np.allclose(np.sum(found[0], axis=1), 1)


def test_while_equalising_a_new_member_begins_at_its_part_of_the_capacity():
    """Nothing multiplied by whatever it is stays nothing."""
    smoother = ExponentialSmoother(AdaptationSettings(equalise=True))
    smoother.widen(3)
    row = smoother.add()
    feed(smoother, row, TWO, array(100, 100), array(100, 100))
    feed(smoother, row, THREE, array(100, 100, 100), array(100, 100, 100))
    assert smoothed(smoother, row, THREE) == pytest.approx([1 / 3] * 3)


_FED = st.tuples(st.integers(0, 2), st.sampled_from([0.0, 10.0, 40.0, 70.0, 100.0, math.nan]))
_TURNS = st.lists(
    st.tuples(st.lists(_FED, max_size=2), st.booleans(), st.integers(1, 40)), max_size=8
)


@given(_TURNS, st.booleans())
def test_vectors_at_rest_are_left_alone_until_something_changes(turns, equalise):
    """All shares are those of a smoother that steps every vector every time."""
    settings = AdaptationSettings(equalise=equalise)
    ours, all_move = ExponentialSmoother(settings), ExponentialSmoother(settings)
    for smoother in (ours, all_move):
        smoother.widen(2)
        for _ in range(3):
            feed(smoother, smoother.add(), TWO, array(100, 100), array(100, 100))
        smoother.program(np.arange(3))
    for fed, stale, steps in turns:
        for row, left in fed:
            assert not feed(ours, row, TWO, array(100, 100), array(100, left))
            feed(all_move, row, TWO, array(100, 100), array(100, left))
        for _ in range(steps):
            all_move._moving[:3] = True
            for smoother in (ours, all_move):
                smoother.program(smoother.step(20.0, stale=stale))
        for row in range(3):
            expected = pytest.approx(smoothed(all_move, row), abs=1e-8)
            assert smoothed(ours, row) == expected


def test_a_vector_at_rest_costs_nothing():
    smoother, row = vector(array(75, 25))
    for _ in range(60):
        smoother.program(smoother.step(20.0))
    assert not smoother._moving.any()
    assert smoothed(smoother, row) == pytest.approx([0.75, 0.25])
    assert not feed(smoother, row, TWO, array(100, 100), array(25, 75))
    assert smoother.step(20.0).tolist() == [row]
