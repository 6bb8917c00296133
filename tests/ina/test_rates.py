"""Rates of aggregation trees, from what ``fared-ina`` tells every second."""

from __future__ import annotations

from fared.extensions.ina.jobd.rates import TreeRates, sizes_of
from fared.extensions.ina.messages import InaState, JobState, TreeState, WorkerProgress, WorkerState


def job(epoch: int, slots: int | None, told: WorkerProgress | None = None) -> JobState:
    trees = [] if slots is None else [TreeState(0, 17, 0, [], 0, slots, 0)]
    worker = WorkerState(0, 1, "10.0.1.2", "joined", told)
    return JobState("job", 7, epoch, "", len(trees), 0, 0, 0, [], {}, [worker], trees)


def state(one: JobState) -> InaState:
    return InaState("10.255.0.1", 54200, 1, 0, 1 << 20, 16, {}, [one])


def test_a_rate_is_that_of_the_last_ten_seconds():
    rates = TreeRates()
    for second in range(31):
        rates.observe(state(job(1, 1000 * max(0, second - 25))), float(second))
    assert rates.rate(7, 0) == 500.0  # nothing for five seconds, then 1000 a second
    assert rates.rate(7, 1) is None
    assert rates.rate(8, 0) is None


def test_a_new_epoch_counts_from_zero():
    rates = TreeRates()
    for at, (epoch, size) in enumerate([(1, 9000), (1, 10_000), (2, 500), (2, 2500)]):
        rates.observe(state(job(epoch, size)), float(at))
    assert rates.rate(7, 0) == 2000.0


def test_one_state_tells_no_rate():
    rates = TreeRates()
    rates.observe(state(job(1, 1000)), 0.0)
    assert rates.rate(7, 0) is None


def test_a_worker_tells_the_trees_of_which_this_router_is_no_node():
    assert sizes_of(job(2, None, WorkerProgress(2, [10, 40], 0, []))) == {0: 10, 1: 40}
    assert sizes_of(job(2, 5, WorkerProgress(1, [10, 40], 0, []))) == {0: 5}
    assert sizes_of(job(2, 5)) == {0: 5}
