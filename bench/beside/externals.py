"""AS-external routes learnt from BIRD, by two routers of fared or FRR in a row.

A (BIRD) originates N externals; B and C run the daemon under test. Measured are the seconds from
the command at A until the kernels of B and C hold all routes, and B's CPU seconds and memory then;
then A withdraws them all. If A's route to C disappears meanwhile, an adjacency was lost.
``python -m bench externals 10000 50000 100000`` sets the sizes, ``--kind fared`` selects a daemon.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from bench import ROOT
from bench.lab.sandboxed import possible, required
from bench.rows import compared
from fared.extensions.lab import sandbox
from fared.extensions.lab import topology as files
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import wait_until

SIZES = (10_000, 50_000)
REPORTED = 100_000
"""What ``make bench`` measures."""
PATIENCE = 150.0
REPORTED_PATIENCE = 60.0
STEP, LOOK = 0.05, 0.5
"""Seconds between two counts of the kernels' routes, and between two looks at A's route to C."""
LSA_BYTES = 800.0
ZEBRA = "/usr/lib/frr/zebra"
Row = dict[str, Any]


def topology(kind: str) -> dict[str, Any]:
    """A row of three: BIRD, and two routers of the kind under test."""

    def node(daemon: str) -> dict[str, Any]:
        labels = {"fared-lab.kind": daemon, "fared-lab.hello-interval": "1"}
        return {"kind": "linux", "group": "leaf", "labels": labels}

    nodes = {"A": node("bird"), "B": node(kind), "C": node(kind)}
    links = [{"endpoints": ["A:B", "B:A"]}, {"endpoints": ["B:C", "C:B"]}]
    groups = {"leaf": {"kind": "linux"}}
    return {
        "name": "externals",
        "topology": {"groups": groups, "nodes": nodes, "links": links},
    }


def originate(fabric: Fabric, count: int) -> None:
    """Make BIRD originate ``count`` externals."""
    node = fabric.node("A")
    file = node.directory / "bird.conf"
    kept = file.with_suffix(".kept")
    if not kept.exists():
        kept.write_text(file.read_text())
    numbers = range(count)
    lines = [f"  route 20.{n >> 8 & 255}.{n & 255}.{n >> 16 << 6}/26 blackhole;" for n in numbers]
    text = kept.read_text().replace("export none", "export where source = RTS_STATIC")
    static = ["protocol static outside {", "  ipv4;", *lines, "}"]
    file.write_text(text + "\n".join(static) + "\n")
    command = ["birdc", "-s", str(node.directory / "bird.ctl"), "configure"]
    subprocess.run(command, check=True, capture_output=True)


def held(fabric: Fabric, name: str) -> int:
    """Number of externals in the kernel of a node."""
    out = fabric.node(name).netns.ip("route", "show", "root", "20.0.0.0/8")
    return sum(line.startswith("20.") for line in out.splitlines())


def prefixes(fabric: Fabric, name: str) -> int:
    """Number of all prefixes in the kernel of a node, which it tells at once."""
    pid = fabric.node(name).processes[0].pid
    lines = Path(f"/proc/{pid}/net/fib_triestat").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.strip().startswith("Prefixes:"))


def usage(fabric: Fabric, name: str) -> tuple[float, float]:
    """CPU seconds and resident megabytes of all daemons of a node."""
    cpu = memory = 0.0
    for process in fabric.node(name).processes:
        pid = process.pid
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        cpu += (int(fields[11]) + int(fields[12])) / 100
        memory += int(fields[21]) * 4096 / 1e6
    return cpu, memory


def row_of(kind: str) -> Fabric:
    """The row of three, not started; it runs while it is entered."""
    return Fabric.from_topology(
        files.from_document(topology(kind), ROOT / "externals.clab.yml", None)
    )


def await_route(fabric: Fabric, name: str) -> None:
    """Wait until a router has a route to A. Raises RuntimeError."""
    loopback = f"{fabric.plan.node('A').loopback}/32"
    if wait_until({name: fabric.view(name)}, lambda _, v: bool(v.hops(loopback)), 30.0) is None:
        raise RuntimeError(f"no route from {name} to A")


def learn(
    fabric: Fabric, count: int, names: str, patience: float = PATIENCE, watch: Path | None = None
) -> float | None:
    """Originate the externals; return the seconds until all kernels hold them, None: not in time.

    ``names`` has a letter for each router. If A has no route to C at some time, ``watch`` is made.
    """
    wanted = {name: prefixes(fabric, name) - held(fabric, name) + count for name in names}
    began = looked = time.monotonic()
    originate(fabric, count)
    far = f"{fabric.plan.node('C').loopback}"
    while (now := time.monotonic()) - began < patience:
        if all(prefixes(fabric, name) == many for name, many in wanted.items()):
            return now - began if all(held(fabric, name) == count for name in names) else None
        if watch is not None and now - looked >= LOOK:
            looked = now
            if not fabric.node("A").netns.ip("route", "show", far).strip():
                watch.touch()
        time.sleep(STEP)
    return None


def measure(kind: str, count: int, patience: float = PATIENCE) -> dict[str, Any]:
    """Learn ``count`` externals, then withdraw them; seconds are None if it took too long."""
    with row_of(kind) as fabric:
        await_route(fabric, "C")
        cpu_before, before = usage(fabric, "B")
        lost = fabric.node("A").directory / "lost"
        seconds = learn(fabric, count, "CB", patience, lost)
        cpu, memory = usage(fabric, "B")
        withdrawn = None
        if seconds is not None:
            withdrawn = learn(fabric, 0, "CB", patience, lost)
        return {
            "seconds": seconds,
            "cpu": cpu - cpu_before,
            "memory": memory,
            "bytes an LSA": (memory - before) * 1e6 / count,
            "withdrawn": withdrawn,
            "lost": lost.exists(),
        }


def kinds() -> list[str]:
    """The daemons to measure: FRR if it is installed."""
    return ["fared", *(["frr"] if shutil.which(ZEBRA) else [])]


def rows() -> list[Row]:
    """The report's rows; none if no sandbox can be made or BIRD is not installed."""
    if not possible() or shutil.which("bird") is None:
        return []
    found = required(
        "externals",
        lambda: {kind: measure(kind, REPORTED, REPORTED_PATIENCE) for kind in kinds()},
    )
    ours, other = found["fared"], found.get("frr", {})
    name = f"{REPORTED:,} externals of BIRD through a row of three"
    learnt = compared(f"{name}: in both kernels", ours["seconds"], other.get("seconds"), "s", 1.0)
    if ours["lost"]:
        learnt |= {"met": False, "note": "fared lost an adjacency meanwhile"}
    held_row = compared(f"{name}: memory of one LSA", ours["bytes an LSA"], None, "bytes")
    small = ours["seconds"] is not None and ours["bytes an LSA"] <= LSA_BYTES
    return [
        learnt,
        compared(f"{name}: withdrawn", ours["withdrawn"], other.get("withdrawn"), "s", 1.0),
        compared(f"{name}: CPU of the middle", ours["cpu"], other.get("cpu"), "s"),
        compared(f"{name}: memory of the middle", ours["memory"], other.get("memory"), "MB"),
        held_row
        | {"other": other.get("bytes an LSA"), "goal": f"<= {LSA_BYTES:g} bytes", "met": small},
    ]


def main() -> int:
    """Print a line for each size and daemon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--kind", choices=("fared", "frr"))
    chosen = parser.parse_args()

    def run() -> int:
        for size in chosen.sizes:
            for kind in [chosen.kind] if chosen.kind else kinds():
                print(size, kind, json.dumps(measure(kind, size)), flush=True)
        return 0

    return sandbox.run(run)
