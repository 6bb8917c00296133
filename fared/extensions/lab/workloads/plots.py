"""Pictures of a workload: tasks of an iteration, link utilization, and completion times.

The file's name decides between PNG and SVG.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fared.core.link_text import direction
from fared.extensions.lab import pictures
from fared.extensions.lab.workloads.report import JobReport, LinkUse, WorkloadReport
from fared.extensions.lab.workloads.sizes import format_bytes
from fared.extensions.pictures import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH = 10.0
_ROW, _LANE = 0.17, 0.32
_MOST_LINKS = 24
_LEAST_MAP = 2.0
_TIMES_HEIGHT = 3.0
_TASKS_BESIDE = 1.3


def draw(report: WorkloadReport, path: Path) -> None:
    """Draw a report into a file. Raises LabError without matplotlib, or if writing fails."""
    pictures.check(path)
    staged = [job for job in report.jobs if job.phases and job.times]
    heights = [
        *(_TASKS_BESIDE + _LANE * len(job.job.hosts) for job in staged),
        max(_LEAST_MAP, _ROW * len(_busiest(report))),
        _TIMES_HEIGHT,
    ]
    whole = pictures.figure(_WIDTH, sum(heights))
    *tasks, above, below = whole.subplots(len(heights), 1, height_ratios=heights)
    above.sharex(below)
    for axes, job in zip(tasks, staged, strict=True):
        draw_tasks(axes, job)
    _draw_links(whole, above, report)
    _draw_completions(below, report)
    pictures.save(whole, path)


def draw_tasks(axes: Axes, report: JobReport) -> None:
    """Draw a lane for each rank: when it sent what over the fabric in the last iteration."""
    graph, hosts = report.job.graph, report.job.hosts
    lanes = {host: at for at, host in enumerate(hosts)}
    phases = graph.phases
    height = 0.8 / len(phases)
    for number, phase in enumerate(phases):
        for task, sent, time in zip(graph.tasks, report.sends, report.times, strict=True):
            if task.phase != phase:
                continue
            for rank in {lanes[source] for source, _ in sent}:
                axes.broken_barh(
                    [(time.begun, max(time.ended - time.begun, 0.0))],
                    (rank - 0.4 + number * height, height),
                    color=figures.color(number),
                    linewidth=0,
                )
    _tidy(axes)
    seconds = report.iterations[-1].seconds
    moved = format_bytes(report.moved)
    bound = "" if report.bound is None else f", at least {report.bound:.3g} s"
    title = f"{report.job.collective}: {moved}B in {seconds:.3g} s{bound}"
    axes.set_title(title, loc="left", fontweight="bold", color=figures.colors()["ink"])
    axes.set_yticks(range(len(hosts)), hosts)
    axes.set_ylim(len(hosts) - 0.4, -0.6)
    axes.set_xlim(0.0, seconds)
    axes.set_xlabel("seconds of the last iteration, by sending host")
    for number, found in enumerate(report.phases):
        least = "" if found.bound is None else f", at least {found.bound:.3g} s"
        label = f"{found.name}: {format_bytes(found.moved)}B in {found.seconds[-1]:.3g} s{least}"
        axes.plot([], [], linewidth=6, color=figures.color(number), label=label)
    axes.legend(loc="upper left", bbox_to_anchor=(0.0, -0.16), ncols=2, frameon=False, fontsize=9)


def _busiest(report: WorkloadReport) -> list[LinkUse]:
    """Return the links that are drawn, in the order of the report."""
    used = [link for link in report.links if link.utilisation]
    chosen = sorted(used, key=lambda link: -link.mean)[:_MOST_LINKS]
    return [link for link in used if link in chosen]


def _draw_links(whole: Figure, axes: Axes, report: WorkloadReport) -> None:
    """One row for each link, colored by utilization: many lines would be unreadable."""
    links = _busiest(report)
    title = f"{report.lab}: utilization of the {len(links)} busiest of {len(report.links)} links"
    axes.set_title(title, loc="left", fontweight="bold", color=figures.colors()["ink"])
    if not links:
        return
    edges = [0.0, *report.times]
    rows = [number - 0.5 for number in range(len(links) + 1)]
    values = [list(link.utilisation) for link in links]
    colours = axes.pcolormesh(
        edges, rows, values, vmin=0.0, vmax=1.0, cmap=figures.load(), rasterized=True
    )
    _tidy(axes)
    axes.set_yticks(range(len(links)))
    axes.set_yticklabels([direction(link.node, link.peer) for link in links], fontsize=8)
    axes.invert_yaxis()
    bar = whole.colorbar(colours, ax=axes, label="part of the rate", pad=0.01)
    bar.outline.set_visible(False)


def _draw_completions(axes: Axes, report: WorkloadReport) -> None:
    """A dot for each iteration, where it began; a dashed line for the least time possible."""
    for number, job in enumerate(report.jobs):
        colour = figures.color(number)
        name = f"{job.job.collective}, {len(job.job.hosts)} hosts"
        begun = [one.begun for one in job.iterations]
        seconds = [one.seconds for one in job.iterations]
        axes.plot(begun, seconds, "o", markersize=5, color=colour, label=name)
        if job.bound is not None:
            axes.axhline(job.bound, linestyle="--", linewidth=1.2, color=colour)
    _tidy(axes)
    title = "completion time of iterations (dashed: the least possible)"
    axes.set_title(title, loc="left", fontweight="bold", color=figures.colors()["ink"])
    axes.set_xlabel("seconds")
    axes.set_ylabel("seconds")
    axes.grid(axis="y", color=figures.colors()["line"])
    axes.set_axisbelow(True)
    axes.set_xlim(left=0.0)
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="best", fontsize=9, frameon=False)


def _tidy(axes: Axes) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(figures.colors()["line"])
    axes.tick_params(length=0, colors=figures.colors()["dim"])
