"""Footprint of an idle daemon: memory, CPU and start-up, compared with FRR and BIRD.

The 4x8 fabric of the demo runs OSPF with hellos every second, with daemons of one kind at a time.
Memory is that of all daemons of a node (FRR: zebra and ospfd), resident (RSS) and proportional
(PSS: shared pages count once). Idle CPU comes from the scheduler's counters, over all nodes, once
the fabric is quiet and fared has loaded the modules that it loads some time after its start.
Start-up is that of one leaf in the running fabric, from exec until the kernel has every leaf's
prefix over all equal-cost paths. CPU to READY is that of a leaf of ours when it logs READY, the
median of several starts. Imports, ``fared --check`` and ``fared-cli show status`` run in processes
of their own: CPU time, the best of several.

``python -m bench footprint [SECONDS]`` sets the idle time; 60 gives reliable figures.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench import ROOT
from bench.lab.fabrics import settle
from bench.lab.sandboxed import required, skipped
from bench.report import show
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import KernelView
from fared.extensions.lab.processes import NodeProcess
from fared.extensions.lab.waiting import await_paths, interfaces, wait_until

STARTING = '"starting"'
TOPOLOGY = ROOT / "containerlab" / "clos3.clab.yml"
KINDS = {"fared": "ip", "frr": "/usr/lib/frr/zebra", "bird": "bird"}
NAMES = {"fared": "fared", "frr": "FRR", "bird": "BIRD"}
NODE = "L1"
GOALS = {
    "rss": 45.0,
    "pss": 28.0,
    "idle_leaf": 3.0,
    "ready": 500.0,
    "status": 120.0,
    "check": 300.0,
}
"""Upper limits: MiB, MiB, ms/s, and ms of CPU."""
READY = 90.0
IDLE = 6.0
SETTLE = 1.0
RESTARTED = {"fared": ("L1", "L2"), "frr": ("L1", "L2"), "bird": ("L1",)}
"""BIRD starts slowly, and each start takes the same time."""
FORGOTTEN = 5.0
"""Seconds after which neighbors have removed a router: the dead interval is 4 s."""
READY_RUNS = 5
IMPORT_RUNS = 3
IMPORTS = {
    "main": "import fared.daemon.main, fared.config, fared.daemon.process,"
    " fared.protocols.ospf.engine",
    "numpy": "import asyncio, numpy",
}
Row = dict[str, Any]


def figures_of(kind: str, idle: float) -> dict[str, float]:
    """Build the fabric with daemons of one kind, and measure."""
    with Fabric.from_file(TOPOLOGY, as_kind=kind) as fabric:
        if await_paths(fabric, READY) is None:
            raise RuntimeError(f"{kind}: paths are missing after {READY:g} s")
        settle(fabric)
        time.sleep(SETTLE)
        nodes = [fabric.node(plan.name) for plan in fabric.plan.routers]
        processes = [process for node in nodes for process in node.processes]
        leaf = fabric.node(NODE).processes
        before, began = {process.pid: cpu(process) for process in processes}, time.monotonic()
        time.sleep(idle)
        passed = time.monotonic() - began
        used = {p.pid: (cpu(p) - before[p.pid]) / passed for p in processes}
        found = {
            "rss": sum(process.resident_bytes() for process in leaf) / 2**20,
            "pss": sum(map(proportional, processes)) / len(nodes) / 2**20,
            "idle": sum(used.values()) / len(nodes) * 1e3,
            "idle_leaf": sum(used[process.pid] for process in leaf) * 1e3,
        }
        found["start"] = statistics.median(start_ups(fabric, RESTARTED[kind]))
        if kind == "fared":
            found |= ours_alone(fabric)
    return found


def ours_alone(fabric: Fabric) -> dict[str, float]:
    """Figures of fared only, CPU in ms: a leaf until READY, ``show status``, ``--check``."""
    ready = statistics.median(cpu_to_ready(fabric) for _ in range(READY_RUNS))
    directory = fabric.node(NODE).directory
    file = str(directory / "fared.yaml")
    status = fabric.node(NODE).kind.cli(directory, ["show", "status"])
    check = [sys.executable, "-m", "fared.daemon.main", "-c", file, "--check"]
    return {
        "ready": ready * 1e3,
        "status": min(command_seconds(status) for _ in range(READY_RUNS)) * 1e3,
        "check": min(command_seconds(check) for _ in range(READY_RUNS)) * 1e3,
    }


def cpu_to_ready(fabric: Fabric) -> float:
    """Restart a leaf; return its CPU seconds when it logs READY."""
    (process,) = fabric.node(NODE).processes
    told = len(process.log.read_bytes())
    fabric.stop_node(NODE)
    time.sleep(SETTLE)
    fabric.start_node(NODE)
    (process,) = fabric.node(NODE).processes
    deadline = time.monotonic() + READY
    while b'"stage": "ready"' not in process.log.read_bytes()[told:]:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{NODE} was not ready in {READY:g} s")
        time.sleep(0.002)
    return cpu(process)


def command_seconds(command: list[str]) -> float:
    """CPU seconds of a command. Raises RuntimeError if it fails."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {process.returncode}")
    return used.ru_utime + used.ru_stime


def cpu(process: NodeProcess) -> float:
    """CPU seconds of all threads of a process, in nanosecond resolution."""
    tasks = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def proportional(process: NodeProcess) -> int:
    """PSS of a process, bytes."""
    lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def start_ups(fabric: Fabric, restarted: tuple[str, ...]) -> list[float]:
    """Stop leaves until neighbors have removed them, start each; return its start-up seconds.

    Start-up ends when its kernel has the prefixes of all running leaves over all equal-cost ports.
    """
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
            raise RuntimeError(f"{name}: paths missing {READY:g} s after its start")
        seconds.append(done - began)
    return seconds


def import_seconds(code: str) -> float:
    """CPU seconds of an interpreter that imports modules and exits, the best of several."""
    code += "; import time; print(time.process_time())"
    command = [sys.executable, "-c", code]
    runs = (
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
        for _ in range(IMPORT_RUNS)
    )
    return min(float(said) for said in runs)


def measure(idle: float) -> dict[str, dict[str, float]]:
    """Measure every installed kind."""
    return {
        kind: figures_of(kind, idle) for kind, program in KINDS.items() if shutil.which(program)
    }


def rows(idle: float = IDLE) -> list[Row]:
    """One row per figure and peer; a ratio above 1 means that fared needs less."""
    if (reason := skipped()) is not None:
        return [reason, *import_rows()]
    found: dict[str, dict[str, float]] = required("footprint", lambda: measure(idle))
    ours = found["fared"]
    names = (
        ("rss", "leaf daemon, resident memory", "MiB"),
        ("pss", "a daemon of ours, proportional memory", "MiB"),
        ("idle_leaf", "leaf daemon with four neighbors, idle CPU", "ms/s"),
        ("ready", "CPU of a leaf from exec to READY", "ms"),
        ("status", "CPU of fared-cli show status", "ms"),
        ("check", "CPU of fared --check", "ms"),
    )
    table: list[Row] = [
        {
            "name": name,
            "ours": ours[key],
            "unit": unit,
            "goal": f"<= {GOALS[key]:g} {unit}",
            "met": ours[key] <= GOALS[key],
        }
        for key, name, unit in names
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
    """CPU of the imports before the first hello, compared with those of asyncio and NumPy."""
    ours, bare = (import_seconds(code) * 1e3 for code in IMPORTS.values())
    name = "CPU of the imports before the first hello / of asyncio and NumPy alone"
    return [{"name": name, "ours": ours, "other": bare, "unit": "ms", "ratio": bare / ours}]


def main() -> None:
    """Idle for so many seconds."""
    parser = argparse.ArgumentParser(description="Memory, idle CPU and start-up of a daemon.")
    parser.add_argument("seconds", nargs="?", type=float, default=IDLE)
    show(rows(parser.parse_args().seconds))
