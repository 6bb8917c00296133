"""A host two hops away floods a router with OSPF packets, which it must refuse: fared beside FRR.

The host sends 40,000 unicast hellos a second over W to fared, and then to FRR, for twice the dead
interval each. Both are neighbors of W, which runs fared. CPU time is that of the flooded daemon,
without what its kernel takes.

``python -m bench strangers [RUNS]``
"""

from __future__ import annotations

import argparse
import socket
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from bench.daemons.convergence import cpu_seconds
from bench.daemons.starting import lost_neighbors
from bench.lab.sandboxed import measured_rows
from bench.report import show
from bench.rows import compared
from fared.extensions.lab import topology
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from fared.protocols.ospf.packet.codec import encode_packet
from fared.protocols.ospf.packet.packets import Hello

RATE = 40_000
SECONDS = 8.0
RUNS = 3
MOST = 2.0
"""CPU of fared, of FRR's."""
_READY = 60.0
_TTL = 63
_IN_A_GO = 40
FARED, FRR = "V", "F"
TOPOLOGY: dict[str, Any] = {
    "name": "strangers",
    "topology": {
        "nodes": {
            "W": {"kind": "linux", "labels": {"fared-lab.kind": "fared"}},
            FARED: {"kind": "linux", "labels": {"fared-lab.kind": "fared"}},
            FRR: {"kind": "linux", "labels": {"fared-lab.kind": "frr"}},
            "h": {"kind": "linux"},
            "v": {"kind": "linux"},
            "f": {"kind": "linux"},
        },
        "links": [
            {"endpoints": ["W:V", "V:W"]},
            {"endpoints": ["W:F", "F:W"]},
            {"endpoints": ["W:h", "h:W"]},
            {"endpoints": ["V:v", "v:V"]},
            {"endpoints": ["F:f", "f:F"]},
        ],
    },
}


def flood(fabric: Fabric, victim: str) -> int:
    """Send hellos in the name of a router to its neighbor's address; return how many."""
    port = fabric.plan.nodes[victim].ports[0]
    plan = fabric.plan.nodes["W"].node
    hello = Hello(0xFFFFFFFE, plan.hello_interval, 2, 1, plan.dead_interval, 0, 0, ())
    payload = encode_packet(0x0A424242, 0, hello)
    target = (str(port.address.ip), 0)
    sent = 0
    with fabric.node("h").netns.socket(socket.AF_INET, socket.SOCK_RAW, 89) as raw:
        raw.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, _TTL)
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < SECONDS:
            if sent > passed * RATE:
                time.sleep(_IN_A_GO / RATE)
                continue
            for _ in range(_IN_A_GO):
                raw.sendto(payload, target)
            sent += _IN_A_GO
    return sent


def once(fabric: Fabric, victim: str) -> dict[str, float]:
    """Flood one router: CPU time of its daemon in percent, neighbors lost at either end."""
    names = ("fared", "ospfd")
    pids = [one.pid for one in fabric.node(victim).processes if one.name in names]
    lost, cpu, begun = lost_neighbors(fabric), cpu_seconds(pids), time.monotonic()
    sent = flood(fabric, victim)
    seconds = time.monotonic() - begun
    return {
        "cpu": (cpu_seconds(pids) - cpu) / seconds * 100,
        "lost": lost_neighbors(fabric) - lost,
        "rate": sent / seconds,
    }


def measure(runs: int) -> list[dict[str, Any]]:
    """Flood both routers in turn; the rows of all runs."""
    found: dict[str, list[dict[str, float]]] = {FARED: [], FRR: []}
    with Fabric.from_topology(topology.from_document(TOPOLOGY, Path(__file__))) as fabric:
        if await_paths(fabric, _READY) is None:
            raise RuntimeError("paths are missing")
        for _ in range(runs):
            for victim, figures in found.items():
                figures.append(once(fabric, victim))
                print(victim, figures[-1], file=sys.stderr, flush=True)
    ours, theirs = (statistics.median(one["cpu"] for one in found[name]) for name in found)
    rate = min(one["rate"] for figures in found.values() for one in figures)
    row = compared(f"CPU while a stranger sends {RATE:,} packets/s", ours, theirs, "%", 1 / MOST)
    lost = sum(one["lost"] for one in found[FARED])
    return [
        row | {"note": f"{rate:,.0f} packets/s or more were sent"},
        {
            "name": f"neighbors lost in {runs} runs",
            "ours": lost,
            "other": sum(one["lost"] for one in found[FRR]),
            "unit": "",
            "goal": "0",
            "met": lost == 0,
        },
    ]


def rows(runs: int = RUNS) -> list[dict[str, Any]]:
    """The rows of the report; none without namespaces."""
    return measured_rows("strangers", lambda: measure(runs))


def main() -> None:
    """Print the rows of so many runs."""
    parser = argparse.ArgumentParser(description="A flood from beyond the link, beside FRR.")
    parser.add_argument("runs", nargs="?", type=int, default=RUNS)
    show(rows(parser.parse_args().runs))
