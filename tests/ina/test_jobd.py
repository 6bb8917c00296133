"""The process that leads jobs: what it takes from the daemon, and what it tells it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from fared.core.ids import NodeId
from fared.extensions.ina.control.advert import encode_job
from fared.extensions.ina.control.exchange import (
    Begin,
    CheckAddresses,
    Checked,
    Flood,
    FromJobs,
    Information,
    JobLog,
    JobsShown,
    Show,
)
from fared.extensions.ina.document import InaJobs
from fared.extensions.ina.jobd.report import brief
from fared.extensions.ina.jobd.service import JobService
from fared.extensions.ina.service.jobs import drawn
from fared.extensions.ina.service.process import JobsProcess
from fared.management.documents.fabric import DrawnBranch, DrawnJob, DrawnTree
from tests.ina.absurd import ABSURD, MEMBERS, NODE, OTHER, forged, right

HEAD, JOB = NodeId(NODE), 7
HERE = NodeId(OTHER)


class Told(list[FromJobs]):
    """What the process tells the daemon."""

    def of(self, kind: type[Any]) -> list[Any]:
        return [message for message in self if isinstance(message, kind)]


def run(body: Callable[[JobService, Told], Awaitable[None]]) -> None:
    async def begun() -> None:
        told = Told()
        service = JobService(Begin(HERE, 60_000, "/nonexistent/ina.sock"), told.append)
        await body(service, told)
        service._task.cancel()

    asyncio.run(begun())


async def soon() -> None:
    """Let the loop consider what has come."""
    for _ in range(5):
        await asyncio.sleep(0)


def flooded() -> Information:
    return Information(HEAD, 2 * JOB + 1, encode_job(right(JOB)))


def test_many_adverts_that_come_together_are_considered_once(monkeypatch):
    async def body(service: JobService, told: Told) -> None:
        considered: list[float] = []
        monkeypatch.setattr(service.manager, "consider", considered.append)
        for number in range(60):
            service.take(Information(HEAD, 2 * number + 1, encode_job(right(number or 1))))
        await soon()
        assert len(considered) == 1

    run(body)


@pytest.mark.parametrize("change", ABSURD.values(), ids=ABSURD)
def test_an_absurd_job_is_logged_and_all_others_go_on(change):
    async def body(service: JobService, told: Told) -> None:
        service.take(flooded())
        service.take(Information(HEAD, 17, forged(change, 8)))
        await soon()
        assert list(service.manager.jobs) == [JOB]
        assert [line.event for line in told.of(JobLog)] == ["ina-information-refused"]

    run(body)


def test_the_page_draws_the_leaves_and_the_trees_of_a_job():
    async def body(service: JobService, told: Told) -> None:
        service.take(flooded())
        await soon()
        (job,) = msgspec.json.decode(brief(service), type=InaJobs).jobs
        at_root = DrawnBranch(router="0.0.0.5", parent=None)
        tree = DrawnTree(root="0.0.0.5", weight=1, branches=[at_root])
        assert drawn(job) == DrawnJob(name="job", leaves=["0.0.0.5", "0.0.0.6"], trees=[tree])

    run(body)


def test_a_job_with_an_address_that_is_not_behind_its_router_is_refused_with_the_reason():
    async def body(service: JobService, told: Told) -> None:
        service.take(flooded())
        await soon()
        (asked,) = told.of(CheckAddresses)
        worker = MEMBERS[-2].address
        assert (worker, OTHER, False) in asked.wanted
        service.take(Checked([(at, at[0] != worker) for at in asked.wanted]))
        await soon()
        assert service.problems == {JOB: f"{worker} is not behind 0.0.0.6"}
        (line,) = told.of(JobLog)
        assert (line.event, line.fields["job"]) == ("ina-job-refused", "job")

    run(body)


def test_an_exception_of_one_job_ends_that_job_alone(monkeypatch):
    async def body(service: JobService, told: Told) -> None:
        consider = service.manager._consider_one

        def raises(job_id: int, *others: Any) -> None:
            if job_id == JOB:
                raise KeyError(job_id)
            consider(job_id, *others)

        monkeypatch.setattr(service.manager, "_consider_one", raises)
        service.take(flooded())
        service.take(Information(HEAD, 17, encode_job(right(8, "other"))))
        await soon()
        assert list(service.manager.jobs) == [8]
        assert [line.event for line in told.of(JobLog)] == ["ina-job-failed"]

    run(body)


def test_the_process_that_ends_is_started_again_and_told_all_that_is_known():
    async def body() -> None:
        told, begun = Told(), asyncio.Queue[int]()

        answered = asyncio.Event()

        class Process(JobsProcess):
            def _began(self) -> None:
                self.tell("begin", lambda: Begin(HERE, 60_000, "/nonexistent/ina.sock"))
                self.tell("job", flooded)
                self.tell("show", lambda: Show(1, "job"))
                begun.put_nowait(self.pid or 0)

            def _took(self, answer: FromJobs) -> None:
                told.append(answer)
                if isinstance(answer, JobsShown):
                    answered.set()

        process = Process(Silent())
        former = 0
        for _ in range(2):
            assert await begun.get() != former
            await answered.wait()
            answered.clear()
            assert process.pid is not None
            former = process.pid
            os.kill(former, signal.SIGKILL)
        await begun.get()
        process.stop()
        assert [flood.items for flood in told.of(Flood)] == [{}] * len(told.of(Flood))
        assert all(b'"name":"job"' in shown.jobs for shown in told.of(JobsShown))

    async def in_time() -> None:
        async with asyncio.timeout(60):
            await body()

    asyncio.run(in_time())


class Silent:
    """A log that nobody reads."""

    def error(self, event: str, **fields: object) -> None:
        """Take a line."""


@pytest.fixture(autouse=True)
def no_pause(monkeypatch) -> None:
    monkeypatch.setattr("fared.extensions.ina.jobd.service._PAUSE", 0.0)
