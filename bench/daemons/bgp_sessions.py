"""A leaf with a BGP session to each of 64 spines, which tell it 10,000 prefixes: fared and FRR.

The spines are scripted (``neighbors.bgp_speakers``). Each tells of 500 leaves, with 20 prefixes and
a path bandwidth each. Measured: seconds from the first message until the last change in the kernel,
CPU, memory beside that of the same daemon before, and CPU while nothing changes. Then sessions are
lost, one after the other: until the last change in the kernel.

``python -m bench bgp_sessions [--spines 64] [--prefixes 20] [--idle 20]``
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.lab.sandboxed import measured_rows
from bench.neighbors.bgp_speakers import Neighbors, told
from bench.neighbors.devices import Device
from bench.neighbors.fabric import RATE, Fabric
from bench.report import show
from bench.rows import compared

SPINES, LEAVES, PREFIXES = 64, 501, 20
IDLE = 20.0
LOST = 5
_QUIET = 0.5
"""Seconds without a change in the kernel after which there is none any more."""
_PATIENCE = 300.0
_REST = 30.0
"""Seconds after which modules that are needed later are loaded, and neighbors count as quiet."""
GOALS = {"learnt": 3.0, "memory": 60.0, "idle": 2.0, "lost": 20.0}


class BgpDevice(Device):
    """The device, with BGP: its neighbors are ``neighbors``."""

    def __init__(self, kind: str, fabric: Fabric, directory: Path) -> None:
        super().__init__(kind, "bgp", fabric, directory)
        self.neighbors = Neighbors(fabric)

    def _speak(self, spine: int, ifindex: int) -> None:
        """Nobody speaks on a link before the device has started."""

    def connect(self) -> None:
        """Bring all sessions up."""
        with self.outside.entered():
            self.neighbors.connect()

    def last_change(self, since: float, quiet: float = _QUIET) -> tuple[float, int]:
        """Serve until the kernel has been quiet for a while; when it changed last, how often."""
        last, count = since, 0
        deadline = since + _PATIENCE
        while True:
            self.neighbors.serve(0.002)
            now, found = time.monotonic(), self.changes()
            if found:
                last, count = now, count + found
            if (count and now > last + quiet) or now > deadline:
                return last - since, count


def measure(kind: str, spines: int, count: int, idle: float) -> dict[str, float]:
    """Measure one daemon."""
    fabric = Fabric(spines, LEAVES, te=False)
    messages = [
        b"".join(told(fabric, spine, count, lambda leaf, at=spine: _bandwidth(at, leaf)))
        for spine in range(spines)
    ]
    with tempfile.TemporaryDirectory() as directory:
        device = BgpDevice(kind, fabric, Path(directory))
        try:
            device.start()
            device.connect()
            device.neighbors.serve(3.0)
            return _measure(device, messages, idle)
        finally:
            device.stop()


def _bandwidth(spine: int, leaf: int) -> float:
    """Of a path to a leaf: in most groups a link or two carry less."""
    return RATE / 4 if (spine * 7 + leaf * 13) % 50 == 0 else RATE


def _measure(device: BgpDevice, messages: list[bytes], idle: float) -> dict[str, float]:
    neighbors, found = device.neighbors, dict[str, float]()
    device.changes()
    memory, cpu, began = device.resident(), device.cpu(), time.monotonic()
    neighbors.tell(messages)
    found["learnt"], changes = device.last_change(began, 2.0)
    found["learnt cpu"] = device.cpu() - cpu
    found["changes"] = changes
    neighbors.serve(_REST)
    found["memory"], found["resident"] = device.resident() - memory, device.resident()
    cpu, began = device.cpu(), time.monotonic()
    neighbors.serve(idle)
    found["idle"] = (device.cpu() - cpu) / (time.monotonic() - began) * 1e3
    lost, used = [], []
    for spine in range(1, LOST + 1):
        device.changes()
        cpu, began = device.cpu(), time.monotonic()
        neighbors.close(spine)
        lost.append(device.last_change(began)[0] * 1e3)
        used.append((device.cpu() - cpu) * 1e3)
    found["lost"], found["lost cpu"] = statistics.median(lost), statistics.median(used)
    return found


def rows(spines: int = SPINES, count: int = PREFIXES, idle: float = IDLE) -> list[dict[str, Any]]:
    """The rows of the report."""

    def both() -> list[dict[str, Any]]:
        ours, other = (measure(kind, spines, count, idle) for kind in ("fared", "frr"))
        total = (LEAVES - 1) * count
        names = {
            "learnt": (f"{total:,} prefixes of {spines} neighbors, last in the kernel", "s"),
            "learnt cpu": ("CPU of that", "s"),
            "changes": ("changes in the kernel", ""),
            "memory": ("memory of that", "MiB"),
            "resident": ("resident memory", "MiB"),
            "idle": (f"{spines} sessions, idle", "ms/s"),
            "lost": (f"a session of {spines} lost, last change in the kernel", "ms"),
            "lost cpu": ("CPU of that", "ms"),
        }
        table = []
        for key, (name, unit) in names.items():
            row = compared(name, ours[key], other[key], unit)
            if key in GOALS:
                row |= {"goal": f"<= {GOALS[key]:g} {unit}", "met": ours[key] <= GOALS[key]}
            table.append(row)
        return table

    return measured_rows("bgp_sessions", both)


def main() -> None:
    """Measure with other numbers."""
    parser = argparse.ArgumentParser(description="A leaf with many BGP sessions, fared and FRR.")
    parser.add_argument("--spines", type=int, default=SPINES)
    parser.add_argument("--prefixes", type=int, default=PREFIXES, help="of each of 500 leaves")
    parser.add_argument("--idle", type=float, default=IDLE)
    chosen = parser.parse_args()
    show(rows(chosen.spines, chosen.prefixes, chosen.idle))
