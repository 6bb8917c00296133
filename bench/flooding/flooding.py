"""Flooding in a dense fabric: packets and CPU for a link that fails and heals, compared with FRR.

Three parts. The lab: 4 spines and 8 leaves run fared with its defaults, fared with ``flooding:
reduction: leaf`` on its leaves, and FRR; a link fails and heals. A socket in each spine counts the
packets of all links, in the same way for each daemon, and the kernel counts the CPU of all daemons.
The virtual clock: the same events in larger fabrics of engines, with wires of unequal delay, with
and without reduction. Duplicates: the cost of a duplicate LSA, compared with its first copy.

``python -m bench flooding [CYCLES [isis]]``: more failures, or the lab over IS-IS.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from bench import ROOT
from bench.flooding.wires import ACKS, KINDS, UPDATES, duplicate_rows, virtual_rows
from bench.lab.fabrics import settle
from bench.lab.sandboxed import measured, possible
from bench.report import show
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from fared.management.api.client import ControlClient

TOPOLOGIES = {"ospf": "clos3.clab.yml", "isis": "clos3-isis.clab.yml"}
CYCLES = 5
READY = 90.0
FAILED, HEALED = 2.0, 3.0
"""Seconds of counting after an event: FRR acknowledges after a second."""
ETH_P_ALL = 3
IPV4, OSPF = 0x0800, 89
PACKETS, CPU = "packets", "CPU"
KINDS_SHOWN = (UPDATES, ACKS)
UNITS = {PACKETS: "packets", "bytes": "bytes", CPU: "ms"}
GOAL_PACKETS = 1.0
GOAL_CPU = 0.4
"""For a link that fails: 2.5 times the CPU of FRR."""
Row = dict[str, Any]
Events = dict[str, list[dict[str, float]]]


# -- the lab -------------------------------------------------------------------------------------


def kind_of_frame(frame: bytes) -> str | None:
    """The kind of flooding packet in a frame; None for any other frame."""
    if int.from_bytes(frame[12:14], "big") == IPV4 and frame[23] == OSPF:
        return KINDS.get(frame[14 + (frame[14] & 0xF) * 4 + 1])
    if frame[14:17] == b"\xfe\xfe\x03" and frame[17] == 0x83:
        return KINDS.get(frame[21] & 0x1F)
    return None


class Watch:
    """Counts the packets and the CPU of a fabric."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._sockets = []
        for plan in fabric.plan.routers:
            if not plan.name.startswith("S"):
                continue
            made = fabric.node(plan.name).netns.socket(
                socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)
            )
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
            made.setblocking(False)
            self._sockets.append(made)

    def cpu(self) -> float:
        """CPU seconds of all daemons so far."""
        total = 0
        for node in self._fabric.nodes.values():
            for process in node.processes:
                for task in Path(f"/proc/{process.pid}/task").iterdir():
                    total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9

    def close(self) -> None:
        """Close all sockets."""
        for each in self._sockets:
            each.close()

    def take(self) -> Counter[str]:
        """Packets and bytes since the last call, by kind."""
        found: Counter[str] = Counter()
        for each in self._sockets:
            while True:
                try:
                    frame = each.recv(65535)
                except BlockingIOError:
                    break
                kind = kind_of_frame(frame)
                if kind is not None:
                    found[kind] += 1
                    found["bytes"] += len(frame)
        return found

    def during(self, action: Any, seconds: float) -> dict[str, float]:  # noqa: ANN401
        """Packets and CPU of ``seconds`` after an event."""
        self.take()
        before = self.cpu()
        action()
        time.sleep(seconds)
        found: dict[str, float] = dict(self.take())
        found[CPU] = self.cpu() - before
        return found


def measure(kind: str, proto: str, cycles: int) -> dict[str, Events]:
    """Run a fabric, fail links and heal them; for fared also with reduction, under ``leaf``."""
    found = {}
    with Fabric.from_file(ROOT / "containerlab" / TOPOLOGIES[proto], as_kind=kind) as fabric:
        if await_paths(fabric, READY) is None:
            raise SystemExit(f"{kind}: not every router has all paths")
        settle(fabric)
        found[kind] = events(fabric, kind, cycles)
        if kind == "fared":
            reduce(fabric, proto)
            found["leaf"] = events(fabric, "leaf", cycles)
    return found


def events(fabric: Fabric, kind: str, cycles: int) -> Events:
    """Fail and heal links, one after another; the CPU is less that of the idle fabric.

    The idle CPU is the mean of windows before every event, as long as the event's: what a fabric
    does idle is not even (timers of some seconds), and a machine grows slower and faster.
    """
    time.sleep(1)
    watch = Watch(fabric)
    results: Events = {"fail": [], "heal": []}
    idle = dict.fromkeys(results, 0.0)
    for cycle in range(cycles):
        ends = f"S{cycle % 4 + 1}", f"L{cycle % 8 + 1}"
        for event, action, seconds in (
            ("fail", fabric.fail, FAILED),
            ("heal", fabric.heal, HEALED),
        ):
            idle[event] += watch.during(lambda: None, seconds)[CPU] / cycles
            found = watch.during(lambda a=action, e=ends: a(*e), seconds)
            results[event].append(found)
            print(kind, event, ends, found, file=sys.stderr, flush=True)
    watch.close()
    for event, each in results.items():
        for found in each:
            found[CPU] -= idle[event]
    return results


def reduce(fabric: Fabric, proto: str) -> None:
    """Enable flooding reduction on the leaves."""
    for plan in fabric.plan.leaves:
        directory = fabric.node(plan.name).directory
        file = directory / "fared.yaml"
        config = yaml.safe_load(file.read_text("utf-8"))
        config[proto]["flooding"] = {"reduction": "leaf"}
        file.write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
        answer = ControlClient(str(directory / "fared.sock")).request("reload")
        if not answer["applied"]:
            raise SystemExit(f"{plan.name}: {answer}")


def lab_rows(proto: str, cycles: int) -> list[Row]:
    """One row per figure and event, compared with FRR."""
    if not possible() or not Path("/usr/lib/frr/zebra").exists():
        return []
    found = measured(
        "flooding", lambda: measure("frr", proto, cycles) | measure("fared", proto, cycles)
    )
    return (
        []
        if found is None
        else [
            _lab_row(found, proto, event, figure, kind)
            for event in ("fail", "heal")
            for kind in ("fared", "leaf")
            for figure in UNITS
        ]
    )


def _lab_row(found: dict[str, Events], proto: str, event: str, figure: str, kind: str) -> Row:
    """A figure of one kind of event, compared with FRR's."""
    ours, other = (middle(found[k][event], figure) for k in (kind, "frr"))
    ratio = other / ours if ours else None
    label = "" if kind == "fared" else ", leaf reduction"
    row: Row = {
        "name": f"4x8 lab over {proto}, a link {event}s, {figure}{label} / FRR",
        "ours": ours,
        "other": other,
        "unit": UNITS[figure],
        "ratio": ratio,
    }
    urgent = figure == CPU and event == "fail" and kind == "fared"
    if figure == PACKETS or urgent:
        least = GOAL_CPU if urgent else GOAL_PACKETS
        row |= {"goal": f">= {least:g}x", "met": ratio is None or ratio >= least}
        if kind == "fared" and not urgent:
            parts = [
                f"{middle(found[k][event], w):.0f}" for w in KINDS_SHOWN for k in (kind, "frr")
            ]
            row["note"] = "a link {}s: updates {} / {}, acks {} / {}".format(event, *parts)
    return row


def middle(events: list[dict[str, float]], figure: str) -> float:
    """The median of a figure over events; CPU in ms."""
    if figure == PACKETS:
        return statistics.median(e.get(UPDATES, 0) + e.get(ACKS, 0) for e in events)
    value = statistics.median(event.get(figure, 0) for event in events)
    return value * 1e3 if figure == CPU else value


def rows(
    cycles: int = CYCLES,
    proto: str = "ospf",
    fabrics: tuple[tuple[str, int, int], ...] = (("ospf", 4, 8), ("isis", 8, 16)),
) -> list[Row]:
    """All three parts."""
    return [*duplicate_rows(), *virtual_rows(fabrics), *lab_rows(proto, cycles)]


def main() -> None:
    """Fail and heal links so many times."""
    parser = argparse.ArgumentParser(description="Packets and CPU of an event in a dense fabric.")
    parser.add_argument("cycles", nargs="?", type=int, default=CYCLES)
    parser.add_argument("protocol", nargs="?", choices=("ospf", "isis"), default="ospf")
    given = parser.parse_args()
    show(rows(given.cycles, given.protocol))
