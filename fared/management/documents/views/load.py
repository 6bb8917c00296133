"""The view of measured loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents.context import ViewContext, finite
from fared.management.documents.errors import CommandError

if TYPE_CHECKING:
    from fared.core.links import Link
    from fared.management.documents.schema.load import Load, LoadSamples


def load(context: ViewContext, interface: str | None = None) -> Load:
    """``show load [INTERFACE]``: the measured loads of the last minutes. Raises CommandError."""
    rows = [_samples(context, link) for link in context.links.values() if not link.loopback]
    shown = [row for row in rows if row["ages"] and interface in (None, row["interface"])]
    if interface is not None and not shown:
        raise CommandError("not-found", f"no load of {interface} was measured")
    return {
        "format": "fared-load/1",
        "router_id": context.root,
        "period": context.router.settings.solver.adaptation.measure_period,
        "interfaces": sorted(shown, key=lambda row: row["interface"]),
    }


def _samples(context: ViewContext, link: Link) -> LoadSamples:
    samples = context.runtime.load_history.samples(link.ifindex)
    capacity = context.config.interface_bandwidth(link.name) or link.capacity
    return {
        "interface": link.name,
        "bandwidth": finite(capacity),
        "ages": [round(context.now - at, 3) for at, _ in samples],
        "loads": [round(value) for _, value in samples],
    }
