"""Tables for people, 80 columns wide."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.table import Table

from fared.core.units import BytesPerSecond, format_bandwidth
from fared.lab.traffic import TrafficReport

_BAR = 20


def shares_table(
    report: TrafficReport, capacities: Mapping[str, BytesPerSecond] | None = None
) -> Table:
    """Lay out where the flows went; ``capacities`` adds what each path can carry, bytes/s."""
    title = f"{report.leaf} to {report.prefix}: {report.flows:,} flows {report.source} to {report.destination}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("next hop")
    if capacities is not None:
        table.add_column("path capacity", justify="right")
    for heading in ("weight", "expected", "measured"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for up in report.uplinks:
        cells = [up.interface, str(up.weight), f"{up.expected:.1%}", f"{up.measured:.1%}"]
        if capacities is not None:
            cells.insert(1, f"{format_bandwidth(capacities.get(up.interface))}bit/s")
        table.add_row(*cells, "█" * round(up.measured * _BAR * 2))
    return table
