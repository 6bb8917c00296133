"""The document ``fared-plan-jobs/1``: scores of links, shifts of jobs, who should not meet."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from fared.extensions.offline.plan.jobs.circle import (
    JobPattern,
    LinkShare,
    best_shifts,
    circle_length,
    score,
)
from fared.extensions.offline.plan.jobs.placement import BetterPlacement
from fared.extensions.offline.plan.jobs.shifts import SharedLink, ShiftSchedule

Json = dict[str, Any]
COMPATIBLE = 0.999
"""The score from which jobs may share a link: what remains is rounding to ticks."""


def jobs_document(
    jobs: Sequence[JobPattern], found: ShiftSchedule, tick: float, better: BetterPlacement | None
) -> Json:
    """Return the document: seconds, bytes/s, and radians on the unified circle."""
    by_name = {job.name: job for job in jobs}
    return {
        "format": "fared-plan-jobs/1",
        "tick": tick,
        "score": found.score,
        "jobs": [
            {
                "name": job.name,
                "period": job.period * tick,
                "busy": job.busy * tick,
                "shift": found.shifts[job.name] * tick,
                "margin": found.margins[job.name] * tick,
            }
            for job in jobs
        ],
        "links": [_link(one, by_name, tick) for one in found.shared],
        "apart": _apart(found, by_name),
        "better": better
        and {"jobs": list(better.jobs), "exchange": list(better.hosts), "score": better.score},
    }


def _link(one: SharedLink, jobs: dict[str, JobPattern], tick: float) -> Json:
    length = circle_length([jobs[name] for name in one.jobs])
    return {
        "link": one.link.name,
        "capacity": one.link.capacity,
        "score": one.score,
        "alone": one.alone,
        "unshifted": one.unshifted,
        "circle": length * tick,
        "jobs": [
            {
                "name": name,
                "rate": one.link.rates[name],
                "shift": one.alone_shifts[name] * tick,
                "angle": 2 * math.pi * one.alone_shifts[name] / length,
            }
            for name in one.jobs
        ],
    }


def _apart(found: ShiftSchedule, jobs: dict[str, JobPattern]) -> list[Json]:
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
        {"jobs": list(pair), "link": link, "score": value}
        for pair, (value, link) in sorted(worst.items(), key=lambda item: item[1])
    ]


def _pair_score(link: LinkShare, pair: list[JobPattern]) -> float:
    return score(link, pair, best_shifts([link], pair))
