"""Results of a workload: jobs, their phases and iterations, and the use of links."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import asdict, dataclass

from fared.core.units import BytesPerSecond
from fared.extensions.lab.tcp_order import TcpOrder
from fared.extensions.lab.workloads.jobs import Job

FORMAT = "fared-workload/1"


@dataclass(frozen=True)
class Iteration:
    """Start of an iteration, seconds since that of the workload, and its duration."""

    begun: float
    seconds: float


@dataclass(frozen=True)
class JobReport:
    """Results of a job; ``bound`` None: some pair had no path; ``moved``: bytes of an iteration.

    ``order``: of the segments of all iterations together.
    """

    job: Job
    steps: int
    moved: int
    bound: float | None
    iterations: tuple[Iteration, ...]
    order: TcpOrder

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
        jobs = [
            {
                **asdict(report.job),
                "steps": report.steps,
                "moved": report.moved,
                "bound": report.bound,
                "median": report.median if report.iterations else None,
                "efficiency": report.efficiency,
                "cycle": report.cycle if len(report.iterations) > 1 else None,
                "completions": [asdict(one) for one in report.iterations],
                "order": asdict(report.order),
            }
            for report in self.jobs
        ]
        return json.dumps(
            {
                "format": FORMAT,
                "lab": self.lab,
                "seconds": self.seconds,
                "jobs": jobs,
                "times": self.times,
                "links": [asdict(link) for link in self.links],
            }
        )
