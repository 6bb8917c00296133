"""What wakes idle daemons, and what each wakeup costs: CPU of the leaves of the 4x8 fabric.

OSPF runs with hellos every second. The scheduler's counter of each leaf is read every 12 ms: what
it has used between two moments of rest is one wakeup. A line has wakeups of a leaf in a second,
their median, and their part of its idle CPU. ``python -m bench wakeups [SECONDS]``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from itertools import pairwise
from pathlib import Path

from bench.daemons.footprint import TOPOLOGY
from bench.lab.fabrics import settle
from fared.extensions.lab import sandbox
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths

LOOK = 0.012
"""Seconds between two looks: shorter than the time from one wakeup to the next, mostly."""
CLASSES = (0.0, 0.4, 2.0, float("inf"))
"""ms: hellos of neighbors below the first limit, then own hellos with jobs, then audits."""
SETTLE = 4.0
READY = 90.0


def used(counter: Path) -> int:
    """CPU that a process has used, in nanoseconds."""
    return int(counter.read_text("ascii").split()[0])


def watched(pids: list[int], seconds: float) -> list[float]:
    """The wakeups of processes, each with its milliseconds of CPU."""
    counters = [Path(f"/proc/{pid}/schedstat") for pid in pids]
    last = [used(counter) for counter in counters]
    present, found = [0] * len(counters), list[float]()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(LOOK)
        for at, counter in enumerate(counters):
            now = used(counter)
            if now != last[at]:
                present[at] += now - last[at]
            elif present[at]:
                found.append(present[at] / 1e6)
                present[at] = 0
            last[at] = now
    return found


def measure(seconds: float) -> int:
    """Build the fabric, let it become quiet, and print its wakeups."""
    with Fabric.from_file(TOPOLOGY, as_kind="fared") as fabric:
        if await_paths(fabric, READY) is None:
            raise RuntimeError(f"paths are missing after {READY:g} s")
        settle(fabric)
        time.sleep(SETTLE)
        pids = [fabric.node(plan.name).processes[0].pid for plan in fabric.plan.leaves]
        found = watched(pids, seconds)
    for least, most in pairwise(CLASSES):
        some = [one for one in found if least <= one < most]
        if some:
            rate, whole = (part / seconds / len(pids) for part in (len(some), sum(some)))
            median = statistics.median(some)
            print(f"{least:g} to {most:g} ms: {rate:.2f}/s of {median:.2f} ms, {whole:.2f} ms/s")
    print(f"a leaf: {sum(found) / seconds / len(pids):.2f} ms/s")
    return 0


def main() -> int:
    """Measure for so many seconds."""
    parser = argparse.ArgumentParser(description="What wakes idle daemons.")
    parser.add_argument("seconds", nargs="?", type=float, default=30.0)
    options = parser.parse_args()
    return sandbox.run(lambda: measure(options.seconds))
