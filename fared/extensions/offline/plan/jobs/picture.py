"""Jobs of a shared link as a picture: each rolled around the unified circle, before and after.

Two circles: all jobs begin together, and with their shifts. An arc of color is where a job
communicates; the outer ring is what all of them ask of the link, in red above its capacity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from fared.extensions.offline.plan.jobs.circle import JobPattern, circle_length, demand, score
from fared.extensions.offline.plan.jobs.shifts import SharedLink, ShiftSchedule
from fared.extensions.pictures import figures
from fared.management.documents import human

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure
    from matplotlib.projections.polar import PolarAxes

_WIDTH, _HEIGHT = 11.0, 6.2
_INNER, _RING, _GAP = 0.9, 0.34, 0.1
_TOTAL = 0.7
"""Radius of the first ring, width of a ring and between rings, height of a demand of 1."""


def draw_jobs(
    patterns: Sequence[JobPattern], found: ShiftSchedule, tick: float, path: Path
) -> None:
    """Draw the link with the lowest score. Raises PictureError, also if no jobs share a link."""
    if not found.shared:
        raise figures.PictureError("no jobs share a link: nothing to draw")
    worst = found.shared[0]
    jobs = [job for job in patterns if job.name in worst.jobs]
    length = circle_length(jobs)
    drawn = figures.figure(_WIDTH, _HEIGHT)
    capacity = f"{human.bandwidth(worst.link.capacity)}bit/s"
    drawn.suptitle(f"{worst.link.name}, {capacity}: a circle of {human.duration(length * tick)}\n")
    together: Mapping[str, int] = dict.fromkeys(worst.jobs, 0)
    sides = (("All begin together", together), ("Shifted", found.shifts))
    for at, (title, shifts) in enumerate(sides, 1):
        axes = cast("PolarAxes", drawn.add_subplot(1, 2, at, projection="polar"))
        axes.set_title(f"{title}: score {score(worst.link, jobs, shifts):.3f}", pad=16)
        _rings(axes, jobs, shifts, tick)
        _demand(axes, worst, jobs, shifts)
        _marks(axes, length * tick)
    _common(drawn)
    figures.save(drawn, path)


def _common(drawn: Figure) -> None:
    """One scale and one legend for both circles."""
    named: dict[str, Artist] = {}
    highest = max(axes.get_ylim()[1] for axes in drawn.axes)
    for axes in drawn.axes:
        axes.set_ylim(0.0, highest)
        handles, labels = axes.get_legend_handles_labels()
        named.update(zip(labels, handles, strict=True))
    drawn.legend(list(named.values()), list(named), loc="outside lower center", ncols=5)


def _rings(
    axes: PolarAxes, jobs: Sequence[JobPattern], shifts: Mapping[str, int], tick: float
) -> None:
    length, ground = circle_length(jobs), figures.colors()["ground"]
    for at, job in enumerate(jobs):
        bottom = _INNER + at * (_RING + _GAP)
        _arcs(axes, np.ones(length), _RING, bottom, color=ground)
        label = f"{job.name}: {human.duration(job.busy * tick)} of every "
        label += human.duration(job.period * tick)
        _arcs(
            axes,
            demand(job, length, shifts[job.name]),
            _RING,
            bottom,
            color=figures.color(at),
            label=label,
        )


def _demand(
    axes: PolarAxes, worst: SharedLink, jobs: Sequence[JobPattern], shifts: Mapping[str, int]
) -> None:
    known, length = figures.colors(), circle_length(jobs)
    rates = [worst.link.rates[job.name] / worst.link.capacity for job in jobs]
    busy = [demand(job, length, shifts[job.name]) for job in jobs]
    whole = np.sum([rate * one for rate, one in zip(rates, busy, strict=True)], axis=0)
    outer = _INNER + len(jobs) * (_RING + _GAP)
    _arcs(axes, np.minimum(whole, 1.0), _TOTAL, outer, color=known["load0"], label="demand")
    excess = np.maximum(whole - 1.0, 0.0)
    _arcs(axes, excess, _TOTAL, outer + _TOTAL, color=known["sick"], label="above the capacity")
    around = np.linspace(0.0, 2 * math.pi, 361)
    edge = np.full(around.shape, outer + _TOTAL)
    axes.plot(around, edge, color=known["dim"], linewidth=1.0, linestyle="--", label="capacity")
    axes.set_ylim(0.0, outer + _TOTAL * max(1.0, float(whole.max())))


def _arcs(
    axes: PolarAxes,
    values: NDArray[np.float64],
    height: float,
    bottom: float,
    *,
    color: str,
    label: str | None = None,
) -> None:
    """Draw values (A,) around the circle; equal ones beside each other are one arc."""
    starts = np.flatnonzero(np.diff(values, prepend=-1.0))
    widths = np.diff(starts, append=len(values)) * 2 * math.pi / len(values)
    some = values[starts] > 0.0
    if some.any():
        begins = starts[some] * 2 * math.pi / len(values)
        heights = values[starts[some]] * height
        axes.bar(
            begins,
            heights,
            widths[some],
            bottom,
            align="edge",
            linewidth=0,
            color=color,
            label=label,
        )


def _marks(axes: PolarAxes, seconds: float) -> None:
    """Times around the circle, clockwise from the top; no other ticks."""
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.spines["polar"].set_visible(False)
    axes.set_xticks([at * math.pi / 2 for at in range(4)])
    axes.set_xticklabels([human.duration(seconds * at / 4) if at else "0" for at in range(4)])
