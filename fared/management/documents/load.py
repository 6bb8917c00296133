"""``show load``: measured loads, a line of bars for each interface, 80 columns wide."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fared.management.documents import human
from fared.management.documents.cells import Cell, Columns, Styled, dim
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.errors import CommandError
from fared.management.documents.facts import BytesPerSecond, Facts, Seconds

if TYPE_CHECKING:
    from fared.core.links import Link
    from fared.management.documents.context import ViewContext
    from fared.management.documents.paper import Paper

_HEIGHTS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_WIDTH = 30
"""Bars of an interface."""
_BUSY, _FULL = 0.7, 0.95
"""Parts of the bandwidth from which a load is yellow, and red."""


class LoadSamples(Facts):
    """The load of an interface: ``ages`` in seconds before now, oldest first, and ``loads``."""

    interface: str
    bandwidth: BytesPerSecond
    ages: list[Seconds]
    loads: list[float]


class Load(Answer, tag="fared-load/1"):
    """``show load``: outbound loads of the last minutes; ``period`` is that of measuring."""

    router_id: str
    period: Seconds
    interfaces: list[LoadSamples]

    def show(self, paper: Paper) -> None:
        """Print a line for each interface."""
        if not self.interfaces:
            paper.line(dim("no load has been measured yet"))
            return
        oldest = max(entry.ages[0] for entry in self.interfaces)
        age = f"{oldest / 60:.0f} min" if oldest >= 90 else f"{oldest:.0f} s"
        columns: Columns = {f"-{age} to now": lambda entry: _bars(entry, oldest)}
        paper.table(self.interfaces, {**_COLUMNS, **columns})
        paper.rates()


def _rate(load: float, bandwidth: float | None) -> Cell:
    part = 0.0 if not bandwidth else load / bandwidth
    style = "red" if part >= _FULL else "yellow" if part >= _BUSY else ""
    return Styled(human.bandwidth(load) if load else "0", style)


def _bars(entry: LoadSamples, oldest: float) -> str:
    """Return ``_WIDTH`` bars: the largest load in each part of the time."""
    most = entry.bandwidth or max(entry.loads)
    highest = [math.nan] * _WIDTH
    for age, load in zip(entry.ages, entry.loads, strict=True):
        at = min(_WIDTH - 1, int((oldest - age) / (oldest or 1.0) * _WIDTH))
        highest[at] = load if math.isnan(highest[at]) else max(highest[at], load)
    return "".join(_bar(value, most) for value in highest)


def _bar(load: float, most: float) -> str:
    if math.isnan(load) or load <= 0.0 or most <= 0.0:
        return _HEIGHTS[0]
    return _HEIGHTS[min(len(_HEIGHTS) - 1, 1 + int(load / most * (len(_HEIGHTS) - 2)))]


_COLUMNS: Columns = {
    "Interface": "interface",
    ">Bandwidth": lambda e: "unknown" if e.bandwidth is None else human.bandwidth(e.bandwidth),
    ">Now": lambda entry: _rate(entry.loads[-1], entry.bandwidth),
    ">Mean": lambda entry: _rate(math.fsum(entry.loads) / len(entry.loads), entry.bandwidth),
    ">Most": lambda entry: _rate(max(entry.loads), entry.bandwidth),
}


def load(context: ViewContext, interface: str | None = None) -> Load:
    """``show load [INTERFACE]``: the measured loads of the last minutes. Raises CommandError."""
    rows = [_samples(context, link) for link in context.links.values() if not link.loopback]
    shown = [row for row in rows if row.ages and interface in (None, row.interface)]
    if interface is not None and not shown:
        raise CommandError("not-found", f"no load of {interface} was measured")
    return Load(
        router_id=context.root,
        period=context.router.settings.solver.adaptation.measure_period,
        interfaces=sorted(shown, key=lambda row: row.interface),
    )


def _samples(context: ViewContext, link: Link) -> LoadSamples:
    samples = context.runtime.load_history.samples(link.ifindex)
    capacity = context.config.interface_bandwidth(link.name) or link.capacity
    return LoadSamples(
        interface=link.name,
        bandwidth=capacity,
        ages=[round(context.now - at, 3) for at, _ in samples],
        loads=[round(value) for _, value in samples],
    )


DOCUMENT = Document(
    Load,
    load,
    "Outbound load of interfaces in the last minutes.",
    (Argument("interface", word="INTERFACE"),),
)
