"""Jobs on one link: the unified circle, its compatibility score, and the best rotations.

A job alternates between computing and communicating, iteration after iteration. Rolled around a
circle whose length is the least common multiple of all periods, it is the same in each turn; a
later start is a rotation of its pattern. The score is 1 - sum(excess) / (|A| C): excess is demand
above the capacity C, at each of the places A of the circle.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

MOST_PLACES = 20_000
"""Places of a circle: longer periods need coarser ticks."""
_MOST_TRIED = 100_000
_RESTARTS, _ROUNDS = 8, 20
_EXACT = 1e-9


class CircleError(ValueError):
    """The periods have no common multiple that is short enough."""


class JobPattern(msgspec.Struct, frozen=True):
    """One iteration: it communicates ``busy`` ticks from its start on, then computes.

    ``period`` and ``busy`` are ticks; what a job sends is given for each link.
    """

    name: str
    period: int
    busy: int


class LinkShare(msgspec.Struct, frozen=True):
    """A link, its capacity, and what each job sends over it while it communicates, bytes/s."""

    name: str
    capacity: float
    rates: Mapping[str, float]


def circle_length(jobs: Sequence[JobPattern]) -> int:
    """Return the least common multiple of the periods, ticks. Raises CircleError."""
    length = math.lcm(*(job.period for job in jobs))
    if length > MOST_PLACES:
        names = ", ".join(job.name for job in jobs)
        raise CircleError(
            f"the periods of {names} repeat after {length} ticks only; use a coarser --tick"
        )
    return length


def demand(job: JobPattern, length: int, shift: int = 0) -> NDArray[np.float64]:
    """Return where on the circle (A,) a job communicates: 1, elsewhere 0."""
    return (((np.arange(length) - shift) % job.period) < job.busy).astype(float)


def score(link: LinkShare, jobs: Sequence[JobPattern], shifts: Mapping[str, int]) -> float:
    """Return the compatibility score of jobs on a link with given shifts (ticks)."""
    length = circle_length(jobs)
    whole = sum(
        (link.rates.get(job.name, 0.0) * demand(job, length, shifts[job.name]) for job in jobs),
        np.zeros(length),
    )
    excess = np.maximum(whole - link.capacity, 0.0).sum()
    return 1.0 - float(excess) / (length * link.capacity)


def best_shifts(links: Sequence[LinkShare], jobs: Sequence[JobPattern]) -> dict[str, int]:
    """Return shifts (ticks) of all jobs that maximize the sum of the scores of links.

    The first job is not shifted. All shifts are tried where these are few; otherwise one job after
    another gets its best shift, from several starts.
    """
    search = _Search(links, jobs)
    later = [job.period for job in jobs[1:]]
    if math.prod(later) <= _MOST_TRIED:
        return search.exhaustive()
    return search.descent()


class _Search:
    def __init__(self, links: Sequence[LinkShare], jobs: Sequence[JobPattern]) -> None:
        self._jobs = list(jobs)
        self._length = circle_length(jobs)
        self._turned = [
            np.stack([demand(job, self._length, shift) for shift in range(job.period)])
            for job in jobs
        ]
        self._links = [
            (
                [at for at, job in enumerate(jobs) if link.rates.get(job.name, 0.0) > 0.0],
                [link.rates.get(job.name, 0.0) for job in jobs],
                link.capacity,
            )
            for link in links
        ]

    def exhaustive(self) -> dict[str, int]:
        """Try all shifts of all jobs but the first; those of the last one at once."""
        if len(self._jobs) == 1:
            return {self._jobs[0].name: 0}
        best = (math.inf, [0] * len(self._jobs))
        between = [range(job.period) for job in self._jobs[1:-1]]
        for middle in itertools.product(*between):
            shifts = [0, *middle, 0]
            excess = self._excesses(shifts, len(shifts) - 1)
            at = int(excess.argmin())
            if excess[at] < best[0] - _EXACT:
                best = (float(excess[at]), [*shifts[:-1], at])
        return self._named(best[1])

    def descent(self) -> dict[str, int]:
        """Improve one job after another, from several starts."""
        rng = random.Random(1)
        best = (math.inf, [0] * len(self._jobs))
        for start in range(_RESTARTS):
            shifts = [
                0 if at == 0 or start == 0 else rng.randrange(job.period)
                for at, job in enumerate(self._jobs)
            ]
            value = math.inf
            for _ in range(_ROUNDS):
                before = value
                for at in range(1, len(shifts)):
                    excess = self._excesses(shifts, at)
                    if excess.min() < excess[shifts[at]] - _EXACT:
                        shifts[at] = int(excess.argmin())
                    value = float(excess[shifts[at]])
                if value > before - _EXACT:
                    break
            if value < best[0] - _EXACT:
                best = (value, shifts)
        return self._named(best[1])

    def _excesses(self, shifts: list[int], moved: int) -> NDArray[np.float64]:
        """Return the mean excess of all links, in capacities, for each shift of one job."""
        found = np.zeros(self._jobs[moved].period)
        for on_link, rates, capacity in self._links:
            rest = np.zeros(self._length)
            for at in on_link:
                if at != moved:
                    rest += rates[at] * self._turned[at][shifts[at]]
            if moved in on_link:
                whole = rest[None, :] + rates[moved] * self._turned[moved]
            else:
                whole = rest[None, :]
            excess = np.maximum(whole - capacity, 0.0).sum(axis=1)
            found += excess / (self._length * capacity)
        return found

    def _named(self, shifts: Sequence[int]) -> dict[str, int]:
        return {job.name: shift for job, shift in zip(self._jobs, shifts, strict=True)}
