"""``all-reduce-ina`` and ``reduce-ina``, through the routers of a lab, timed like all collectives.

One process in each host is a worker. The bound is the least cut between two workers, which no
all-reduce beats, or from one to the root of a reduce; rates are those of the wire, so headers, 1 %
with jumbo frames, count as lost.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from fared.extensions.ina.fields import MOST_JOB_ID
from fared.extensions.ina.plan.bounds import least_cut, least_cut_to
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.expected import Rate
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ina_job import WORKER_PORT, LabJob, capacities, lab_tree, plan_together
from fared.extensions.lab.ina_server import serving
from fared.extensions.lab.ina_worker import Task
from fared.extensions.lab.processes import NodeProcess, end
from fared.extensions.lab.ranks import check_ranks, rank_of
from fared.extensions.lab.tcp_order import TcpOrder
from fared.extensions.lab.workloads.bounds import kernel_rates
from fared.extensions.lab.workloads.jobs import (
    DEFAULT_INTERVAL,
    DEFAULT_TIMEOUT,
    INA,
    REDUCE_INA,
    Job,
)
from fared.extensions.lab.workloads.meter import LinkMeter
from fared.extensions.lab.workloads.report import Iteration, JobReport, WorkloadReport

_LOG = "ina-worker.log"
_POLL = 0.02
_ROUND = 4


def run_ina(
    fabric: Fabric,
    hosts: Sequence[str],
    size: int,
    iterations: int,
    **given: Any,  # noqa: ANN401 - of ``run_jobs``
) -> WorkloadReport:
    """Run the all-reduces of one job, as ``run_jobs`` does."""
    return run_jobs(fabric, [hosts], size, iterations, **given)


def run_jobs(
    fabric: Fabric,
    groups: Sequence[Sequence[str]],
    size: int,
    iterations: int,
    *,
    timeout: float = DEFAULT_TIMEOUT,
    interval: float = DEFAULT_INTERVAL,
    relays: bool = True,
    bier: bool | None = None,
    tree: str | None = None,
    root: int | None = None,
) -> WorkloadReport:
    """Run so many all-reduces of ``size`` bytes, a multiple of 4, in each of some jobs at a time.

    With ``root`` they are reduces to that rank.

    Each job has the workers of a group, and all are planned together; without ``relays`` over
    stars. The bound of each is that of the job alone.

    ``bier``: whether results go by BIER; None: if all routers of the trees and the hosts have it.
    ``tree``: over these routers, the root last, which may be a host, instead of planned trees.

    Raises LabError if there is no tree, no BIER that is wished, a worker fails, or the ``timeout``
    passes.
    """
    for hosts in groups:
        check_ranks(fabric.plan, hosts, apart=True)
    size = max(_ROUND, size // _ROUND * _ROUND)
    rate = kernel_rates(fabric)
    first = time.monotonic_ns() % MOST_JOB_ID
    jobs = [
        LabJob(fabric, f"lab-{number}", number, hosts, WORKER_PORT + at)
        for at, hosts in enumerate(groups)
        for number in [(first + at) % MOST_JOB_ID + 1]
    ]
    given = None if tree is None else lab_tree(fabric.plan, tree)
    plans = plan_together(jobs, rate, relays=relays, bier=bier, tree=given)
    everybody = [
        Workers(
            fabric,
            job.job.name,
            job.hosts,
            size,
            iterations,
            timeout=timeout,
            number=at,
            root=root,
        )
        for at, job in enumerate(jobs)
    ]
    meter = LinkMeter(fabric, rate, interval)
    with ExitStack() as stack:
        stack.enter_context(serving(fabric, given))
        for job, plan, workers in zip(jobs, plans, everybody, strict=True):
            stack.callback(job.remove)
            stack.callback(workers.stop)
            job.install(plan)
        for workers in everybody:
            workers.start()
        while any([workers.running(meter.elapsed()) for workers in everybody]):  # noqa: C419 - all are looked at
            time.sleep(_POLL)
            meter.sample(meter.elapsed())
        meter.last(meter.elapsed())
    reports = tuple(
        _report(fabric, job, workers, rate) for job, workers in zip(jobs, everybody, strict=True)
    )
    return WorkloadReport(
        fabric.topology.name, meter.elapsed(), reports, tuple(meter.times), meter.links()
    )


def _report(fabric: Fabric, job: LabJob, workers: Workers, rate: Rate) -> JobReport:
    size, calls = workers.size, workers.calls
    network, root = capacities(fabric.plan, rate), workers.root
    if root is None:
        name, cut = INA, least_cut(network, job.job)
    else:
        name, cut = REDUCE_INA, least_cut_to(network, job.job, root + 1)
    bound = size / cut if 0 < cut < math.inf else None
    told = Job(name, job.hosts, size, iterations=calls)
    moved, done = size * len(job.hosts), tuple(workers.iterations())
    return JobReport(told, 1, moved, bound, done, _NO_ORDER)


class Workers:
    """The worker processes of a job, one a host."""

    def __init__(
        self,
        fabric: Fabric,
        name: str,
        hosts: Sequence[str],
        size: int,
        iterations: int,
        *,
        timeout: float,
        number: int = 0,
        root: int | None = None,
    ) -> None:
        """``number``: of the job, if several run at a time; ``root``: of reduces."""
        self._log = f"ina-worker-{number}.log" if number else _LOG
        self._fabric, self._name, self._hosts = fabric, name, tuple(hosts)
        self.size, self.calls, self._timeout = size, iterations, timeout
        self.root = root
        self._processes: list[NodeProcess] = []

    def start(self) -> None:
        """Start all workers."""
        for rank, host in enumerate(self._hosts):
            place = rank_of(self._fabric.plan, host)
            node = self._fabric.node(place.host)
            node.directory.mkdir(parents=True, exist_ok=True)
            task = Task(
                self._name,
                rank,
                len(self._hosts),
                self.size,
                self.calls,
                min(self._timeout, 30.0),
                str(place.gateway),
                self.root,
            )
            log = node.directory / self._log
            log.unlink(missing_ok=True)
            text = msgspec.json.encode(task).decode()
            handle = node.netns.start(
                [sys.executable, "-m", "fared.extensions.lab.ina_worker", text], log
            )
            self._processes.append(NodeProcess("ina-worker", handle.pid, log, handle))

    def running(self, now: float) -> bool:
        """Whether any worker still runs. Raises LabError if one failed or time is over."""
        alive = False
        for host, process in zip(self._hosts, self._processes, strict=True):
            assert process.handle is not None
            code = process.handle.poll()
            if code is None:
                alive = True
            elif code != 0:
                raise LabError(f"{host}: {process.last_words() or f'ended with {code}'}")
        if alive and now > self._timeout:
            raise LabError(f"no end within {self._timeout:g} s")
        return alive

    def stop(self) -> None:
        """End what still runs."""
        for process in self._processes:
            if process.alive():
                assert process.handle is not None
                process.handle.send_signal(signal.SIGKILL)
        end(self._processes)

    @property
    def epoch(self) -> int:
        """The least epoch that a worker told at its end; 0: one told none."""
        found = (process.last_words(1) for process in self._processes)
        told = [json.loads(line) for line in found if line.startswith("{")]
        return min((line.get("epoch", 0) for line in told), default=0)

    def lines(self) -> list[list[dict[str, float]]]:
        """Return what each worker told of its all-reduces."""
        return [_lines(process.log) for process in self._processes]

    def iterations(self) -> Iterator[Iteration]:
        """Yield each all-reduce: an array is reduced when the last worker has the sum."""
        begun = None
        for told in zip(*self.lines(), strict=False):
            seconds = max(line["seconds"] for line in told)
            ended = max(line["ended"] for line in told)
            begun = ended - seconds if begun is None else begun
            yield Iteration(ended - seconds - begun, seconds)


def repeated(fabric: Fabric, hosts: Sequence[str]) -> int:
    """Return how many packets the workers of the last job in these hosts sent again."""
    last = [(fabric.node(host).directory / _LOG).read_text("utf-8") for host in hosts]
    told = (json.loads(text.splitlines()[-1]) for text in last)
    return sum(line["counters"].get("repeated", 0) for line in told)


def _lines(log: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines() if line[:1] == "{"]
    return [line for line in lines if "seconds" in line]


_NO_ORDER = TcpOrder(0, 0, 0, None, 0, 0)
