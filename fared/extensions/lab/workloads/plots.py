"""Pictures of a workload: tasks of an iteration, link utilization, and completion times.

matplotlib draws them, as PNG or SVG by the file's name. It is an optional dependency (the extra
``plot``), imported only here and only when a picture is requested. Colors are those of the page
(``fared/management/api/static/page.css``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fared.core.link_text import direction
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.workloads.report import JobReport, LinkUse, WorkloadReport
from fared.extensions.lab.workloads.sizes import format_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg")
INK, DIM, GROUND, SURFACE, LINE = "#14202e", "#566375", "#f4f6fa", "#ffffff", "#dde3ec"
LOAD = ("#e9eef6", "#b4c4da", "#1546c8", "#0b1f5c")
COLOURS = ("#1546c8", "#d9650b", "#087f5b", "#7a4fb0", "#cf2338", "#38a3c8", "#c9b458", "#566375")
"""Of jobs and of phases, in their order."""
_WIDTH = 10.0
_ROW, _LANE = 0.17, 0.32
_MOST_LINKS = 24
_LEAST_MAP = 2.0
_TIMES_HEIGHT = 3.0
_TASKS_BESIDE = 1.3
_DPI = 150


def draw(report: WorkloadReport, path: Path) -> None:
    """Draw a report into a file. Raises LabError without matplotlib, or if writing fails."""
    check(path)
    staged = [job for job in report.jobs if job.phases and job.times]
    heights = [
        *(_TASKS_BESIDE + _LANE * len(job.job.hosts) for job in staged),
        max(_LEAST_MAP, _ROW * len(_busiest(report))),
        _TIMES_HEIGHT,
    ]
    whole = figure(_WIDTH, sum(heights))
    *tasks, above, below = whole.subplots(len(heights), 1, height_ratios=heights)
    above.sharex(below)
    for axes, job in zip(tasks, staged, strict=True):
        _draw_tasks(axes, job)
    _draw_links(whole, above, report)
    _draw_completions(below, report)
    save(whole, path)


def check(path: Path) -> None:
    """Check, before anything runs, that a picture can be drawn. Raises LabError."""
    if path.suffix not in SUFFIXES:
        raise LabError(f"{path}: the format of a picture is .png or .svg")
    figure(1.0, 1.0)


def figure(width: float, height: float) -> Figure:
    """Return an empty figure, inches. Raises LabError without matplotlib."""
    try:
        from matplotlib import rc_context  # noqa: PLC0415 - heavy, and not everybody has it
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise LabError("pictures require matplotlib: pip install 'fared[plot]'") from error
    with rc_context(_STYLE):
        return Figure(figsize=(width, height), layout="constrained")


def load_colours() -> Colormap:
    """Return the colors of load, from pale to strong, as in the page."""
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415 - as above

    return LinearSegmentedColormap.from_list("load", LOAD)


def save(whole: Figure, path: Path) -> None:
    """Write a figure. Raises LabError."""
    from matplotlib import rc_context  # noqa: PLC0415 - as above

    try:
        with rc_context(_STYLE):
            whole.savefig(path, dpi=_DPI, facecolor=SURFACE)
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error


_STYLE: dict[str, Any] = {"svg.fonttype": "none"}


def _draw_tasks(axes: Axes, report: JobReport) -> None:
    """A lane for each host: when it sent what in the last iteration."""
    graph, hosts = report.job.graph, report.job.hosts
    phases = graph.phases
    height = 0.8 / len(phases)
    for number, phase in enumerate(phases):
        for task, time in zip(graph.tasks, report.times, strict=True):
            if task.phase != phase:
                continue
            for rank in {source for source, _ in task.transfers()}:
                axes.broken_barh(
                    [(time.begun, max(time.ended - time.begun, 0.0))],
                    (rank - 0.4 + number * height, height),
                    color=COLOURS[number % len(COLOURS)],
                    linewidth=0,
                )
    _tidy(axes)
    seconds = report.iterations[-1].seconds
    moved = format_bytes(report.moved)
    bound = "" if report.bound is None else f", at least {report.bound:.3g} s"
    title = f"{report.job.collective}: {moved}B in {seconds:.3g} s{bound}"
    axes.set_title(title, loc="left", fontweight="bold", color=INK)
    axes.set_yticks(range(len(hosts)), hosts)
    axes.set_ylim(len(hosts) - 0.4, -0.6)
    axes.set_xlim(0.0, seconds)
    axes.set_xlabel("seconds of the last iteration, by sending host")
    for number, found in enumerate(report.phases):
        least = "" if found.bound is None else f", at least {found.bound:.3g} s"
        label = f"{found.name}: {format_bytes(found.moved)}B in {found.seconds[-1]:.3g} s{least}"
        axes.plot([], [], linewidth=6, color=COLOURS[number % len(COLOURS)], label=label)
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
    axes.set_title(title, loc="left", fontweight="bold", color=INK)
    if not links:
        return
    edges = [0.0, *report.times]
    rows = [number - 0.5 for number in range(len(links) + 1)]
    values = [list(link.utilisation) for link in links]
    colours = axes.pcolormesh(
        edges, rows, values, vmin=0.0, vmax=1.0, cmap=load_colours(), rasterized=True
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
        colour = COLOURS[number % len(COLOURS)]
        name = f"{job.job.collective}, {len(job.job.hosts)} hosts"
        begun = [one.begun for one in job.iterations]
        seconds = [one.seconds for one in job.iterations]
        axes.plot(begun, seconds, "o", markersize=5, color=colour, label=name)
        if job.bound is not None:
            axes.axhline(job.bound, linestyle="--", linewidth=1.2, color=colour)
    _tidy(axes)
    title = "completion time of iterations (dashed: the least possible)"
    axes.set_title(title, loc="left", fontweight="bold", color=INK)
    axes.set_xlabel("seconds")
    axes.set_ylabel("seconds")
    axes.grid(axis="y", color=LINE)
    axes.set_axisbelow(True)
    axes.set_xlim(left=0.0)
    axes.set_ylim(bottom=0.0)
    axes.legend(loc="best", fontsize=9, frameon=False)


def _tidy(axes: Axes) -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    axes.tick_params(length=0, colors=DIM)
