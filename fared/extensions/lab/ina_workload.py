"""``all-reduce-ina`` and ``reduce-ina``, through the routers of a lab, timed like all collectives.

One process in each host is a worker. The bound is the least cut between two workers, which no
all-reduce beats, or from one to the root of a reduce; rates are those of the wire, so headers, 1 %
with jumbo frames, count as lost.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from fared.extensions.ina.fields import MOST_JOB_ID
from fared.extensions.ina.plan.bounds import least_cut, least_cut_to
from fared.extensions.ina.plan.model import TreePlan
from fared.extensions.lab.expected import Rate
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ina_job import WORKER_PORT, LabJob, capacities, lab_tree, plan_together
from fared.extensions.lab.ina_server import serving
from fared.extensions.lab.ina_workers import Workers
from fared.extensions.lab.ranks import check_ranks
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
from fared.extensions.lab.workloads.report import JobReport, WorkloadReport

_POLL = 0.02
_ROUND = 4
_NO_ORDER = TcpOrder(0, 0, 0, None, 0, 0)


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
    given = None if tree is None else lab_tree(fabric.plan, tree)
    jobs = _jobs(fabric, groups)
    plans = plan_together(jobs, rate, relays=relays, bier=bier, tree=given)
    everybody = [
        Workers(
            fabric, job.job.name, job.hosts, size, iterations, number=at, timeout=timeout, root=root
        )
        for at, job in enumerate(jobs)
    ]
    meter = LinkMeter(fabric, rate, interval)
    with serving(fabric, given):
        _play(meter, [*zip(jobs, plans, everybody, strict=True)])
    reports = tuple(
        _report(fabric, job, workers, rate) for job, workers in zip(jobs, everybody, strict=True)
    )
    return WorkloadReport(
        fabric.topology.name, meter.elapsed(), reports, tuple(meter.times), meter.links()
    )


def _jobs(fabric: Fabric, groups: Sequence[Sequence[str]]) -> list[LabJob]:
    """Return a job of each group, with numbers that no job of a moment ago has."""
    first = time.monotonic_ns() % MOST_JOB_ID
    numbers = [(first + at) % MOST_JOB_ID + 1 for at in range(len(groups))]
    return [
        LabJob(fabric, f"lab-{number}", number, hosts, WORKER_PORT + at)
        for at, (number, hosts) in enumerate(zip(numbers, groups, strict=True))
    ]


def _play(meter: LinkMeter, jobs: Sequence[tuple[LabJob, TreePlan, Workers]]) -> None:
    """Install all jobs, run their workers to the end, and remove both."""
    with ExitStack() as stack:
        for job, plan, workers in jobs:
            stack.callback(job.remove)
            stack.callback(workers.stop)
            job.install(plan)
        for _, _, workers in jobs:
            workers.start()
        while any([workers.running(meter.elapsed()) for _, _, workers in jobs]):  # noqa: C419 - all are looked at
            time.sleep(_POLL)
            meter.sample(meter.elapsed())
        meter.last(meter.elapsed())


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
