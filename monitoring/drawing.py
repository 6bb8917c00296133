"""Draws the board from its file and a Prometheus, for the documents: no Grafana is needed.

The first row, and one row of panels of each kind that changes in a run of two minutes. Units are
those of the panels.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from matplotlib.axes import Axes
from matplotlib.dates import DateFormatter, SecondLocator
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from monitoring.scraping import Prometheus, board_annotations, board_panels

_SHOWN = (
    "Adjacencies",
    "Adjacencies that ended",
    "Convergence by stage, 99th percentile",
    "Routes with unequal weights",
    "Shares, 1 is equal",
    "Changes by other programs",
    "Load of links",
    "Part of links that may be used",
    "Packets",
)
_COLUMNS, _MOST_LINES, _MOST_ROWS = 3, 6, 5
_ROW = 0.14
"""Height of a row, as a part of its table."""
_GAP = 1.5
"""Seconds between two samples, at least, if the second begins another change."""
_PAGE, _PANEL, _TEXT, _FAINT = "#f4f5f5", "#ffffff", "#24292e", "#8a8f98"
_LINES = ("#3871dc", "#e0752d", "#2f9e44", "#8f3bb8", "#c4162a", "#0a7c86")
_COLORS: Mapping[str, str] = {"green": "#299c46", "red": "#d9364c", "orange": "#e5811f"}
_UNITS = {"short": "", "s": "s", "bps": "bit/s", "pps": "packets/s", "ops": "/s", "bytes": "B"}
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"))


def draw(prometheus: Prometheus, begin: float, end: float, routers: Collection[str]) -> Figure:
    """Draw the board as of ``end``; lines of each router are drawn for ``routers`` only."""
    figure = Figure(figsize=(17, 14.5), facecolor=_PAGE, layout="constrained")
    stats, tables, charts = figure.subfigures(3, 1, height_ratios=(1.0, 1.4, 7.5))
    _stats(stats, prometheus)
    _tables(tables, prometheus)
    _charts(charts, prometheus, (begin, end), routers)
    return figure


def _stats(figure: SubFigure, prometheus: Prometheus) -> None:
    panels = board_panels("stat")
    figure.suptitle("What is wrong now", x=0.008, ha="left", fontsize=12, color=_TEXT)
    for axis, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
        (value,) = prometheus.value(panel["targets"][0]["expr"])
        steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        color = [step["color"] for step in steps if (step["value"] or 0) <= value][-1]
        axis.set_facecolor(_COLORS[color])
        axis.set(xticks=[], yticks=[])
        axis.text(0.5, 0.42, f"{value:g}", ha="center", va="center", fontsize=30, color="white")
        axis.text(0.5, 0.86, panel["title"], ha="center", va="center", fontsize=9.5, color="white")
        for edge in axis.spines.values():
            edge.set_visible(False)


def _tables(figure: SubFigure, prometheus: Prometheus) -> None:
    panels = board_panels("table")
    for axis, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
        _titled(axis, panel["title"])
        axis.set(xticks=[], yticks=[])
        columns, rows = _rows(panel, prometheus)
        shown = rows[:_MOST_ROWS]
        if not shown:
            continue
        height = (len(shown) + 1) * _ROW
        table = axis.table(
            shown,
            colLabels=columns,
            cellLoc="left",
            colLoc="left",
            edges="B",
            bbox=(0.0, 1.0 - height, 1.0, height),  # type: ignore[arg-type]
        )
        table.auto_set_font_size(False)
        table.set_fontsize(9)
        for (row, _), cell in table.get_celld().items():
            cell.set_edgecolor("#e4e5e6")
            cell.set_text_props(color=_FAINT if row == 0 else _TEXT)
        if len(rows) > len(shown):
            axis.text(0.01, 0.02, f"and {len(rows) - len(shown)} more", color=_FAINT, fontsize=9)


def _rows(panel: dict[str, Any], prometheus: Prometheus) -> tuple[list[str], list[list[str]]]:
    """Return columns and rows of a table, as its transformations make them."""
    organize = panel["transformations"][-1]["options"]
    names, hidden = organize["renameByName"], set(organize["excludeByName"])
    found: list[dict[str, str]] = []
    for target in panel["targets"]:
        value = f"Value #{target['refId']}" if len(panel["targets"]) > 1 else "Value"
        for one in prometheus.query(target["expr"]):
            row = {**one["metric"], value: f"{float(one['value'][1]):.0%}"}
            found.append({names.get(k, k): v for k, v in row.items() if k not in hidden})
    columns = list(dict.fromkeys(name for row in found for name in row))
    order = panel["options"]["sortBy"][0]["displayName"]
    found.sort(key=lambda row: (row.get(order, ""), row.get("interface", "")))
    return columns, [[row.get(name, "") for name in columns] for row in found]


def _charts(
    figure: SubFigure, prometheus: Prometheus, times: tuple[float, float], routers: Collection[str]
) -> None:
    panels = {panel["title"]: panel for panel in board_panels("timeseries")}
    axes = figure.subplots(-(-len(_SHOWN) // _COLUMNS), _COLUMNS).flat
    marks = {
        datetime.fromtimestamp(at, UTC)
        for expression in board_annotations().values()
        for one in prometheus.history(expression, *times)
        for at in _begins([float(at) for at, _ in one["values"]])
    }
    for axis, title in zip(axes, _SHOWN, strict=False):
        panel = panels[title]
        _titled(axis, title)
        for target in panel["targets"]:
            series = prometheus.history(target["expr"], *times)
            _lines(axis, series, target["legendFormat"], routers)
        for at in marks:
            axis.axvline(at, color="#c4162a", linewidth=0.8, linestyle=(0, (3, 3)), alpha=0.5)  # type: ignore[arg-type]
        _scales(axis, panel["fieldConfig"]["defaults"]["unit"])


def _begins(times: list[float]) -> list[float]:
    """Return the first of each row of samples that follow one another."""
    return [at for before, at in zip([-_GAP, *times], times, strict=False) if at - before > _GAP]


def _titled(axis: Axes, title: str) -> None:
    axis.set_title(title, fontsize=10.5, loc="left", color=_TEXT, pad=8)
    axis.set_facecolor(_PANEL)
    for name, edge in axis.spines.items():
        edge.set_color("#d8d9da")
        edge.set_visible(name in ("left", "bottom"))


def _lines(axis: Axes, series: list[dict[str, Any]], legend: str, routers: Collection[str]) -> None:
    first = next(iter(routers))
    shown = [one for one in series if one["metric"].get("instance", first) in routers]
    # those that change first: of lines that lie on another only one is seen
    shown.sort(key=lambda one: -len({value for _, value in one["values"]}))
    for one in shown[:_MOST_LINES]:
        label = _labelled(legend, one["metric"])
        times = [datetime.fromtimestamp(at, UTC) for at, _ in one["values"]]
        color = _LINES[len(axis.get_lines()) % len(_LINES)]
        values = [float(value) for _, value in one["values"]]
        axis.plot(times, values, label=label.strip(), linewidth=1.5, color=color)  # type: ignore[arg-type]


def _labelled(legend: str, metric: Mapping[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda found: metric.get(found[1], ""), legend)


def _scales(axis: Axes, unit: str) -> None:
    axis.xaxis.set_major_formatter(DateFormatter("%H:%M:%S"))
    axis.xaxis.set_major_locator(SecondLocator((0, 20, 40)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _formatted(value, unit)))
    axis.yaxis.set_major_locator(MaxNLocator(5, integer=unit == "short" and axis.get_ylim()[1] > 3))
    axis.tick_params(labelsize=8, colors=_FAINT, length=0)
    axis.grid(axis="y", color="#ececed", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.set_ylim(bottom=0, top=1.15 * axis.get_ylim()[1])
    if axis.get_legend_handles_labels()[0]:
        axis.legend(
            fontsize=8,
            ncols=3,
            loc="upper left",
            bbox_to_anchor=(0, -0.1),
            frameon=False,
            labelcolor=_TEXT,
            handlelength=1.2,
        )


def _formatted(value: float, unit: str) -> str:
    """Return a value in its unit, as Grafana writes it: ``24 Mbit/s``, ``75%``."""
    if unit == "percentunit":
        return f"{value:.0%}"
    if not value:
        return "0"
    if unit == "short" and abs(value) < 1e3:
        return f"{value:g}"
    factor, prefix = next(((f, p) for f, p in _PREFIXES if abs(value) >= f), _PREFIXES[-1])
    return f"{value / factor:.3g} {prefix}{_UNITS[unit]}".strip()
