"""All benchmarks on one page: ``make bench`` writes build/bench/report.md, and pictures next to it.

Rows compare fared with a peer or with the older method *in the same run*: absolute times on shared
machines vary too much, ratios do not. A goal is met or missed; the last line of the report counts
both. Each section runs in a process of its own: if it fails or hangs, the report gives the reason
and counts a missed goal, and the other sections still run.

A section is a module of this directory with ``rows()``, which returns a list of mappings with
``name`` and optionally ``ours``, ``other``, ``unit``, ``ratio`` (above 1: fared is ahead), ``goal``
(text), ``met`` (None: no goal), ``note`` (text below the table) and ``drawn`` (False: not in the
picture of ratios). An optional ``figures(rows, directory)`` draws pictures in the directory and
returns (file name, caption) pairs.

``python bench/run.py [SECTION...]`` runs all sections, or those named.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "build" / "bench"
REPORT = OUTPUT / "report.md"
PATIENCE = 300.0
"""Seconds after which a section is considered to hang."""
PATIENT = {"chaos": 1000.0, "collectives": 600.0}
"""The same for sections that take longer."""
FAREWELL = 20.0
"""Seconds for a section to remove its namespaces after SIGTERM."""
ROWS_MARK = "--rows"
SECTIONS = {
    "compute": "Compute: SPF, weights and groups of one router",
    "prefixes": "Prefixes: one that changes, however many are held, and all of a fabric at start",
    "changes": "Changes: one of them, however much is held",
    "externals": "Externals: a hundred thousand of BIRD through a row of three",
    "beside": "Beside C: the same database in fared, FRR and BIRD",
    "convergence": "Convergence: from a link that goes down, or up, to the last kernel",
    "scale": "Scale of one daemon: 64 neighbors of a large fabric, changed bandwidths",
    "flooding": "Flooding: packets and CPU of an event in a dense fabric",
    "fib": "FIB: routes and weights into the kernel",
    "spraying": "Spraying: CPU of a packet that leaves the path of its flow, and changed weights",
    "bier": "BIER: tables, changes of them in the kernel, and copies of packets",
    "sim_scale": "Scale of the fabric: hundreds of routers on the virtual clock",
    "footprint": "Footprint: memory, idle CPU and start-up of a daemon",
    "starting": "Start of a fabric: from the first daemon to the last route",
    "measuring": "Measuring: what it costs to know the load of every link",
    "plan": "Plans: what failures leave, on all cores, beside networkx and ngraph",
    "plan_jobs": "Jobs on shared links: begun together, and as planned",
    "direct_connect": "Rings of direct links beside a fat-tree of equal cost",
    "ina": "In-network aggregation: planning of trees",
    "ina_lab": "In-network aggregation: all-reduce beside a ring and a parameter server",
    "adaptation": "Adaptation: weights that follow load",
    "announcements": "Announcements: how many changes of load weights need",
    "dataplane": "Data plane: real TCP over a 4x8 fabric with a slow link and more",
    "elephants": "Few elephants: 1 to 128 connections, by flow, flowlet and packet",
    "collectives": "Collectives: ring and all-to-all by flow, flowlet and packet, and queues",
    "adaptive_kernel": "Weights under load that does not yield, in the kernel",
    "bfd": "BFD: false alarms while there is no CPU time to spare",
    "chaos": "Chaos: ten minutes of faults at random among fared, FRR and BIRD",
}
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
        return f"python bench/{self.name}.py"


# -- one section, in a process of its own ------------------------------------------------------


def as_row(row: Any) -> Row:  # noqa: ANN401 - a mapping or a dataclass
    """Convert a row of any section to a mapping; without a goal, ``met`` is None."""
    if isinstance(row, dict):
        return row
    goal = row.goal.strip("-")
    return {
        "name": row.name,
        "ours": row.ours_ms,
        "other": row.other_ms,
        "ratio": row.ratio,
        "goal": goal or None,
        "met": row.met if goal else None,
        "drawn": row.drawn,
    }


def measure(name: str, answer: Path) -> int:
    """Run one section in this process; write rows and figures to ``answer``, as JSON."""
    sys.path.insert(0, str(ROOT))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    module = importlib.import_module(f"bench.{name}")
    rows = [as_row(row) for row in module.rows()]
    figures = []
    if hasattr(module, "figures"):
        try:
            figures = [(str(file), caption) for file, caption in module.figures(rows, OUTPUT)]
        except Exception:  # noqa: BLE001 - the rows are valid without pictures
            traceback.print_exc()
    answer.write_text(json.dumps({"rows": rows, "figures": figures}, default=plain))
    return 0


def plain(value: Any) -> Any:  # noqa: ANN401 - NumPy's numbers have item()
    """Convert a value that JSON does not support to one that it supports."""
    return value.item() if hasattr(value, "item") else str(value)


def run(name: str, patience: float | None = None) -> Section:
    """Run one section; return its results, or the reason for their absence."""
    section = Section(name, SECTIONS.get(name, name))
    patience = PATIENT.get(name, PATIENCE) if patience is None else patience
    log = OUTPUT / f"{name}.log"
    started, before = time.perf_counter(), spent()
    with tempfile.TemporaryDirectory() as directory, log.open("wb") as output:
        answer = Path(directory) / "answer.json"
        command = [sys.executable, str(Path(__file__).resolve()), ROWS_MARK, name, str(answer)]
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code: int | None = process.wait(patience)
        except subprocess.TimeoutExpired:
            code = None
            stop(process)
        except BaseException:
            stop(process)
            raise
        section.seconds = time.perf_counter() - started
        section.stolen = stolen(before, spent())
        if answer.exists():
            found = json.loads(answer.read_text())
            section.rows, section.figures = found["rows"], [tuple(x) for x in found["figures"]]
            return section
    section.failure = (
        f"not over after {patience:g} s"
        if code is None
        else last_line(log) or f"ended with code {code}, without output"
    )
    return section


def spent(stat: Path = Path("/proc/stat")) -> tuple[int, int]:
    """Time of all processors so far, and the part of it that the host stole (proc(5))."""
    fields = [int(field) for field in stat.read_text().partition("\n")[0].split()[1:9]]
    return sum(fields), fields[7]


def stolen(before: tuple[int, int], after: tuple[int, int]) -> float:
    """The stolen part of the time between two readings of ``spent``."""
    return (after[1] - before[1]) / max(1, after[0] - before[0])


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a section and its children: SIGTERM, so that it can clean up, then SIGKILL."""
    process.terminate()
    try:
        process.wait(FAREWELL)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last_line(log: Path) -> str:
    """Return the last line of a section's output: the error, if it is a traceback."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


# -- the report --------------------------------------------------------------------------------


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


def draw_ratios(section: Section) -> None:
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
    picture.savefig(OUTPUT / file, dpi=110)
    section.figures.append((file, f"{section.title}: times ahead"))


def shorten(name: str, most: int = 70) -> str:
    """Shorten a name that is too long for the margin of a picture."""
    return name if len(name) <= most else name[: most - 3] + "..."


# -- the command -------------------------------------------------------------------------------


def main(arguments: list[str]) -> int:
    """Run the named sections, or all, and write the report."""
    if arguments[:1] == [ROWS_MARK]:
        return measure(arguments[1], Path(arguments[2]))
    unknown = [name for name in arguments if name not in SECTIONS]
    if unknown:
        print(f"no such section: {', '.join(unknown)}; known sections: {', '.join(SECTIONS)}")
        return 2
    OUTPUT.mkdir(parents=True, exist_ok=True)
    began, started = datetime.now(UTC), time.perf_counter()
    sections: list[Section] = []
    text = ""
    for name in arguments or SECTIONS:
        section = run(name)
        draw_ratios(section)
        sections.append(section)
        said = section.failure or section.outcome
        print(f"{section.name}: {said}, {section.seconds:.0f} s", flush=True)
        text = page(sections, began, time.perf_counter() - started)
        REPORT.write_text(text)  # after each section: an interrupted run keeps its results
    print(f"\n{text}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
