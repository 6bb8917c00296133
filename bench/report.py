"""The report of benchmarks as markdown: sections, tables of their rows, and pictures of ratios.

``run`` has the meaning of a row.
"""

from __future__ import annotations

import math
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

INTRO = """\
Cost and performance of fared, compared with FRR, BIRD, iproute2 or an older method in one run on
one machine. Absolute times depend on the machine; ratios hardly do. "A / B" compares A, of fared or
the new method, with B in the column "other"; a ratio above 1 means that fared is ahead. Each
section gives the command that repeats it."""

Row = dict[str, Any]


@dataclass
class Section:
    """The result of one section: its rows and pictures, or the reason for their absence."""

    name: str
    title: str
    seconds: float = 0.0
    rows: list[Row] = field(default_factory=list)
    figures: list[tuple[str, str]] = field(default_factory=list)
    failure: str | None = None
    stolen: float = 0.0
    """The part of CPU time that the host stole during the section, 0..1."""

    @property
    def verdicts(self) -> list[bool]:
        """Whether each goal was met; a failed section counts as one missed goal."""
        found = [bool(row["met"]) for row in self.rows if row.get("met") is not None]
        return found if self.failure is None else [*found, False]

    @property
    def outcome(self) -> str:
        """The section in one line."""
        met, all_goals = sum(self.verdicts), len(self.verdicts)
        said = f"{met} of {all_goals} goals met" if all_goals else "no goals"
        ratios = [row["ratio"] for row in self.rows if row.get("ratio")]
        if ratios:
            ahead = sum(ratio >= 1 for ratio in ratios)
            said += f"; ahead in {ahead} of {len(ratios)} comparisons"
        return said

    @property
    def command(self) -> str:
        """The command that repeats the section."""
        return f"python -m bench {self.name}"


def machine() -> list[str]:
    """Describe the machine and the software versions."""
    info = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    total = Path("/proc/meminfo").read_text().split()[1]
    peers = [
        f"{name} {version}"
        for name, *command in (
            ("FRR", "/usr/lib/frr/zebra", "-v"),
            ("BIRD", "bird", "--version"),
            ("iproute2", "ip", "-V"),
        )
        if (version := version_of(command))
    ]
    cores = f"{os.cpu_count()} x {names[0] if names else platform.machine()}"
    memory = f"{int(total) / 2**20:.0f} GiB"
    load = f"load at the start {os.getloadavg()[0]:.1f}"
    return [
        f"- Machine: {cores}, {memory}, Linux {platform.release()}; {load}",
        f"- Python {platform.python_version()}; compared with {', '.join(peers) or 'no peer'}",
    ]


def version_of(command: list[str]) -> str | None:
    """Return the version that a program prints; None if it is not installed."""
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    found = re.search(r"\d+\.\d+[\w.]*", done.stdout or done.stderr)
    return found[0].rstrip(".") if found else None


def number(value: float | None) -> str:
    """Format a figure with three significant digits; None as an empty text."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def mark(met: object) -> str:
    """Format whether a goal was met; empty without a goal."""
    return "" if met is None else ("met" if met else "**missed**")


def times(ratio: float | None) -> str:
    """Format a ratio."""
    return "" if ratio is None else f"{number(ratio)}x"


def cells(row: Row, numeral: int | None = None) -> list[str]:
    """One line of a table; ``numeral`` refers to a note."""
    goal = row.get("goal")
    bare = all(row.get(key) is None for key in ("ours", "other"))
    pointer = "" if numeral is None else f" ({numeral})"
    return [
        str(row["name"]).replace("|", "/") + pointer,
        number(row.get("ours")),
        number(row.get("other")),
        "" if bare else str(row.get("unit", "ms")),
        times(row.get("ratio")),
        "" if goal is None else str(goal),
        mark(row.get("met")),
    ]


STOLEN = "Stolen: the part of the CPU time that the host did not give to this machine (steal time)."
MANY = 30
"""A section with more rows than this collapses those without a goal."""
HEADINGS = ["what", "fared", "other", "unit", "ratio", "goal", ""]
RIGHT = (1, 2, 4)


def layout(
    headings: Sequence[str], lines: Sequence[Sequence[str]], right: Iterable[int] = ()
) -> list[str]:
    """Lay out a markdown table with aligned columns, readable as plain text."""
    widths = [max(len(line[i]) for line in [headings, *lines]) for i in range(len(headings))]
    widths = [max(width, 3) for width in widths]

    def join(line: Sequence[str]) -> str:
        padded = [
            text.rjust(width) if i in right else text.ljust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = [
        "-" * (width - 1) + ":" if i in right else "-" * width for i, width in enumerate(widths)
    ]
    return [join(headings), join(rule), *(join(line) for line in lines)]


def show(rows: Iterable[Row]) -> None:
    """Print a table of rows."""
    print("\n".join(table(list(rows))))


def table(rows: list[Row]) -> list[str]:
    """Format rows as a markdown table with their notes below."""
    notes: list[str] = []
    lines = []
    for row in rows:
        note = row.get("note")
        if note and note not in notes:
            notes.append(note)
        lines.append(cells(row, notes.index(note) + 1 if note else None))
    found = layout(HEADINGS, lines, RIGHT)
    if notes:
        found += ["", *(f"({n}) {note}  " for n, note in enumerate(notes, 1))]
    return found


def summary(sections: list[Section]) -> list[str]:
    """One line per section, then all goals in one table, missed ones first."""
    lines = [
        [
            f"[{section.title.partition(':')[0]}](#{anchor(section.title)})",
            section.outcome,
            f"{section.seconds:.0f} s",
            f"{section.stolen:.0%}",
        ]
        for section in sections
    ]
    goals = []
    for section in sections:
        short = section.title.partition(":")[0]
        goals += [[short, *cells(row)] for row in section.rows if row.get("met") is not None]
        if section.failure is not None:
            goals.append([short, "runs at all", *[""] * 4, "it does", mark(met=False)])
    goals.sort(key=lambda line: line[-1] == mark(met=True))
    missed = sum(line[-1] != mark(met=True) for line in goals)
    found = layout(["section", "outcome", "took", "stolen"], lines, (2, 3))
    found += ["", STOLEN, "", f"## Goals: {len(goals) - missed} met, {missed} missed", ""]
    if goals:
        found += [*layout(["section", *HEADINGS], goals, [n + 1 for n in RIGHT]), ""]
    return found


def anchor(title: str) -> str:
    """Return the anchor of a heading, as GitHub forms it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def page(sections: list[Section], began: datetime, seconds: float) -> str:
    """Write the whole report; its last line counts the goals."""
    lines = ["# fared benchmarks", "", INTRO, "", *machine()]
    lines += [f"- {began:%Y-%m-%d %H:%M} UTC, {seconds / 60:.1f} minutes", ""]
    lines += summary(sections)
    for section in sections:
        lines += [f"## {section.title}", "", f"{section.outcome[0].upper()}{section.outcome[1:]}."]
        lines += [f"`{section.command}`, {section.seconds:.0f} s", ""]
        if section.failure is not None:
            lines += [f"**Failed**: {section.failure}", ""]
        for file, caption in section.figures:
            lines += [f"![{caption}]({file})", ""]
        lines += tables(section.rows)
    verdicts = [verdict for section in sections for verdict in section.verdicts]
    met = sum(verdicts)
    lines.append(f"{met} goals met, {len(verdicts) - met} missed")
    return "\n".join(lines) + "\n"


def tables(rows: list[Row]) -> list[str]:
    """All rows; if there are more than ``MANY``, those without a goal are collapsed."""
    if len(rows) <= MANY:
        return [*table(rows), ""] if rows else []
    shown = [row for row in rows if row.get("met") is not None]
    rest = [row for row in rows if row.get("met") is None]
    words = f"{len(rest)} figures without a goal"
    folded = [f"<details><summary>{words}</summary>", "", *table(rest), "", "</details>", ""]
    return [*table(shown), "", *folded] if shown else folded


# -- pictures ----------------------------------------------------------------------------------


def draw_ratios(section: Section, directory: Path) -> None:
    """Draw the ratio of each row that has one; colours show goals met and missed."""
    rows = [row for row in section.rows if (row.get("ratio") or 0) > 0 and row.get("drawn", True)]
    if len(rows) < 2:
        return
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, MaxNLocator
    except ImportError:
        return
    picture = Figure(figsize=(9.0, 0.9 + 0.3 * len(rows)), layout="constrained")
    axes = picture.subplots()
    colours = {True: "#2a7f4f", False: "#b3402e", None: "#5b7c99"}
    for place, row in enumerate(reversed(rows)):
        colour = colours[None if row.get("met") is None else bool(row["met"])]
        axes.barh(place, math.log10(row["ratio"]), color=colour)
        axes.annotate(
            times(row["ratio"]),
            (math.log10(row["ratio"]), place),
            xytext=(3 if row["ratio"] >= 1 else -3, 0),
            textcoords="offset points",
            va="center",
            ha="left" if row["ratio"] >= 1 else "right",
            fontsize=7,
        )
    axes.set_yticks(range(len(rows)), [shorten(row["name"]) for row in reversed(rows)], fontsize=7)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.margins(x=0.15)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    if math.log10(max(row["ratio"] for row in rows) / min(row["ratio"] for row in rows)) > 1:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: times(10**x)))
    axes.set_xlabel("times ahead of the other (logarithmic); green: goal met, red: missed")
    axes.set_title(section.title, fontsize=9)
    file = f"{section.name}-ratios.png"
    picture.savefig(directory / file, dpi=110)
    section.figures.append((file, f"{section.title}: times ahead"))


def shorten(name: str, most: int = 70) -> str:
    """Shorten a name that is too long for the margin of a picture."""
    return name if len(name) <= most else name[: most - 3] + "..."
