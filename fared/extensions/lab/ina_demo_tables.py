"""Tables of the demonstration of in-network aggregation, 80 columns wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from fared.core.link_text import direction
from fared.extensions.ina.plan.model import TreePlan
from fared.extensions.lab.acts.panels import Panel, seconds
from fared.extensions.lab.addressing import AddressPlan, NodePlan
from fared.extensions.lab.workloads.jobs import INA
from fared.extensions.lab.workloads.report import JobReport, WorkloadReport
from fared.extensions.lab.workloads.sizes import format_bytes

_BAR = 24
Link = tuple[str, str]


@dataclass(frozen=True)
class Measured:
    """All-reduces over the planned trees, or over a given ``tree``.

    ``wanted`` are the bytes that the plan puts on a link in a call, ``carried`` those of its
    counters, ``repeated`` packets that workers sent again in all calls.
    """

    tree: str | None
    report: JobReport
    plan: TreePlan
    wanted: Mapping[Link, float]
    carried: Mapping[Link, float]
    repeated: int

    @property
    def name(self) -> str:
        """What it is called."""
        return "as planned" if self.tree is None else f"tree {self.tree}"


def times_table(measured: Sequence[Measured], others: Sequence[WorkloadReport]) -> Table:
    """Format times beside their bounds: of aggregation, what its tree allows, too."""
    table = Table(box=None, pad_edge=False)
    table.add_column("collective")
    for heading in ("bound", "tree allows", "median", "of bound"):
        table.add_column(heading, justify="right")
    table.add_column("beside aggregation")
    first = measured[0].report
    for one in measured:
        bound = one.report.bound
        allows = bound and one.plan.seconds(first.job.size)
        part = f"{bound / allows:.0%}" if bound and allows else ""
        name = INA if one.tree is None else f"  {one.name}"
        table.add_row(name, *_times(one.report, part), _beside(one.report, first))
    for report in others:
        (job,) = report.jobs
        table.add_row(job.job.collective, *_times(job, ""), _beside(job, first))
    return table


def times_panel(
    title: str, measured: Sequence[Measured], others: Sequence[WorkloadReport]
) -> Panel:
    """Return what a picture has of the same: times, and the least that are possible."""
    jobs = {INA if one.tree is None else one.name: one.report for one in measured}
    jobs |= {report.jobs[0].job.collective: report.jobs[0] for report in others}
    bars = {
        "least": [job.bound or 0.0 for job in jobs.values()],
        "measured": [job.median for job in jobs.values()],
    }
    return Panel(title, [*jobs], bars, seconds)


def _times(job: JobReport, allows: str) -> tuple[str, str, str, str]:
    bound = "" if job.bound is None else f"{job.bound:.2f} s"
    part = "" if job.efficiency is None else f"{job.efficiency:.0%}"
    return bound, allows, f"{job.median:.2f} s", part


def _beside(job: JobReport, first: JobReport) -> str:
    return "" if job is first else f"{job.median / first.median:.2f} times as long"


def links_table(measured: Sequence[Measured], plan: AddressPlan) -> Table:
    """Format what each link carries in a call, as planned and as counted."""
    table = Table(box=None, pad_edge=False)
    table.add_column("bytes of a call, on")
    for one in measured:
        table.add_column(one.name, justify="right")
        table.add_column("counted", justify="right")
    for router in plan.routers:
        for port in router.fabric_ports:
            link = router.name, port.peer
            if any(link in one.wanted for one in measured):
                cells = (cell for one in measured for cell in _bytes(one, link))
                table.add_row(direction(*link), *cells)
    return table


def _bytes(one: Measured, link: Link) -> tuple[str, str]:
    if link not in one.wanted:
        return "-", "-"
    return format_bytes(one.wanted[link]), format_bytes(one.carried[link])


def uplinks_table(measured: Measured, leaf: NodePlan) -> Table:
    """Format what a leaf sends over each uplink."""
    table = Table(f"{leaf.name} to", "sent by aggregation", "", box=None, pad_edge=False)
    sent = {port.peer: measured.carried[leaf.name, port.peer] for port in leaf.fabric_ports}
    most = max(sent.values())
    for peer, found in sent.items():
        bar = "█" * round(_BAR * found / most) if most else ""
        table.add_row(peer, f"{format_bytes(found)}B a call", bar)
    return table
