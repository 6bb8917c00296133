"""Workloads: collectives of AI training between hosts, over real TCP, timed.

Jobs run side by side, each over its own hosts. In an iteration a job goes through the steps of its
collective; a step begins when the previous one has arrived everywhere, as in the bulk synchronous
training that it models. The completion time of each iteration is compared with the least time the
fabric needs for these steps (``bounds``), as if the job were alone; meanwhile link utilization is
read from the kernels' counters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.expected import Rate
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ranks import Pair, crossing, rank_of
from fared.extensions.lab.workloads.bounds import kernel_rates, least_seconds
from fared.extensions.lab.workloads.flows import CONGESTION_CONTROL, Flows
from fared.extensions.lab.workloads.jobs import DEFAULT_INTERVAL, DEFAULT_TIMEOUT, Job
from fared.extensions.lab.workloads.meter import LinkMeter
from fared.extensions.lab.workloads.report import Iteration, JobReport, WorkloadReport

_STALLED = 30.0
_LONGEST_WAIT = 0.5
_ROUNDING = 4


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
    bounds = [bound(job, fabric.plan, rate) for job in jobs]
    runs = [
        _Run(number, job, [crossing(fabric.plan, step) for step in job.transfers()])
        for number, job in enumerate(jobs)
    ]
    pairs = [run.pairs() for run in runs]
    with Flows(fabric, pairs, seed, ipv6=ipv6, congestion=congestion) as flows:
        meter = LinkMeter(fabric, rate, interval)
        _drive(flows, runs, meter, timeout)
        orders = [flows.order(run.number) for run in runs]
    reports = tuple(
        JobReport(
            run.job,
            len(run.steps),
            sum(sum(step.values()) for step in run.steps),
            least if math.isfinite(least) else None,
            tuple(run.done),
            order,
        )
        for run, least, order in zip(runs, bounds, orders, strict=True)
    )
    return WorkloadReport(
        fabric.topology.name, meter.elapsed(), reports, tuple(meter.times), meter.links()
    )


def bound(job: Job, plan: AddressPlan, rate: Rate) -> float:
    """Return the least seconds an iteration of the job takes if nothing else is sent."""
    known: dict[tuple[tuple[Pair, float], ...], float] = {}
    total = 0.0
    for sizes in job.transfers():
        demands: dict[Pair, float] = {}
        for (source, target), size in crossing(plan, sizes).items():
            leaves = rank_of(plan, source).leaf, rank_of(plan, target).leaf
            demands[leaves] = demands.get(leaves, 0.0) + size
        most = max(demands.values(), default=0.0) or 1.0
        # Steps differ by single bytes if a message does not divide evenly.
        unit = {pair: round(size / most, _ROUNDING) for pair, size in demands.items()}
        key = tuple(sorted(unit.items()))
        if key not in known:
            known[key] = least_seconds(plan, rate, unit)
        total += known[key] * most
    return total


def _drive(flows: Flows, runs: list[_Run], meter: LinkMeter, timeout: float) -> None:
    """Run until every job has ended."""
    heard = 0.0
    while any(not run.over for run in runs):
        now = meter.elapsed()
        waits = [run.next_begin(now) - now for run in runs if not run.over and not run.outstanding]
        wait = max(0.0, min([_LONGEST_WAIT, meter.due - now, *waits]))
        received = flows.poll(wait)
        now = meter.elapsed()
        for run in runs:
            run.advance(flows, received.get(run.number, 0), now)
        meter.sample(now)
        busy = [run for run in runs if run.outstanding]
        heard = now if received or not busy else heard
        if busy and (now - heard > _STALLED or now > timeout):
            late = busy[0]
            why = "did not end in time" if now > timeout else f"made no progress for {_STALLED:g} s"
            raise LabError(f"{late.job.collective}: iteration {len(late.done) + 1} {why}")


@dataclass
class _Run:
    """A running job: its present iteration and step, and the bytes still to arrive."""

    number: int
    job: Job
    steps: list[dict[Pair, int]]
    outstanding: int = 0
    over: bool = False
    done: list[Iteration] = field(default_factory=list)
    _begun: float = 0.0
    _next_step: int = 0
    _ready: float = 0.0

    def __post_init__(self) -> None:
        self._ready = self.job.shift

    def pairs(self) -> dict[Pair, int]:
        """Return the pairs of ranks that ever send, with the number of connections."""
        return {pair: self.job.elephants for step in self.steps for pair in step}

    def next_begin(self, now: float) -> float:
        """Return when the next iteration may begin: after computing, and with its period."""
        due = max(now, self._ready)
        period = self.job.period
        if period is None:
            return due
        phase = due % period
        return due if phase < period * self.job.duty else due - phase + period

    def advance(self, flows: Flows, received: int, now: float) -> None:
        """Process received bytes; start the next step or iteration if it is due."""
        self.outstanding -= received
        if self.over or self.outstanding:
            return
        if self._next_step:
            if self._send(flows):
                return
            self.done.append(Iteration(self._begun, now - self._begun))
            self._next_step = 0
            self._ready = now + self.job.compute
        if self._finished(now):
            self.over = True
        elif self.next_begin(now) <= now:
            self._begun = now
            self._send(flows)

    def _send(self, flows: Flows) -> bool:
        """Start the next step that has bytes to send; return False if there is none left."""
        while not self.outstanding and self._next_step < len(self.steps):
            for pair, size in self.steps[self._next_step].items():
                flows.send(self.number, pair, size)
                self.outstanding += size
            self._next_step += 1
        return self.outstanding > 0

    def _finished(self, now: float) -> bool:
        job = self.job
        return (job.iterations is not None and len(self.done) >= job.iterations) or (
            job.seconds is not None and now >= job.seconds
        )
