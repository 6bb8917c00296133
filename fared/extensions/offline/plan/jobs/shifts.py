"""One shift for each job that suits all of its links: the affinity graph.

Jobs and links are the two sides of a graph, with an edge where a job loads a link. Jobs that no
path connects do not matter to each other; in each connected part one search finds the shifts of
all of its jobs at once, so that the loops of the graph, which CASSINI avoids, do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from fared.extensions.offline.plan.jobs.circle import JobPattern, LinkShare, best_shifts, score

_EXACT = 1e-9


class SharedLink(msgspec.Struct, frozen=True):
    """A link of two jobs or more.

    ``alone`` is the best score that the link by itself allows, with ``alone_shifts`` (ticks);
    ``score`` that with the shifts of all jobs, ``unshifted`` that without shifts.
    """

    link: LinkShare
    jobs: tuple[str, ...]
    alone: float
    alone_shifts: dict[str, int]
    score: float
    unshifted: float


class ShiftSchedule(msgspec.Struct, frozen=True):
    """The shift of each job, ticks, and the links that jobs share, lowest score first.

    ``margins``: ticks by which the iterations of compatible jobs may differ from their pattern.
    """

    shifts: dict[str, int]
    shared: tuple[SharedLink, ...]
    margins: dict[str, int]

    @property
    def score(self) -> float:
        """The score of the worst link; 1 if no jobs meet."""
        return min((one.score for one in self.shared), default=1.0)


def schedule(links: Sequence[LinkShare], jobs: Sequence[JobPattern]) -> ShiftSchedule:
    """Find shifts of all jobs. Raises CircleError."""
    shared = [link for link in links if sum(rate > 0.0 for rate in link.rates.values()) > 1]
    shifts: dict[str, int] = {}
    margins: dict[str, int] = {}
    for part in affinity_parts(shared, jobs):
        names = {job.name for job in part}
        mine = [link for link in shared if names & {n for n, r in link.rates.items() if r > 0.0}]
        found_shifts, margin = _with_margin(_distinct(mine), part)
        shifts |= found_shifts
        margins |= dict.fromkeys(found_shifts, margin)
    unshifted = dict.fromkeys(shifts, 0)
    found = []
    alone: dict[tuple[object, ...], dict[str, int]] = {}
    for link in shared:
        on_link = [job for job in jobs if link.rates.get(job.name, 0.0) > 0.0]
        key = _effect(link)
        if key not in alone:
            alone[key] = best_shifts([link], on_link)
        found.append(
            SharedLink(
                link=link,
                jobs=tuple(job.name for job in on_link),
                alone=score(link, on_link, alone[key]),
                alone_shifts=alone[key],
                score=score(link, on_link, shifts),
                unshifted=score(link, on_link, unshifted),
            )
        )
    found.sort(key=lambda one: (one.score, one.link.name))
    return ShiftSchedule(shifts, tuple(found), margins)


def _with_margin(
    links: Sequence[LinkShare], jobs: Sequence[JobPattern]
) -> tuple[dict[str, int], int]:
    """Return the best shifts of jobs that meet, and the longest margin between their turns.

    Iterations are never equally long, and jobs that overlap once stay together: each would
    communicate longer and begin the next iteration as much later. So compatible jobs are kept as
    far apart as possible: with the longest turns that are compatible still.
    """
    best, margin = best_shifts(links, jobs), 0
    most = max(job.period - job.busy for job in jobs)
    if not links or not _compatible(links, jobs, best):
        return best, margin
    while margin < most:
        middle = (margin + most + 1) // 2
        longer = [
            msgspec.structs.replace(job, busy=min(job.busy + middle, job.period)) for job in jobs
        ]
        found = best_shifts(links, longer)
        if _compatible(links, longer, found):
            best, margin = found, middle
        else:
            most = middle - 1
    return best, margin


def _compatible(
    links: Sequence[LinkShare], jobs: Sequence[JobPattern], shifts: Mapping[str, int]
) -> bool:
    return all(score(link, jobs, shifts) >= 1.0 - _EXACT for link in links)


def affinity_parts(
    links: Sequence[LinkShare], jobs: Sequence[JobPattern]
) -> list[list[JobPattern]]:
    """Return the connected parts of the affinity graph, as jobs."""
    part = {job.name: at for at, job in enumerate(jobs)}
    for link in links:
        numbers = {part[name] for name, rate in link.rates.items() if rate > 0.0}
        least = min(numbers, default=0)
        part = {name: least if number in numbers else number for name, number in part.items()}
    return [[job for job in jobs if part[job.name] == n] for n in sorted(set(part.values()))]


def _effect(link: LinkShare) -> tuple[object, ...]:
    rates = sorted((n, r) for n, r in link.rates.items() if r > 0.0)
    return (link.capacity, *rates)


def _distinct(links: Sequence[LinkShare]) -> list[LinkShare]:
    """Links that the same jobs load equally count once."""
    return list({_effect(link): link for link in links}.values())
