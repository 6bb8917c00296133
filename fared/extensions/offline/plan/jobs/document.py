"""The document ``fared-plan-jobs/1``: scores of links, shifts of jobs, who should not meet."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fared.extensions.offline.plan.jobs.circle import (
    JobPattern,
    LinkShare,
    best_shifts,
    circle_length,
    score,
)
from fared.extensions.offline.plan.jobs.placement import BetterPlacement
from fared.extensions.offline.plan.jobs.shifts import SharedLink, ShiftSchedule
from fared.management.documents import human
from fared.management.documents.cells import Cell, Columns, count, dim, judged, plural_list
from fared.management.documents.declare import Answer
from fared.management.documents.facts import Facts, Seconds

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

COMPATIBLE = 0.999
"""The score from which jobs may share a link: what remains is rounding to ticks."""
_SHOWN = 12


class ShiftedJob(Facts):
    """A job: its shift, and by how much it may deviate from that (``margin``)."""

    name: str
    period: Seconds
    busy: Seconds
    shift: Seconds
    margin: Seconds


class JobOnLink(Facts):
    """A job on a link, and its shift there if only that link counts; ``angle`` in radians."""

    name: str
    rate: float
    shift: Seconds
    angle: float


class LinkScore(Facts):
    """A link of two jobs or more; scores as of ``SharedLink``. ``circle``: its common period."""

    link: str
    capacity: float
    score: float
    alone: float
    unshifted: float
    circle: Seconds
    jobs: list[JobOnLink]

    @property
    def alike(self) -> tuple[Any, ...]:
        """What links have in common that are printed as one."""
        rates = tuple((job.name, job.rate) for job in self.jobs)
        return self.score, self.alone, self.unshifted, self.capacity, rates


class JobsApart(Facts):
    """Two jobs that no shift makes compatible on a link that they share."""

    jobs: list[str]
    link: str
    score: float


class JobsExchange(Facts):
    """Two jobs that would be better off if they exchanged a host each."""

    jobs: list[str]
    exchange: list[str]
    score: float


class PlanJobs(Answer, tag="fared-plan-jobs/1"):
    """The shifts of jobs, and the scores of the links that they share, worst first."""

    tick: Seconds
    score: float
    jobs: list[ShiftedJob]
    links: list[LinkScore]
    apart: list[JobsApart]
    better: JobsExchange | None

    def show(self, paper: Paper) -> None:
        """Print jobs, links, and jobs that should not meet."""
        shared = f"{count(len(self.links), 'shared link')}, score {self.score:.3f}"
        paper.heading(f"{count(len(self.jobs), 'job')}, {shared}", first=True)
        paper.table(self.jobs, _JOBS)
        paper.heading("Shared links, worst first")
        _show_links(self.links, paper)
        paper.heading("Jobs that should not share a link")
        if not self.apart:
            paper.line(dim("none"))
        for one in self.apart:
            paper.line(f"{' and '.join(one.jobs)}: {one.score:.3f} at best on {one.link}")
        if self.better is not None:
            pairs = zip(self.better.exchange, self.better.jobs, strict=True)
            hosts = " and ".join(f"{host} of {job}" for host, job in pairs)
            paper.line(f"\nExchanging {hosts} gives a score of {self.better.score:.3f}")


_JOBS: Columns = {
    "Job": "name",
    ">Period": "period",
    ">Communicates": lambda job: _time(job.busy),
    ">Starts at": lambda job: _time(job.shift),
    ">Margin": lambda job: _time(job.margin),
}


def _time(seconds: float) -> str:
    return human.duration(seconds) if seconds else "0"


def _show_links(links: list[LinkScore], paper: Paper) -> None:
    """Print one line for all links with the same jobs, rates and scores."""
    groups: dict[tuple[Any, ...], list[LinkScore]] = {}
    for link in links:
        groups.setdefault(link.alike, []).append(link)
    columns = ("~Link", "~Jobs", ">Score", ">Alone", ">Unshifted", "~Angles alone")
    paper.grid(columns, map(_row, list(groups.values())[:_SHOWN]))
    if len(groups) > _SHOWN:
        paper.line(dim(f"and {len(groups) - _SHOWN} more"))


def _row(found: list[LinkScore]) -> tuple[Cell, ...]:
    link = found[0]
    return (
        plural_list([one.link for one in found], 2),
        ", ".join(f"{job.name} {human.bandwidth(job.rate)}" for job in link.jobs),
        judged(f"{link.score:.3f}", good=link.score > COMPATIBLE, bad="yellow"),
        f"{link.alone:.3f}",
        f"{link.unshifted:.3f}",
        " ".join(f"{math.degrees(job.angle):.0f}°" for job in link.jobs),
    )


def jobs_document(
    jobs: Sequence[JobPattern], found: ShiftSchedule, tick: float, better: BetterPlacement | None
) -> PlanJobs:
    """Return the document: seconds, bytes/s, and radians on the unified circle."""
    by_name = {job.name: job for job in jobs}
    return PlanJobs(
        tick=tick,
        score=found.score,
        jobs=[
            ShiftedJob(
                name=job.name,
                period=job.period * tick,
                busy=job.busy * tick,
                shift=found.shifts[job.name] * tick,
                margin=found.margins[job.name] * tick,
            )
            for job in jobs
        ],
        links=[_link(one, by_name, tick) for one in found.shared],
        apart=_apart(found, by_name),
        better=None if better is None else _exchange(better),
    )


def _exchange(better: BetterPlacement) -> JobsExchange:
    return JobsExchange(jobs=[*better.jobs], exchange=[*better.hosts], score=better.score)


def _link(one: SharedLink, jobs: dict[str, JobPattern], tick: float) -> LinkScore:
    length = circle_length([jobs[name] for name in one.jobs])
    return LinkScore.of(
        one,
        link=one.link.name,
        capacity=one.link.capacity,
        circle=length * tick,
        jobs=[
            JobOnLink(
                name=name,
                rate=one.link.rates[name],
                shift=one.alone_shifts[name] * tick,
                angle=2 * math.pi * one.alone_shifts[name] / length,
            )
            for name in one.jobs
        ],
    )


def _apart(found: ShiftSchedule, jobs: dict[str, JobPattern]) -> list[JobsApart]:
    """Pairs of jobs that no shift makes compatible on a link that they share, worst first."""
    worst: dict[tuple[str, str], tuple[float, str]] = {}
    for one in found.shared:
        if one.alone >= COMPATIBLE and len(one.jobs) == 2:
            continue
        for pair in itertools.combinations(one.jobs, 2):
            value = _pair_score(one.link, [jobs[name] for name in pair])
            if value < COMPATIBLE and value < worst.get(pair, (1.0, ""))[0]:
                worst[pair] = value, one.link.name
    return [
        JobsApart(jobs=list(pair), link=link, score=value)
        for pair, (value, link) in sorted(worst.items(), key=lambda item: item[1])
    ]


def _pair_score(link: LinkShare, pair: list[JobPattern]) -> float:
    return score(link, pair, best_shifts([link], pair))
