"""Start of a whole fabric: from the first daemon to the last route, beside FRR.

The fabrics of three and five stages of ``containerlab/``, twelve and 24 daemons, run OSPF with
daemons of one kind at a time, in turn, on the cores that there are. Times run from the moment
before the first daemon is started until the last kernel has the prefixes of all leaves over all
equal-cost paths; namespaces and links are there already. A daemon of ours that is started is
ready for the next one when it has its control socket, FRR's zebra and ospfd when they have theirs.
CPU is that of all daemons by then, for each router. All figures are medians.

The 80 daemons of the draft's Figure 2 start once, with a hello a second, and must lose no neighbor
until ``CALM`` seconds after.

``python -m bench starting [--runs N] [--figure2]``; ``--figure2`` starts only these, and watches
them for a minute.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import ROOT
from bench.daemons.convergence import cpu_seconds
from bench.lab.sandboxed import required, skipped
from bench.report import show
from fared.extensions.lab import sandbox, topology
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.generate.clos5 import Clos5
from fared.extensions.lab.generate.writer import text
from fared.extensions.lab.waiting import has_all_paths, wait_until

LABS = {"clos3": ("4x8", 3.5), "clos5": ("five stages", 7.0)}
"""By topology: its name in the report, and the most seconds to the last route."""
KINDS = {"fared": "ip", "frr": "/usr/lib/frr/zebra"}
RUNS = 3
READY = 120.0
WATCHED, CALM = 60.0, 10.0
"""Seconds after the last route in which neighbors may be lost: alone, and among all rows."""
FIGURE2 = "figure2"
Row = dict[str, Any]
Figures = dict[str, float]


def started(fabric: Fabric, quiet: float = 0.0) -> Figures:
    """Build and start a fabric; with ``quiet`` it must keep its routes for so many seconds."""
    try:
        fabric.build()
        views = fabric.views(fabric.plan.routers)
        accepts = has_all_paths(fabric)
        begun = time.monotonic()
        fabric.start()
        ready = time.monotonic()
        done = wait_until(views, accepts, READY)
        processes = [process for node in fabric.nodes.values() for process in node.processes]
        used = cpu_seconds([process.pid for process in processes])
        if done is None or (quiet and wait_until(views, accepts, READY, quiet=quiet) is None):
            raise RuntimeError(f"{fabric.topology.name}: paths are missing after {READY:g} s")
        return {
            "ready": ready - begun,
            "routes": done - begun,
            "cpu": used / len(fabric.plan.routers) * 1e3,
            "lost": lost_neighbors(fabric),
        }
    finally:
        fabric.stop()


def lost_neighbors(fabric: Fabric) -> int:
    """How often a daemon of ours logged that a full neighbor is so no more."""
    count = 0
    for node in fabric.nodes.values():
        for process in node.processes:
            if process.name == "fared":
                records = map(json.loads, process.log.read_text("utf-8").splitlines())
                count += sum(record.get("previous") == "Full" for record in records)
    return count


def measure(runs: int) -> dict[str, dict[str, list[Figures]]]:
    """Start every fabric with every installed kind."""
    kinds = [kind for kind, program in KINDS.items() if shutil.which(program)]
    results: dict[str, dict[str, list[Figures]]] = {}
    for lab in LABS:
        for _ in range(runs):
            for kind in kinds:
                file = ROOT / "containerlab" / f"{lab}.clab.yml"
                found = started(Fabric.from_file(file, as_kind=kind))
                results.setdefault(lab, {}).setdefault(kind, []).append(found)
                print(lab, kind, told(found), flush=True)
    results[FIGURE2] = {"fared": [figure2(CALM)]}
    return results


def figure2(watched: float) -> Figures:
    """Start Figure 2 of the draft, and watch it for so long."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "figure2.clab.yml"
        file.write_text(text(Clos5(pods=8, supers=4, name=FIGURE2)))
        found = started(Fabric.from_topology(topology.load(file)), watched)
    print(FIGURE2, told(found), flush=True)
    return found


def told(figures: Figures) -> str:
    """Figures of one start in a line."""
    return (
        f"all started {figures['ready']:.2f} s, all routes {figures['routes']:.2f} s, "
        f"CPU of a router {figures['cpu']:.0f} ms, neighbors lost {figures['lost']:.0f}"
    )


def rows(runs: int = RUNS) -> list[Row]:
    """The rows of ``make bench``; a ratio above 1 means that fared is sooner, or needs less."""
    if (reason := skipped()) is not None:
        return [reason]
    table: list[Row] = []
    results = required("starting", lambda: measure(runs))
    large = results.pop(FIGURE2)["fared"][0]
    for lab, kinds in results.items():
        table += compared(*LABS[lab], kinds)
    name = "80 daemons of Figure 2, a hello a second"
    return [
        *table,
        {"name": f"{name}, from the first to the last route", "ours": large["routes"], "unit": "s"},
        _lost(name, large["lost"]),
    ]


def _lost(name: str, count: float) -> Row:
    return {
        "name": f"{name}, neighbors lost",
        "ours": count,
        "unit": "",
        "goal": "0",
        "met": count == 0,
    }


def compared(name: str, most: float, kinds: dict[str, list[Figures]]) -> list[Row]:
    """The rows of one fabric."""

    def median(kind: str, what: str) -> float:
        return statistics.median(figures[what] for figures in kinds[kind])

    seconds = median("fared", "routes")
    lost = sum(figures["lost"] for figures in kinds["fared"])
    table: list[Row] = [
        {
            "name": f"{name}, from the first daemon to the last route",
            "ours": seconds,
            "unit": "s",
            "goal": f"<= {most:g} s",
            "met": seconds <= most,
        },
        _lost(f"{name}, all starts", lost),
    ]
    for what, words, unit in (
        ("routes", "from the first daemon to the last route", "s"),
        ("cpu", "CPU of a router by then", "ms"),
    ):
        if "frr" in kinds:
            ours, theirs = median("fared", what), median("frr", what)
            table.append(
                {
                    "name": f"{name}, {words} / FRR",
                    "ours": ours,
                    "other": theirs,
                    "unit": unit,
                    "ratio": theirs / ours,
                }
            )
    return table


def main() -> int:
    """Measure what the arguments select."""
    parser = argparse.ArgumentParser(description="Start of a whole fabric, beside FRR.")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--figure2", action="store_true")
    options = parser.parse_args()
    if options.figure2:
        return sandbox.run(lambda: 1 if figure2(WATCHED)["lost"] else 0)
    show(rows(options.runs))
    return 0
