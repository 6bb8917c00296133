"""Tables for people, 80 columns wide."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.table import Table

from fared.core.units import BytesPerSecond, format_bandwidth
from fared.extensions.lab.packet_order import PacketOrder
from fared.extensions.lab.tcp_order import TcpOrder
from fared.extensions.lab.traffic import TrafficReport

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
        table.add_column("path, bit/s", justify="right")
    for heading in ("weight", "expected", *headings):
        table.add_column(heading, justify="right")
    table.add_column("", no_wrap=True)
    measured = [{up.interface: up.measured for up in report.uplinks} for report in reports]
    largest = max((up.measured for up in first.uplinks), default=0.0) or 1.0
    for up in first.uplinks:
        cells = [up.interface, str(up.weight), f"{up.expected:.1%}"]
        if capacities is not None:
            cells.insert(1, format_bandwidth(capacities.get(up.interface)))
        cells += [f"{shares.get(up.interface, 0.0):.1%}" for shares in measured]
        table.add_row(*cells, "█" * round(up.measured / largest * _BAR))
    return table


def packet_order_table(sent: int, order: PacketOrder) -> Table:
    """Format the order in which numbered packets arrived (RFC 4737, RFC 5236)."""
    table = list_table("order of packets")
    for heading in ("sent", "received", "reordered", "3-reordered", "mean extent", "most", "held"):
        table.add_column(heading, justify="right")
    table.add_row(
        f"{sent:,}",
        f"{order.received:,}",
        f"{order.reordered:,} ({order.ratio:.1%})",
        f"{order.n_reordered:,}",
        f"{order.mean_extent:.1f}",
        str(order.extent),
        str(order.buffer),
    )
    return table


def segment_order_table(orders: Mapping[str, TcpOrder]) -> Table:
    """Format the order in which TCP segments arrived, and what was sent again, by job."""
    table = list_table("order of TCP segments")
    table.add_column("job", no_wrap=True)
    for heading in ("segments", "early", "part", "extent", "resent", "spurious"):
        table.add_column(heading, justify="right")
    for name, order in orders.items():
        table.add_row(
            name,
            f"{order.segments:,}",
            f"{order.out_of_order:,}",
            f"{order.ratio:.1%}",
            "-" if order.extent is None else str(order.extent),
            f"{order.retransmitted:,}",
            f"{order.spurious:,}",
        )
    return table


def list_table(title: str) -> Table:
    """Return an empty table with a title, 80 columns wide with its rows."""
    return Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
