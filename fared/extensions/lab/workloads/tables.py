"""Tables of a workload for people, 80 columns wide."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.table import Table

from fared.core.link_text import direction
from fared.core.units import format_bandwidth
from fared.extensions.lab.tables import list_table
from fared.extensions.lab.workloads.report import PERCENTILES, JobReport, WorkloadReport
from fared.extensions.lab.workloads.sizes import format_bytes

_BAR = 20


def completion_table(report: WorkloadReport) -> Table:
    """Format the completion times of each job, beside the least time possible."""
    table = list_table(f"{report.lab}: completion times, seconds")
    table.add_column("job", no_wrap=True)
    for heading in ("hosts", "moved", "done", "bound", "least", "median", "most", "of bound"):
        table.add_column(heading, justify="right")
    cycles = any(job.job.compute for job in report.jobs)
    if cycles:
        table.add_column("cycle", justify="right")
    for job in report.jobs:
        table.add_row(*_completions(job), *((f"{job.cycle:.3g}",) if cycles else ()))
    return table


def phases_table(report: JobReport) -> Table:
    """Format the phases of a job: the time in which each was under way, beside the least."""
    table = list_table(f"phases of {report.job.collective}, seconds under way in an iteration")
    table.add_column("phase", no_wrap=True)
    for heading in ("sends", "moved", "message", "bound", "median", "of bound"):
        table.add_column(heading, justify="right")
    for phase in report.phases:
        tasks = [task for task in report.job.graph.tasks if task.phase == phase.name]
        sends = sum(len(task.step) for task in tasks)
        table.add_row(
            phase.name,
            f"{sends:,}",
            format_bytes(phase.moved),
            format_bytes(phase.moved / max(1, sends)),
            "no path" if phase.bound is None else f"{phase.bound:.3g}",
            f"{phase.median:.3g}" if phase.seconds else "",
            "" if phase.efficiency is None else f"{phase.efficiency:.0%}",
        )
    return table


def latency_table(report: JobReport) -> Table:
    """Format percentiles of the latencies of requests, beside what one takes alone."""
    table = list_table(f"latency of {len(report.latencies):,} requests, seconds")
    table.add_column("alone", justify="right")
    for percent in PERCENTILES:
        table.add_column(f"p{percent}", justify="right")
    table.add_column("most", justify="right")
    values = [report.latency(percent) for percent in (*PERCENTILES, 100)]
    alone = "no path" if report.alone is None else f"{report.alone:.3g}"
    table.add_row(alone, *(f"{value:.3g}" for value in values))
    return table


def _completions(report: JobReport) -> Iterator[str]:
    seconds = [one.seconds for one in report.iterations]
    yield report.job.collective
    yield str(len(report.job.hosts))
    yield format_bytes(report.moved)
    yield str(len(seconds))
    yield "no path" if report.bound is None else f"{report.bound:.3g}"
    if seconds:
        yield from (f"{value:.3g}" for value in (min(seconds), report.median, max(seconds)))
        yield "" if report.efficiency is None else f"{report.efficiency:.0%}"


def uses_table(report: WorkloadReport, most: int = 8) -> Table:
    """Format the busiest links, by utilization."""
    table = Table(
        title=f"the busiest of {len(report.links)} links, parts of their rate",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("link")
    for heading in ("bit/s", "mean", "most"):
        table.add_column(heading, justify="right")
    table.add_column("")
    used = [link for link in report.links if link.utilisation]
    for link in sorted(used, key=lambda link: -link.mean)[:most]:
        table.add_row(
            direction(link.node, link.peer),
            format_bandwidth(link.rate),
            f"{link.mean:.0%}",
            f"{max(link.utilisation):.0%}",
            "█" * round(min(link.mean, 1.0) * _BAR),
        )
    return table
