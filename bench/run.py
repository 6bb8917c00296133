"""All benchmarks on one page: ``make bench`` writes build/bench/report.md, and pictures next to it.

Rows compare fared with a peer or with the older method *in the same run*: absolute times on shared
machines vary too much, ratios do not. A goal is met or missed; the last line of the report counts
both. Each section runs in a process of its own: if it fails or hangs, the report gives the reason
and counts a missed goal, and the other sections still run.

A section is the module of its name, here or in a folder, with ``rows()``, which returns a list of
mappings with ``name`` and optionally ``ours``, ``other``, ``unit``, ``ratio`` (above 1: fared is
ahead), ``goal`` (text), ``met`` (None: no goal), ``note`` (text below the table) and ``drawn``
(False: not in the picture of ratios). An optional ``figures(rows, directory)`` draws pictures in
the directory and returns (file name, caption) pairs.

``python bench/run.py [SECTION...]`` runs all sections, or those named.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import OUTPUT, ROOT, module_of
from bench.report import Row, Section, draw_ratios, page

REPORT = OUTPUT / "report.md"
PATIENCE = 300.0
"""Seconds after which a section is considered to hang."""
PATIENT = {
    "chaos": 1000.0,
    "collectives": 600.0,
    "fast_paths": 600.0,
    "parallelism": 600.0,
    "scale": 1800.0,
    "seeds": 2400.0,
}
"""The same for sections that take longer."""
FAREWELL = 20.0
"""Seconds for a section to remove its namespaces after SIGTERM."""
ROWS_MARK = "--rows"
SECTIONS = {
    "compute": "Compute: SPF, weights and groups of one router",
    "prefixes": "Prefixes: one that changes, however many are held, and all of a fabric at start",
    "changes": "Changes: one of them, however much is held",
    "fast_paths": "Fast paths, each beside its plain rule",
    "held": "Held: bytes of Python objects of one of a hundred thousand externals",
    "bgp": "BGP: messages read and written, without a routing table",
    "bgp_sessions": "BGP: a leaf with 64 sessions and 10,000 prefixes, beside FRR",
    "bgp_values": "BGP: a link carries less, until the kernel of another leaf weighs it so",
    "externals": "Externals: a hundred thousand of BIRD through a row of three",
    "beside": "Beside C: the same database in fared, FRR and BIRD",
    "convergence": "Convergence: from a link that goes down, or up, to the last kernel",
    "scale": "Scale of one daemon: 64 neighbors of a large fabric, changed bandwidths",
    "flooding": "Flooding: packets and CPU of an event in a dense fabric",
    "fib": "FIB: routes and weights into the kernel",
    "fpm": "FPM: 20,000 routes to a switch, beside zebra, and changed weights",
    "bounded": "Bounded weights: what a switch chip holds, and what that loses",
    "spraying": "Spraying: CPU of a packet that leaves the path of its flow, and changed weights",
    "bier": "BIER: tables, changes of them in the kernel, and copies of packets",
    "sim_scale": "Scale of the fabric: hundreds of routers on the virtual clock",
    "footprint": "Footprint: memory, idle CPU and start-up of a daemon",
    "starting": "Start of a fabric: from the first daemon to the last route",
    "measuring": "Measuring: what it costs to know the load of every link",
    "plan": "Plans: what failures leave, on all cores, beside networkx and ngraph",
    "plan_jobs": "Jobs on shared links: begun together, and as planned",
    "direct_connect": "Rings of direct links beside a fat-tree of equal cost",
    "seeds": "Five documents: the commands of their pages",
    "rails": "Rails: weights at their leaves, everywhere and nowhere",
    "topologies": "Collectives over tori, dragonflies, fat trees and more, beside the optimum",
    "ina": "In-network aggregation: planning of trees",
    "ina_lab": "In-network aggregation: all-reduce beside a ring and a parameter server",
    "adaptation": "Adaptation: weights that follow load",
    "announcements": "Announcements: how many changes of load weights need",
    "dataplane": "Data plane: real TCP over a 4x8 fabric with a slow link and more",
    "elephants": "Few elephants: 1 to 128 connections, by flow, flowlet and packet",
    "collectives": "Collectives: ring and all-to-all by flow, flowlet and packet, and queues",
    "parallelism": "Parallelisms: of a training step, by what weighs their paths",
    "adaptive_kernel": "Weights under load that does not yield, in the kernel",
    "bfd": "BFD: false alarms while there is no CPU time to spare",
    "strangers": "Strangers: a flood of OSPF packets from beyond the link",
    "chaos": "Chaos: ten minutes of faults at random among fared, FRR and BIRD",
}
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
    module = importlib.import_module(module_of(name))
    # Not before: an import may swallow the exception, and leaves nothing to tidy up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
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
        draw_ratios(section, OUTPUT)
        sections.append(section)
        said = section.failure or section.outcome
        print(f"{section.name}: {said}, {section.seconds:.0f} s", flush=True)
        text = page(sections, began, time.perf_counter() - started)
        REPORT.write_text(text)  # after each section: an interrupted run keeps its results
    print(f"\n{text}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
