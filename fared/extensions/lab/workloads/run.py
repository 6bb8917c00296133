"""Runs workloads between hosts, over real TCP, and times them.

Jobs run side by side, each over its own hosts. In an iteration a job goes through the tasks of its
graph: a task begins when all that it waits for have arrived everywhere. The completion time of each
iteration is compared with the least time the fabric needs for it (``bounds``), as if the job were
alone; meanwhile link utilization is read from the kernels' counters.
"""

from __future__ import annotations

import heapq
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import InitVar, dataclass, field

from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ranks import Pair
from fared.extensions.lab.tcp_order import TcpOrder
from fared.extensions.lab.workloads.bounds import JobBounds, job_bounds, kernel_rates
from fared.extensions.lab.workloads.flows import CONGESTION_CONTROL, Flows
from fared.extensions.lab.workloads.jobs import DEFAULT_INTERVAL, DEFAULT_TIMEOUT, Job
from fared.extensions.lab.workloads.meter import LinkMeter
from fared.extensions.lab.workloads.report import (
    Iteration,
    JobReport,
    PhaseReport,
    TaskTime,
    WorkloadReport,
    under_way,
)

_STALLED = 30.0
_LONGEST_WAIT = 0.5


def run(
    fabric: Fabric,
    jobs: Sequence[Job],
    *,
    seed: int = 0,
    timeout: float = DEFAULT_TIMEOUT,
    interval: float = DEFAULT_INTERVAL,
    ipv6: bool = False,
    congestion: str = CONGESTION_CONTROL,
) -> WorkloadReport:
    """Run jobs side by side to their end; read the links every ``interval`` seconds.

    Raises LabError if a job is invalid, a connection breaks, nothing arrives for 30 s or the
    ``timeout`` passes.
    """
    for job in jobs:
        job.check(fabric.plan)
    rate = kernel_rates(fabric)
    bounds = [job_bounds(job, fabric.plan, rate) for job in jobs]
    runs = [_Run(number, job, fabric.plan) for number, job in enumerate(jobs)]
    pairs = [run.pairs() for run in runs]
    with Flows(fabric, pairs, seed, ipv6=ipv6, congestion=congestion) as flows:
        meter = LinkMeter(fabric, rate, interval)
        _drive(flows, runs, meter, timeout)
        orders = [flows.order(run.number) for run in runs]
    reports = tuple(
        run.report(least, order) for run, least, order in zip(runs, bounds, orders, strict=True)
    )
    return WorkloadReport(
        fabric.topology.name, meter.elapsed(), reports, tuple(meter.times), meter.links()
    )


def _drive(flows: Flows, runs: list[_Run], meter: LinkMeter, timeout: float) -> None:
    """Run until every job has ended."""
    heard = 0.0
    while any(not run.over for run in runs):
        now = meter.elapsed()
        waits = [run.due(now) - now for run in runs if not run.over]
        wait = max(0.0, min([_LONGEST_WAIT, meter.due - now, *waits]))
        received = flows.poll(wait)
        now = meter.elapsed()
        for (owner, task), size in received.items():
            runs[owner].receive(task, size, now)
        for run in runs:
            run.advance(flows, now)
        meter.sample(now)
        busy = [run for run in runs if run.outstanding]
        heard = now if received or not busy else heard
        if busy and (now - heard > _STALLED or now > timeout):
            late = busy[0]
            why = "did not end in time" if now > timeout else f"made no progress for {_STALLED:g} s"
            raise LabError(f"{late.job.collective}: iteration {len(late.done) + 1} {why}")


@dataclass
class _Run:
    """A running job: the tasks of its present iteration that wait, and the bytes under way."""

    number: int
    job: Job
    plan: InitVar[AddressPlan]
    outstanding: dict[int, int] = field(default_factory=dict)
    """By task: the bytes still to arrive."""
    over: bool = False
    done: list[Iteration] = field(default_factory=list)
    _phases: dict[str, list[float]] = field(default_factory=dict)
    _latencies: list[float] = field(default_factory=list)
    _times: list[TaskTime] = field(default_factory=list)
    _left: int = 0
    """Tasks of the present iteration that have not ended."""
    _waiting: list[int] = field(default_factory=list)
    _ready: list[tuple[float, int]] = field(default_factory=list)
    """A heap: when a task may begin, and the task."""
    _begun: float = 0.0
    _next: float = 0.0

    def __post_init__(self, plan: AddressPlan) -> None:
        self._next = self.job.shift
        tasks = self.job.graph.tasks
        self._sends = self.job.sends(plan)
        self._behind: list[list[int]] = [[] for _ in tasks]
        for number, task in enumerate(tasks):
            for before in task.after:
                self._behind[before].append(number)

    def pairs(self) -> dict[Pair, int]:
        """Return the pairs of hosts that ever send, with the number of connections."""
        return {pair: self.job.elephants for sends in self._sends for pair in sends}

    def due(self, now: float) -> float:
        """Return when something is to begin; infinity if that depends on arrivals."""
        if self._left:
            return self._ready[0][0] if self._ready else math.inf
        return self._next_begin(now)

    def receive(self, task: int, size: int, now: float) -> None:
        """Count received bytes of a task."""
        self.outstanding[task] -= size
        if not self.outstanding[task]:
            del self.outstanding[task]
            self._end(task, now)

    def advance(self, flows: Flows, now: float) -> None:
        """Begin the tasks that are due, or the next iteration."""
        if self.over:
            return
        if not self._left:
            if self._finished(now):
                self.over = True
            elif self._next_begin(now) <= now:
                self._begin(now)
        while self._ready and self._ready[0][0] <= now:
            _, task = heapq.heappop(self._ready)
            self._times[task] = TaskTime(now - self._begun, math.nan)
            for pair, size in self._sends[task].items():
                flows.send((self.number, task), pair, size)
                self.outstanding[task] = self.outstanding.get(task, 0) + size
            if not self._sends[task]:
                self._end(task, now)

    def report(self, bounds: JobBounds, order: TcpOrder) -> JobReport:
        """Return the results."""
        graph = self.job.graph
        alone = [
            bounds.tasks[first] + graph.tasks[last].compute + bounds.tasks[last]
            for first, last in graph.requests
        ]
        return JobReport(
            self.job,
            len(graph.tasks),
            sum(sum(sends.values()) for sends in self._sends),
            _finite(bounds.whole),
            tuple(self.done),
            order,
            tuple(self._phase_reports(bounds)),
            tuple(self._times) if self.done else (),
            tuple(self._latencies),
            _finite(statistics.median(alone)) if alone else None,
            self._sends,
        )

    def _phase_reports(self, bounds: JobBounds) -> Iterator[PhaseReport]:
        graph = self.job.graph
        for phase in graph.phases if len(graph.phases) > 1 else ():
            pairs = zip(graph.tasks, self._sends, strict=True)
            sends = [sent for task, sent in pairs if task.phase == phase]
            moved, seconds = sum(sum(sent.values()) for sent in sends), self._phases.get(phase, ())
            least = _finite(bounds.phases[phase])
            yield PhaseReport(phase, len(sends), moved, least, tuple(seconds))

    def _next_begin(self, now: float) -> float:
        """Return when the next iteration may begin: after computing, and with its period."""
        due = max(now, self._next)
        period = self.job.period
        if period is None:
            return due
        phase = due % period
        return due if phase < period * self.job.duty else due - phase + period

    def _begin(self, now: float) -> None:
        tasks = self.job.graph.tasks
        self._begun, self._left = now, len(tasks)
        self._waiting = [len(task.after) for task in tasks]
        self._times = [TaskTime(math.nan, math.nan)] * len(tasks)
        for number, task in enumerate(tasks):
            if not task.after:
                heapq.heappush(self._ready, (now + task.compute, number))

    def _end(self, task: int, now: float) -> None:
        """A task has ended: those behind it may begin, or the iteration ends."""
        self._times[task] = TaskTime(self._times[task].begun, now - self._begun)
        for behind in self._behind[task]:
            self._waiting[behind] -= 1
            if not self._waiting[behind]:
                due = now + self.job.graph.tasks[behind].compute
                heapq.heappush(self._ready, (due, behind))
        self._left -= 1
        if self._left:
            return
        self.done.append(Iteration(self._begun, now - self._begun))
        self._next = now + self.job.compute
        graph = self.job.graph
        for phase in graph.phases:
            times = [
                time
                for one, time in zip(graph.tasks, self._times, strict=True)
                if one.phase == phase
            ]
            self._phases.setdefault(phase, []).append(under_way(times))
        self._latencies += [
            self._times[last].ended - self._times[first].begun for first, last in graph.requests
        ]

    def _finished(self, now: float) -> bool:
        job = self.job
        return (job.iterations is not None and len(self.done) >= job.iterations) or (
            job.seconds is not None and now >= job.seconds
        )


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None
