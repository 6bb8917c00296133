"""Runs the jobs of a command on a lab that is up, and shows the results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from rich.console import Console

from fared.extensions.lab import holder
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.tables import segment_order_table
from fared.extensions.lab.workloads.jobs import Job

if TYPE_CHECKING:
    from fared.extensions.lab.workloads.report import WorkloadReport


def play(
    name: str | None,
    wanted: Callable[[Fabric], Sequence[Job]],
    *,
    pictures: Sequence[Path],
    heat: Sequence[Path],
    as_json: bool,
    **given: Any,  # noqa: ANN401 - of ``run``
) -> NoReturn:
    """Run jobs on a lab, by its name; print the report, and draw it."""

    def command(fabric: Fabric) -> int:
        # networkx and matplotlib: 100 ms, which the other commands, each node in a container
        # among them, need not pay.
        from fared.extensions.lab.pictures import check  # noqa: PLC0415
        from fared.extensions.lab.workloads import heat as heat_  # noqa: PLC0415
        from fared.extensions.lab.workloads import plots  # noqa: PLC0415
        from fared.extensions.lab.workloads.run import run  # noqa: PLC0415

        for picture in (*pictures, *heat):
            check(picture)
        report = run(fabric, wanted(fabric), **given)
        show(report, as_json=as_json)
        for picture in pictures:
            plots.draw(report, picture)
        for picture in heat:
            heat_.draw(report, picture)
        return 0

    sys.exit(holder.choose(name).run(command))


def show(report: WorkloadReport, *, as_json: bool) -> None:
    """Print the report as a document, or as tables."""
    from fared.extensions.lab.workloads import tables  # noqa: PLC0415 - networkx, as above

    if as_json:
        click.echo(report.as_json())
        return
    console = Console(highlight=False)
    console.print(tables.completion_table(report))
    for job in report.jobs:
        if job.phases:
            console.print(tables.phases_table(job))
        if job.latencies:
            console.print(tables.latency_table(job))
    orders = {
        f"{number} {job.job.collective}": job.order for number, job in enumerate(report.jobs, 1)
    }
    if any(order.segments for order in orders.values()):
        console.print(segment_order_table(orders))
    console.print(tables.uses_table(report))
