"""The table of measured loads: a line of bars for each interface, 80 columns wide."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from fared.management.documents import human
from fared.management.documents.paper import Cell, Json, Renderer, emit, table

_BARS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_WIDTH = 30
"""Bars of an interface."""
_BUSY, _FULL = 0.7, 0.95
"""Parts of the bandwidth from which a load is yellow, and red."""


def _load(document: Json, out: Console, _now: float) -> None:
    if not document["interfaces"]:
        out.print(Text("no load has been measured yet", style="dim"))
        return
    oldest = max(entry["ages"][0] for entry in document["interfaces"])
    grid = table("Interface", ">Bandwidth", ">Now", ">Mean", ">Most", f"-{_age(oldest)} to now")
    for entry in document["interfaces"]:
        loads, bandwidth = entry["loads"], entry["bandwidth"]
        most = max(loads)
        grid.add_row(
            entry["interface"],
            "unknown" if bandwidth is None else human.bandwidth(bandwidth),
            _rate(loads[-1], bandwidth),
            _rate(math.fsum(loads) / len(loads), bandwidth),
            _rate(most, bandwidth),
            bars(entry["ages"], loads, oldest, bandwidth or most),
        )
    emit(out, grid)


def _age(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _rate(load: float, bandwidth: float | None) -> Cell:
    part = 0.0 if not bandwidth else load / bandwidth
    style = "red" if part >= _FULL else "yellow" if part >= _BUSY else ""
    return Text(human.bandwidth(load) if load else "0", style=style)


def bars(ages: Sequence[float], loads: Sequence[float], oldest: float, most: float) -> str:
    """Return ``_WIDTH`` bars: the largest load in each part of the time, of ``most``."""
    highest = [math.nan] * _WIDTH
    for age, load in zip(ages, loads, strict=True):
        at = min(_WIDTH - 1, int((oldest - age) / (oldest or 1.0) * _WIDTH))
        highest[at] = load if math.isnan(highest[at]) else max(highest[at], load)
    return "".join(_bar(value, most) for value in highest)


def _bar(load: float, most: float) -> str:
    if math.isnan(load) or load <= 0.0 or most <= 0.0:
        return _BARS[0]
    return _BARS[min(len(_BARS) - 1, 1 + int(load / most * (len(_BARS) - 2)))]


RENDERERS: dict[str, Renderer] = {"fared-load/1": _load}
