"""What a daemon costs that has nothing to do: memory, CPU and start-up, beside FRR and BIRD.

The 4x8 fabric of the demo runs over OSPF with hellos every second, with daemons of one kind at a
time. Memory is of all daemons of a node (FRR: zebra and ospfd), resident (RSS) and proportional
(PSS: what several share counts once). Idle CPU is counted by the scheduler, over all nodes, once
the fabric is quiet and fared has loaded what it loads once, a while after its start. Start-up is of one leaf in the running fabric, from exec to
the kernel holding every leaf's prefix over all equal-cost paths. Imports are timed in processes of
their own.

``python bench/footprint.py [SECONDS]`` sets for how long it idles; 60 for the whole truth.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from fared.lab.fabric import Fabric, Process
    from fared.lab.kernel_view import KernelView

TOPOLOGY = ROOT / "containerlab" / "clos3.clab.yml"
RESULTS = ROOT / "build" / "bench" / "footprint.json"
KINDS = {"fared": "ip", "frr": "/usr/lib/frr/zebra", "bird": "bird"}
NAMES = {"fared": "fared", "frr": "FRR", "bird": "BIRD"}
NODE = "L1"
GOAL_MIB = 80
READY = 90.0
IDLE = 6.0
SETTLE = 1.0
RESTARTED = {"fared": ("L1", "L2"), "frr": ("L1", "L2"), "bird": ("L1",)}
"""BIRD takes its time, each time the same."""
FORGOTTEN = 5.0
"""Seconds after which neighbors have forgotten a router: the dead interval is 4 s."""
IMPORT_RUNS = 3
IMPORTS = {
    "main": "import fared.daemon.main, fared.config, fared.daemon.daemon, fared.ospf.engine",
    "numpy": "import asyncio, numpy",
}
Row = dict[str, Any]


def figures_of(kind: str, idle: float) -> dict[str, float]:
    """Build the fabric with daemons of one kind, and measure."""
    from bench.labs import settle
    from fared.lab.fabric import Fabric
    from fared.lab.waiting import await_paths

    with Fabric.from_file(TOPOLOGY, as_kind=kind) as fabric:
        if await_paths(fabric, READY) is None:
            raise RuntimeError(f"{kind}: paths are missing after {READY:g} s")
        settle(fabric)
        time.sleep(SETTLE)
        nodes = [fabric.node(plan.name) for plan in fabric.plan.routers]
        processes = [process for node in nodes for process in node.processes]
        before, began = sum(map(cpu, processes)), time.monotonic()
        time.sleep(idle)
        used = (sum(map(cpu, processes)) - before) / (time.monotonic() - began)
        leaf = fabric.node(NODE).processes
        found = {
            "rss": sum(process.resident_bytes() for process in leaf) / 2**20,
            "pss": sum(map(proportional, processes)) / len(nodes) / 2**20,
            "idle": used / len(nodes) * 1e3,
        }
        found["start"] = statistics.median(start_ups(fabric, RESTARTED[kind]))
    return found


def cpu(process: Process) -> float:
    """CPU time a process has had, seconds: all its threads, to the nanosecond."""
    tasks = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def proportional(process: Process) -> int:
    """PSS of a process, bytes."""
    lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def start_ups(fabric: Fabric, restarted: tuple[str, ...]) -> list[float]:
    """Stop some leaves until they are forgotten, start each: seconds until its paths are there.

    That is until its kernel has the prefixes of all leaves that run, over all equal-cost ports.
    """
    from fared.lab.waiting import interfaces, wait_until

    plan = fabric.plan

    def accepts(name: str, view: KernelView) -> bool:
        routes = view.routes()
        return all(
            interfaces(routes.get(str(prefix), ()))
            == {port.name for port in plan.equal_cost_ports(name, leaf.name)}
            for leaf in plan.leaves
            if leaf.name not in restarted
            for prefix in leaf.host_prefixes
        )

    for name in restarted:
        fabric.stop_node(name)
    time.sleep(FORGOTTEN)
    seconds = []
    for name in restarted:
        began = time.monotonic()
        fabric.start_node(name)
        done = wait_until({name: fabric.view(name)}, accepts, READY)
        if done is None:
            raise RuntimeError(f"{name} did not come back in {READY:g} s")
        seconds.append(done - began)
    return seconds


def import_seconds(code: str) -> float:
    """CPU seconds of an interpreter that imports and ends, the best of several."""
    code += "; import time; print(time.process_time())"
    command = [sys.executable, "-c", code]
    runs = (
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
        for _ in range(IMPORT_RUNS)
    )
    return min(float(said) for said in runs)


def measure(idle: float) -> int:
    """Measure every kind that is installed; results go to a file, out of the sandbox."""
    results = {
        kind: figures_of(kind, idle) for kind, program in KINDS.items() if shutil.which(program)
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results))
    return 0


def rows(idle: float = IDLE) -> list[Row]:
    """A row a figure and peer; a ratio above 1 would mean that fared needs less."""
    from fared.lab import sandbox

    reason = sandbox.problem()
    if reason is not None:
        return [{"name": f"skipped: {reason}"}, *import_rows()]
    RESULTS.unlink(missing_ok=True)
    sandbox.run(lambda: measure(idle))
    found: dict[str, dict[str, float]] = json.loads(RESULTS.read_text())
    ours = found["fared"]
    table: list[Row] = [
        {
            "name": "leaf daemon, resident memory",
            "ours": ours["rss"],
            "unit": "MiB",
            "goal": f"< {GOAL_MIB} MiB",
            "met": ours["rss"] < GOAL_MIB,
        }
    ]
    figures = (
        ("rss", "resident memory of a leaf", "MiB"),
        ("pss", "proportional memory a node", "MiB"),
        ("idle", f"idle CPU a node, over {idle:g} s", "ms/s"),
        ("start", "a leaf from exec to all its paths in the kernel", "s"),
    )
    for key, name, unit in figures:
        for kind, values in found.items():
            if kind != "fared":
                other = values[key]
                table.append(
                    {
                        "name": f"{name} / {NAMES[kind]}",
                        "ours": ours[key],
                        "other": other,
                        "unit": unit,
                        "ratio": other / ours[key],
                    }
                )
    return [*table, *import_rows()]


def import_rows() -> list[Row]:
    """What Python spends before the first hello, beside an interpreter with NumPy and nothing."""
    ours, bare = (import_seconds(code) * 1e3 for code in IMPORTS.values())
    name = "CPU of the imports before the first hello / of asyncio and NumPy alone"
    return [{"name": name, "ours": ours, "other": bare, "unit": "ms", "ratio": bare / ours}]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Memory, idle CPU and start-up of a daemon.")
    parser.add_argument("seconds", nargs="?", type=float, default=IDLE)
    for row in rows(parser.parse_args().seconds):
        print(row)
