"""The ring of measured loads."""

import pytest

from fared.core.load_history import LoadHistory


def test_samples_are_kept_with_their_times_oldest_first():
    history = LoadHistory(10)
    for at in range(5):
        history.add(float(at), {1: at * 10.0, 2: 5.0})
    assert history.samples(1) == [(0.0, 0.0), (1.0, 10.0), (2.0, 20.0), (3.0, 30.0), (4.0, 40.0)]
    assert history.samples(3) == []


@pytest.mark.parametrize("count", [9, 10, 11, 12, 13, 50])
def test_no_more_samples_than_the_limit_are_shown_and_little_more_kept(count):
    history = LoadHistory(10)
    for at in range(count):
        history.add(float(at), {1: float(at)})
    shown = history.samples(1)
    assert [at for at, _ in shown] == [float(at) for at in range(max(0, count - 10), count)]
    assert all(at == load for at, load in shown)
    assert len(history._times) <= 12


def test_interfaces_come_and_go():
    history = LoadHistory(4)
    for at in range(20):
        history.add(float(at), {1: 1.0} if at < 8 else {2: 2.0})
    assert history.samples(1) == []
    assert list(history._loads) == [2]
    history.add(20.0, {})
    history.add(21.0, {2: 7.0})
    assert history.samples(2)[-2:] == [(19.0, 2.0), (21.0, 7.0)]
