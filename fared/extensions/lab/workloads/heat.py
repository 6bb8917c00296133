"""A heat map of hosts: how many bytes each sends to each other one in an iteration."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from fared.extensions.lab import pictures
from fared.extensions.lab.workloads.report import WorkloadReport
from fared.extensions.lab.workloads.sizes import format_bytes
from fared.extensions.pictures import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEAST_SIDE, _SIDE_A_HOST = 4.6, 0.55
_BESIDE = 1.4
_WRITTEN = 16
"""So many hosts have their numbers in the map."""
_DARK = 0.55


def matrix(report: WorkloadReport) -> tuple[list[str], list[list[float]]]:
    """Return the ranks, first those of the first job, and bytes over the fabric (from, to).

    Jobs are added up.
    """
    hosts = list(dict.fromkeys(host for job in report.jobs for host in job.job.hosts))
    place = {host: at for at, host in enumerate(hosts)}
    found = [[0.0] * len(hosts) for _ in hosts]
    for job in report.jobs:
        for sent in job.sends:
            for (source, target), size in sent.items():
                found[place[source]][place[target]] += size
    return hosts, found


def draw(report: WorkloadReport, path: Path) -> None:
    """Draw the map into a file. Raises LabError without matplotlib, or if writing fails."""
    pictures.check(path)
    hosts, values = matrix(report)
    side = max(_LEAST_SIDE, _SIDE_A_HOST * len(hosts))
    drawn = pictures.figure(side + _BESIDE, side)
    axes = drawn.subplots()
    most = max(map(max, values), default=0.0) or 1.0
    shown = [[value or math.nan for value in row] for row in values]
    colours = axes.imshow(shown, cmap=figures.load(), vmin=0.0, vmax=most)
    axes.set_facecolor(figures.colors()["ground"])
    axes.set_title(_title(report), loc="left", fontweight="bold", pad=12)
    for ticks, labels in (
        (axes.set_xticks, axes.set_xticklabels),
        (axes.set_yticks, axes.set_yticklabels),
    ):
        ticks(range(len(hosts)))
        labels(hosts)
    axes.set_xlabel("to")
    axes.set_ylabel("from")
    axes.tick_params(length=0)
    axes.set_xticks([at - 0.5 for at in range(1, len(hosts))], minor=True)
    axes.set_yticks([at - 0.5 for at in range(1, len(hosts))], minor=True)
    axes.grid(which="minor", color=figures.colors()["surface"], linewidth=2)
    axes.tick_params(which="minor", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if len(hosts) <= _WRITTEN:
        _write(axes, values, most)
    bar = drawn.colorbar(colours, ax=axes, pad=0.03, shrink=0.8)
    bar.outline.set_visible(False)
    bar.set_label("bytes in an iteration")
    bar.ax.yaxis.set_major_formatter(lambda value, _: format_bytes(value))
    pictures.save(drawn, path)


def _title(report: WorkloadReport) -> str:
    names = ", ".join(dict.fromkeys(job.job.collective for job in report.jobs))
    total = sum(job.moved for job in report.jobs)
    return f"{names}: {format_bytes(total)}B between hosts"


def _write(axes: Axes, values: list[list[float]], most: float) -> None:
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            if value:
                name = "surface" if value > _DARK * most else "ink"
                axes.text(
                    column,
                    row,
                    format_bytes(value),
                    color=figures.colors()[name],
                    ha="center",
                    va="center",
                    fontsize=9,
                )
