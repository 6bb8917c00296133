"""A link of a leaf carries less: until the kernel of the other leaf weighs it so, over BGP.

Two leaves of fared and two spines, which are FRR, then fared. A shaper at leaf L2 toward spine S1
changes; L2 tells S1 another bandwidth, that passes it on, and L1 has other weights. Milliseconds
from the command until the last change in the kernel of L1, the median and the most of several.

``python -m bench bgp_values [--changes 12]``
"""

from __future__ import annotations

import argparse
import socket
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.lab.sandboxed import measured_rows
from bench.report import show
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from tests.lab.two_leaves import topology

CHANGES = 12
SPINES = {"frr": 60.0, "fared": 15.0}
"""The make of the spines, and the goal, ms."""
_READY = 90.0
_WITHIN, _QUIET, _GAP = 10.0, 0.3, 2.0
_RATES = (50, 100, 25)
"""Mbit/s, one after the other."""
_NETLINK_GROUPS = (7, 32)  # IPv4 routes, next hops


def _monitor(fabric: Fabric, name: str) -> socket.socket:
    found = fabric.node(name).netns.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    found.bind((0, 0))
    for group in _NETLINK_GROUPS:
        found.setsockopt(270, 1, group)
    return found


def _last_change(monitor: socket.socket, since: float) -> float:
    """Seconds until the kernel changed last. Raises RuntimeError if it does not."""
    monitor.settimeout(_WITHIN)
    last = None
    while True:
        try:
            monitor.recv(1 << 16)
        except TimeoutError:
            break
        last = time.monotonic()
        monitor.settimeout(_QUIET)
    if last is None:
        raise RuntimeError(f"no other weights within {_WITHIN:g} s")
    return last - since


def measure(spine: str, changes: int) -> list[float]:
    """Return milliseconds of each change, with spines of a make."""
    text = topology("values", protocol="bgp", rate="100M", S1=spine, S2=spine)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "values.clab.yml"
        file.write_text(text)
        with Fabric.from_file(file) as fabric:
            if await_paths(fabric, _READY) is None:
                raise RuntimeError(f"paths are missing after {_READY:g} s")
            time.sleep(5.0)
            found = []
            with _monitor(fabric, "L1") as monitor:
                for at in range(changes):
                    began = time.monotonic()
                    fabric.shape("L2", "S1", _RATES[at % len(_RATES)] * 125e3)
                    found.append(_last_change(monitor, began) * 1e3)
                    time.sleep(_GAP)
            return found


def rows(changes: int = CHANGES) -> list[dict[str, Any]]:
    """The rows of the report."""

    def both() -> list[dict[str, Any]]:
        table = []
        for spine, goal in SPINES.items():
            found = measure(spine, changes)
            middle = statistics.median(found)
            over = {"frr": "FRR", "fared": "fared"}[spine]
            table.append(
                {
                    "name": f"a link carries less, over a spine of {over}, until it is weighed",
                    "ours": middle,
                    "unit": "ms",
                    "goal": f"<= {goal:g} ms",
                    "met": middle <= goal,
                    "note": f"of {changes}: {min(found):.0f} to {max(found):.0f} ms",
                }
            )
        return table

    return measured_rows("bgp_values", both)


def main() -> None:
    """Measure so many changes."""
    parser = argparse.ArgumentParser(description="Changed path bandwidths, from leaf to leaf.")
    parser.add_argument("--changes", type=int, default=CHANGES)
    show(rows(parser.parse_args().changes))
