"""A leaf with a BGP session to each of 64 spines, which tell it 10,000 prefixes: fared and FRR.

The spines are scripted (``neighbors.bgp_speakers``). Each tells of 500 leaves, with 20 prefixes and
a path bandwidth each. Measured: CPU while nothing changes, without prefixes and with them; seconds
from the first message until the last change in the kernel, CPU, memory beside that of the same
daemon before. Then sessions are lost, one after the other: until the first and the last change in
the kernel.

``python -m bench bgp_sessions [--spines 64] [--prefixes 20] [--idle 20]``
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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
GOALS = {"learnt": 3.0, "memory": 60.0, "idle before": 2.0, "idle": 2.0, "lost": 20.0}


class Changes(NamedTuple):
    """Changes in the kernel: how many, seconds until the first and the last of them."""

    number: int
    first: float
    last: float


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

    def changed(
        self, since: float, quiet: float = _QUIET, complete: Callable[[], bool] = lambda: True
    ) -> Changes:
        """Serve until the kernel is complete, and has been quiet for a while."""
        first = last = since
        number, deadline = 0, since + _PATIENCE
        while True:
            self.neighbors.serve(0.002)
            now, found = time.monotonic(), self.changes()
            if found:
                first, last = first if number else now, now
                number += found
            if now > deadline or (number and now > last + quiet and complete()):
                return Changes(number, first - since, last - since)

    def has_routes(self, count: int) -> bool:
        """Whether so many prefixes are in the kernel; a busy machine may pause in between."""
        found = self.inside.ip("-4", "route", "show").splitlines()
        return sum(not line[0].isspace() for line in found) >= count


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
            return _measure(device, messages, idle, (LEAVES - 1) * count)
        finally:
            device.stop()


def _bandwidth(spine: int, leaf: int) -> float:
    """Of a path to a leaf: in most groups a link or two carry less."""
    return RATE / 4 if (spine * 7 + leaf * 13) % 50 == 0 else RATE


def _measure(device: BgpDevice, messages: list[bytes], idle: float, total: int) -> dict[str, float]:
    neighbors, found = device.neighbors, dict[str, float]()
    found["idle before"] = _idle(device, idle)
    device.changes()
    memory, cpu, began = device.resident(), device.cpu(), time.monotonic()
    neighbors.tell(messages)
    learnt = device.changed(began, 2.0, lambda: device.has_routes(total))
    found["learnt"], found["changes"] = learnt.last, learnt.number
    found["learnt cpu"] = device.cpu() - cpu
    found["idle"] = _idle(device, idle)
    found["memory"], found["resident"] = device.resident() - memory, device.resident()
    lost, used = list[Changes](), []
    for spine in range(1, LOST + 1):
        device.changes()
        cpu, began = device.cpu(), time.monotonic()
        neighbors.close(spine)
        lost.append(device.changed(began))
        used.append((device.cpu() - cpu) * 1e3)
    found["lost first"] = statistics.median([one.first for one in lost]) * 1e3
    found["lost"] = statistics.median([one.last for one in lost]) * 1e3
    found["lost cpu"] = statistics.median(used)
    return found


def _idle(device: BgpDevice, seconds: float) -> float:
    """CPU of a daemon to which nothing happens, ms of a second."""
    device.neighbors.serve(_REST)
    cpu, began = device.cpu(), time.monotonic()
    device.neighbors.serve(seconds)
    return (device.cpu() - cpu) / (time.monotonic() - began) * 1e3


def rows(spines: int = SPINES, count: int = PREFIXES, idle: float = IDLE) -> list[dict[str, Any]]:
    """The rows of the report."""

    def both() -> list[dict[str, Any]]:
        ours, other = (measure(kind, spines, count, idle) for kind in ("fared", "frr"))
        total = (LEAVES - 1) * count
        names = {
            "idle before": (f"{spines} sessions without prefixes, idle", "ms/s"),
            "learnt": (f"{total:,} prefixes of {spines} neighbors, last in the kernel", "s"),
            "learnt cpu": ("CPU of that", "s"),
            "changes": ("changes in the kernel", ""),
            "memory": ("memory of that", "MiB"),
            "resident": ("resident memory", "MiB"),
            "idle": (f"{spines} sessions with prefixes, idle", "ms/s"),
            "lost first": (f"a session of {spines} lost, first change in the kernel", "ms"),
            "lost": ("that, last change in the kernel", "ms"),
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
