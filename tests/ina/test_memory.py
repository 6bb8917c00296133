"""What ``fared-ina`` counts for a job is what it takes: ``--memory`` is a limit of the process."""

from __future__ import annotations

import tracemalloc

import msgspec
import numpy as np
import pytest

from fared.extensions.ina.inad.jobs import Jobs
from fared.extensions.ina.inad.results import UnicastReplication
from fared.extensions.ina.messages import Install, JobEpoch, MemberAddress
from fared.extensions.ina.slots.packet import Header, PacketKind, encode_header
from fared.extensions.ina.slots.setup import JobSetup, TreeSetup
from tests.ina.absurd import NODE
from tests.ina.test_jobs import Trains

JOBS = {
    "small slots": (64, 8, 2, 4, 512),
    "many trees of few slots": (64, 8, 2, 512, 2),
    "many workers": (64, 8, 64, 64, 2),
    "long bit strings": (4096, 8, 4096, 2, 2),
    "jumbo packets": (64, 8192, 4, 2, 24),
}


FRAMES = 40
"""More than lie between an allocation and this file."""


def install(length: int, payload: int, workers: int, trees: int, window: int) -> bytes:
    """The line that begins a job whose trees have this router as root."""
    ids = range(1, workers + 1)
    stars = tuple(TreeSetup(t, NODE, 1, window, {-at: NODE for at in ids}) for t in range(trees))
    members = {-at: MemberAddress(f"10.{at // 250}.{at % 250}.2", 54201) for at in ids}
    members[NODE] = MemberAddress("10.255.0.5", 54200)
    job = JobEpoch("job", JobSetup(7, 1, length, payload, tuple(ids), stars), members)
    return msgspec.json.encode(Install(job, NODE))


def no_jobs() -> Jobs:
    trains = Trains()
    return Jobs(1 << 30, 1, trains, UnicastReplication(trains))


def run(jobs: Jobs, shape: tuple[int, int, int, int, int]) -> None:
    """Install a job, and fill it."""
    length, payload, _, trees, window = shape
    jobs.install(msgspec.json.decode(install(*shape), type=Install))
    fill(jobs, length, payload, trees, window)


def fill(jobs: Jobs, length: int, payload: int, trees: int, window: int) -> None:
    """The last worker sends all that its window permits, in every tree."""
    ((_, running),) = jobs.all.items()
    job = running.current
    last = job.setup.workers[-1]
    values = np.arange(payload // 4, dtype="<i4").tobytes()
    for tree in range(trees):
        for sequence in range(window):
            header = Header(
                PacketKind.DATA, 7, tree, 1, sequence, 1 << (last - 1), payload,
                control=sequence << 40, length=length,
            )  # fmt: skip
            packet = memoryview(encode_header(header) + values)
            jobs.receive(job.members[-last].pair, packet, len(packet), 1.0 + sequence)


@pytest.mark.parametrize("shape", JOBS.values(), ids=JOBS)
def test_the_memory_of_a_job_is_counted_as_it_is(shape):
    length, payload, *_ = shape
    run(no_jobs(), (length, payload, 2, 1, 1))  # what is imported and cached at the first use
    jobs = no_jobs()
    tracemalloc.start(FRAMES)
    try:
        run(jobs, shape)
        found = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    # not what other threads of the process have taken meanwhile
    mine = found.filter_traces([tracemalloc.Filter(True, __file__, all_frames=True)])
    taken = sum(trace.size for trace in mine.traces)
    assert taken <= jobs.memory() <= 3 * taken
