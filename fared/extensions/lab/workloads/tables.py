"""Tables of a workload for people, 80 columns wide."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.table import Table

from fared.core.link_text import direction
from fared.core.units import format_bandwidth
from fared.extensions.lab.workloads.report import JobReport, WorkloadReport

_BAR = 20


def completion_table(report: WorkloadReport) -> Table:
    """Format the completion times of each job, beside the least time possible."""
    table = Table(
        title=f"{report.lab}: completion times, seconds",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("job", no_wrap=True)
    for heading in ("hosts", "moved", "done", "bound", "least", "median", "most", "of bound"):
        table.add_column(heading, justify="right")
    cycles = any(job.job.compute for job in report.jobs)
    if cycles:
        table.add_column("cycle", justify="right")
    for job in report.jobs:
        table.add_row(*_completions(job), *((f"{job.cycle:.3g}",) if cycles else ()))
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


def format_bytes(size: float) -> str:
    """Format bytes with a suffix, powers of 1000, three digits: ``256M``."""
    for suffix, unit in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if size >= unit:
            return f"{size / unit:.3g}{suffix}"
    return f"{size:.0f}"
