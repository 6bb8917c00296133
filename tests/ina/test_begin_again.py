"""A worker whose process begins again in a running epoch: what slots cannot see, the router must.

Packets do not tell which process of a rank has sent them. So a second process that was admitted to
the epoch of the first would get sums with values of the first, as these tests show on the virtual
clock, and ``fared-ina`` admits none (``tests/ina/test_live.py``).
"""

from __future__ import annotations

import numpy as np
import pytest

from fared.extensions.ina.slots.worker import WorkerMachine
from tests.ina.fabrics import clos, workers
from tests.ina.network import VALUES, InvariantError, VirtualJob, _WorkerPort, setup_for

FORMER, LATER = 1_000, 5


def begun(calls: int) -> VirtualJob:
    """A job after some calls of a chunk, all of whose values are ``FORMER`` at worker 1."""
    job = VirtualJob(setup_for(clos(1, 4), workers(4)), seed=1)
    for _ in range(calls):
        for bfr_id, machine in job.workers.items():
            machine.put(np.full(VALUES, FORMER if bfr_id == 1 else 1, "<i4"))
            machine.pump(job.now)
        job.truth.append(np.full(VALUES, FORMER + 3, "<i4"))
        job.run()
    return job


def begin_again(job: VirtualJob, chunks: int) -> None:
    """Another process of worker 1 joins, with other values, while the others make a call."""
    job.got[1].clear()
    fresh = job.workers[1] = WorkerMachine(1, _WorkerPort(job, 1))
    fresh.install(job.setup, job.now)
    job.run_for(1.0, lambda: fresh.running)
    job.truth += [np.full(VALUES, LATER + 3, "<i4")] * chunks
    for bfr_id, machine in job.workers.items():
        for _ in range(chunks):
            machine.put(np.full(VALUES, LATER if bfr_id == 1 else 1, "<i4"))
        machine.pump(job.now)


def test_in_the_first_window_it_would_get_a_sum_with_values_of_the_former_process():
    job = begun(calls=1)
    begin_again(job, chunks=1)
    job.run_for(5.0, lambda: 0 in job.got[1])
    assert np.frombuffer(job.got[1][0], "<i4")[0] == FORMER + 3, "not LATER: that is mixed"
    assert 1 not in job.got[2], "and the others wait for its second chunk"


def test_its_second_call_would_be_added_to_the_second_call_of_the_others():
    """Its chunk 1 goes into the slot of theirs: all agree, and nobody can see that it is wrong."""
    job = begun(calls=1)
    job.truth[:] = [np.full(VALUES, FORMER + 3, "<i4"), np.full(VALUES, 42 + 3, "<i4")]
    begin_again(job, chunks=1)
    job.run_for(5.0, lambda: 0 in job.got[1])
    job.workers[1].put(np.full(VALUES, 42, "<i4"))
    job.workers[1].pump(job.now)
    job.run_for(5.0, lambda: 1 in job.got[2])
    assert job.got[2][1] == job.got[1][1]


def test_after_the_first_windows_it_would_get_nothing():
    job = begun(calls=2 * 4 + 1)
    begin_again(job, chunks=1)
    with pytest.raises(InvariantError, match="no end"):
        job.run(5.0)
    assert not job.got[1]
