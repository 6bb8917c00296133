"""An all-reduce over rings of direct links, and over a fat-tree of equal cost, in the lab.

Five nodes with four ports each (``fared-lab generate permutation --nodes 5 --degree 2``) cost as
many ports as a fat-tree with one NIC port a host, which needs three more in the switches:
``docs/direct-connect.md``. Each quarter of the message goes around one ring in one direction, all
at once; in the fat-tree the whole message goes around one ring.

``python -m bench direct_connect`` prints the row.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from bench.lab.sandboxed import measured_rows
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.generate.permutation import (
    Permutation,
    best_steps,
    ring_all_reduce_seconds,
)
from fared.extensions.lab.generate.writer import text
from fared.extensions.lab.waiting import await_paths
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.run import run

NODES, DEGREE = 5, 2
MBITS = 20
SIZE, ITERATIONS = 8_000_000, 5
READY = 60.0


def rows() -> list[dict[str, Any]]:
    """Measure in a sandbox; return the row. Without namespaces there is none."""
    return measured_rows("direct_connect", lambda: [_row()])


def _row() -> dict[str, Any]:
    orders = [[step * at % NODES for at in range(NODES)] for step in best_steps(NODES, DEGREE)]
    orders += [order[::-1] for order in orders]
    quarters = [
        Job("all-reduce-ring", _hosts(order), SIZE // len(orders), iterations=ITERATIONS)
        for order in orders
    ]
    whole = Job("all-reduce-ring", _hosts(range(NODES)), SIZE, iterations=ITERATIONS)
    ours = _measured(text(Permutation(NODES, DEGREE, rate=f"{MBITS}M")), quarters)
    theirs = _measured(_fat_tree(), [whole])
    least = ring_all_reduce_seconds(NODES, DEGREE, SIZE, MBITS * 1e6 / 8)
    return {
        "name": f"All-reduce of {NODES} nodes, {len(orders)} rings / fat-tree of as many ports",
        "ours": ours,
        "other": theirs,
        "unit": "s",
        "ratio": theirs / ours,
        "note": f"{SIZE / 1e6:g} MB, links of {MBITS} Mbit/s: {least:.2f} and "
        f"{least * len(orders):.2f} s without headers and starts, {len(orders)} times.",
    }


def _hosts(order: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"h{at + 1}" for at in order)


def _fat_tree() -> str:
    """A leaf for each host, whose uplink is as fast as the host's NIC: a topology file."""
    nodes = [f"L{n}" for n in range(1, NODES + 1)]
    groups = {
        "node": {
            "kind": "linux",
            "labels": {"fared-lab.kind": "fared", "fared-lab.rate": f"{MBITS}M"},
        },
        "host": {"kind": "linux"},
    }
    hosts = _hosts(range(NODES))
    links = [(node, "S1") for node in nodes] + list(zip(nodes, hosts, strict=True))
    topology = {
        "groups": groups,
        "nodes": {"S1": {"group": "node"}}
        | {node: {"group": "node"} for node in nodes}
        | {host: {"group": "host"} for host in hosts},
        "links": [{"endpoints": [f"{a}:{b}", f"{b}:{a}"]} for a, b in links],
    }
    return yaml.safe_dump({"name": "fat-tree", "topology": topology})


def _measured(topology: str, jobs: Sequence[Job]) -> float:
    """Return the median time until the last of some jobs has ended an iteration, seconds.

    Jobs begin their iterations by themselves, so the slowest one counts.
    """
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "topology.clab.yml")
        file.write_text(topology)
        with Fabric.from_file(file) as fabric:
            if await_paths(fabric, READY) is None:
                raise RuntimeError("not all routes in time")
            return max(report.median for report in run(fabric, jobs).jobs)
