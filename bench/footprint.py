"""Memory of a leaf's daemon in a running 4x8 fabric, beside FRR's and BIRD's in the same fabric."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

TOPOLOGY = ROOT / "containerlab" / "clos3.clab.yml"
GOAL_MIB = 80
READY = 60.0


def resident_mib(kind: str) -> float:
    """Build the fabric with daemons of one kind, wait until all paths are there, measure L1."""
    from fared.lab.fabric import Fabric
    from fared.lab.waiting import await_paths

    with Fabric.from_file(TOPOLOGY, as_kind=kind) as fabric:
        await_paths(fabric, READY)
        processes = fabric.node("L1").processes
        return sum(process.resident_bytes() for process in processes) / 2**20


def rows() -> list[dict[str, Any]]:
    """One row a peer that is installed; the goal is fared's own."""
    from fared.lab import sandbox

    results: dict[str, float] = {}

    def measure() -> int:
        import shutil

        for kind, program in (("fared", "ip"), ("frr", "/usr/lib/frr/zebra"), ("bird", "bird")):
            if shutil.which(program):
                results[kind] = resident_mib(kind)
        Path(ROOT / "build" / "bench").mkdir(parents=True, exist_ok=True)
        text = "\n".join(f"{kind} {value}" for kind, value in results.items())
        (ROOT / "build" / "bench" / "footprint.txt").write_text(text)
        return 0

    if sandbox.problem() is not None:
        return []
    sandbox.run(measure)
    text = (ROOT / "build" / "bench" / "footprint.txt").read_text()
    found = {kind: float(value) for kind, value in (line.split() for line in text.splitlines())}
    ours = found["fared"]
    table: list[dict[str, Any]] = [
        {
            "name": "leaf daemon, resident",
            "ours": ours,
            "other": None,
            "unit": "MiB",
            "ratio": None,
            "goal": f"< {GOAL_MIB} MiB",
            "met": ours < GOAL_MIB,
        }
    ]
    table += [
        {
            "name": f"beside {kind} (all its daemons)",
            "ours": ours,
            "other": value,
            "unit": "MiB",
            "ratio": ours / value,
        }
        for kind, value in found.items()
        if kind != "fared"
    ]
    return table


if __name__ == "__main__":
    for row in rows():
        print(row)
