"""Elastic jobs: each call is a sum over one set of workers, the same one at all of them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.extensions.ina.slots.calls import CallBounds
from fared.extensions.ina.slots.chunks import Chunks
from fared.extensions.ina.slots.worker import WorkerMachine
from tests.ina.elastic import WORKERS, Caller, ElasticJob
from tests.ina.fabrics import both, clos
from tests.ina.network import InvariantError

pytestmark = pytest.mark.slow

NETWORKS = [clos(2, 4), clos(2, 4, both(1, 2, 0.25)), clos(1, 4)]
ROUGH = {"loss": 0.1, "double": 0.2, "delay": (1e-4, 1e-2)}

event = st.tuples(
    st.floats(0, 0.3),
    st.sampled_from(["kill", "kill", "suspect", "revive", "revive", "renew"]),
    st.sampled_from(WORKERS),
    st.sampled_from(range(3)),
    st.floats(0, 0.05),
)
"""Wait so long; what happens to whom; over which network, and how far apart members learn of it."""


def let(job: ElasticJob, what: str, bfr_id: int, network: int, spread: float) -> None:
    changed = False
    if what in ("kill", "suspect"):
        changed = job.lose(bfr_id)
        if changed and what == "kill":
            job.kill(bfr_id)
            job.run_for(spread)
    elif what == "revive":
        changed = job.revive(bfr_id)
    job.renew(NETWORKS[network], changed=changed, spread=spread)


@settings(max_examples=75, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    sizes=st.lists(st.integers(1, 14), min_size=1, max_size=12),
    events=st.lists(event, max_size=7),
    loss=st.floats(0, 0.3),
    double=st.floats(0, 0.3),
    delay=st.floats(0, 0.02),
    window=st.integers(1, 5),
)
def test_sums_over_different_workers_never_mix(*, seed, sizes, events, loss, double, delay, window):
    job = ElasticJob(
        sizes, seed, window=window, loss=loss, double=double, delay=(1e-4, 1e-4 + delay)
    )
    for wait, *happens in events:
        job.run_for(wait)
        let(job, *happens)
    job.run(2000)
    job.verify()


def scripted(seed: int) -> ElasticJob:
    """Workers end, and come back, in the middle of calls over a rough network."""
    job = ElasticJob([9] * 60, seed, **ROUGH)
    for number, bfr_id in enumerate((3, 1, 4, 2)):
        job.run_for(1.3)
        let(job, "kill" if number % 2 else "suspect", bfr_id, number % 3, 0.01)
        job.run_for(0.7)
        let(job, "renew", bfr_id, (number + 1) % 3, 0.01)
        job.run_for(1.0)
        let(job, "revive", bfr_id, number % 3, 0.01)
    job.run(600)
    job.verify()
    return job


@pytest.mark.parametrize("seed", range(6))
def test_calls_go_on_without_those_who_are_lost_and_with_those_who_come_back(seed):
    job = scripted(seed)
    over = Counter(bits for caller in job.callers.values() for bits, _ in caller.ended.values())
    assert len(over) > 3, "calls over all workers, and without some"
    assert job.former
    assert all(caller.done for caller in job.callers.values())


def test_a_call_that_has_ended_anywhere_is_not_summed_again():
    """Worker 1 has the end of the first call, the results of which are late at all others."""
    job = ElasticJob([5, 5], 1)
    while not job.callers[1].ended:
        assert job.step(10.0)
    behind = [b for b in WORKERS if not job.callers[b].ended]
    job.kill(4)
    assert job.lose(4)
    job.renew(NETWORKS[0], changed=True, spread=0.0)
    job.run(60)
    job.verify()
    ended = {b: job.callers[b].ended for b in (1, 2, 3)}
    assert {(one[0][0], one[1][0]) for one in ended.values()} == {(0b1111, 0b0111)}
    assert behind


def test_the_last_results_of_a_call_do_not_wait_for_others_while_its_closing_chunk_does():
    job = ElasticJob([40], 1)
    machine = job.callers[1].machine
    assert job.run_for(1.0, until=lambda: machine.patience() > 0)
    assert job.run_for(1.0, until=lambda: machine.lacking() == [39])
    assert machine.next < machine.calls.closing == 40
    assert machine.patience() == 0


# -- the checker: rules that are left out are missed ----------------------------------------------


def mixes(seed: int) -> bool:
    """Whether there is a wrong sum if a worker is lost as soon as another one has ended a call."""
    job = ElasticJob([9] * 20, seed, **ROUGH)
    for bfr_id, call in ((3, 2), (1, 7)):
        if not job.run_for(100, lambda call=call: any(call in c.ended for c in callers(job))):
            return False
        let(job, "kill", bfr_id, 1, 0.001)
    try:
        job.run(100)
        job.verify()
    except InvariantError as error:
        return str(error).startswith("call ")
    return False


def callers(job: ElasticJob) -> list[Caller]:
    return list(job.callers.values())


def test_with_all_rules_sums_do_not_mix():
    assert not any(mixes(seed) for seed in range(20))


def test_if_the_closing_chunk_does_not_wait_for_results_sums_mix(monkeypatch):
    """A call then ends where others lack results of it."""
    may_send = WorkerMachine._may_send

    def early(self, tree, sequence, chunk):
        closing, self.calls.closing = self.calls.closing, -1
        try:
            return may_send(self, tree, sequence, chunk)
        finally:
            self.calls.closing = closing

    monkeypatch.setattr(WorkerMachine, "_may_send", early)
    assert any(mixes(seed) for seed in range(40))


def test_if_an_epoch_with_other_workers_begins_within_a_call_sums_mix(monkeypatch):
    monkeypatch.setattr(CallBounds, "proposal", lambda self, setup, done: done)
    monkeypatch.setattr(Chunks, "begins", lambda self, base, setup: base <= self.next)
    assert any(mixes(seed) for seed in range(20))
