"""Tables for people, 80 columns wide."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.table import Table

from fared.core.units import BytesPerSecond, format_bandwidth
from fared.lab.traffic import TrafficReport

_BAR = 12


def shares_table(
    *reports: TrafficReport, capacities: Mapping[str, BytesPerSecond] | None = None
) -> Table:
    """Format the distribution of flows: one report, or one for each family over the same uplinks.

    ``capacities`` adds the capacity of each path, bytes/s. Bars are relative to the largest share.
    """
    first = reports[0]
    flows = f"{first.flows:,} flows {first.source} to {first.destination}"
    title = f"{first.leaf} to {first.prefix}: {flows}"
    headings = ["measured"]
    if len(reports) > 1:
        title = f"{first.leaf} to {' and '.join(r.prefix for r in reports)}:\n{flows} over each"
        headings = ["IPv6" if ":" in report.prefix else "IPv4" for report in reports]
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("next hop")
    if capacities is not None:
        table.add_column("path capacity", justify="right")
    for heading in ("weight", "expected", *headings):
        table.add_column(heading, justify="right")
    table.add_column("", no_wrap=True)
    measured = [{up.interface: up.measured for up in report.uplinks} for report in reports]
    largest = max((up.measured for up in first.uplinks), default=0.0) or 1.0
    for up in first.uplinks:
        cells = [up.interface, str(up.weight), f"{up.expected:.1%}"]
        if capacities is not None:
            cells.insert(1, f"{format_bandwidth(capacities.get(up.interface))}bit/s")
        cells += [f"{shares.get(up.interface, 0.0):.1%}" for shares in measured]
        table.add_row(*cells, "█" * round(up.measured / largest * _BAR))
    return table
