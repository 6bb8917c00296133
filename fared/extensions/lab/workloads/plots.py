"""Plots of a workload: link utilization over time, and completion times of iterations.

matplotlib draws them, as PNG or SVG by the file's name. It is an optional dependency (the extra
``plot``), imported only here and only when a plot is requested.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fared.core.link_text import direction
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.workloads.report import WorkloadReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg")
_WIDTH = 10.0
_ROW = 0.14
_LEAST_MAP = 2.0
_TIMES_HEIGHT = 3.0
_DPI = 120


def draw(report: WorkloadReport, path: Path) -> None:
    """Draw a report into a file. Raises LabError without matplotlib, or if writing fails."""
    check(path)
    height = max(_LEAST_MAP, _ROW * len(report.links)) + _TIMES_HEIGHT
    figure = _figure(height)
    above, below = figure.subplots(
        2, 1, height_ratios=[height - _TIMES_HEIGHT, _TIMES_HEIGHT], sharex=True
    )
    _draw_links(figure, above, report)
    _draw_completions(below, report)
    try:
        figure.savefig(path, dpi=_DPI)
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error


def check(path: Path) -> None:
    """Check, before anything runs, that a report can be drawn. Raises LabError."""
    if path.suffix not in SUFFIXES:
        raise LabError(f"{path}: the format of a picture is .png or .svg")
    _figure(1.0)


def _figure(height: float) -> Figure:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - heavy, and not everybody has it
    except ImportError as error:
        raise LabError("pictures require matplotlib: pip install 'fared[plot]'") from error
    return Figure(figsize=(_WIDTH, height), layout="constrained")


def _draw_links(figure: Figure, axes: Axes, report: WorkloadReport) -> None:
    """One row for each link, colored by utilization: 64 lines would be unreadable."""
    axes.set_title(f"{report.lab}: link utilisation")
    if not report.times:
        return
    edges = [0.0, *report.times]
    rows = [number - 0.5 for number in range(len(report.links) + 1)]
    values = [list(link.utilisation) for link in report.links]
    colours = axes.pcolormesh(
        edges, rows, values, vmin=0.0, vmax=1.0, cmap="inferno", rasterized=True
    )
    axes.set_yticks(range(len(report.links)))
    axes.set_yticklabels([direction(link.node, link.peer) for link in report.links], fontsize=6)
    axes.invert_yaxis()
    figure.colorbar(colours, ax=axes, label="part of the rate", pad=0.01)


def _draw_completions(axes: Axes, report: WorkloadReport) -> None:
    """A dot for each iteration, where it began; a dashed line for the least time possible."""
    for number, job in enumerate(report.jobs):
        name = f"{job.job.collective}, {len(job.job.hosts)} hosts"
        begun = [one.begun for one in job.iterations]
        seconds = [one.seconds for one in job.iterations]
        axes.plot(begun, seconds, "o", markersize=4, color=f"C{number}", label=name)
        if job.bound is not None:
            axes.axhline(job.bound, linestyle="--", linewidth=1, color=f"C{number}")
    axes.set_title("completion time of iterations (dashed: the least possible)")
    axes.set_xlabel("seconds")
    axes.set_ylabel("seconds")
    axes.set_xlim(left=0.0)
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="best", fontsize=8)
