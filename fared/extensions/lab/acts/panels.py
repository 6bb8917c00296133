"""What a demonstration has measured, as a picture: a panel for each table, bars for its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fared.core.units import format_bandwidth
from fared.extensions.lab import pictures
from fared.extensions.pictures import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer

_WIDTH, _ROW, _BESIDE, _BELOW = 10.0, 0.2, 0.7, 0.9
"""Inches: of a picture, for a bar, beside the bars of a panel, and above and below all panels."""
_BAR = 0.8
"""The part of a row that its bars take."""
_MARGIN = 1.12
"""Beside the longest bar there is place for its value."""


@dataclass(frozen=True)
class Panel:
    """A group of bars for each of ``rows``: one of each of ``bars``, whose key is its meaning.

    ``text`` formats a value, as it is written beside its bar.
    """

    title: str
    rows: Sequence[str]
    bars: Mapping[str, Sequence[float]]
    text: Callable[[float], str]


def share(value: float) -> str:
    """Format a part of all traffic."""
    return f"{value:.1%}"


def rate(value: float) -> str:
    """Format bytes/s."""
    return f"{format_bandwidth(value)}bit/s"


def seconds(value: float) -> str:
    """Format a time."""
    return f"{value:.2f} s"


def draw(title: str, panels: Sequence[Panel], path: Path) -> None:
    """Draw panels below each other. Raises LabError."""
    heights = [_BESIDE + _ROW * len(panel.rows) * len(panel.bars) for panel in panels]
    drawn = pictures.figure(_WIDTH, sum(heights) + _BELOW)
    drawn.suptitle(title, fontsize="x-large", fontweight="bold")
    every = drawn.subplots(len(panels), 1, height_ratios=heights, squeeze=False)[:, 0]
    named: dict[str, BarContainer] = {}
    for axes, panel in zip(every, panels, strict=True):
        alike = (one for one in panels if one.text is panel.text)
        most = max(max(values) for one in alike for values in one.bars.values())
        named |= _panel(axes, panel, most or 1.0)
    if len(named) > 1:
        handles: list[Any] = list(named.values())
        drawn.legend(handles, list(named), loc="outside lower center", ncols=len(named))
    pictures.save(drawn, path)


def _panel(axes: Axes, panel: Panel, most: float) -> dict[str, BarContainer]:
    """Draw a panel whose scale ends at ``most``; return its bars by name."""
    known, named = figures.colors(), dict[str, "BarContainer"]()
    height = _BAR / len(panel.bars)
    for number, (name, values) in enumerate(panel.bars.items()):
        places = [row + (number + 0.5) * height - _BAR / 2 for row in range(len(panel.rows))]
        color = known["load1" if number == len(panel.bars) - 1 else "load0"]
        named[name] = drawn = axes.barh(places, list(values), height * 0.86, color=color)
        axes.bar_label(drawn, [panel.text(value) for value in values], padding=4, fontsize="small")
    axes.set_title(panel.title, loc="left")
    axes.set_yticks(range(len(panel.rows)), list(panel.rows))
    axes.invert_yaxis()
    axes.set_xlim(0.0, _MARGIN * most)
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    axes.tick_params(left=False)
    return named
