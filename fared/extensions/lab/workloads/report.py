"""Results of a workload: jobs, their phases and iterations, and the use of links."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from fared.core.units import BytesPerSecond
from fared.extensions.lab.ranks import Pair
from fared.extensions.lab.tcp_order import TcpOrder
from fared.extensions.lab.workloads.jobs import Job

FORMAT = "fared-workload/1"
PERCENTILES = (50, 95, 99)
"""Of latencies, as reported."""


@dataclass(frozen=True)
class Iteration:
    """Start of an iteration, seconds since that of the workload, and its duration."""

    begun: float
    seconds: float


@dataclass(frozen=True)
class TaskTime:
    """When a task of an iteration was under way, seconds since the iteration began."""

    begun: float
    ended: float


@dataclass(frozen=True)
class PhaseReport:
    """Of a phase in each iteration: seconds in which any of its tasks was under way.

    ``moved`` are its bytes in an iteration; ``bound`` None: some pair had no path.
    """

    name: str
    tasks: int
    moved: int
    bound: float | None
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the iterations, seconds; NaN if none was completed."""
        return statistics.median(self.seconds or [math.nan])

    @property
    def efficiency(self) -> float | None:
        """The least time divided by the median time."""
        return self.bound / self.median if self.bound and self.seconds and self.median else None


@dataclass(frozen=True)
class JobReport:
    """Results of a job; ``bound`` None: some pair had no path; ``moved``: bytes of an iteration.

    ``order``: of the segments of all iterations together. ``phases``: none if there is only one.
    ``times``: of the tasks of the last iteration. ``latencies``: of all requests, seconds;
    ``alone``: the median of what they would take in an empty fabric. ``sends``: bytes that each
    task sends over the fabric, by rank; nothing of what GPUs of one server exchange.
    """

    job: Job
    steps: int
    moved: int
    bound: float | None
    iterations: tuple[Iteration, ...]
    order: TcpOrder
    phases: tuple[PhaseReport, ...] = ()
    times: tuple[TaskTime, ...] = ()
    latencies: tuple[float, ...] = ()
    alone: float | None = None
    sends: tuple[Mapping[Pair, int], ...] = ()

    def latency(self, percent: int) -> float:
        """Return a percentile of the latencies (nearest rank), seconds; NaN without requests."""
        ordered = sorted(self.latencies)
        return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)] if ordered else math.nan

    @property
    def median(self) -> float:
        """The median completion time, seconds; NaN if no iteration was completed."""
        return statistics.median([one.seconds for one in self.iterations] or [math.nan])

    @property
    def cycle(self) -> float:
        """The mean time from one beginning to the next, seconds; NaN for fewer than two."""
        begun = [one.begun for one in self.iterations]
        return (begun[-1] - begun[0]) / (len(begun) - 1) if len(begun) > 1 else math.nan

    @property
    def efficiency(self) -> float | None:
        """The least time divided by the median time: 1 is optimal."""
        return self.bound / self.median if self.bound and self.iterations else None


@dataclass(frozen=True)
class LinkUse:
    """Utilization of a router's port: a part of its rate (bytes/s) for each sampled interval."""

    node: str
    interface: str
    peer: str
    rate: BytesPerSecond
    utilisation: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean over all intervals; NaN if there are none."""
        return statistics.fmean(self.utilisation or [math.nan])


@dataclass(frozen=True)
class WorkloadReport:
    """All jobs, and all links between routers; ``times`` are the ends of the sampled intervals."""

    lab: str
    seconds: float
    jobs: tuple[JobReport, ...]
    times: tuple[float, ...]
    links: tuple[LinkUse, ...]

    def as_json(self) -> str:
        """The report as one JSON document, format ``fared-workload/1``."""
        return json.dumps(
            {
                "format": FORMAT,
                "lab": self.lab,
                "seconds": self.seconds,
                "jobs": [_job_document(report) for report in self.jobs],
                "times": self.times,
                "links": [asdict(link) for link in self.links],
            }
        )


def _job_document(report: JobReport) -> dict[str, Any]:
    job = {one.name: getattr(report.job, one.name) for one in fields(report.job)}
    del job["tasks"]
    document = {
        **job,
        "steps": report.steps,
        "moved": report.moved,
        "bound": report.bound,
        "median": report.median if report.iterations else None,
        "efficiency": report.efficiency,
        "cycle": report.cycle if len(report.iterations) > 1 else None,
        "completions": [asdict(one) for one in report.iterations],
        "order": asdict(report.order),
    }
    if report.phases:
        document["phases"] = [
            asdict(phase) | {"median": phase.median if phase.seconds else None}
            for phase in report.phases
        ]
    if report.latencies:
        document["latencies"] = {
            "alone": report.alone,
            **{f"p{percent}": report.latency(percent) for percent in PERCENTILES},
            "seconds": report.latencies,
        }
    return document


def under_way(times: Sequence[TaskTime]) -> float:
    """Return the seconds in which any of some tasks was under way."""
    total, end = 0.0, -math.inf
    for time in sorted(times, key=lambda one: one.begun):
        total += max(0.0, time.ended - max(end, time.begun))
        end = max(end, time.ended)
    return total
