"""Fabric sizes on the virtual clock: start-up and ten failures, with 50 to 500 routers.

One process runs all routers, each complete but for sockets and kernel: engine, database, solver,
FIB planner. The fabric has five stages, with PoDs of 4 spines and 12 leaves; each PoD is an area
and advertises aggregates; larger fabrics have more PoDs. The fabric starts from nothing and runs
until no database and no table changes any more. Then ten links fail, one after another; each time
the fabric runs until it is quiet again. At the end packets are forwarded through the simulated
kernels. Each size runs in its own process, on one core; growth is fitted to CPU time, which other
load on the machine affects little.

``python -m bench sim_scale`` runs the sizes of the report, 52 to 200 routers; ``--full`` continues
to 500 and takes minutes more. ``pods 52 1000`` or ``flat 50 100 200`` selects sizes: ``flat`` is a
three-stage fabric in one area, where every router knows every link.
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from bench import ROOT
from bench.report import show
from fared.core.ids import Prefix
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import Fabric, clos3
from fared.extensions.sim.network import Node

POD_SPINES, POD_LEAVES = 4, 12
POD = POD_SPINES + POD_LEAVES
PODS = "pods"
FLAT = "flat"
SIZES, FULL = (52, 100, 200), (52, 100, 200, 500)
FAILURES = 10
START_DEADLINE = 120.0
QUIET = 1.0
WALKS = 200
MAX_HOPS = 8
SEED = 20
GOAL_SECONDS = 180.0
GC_THRESHOLD = 200_000
Row = dict[str, Any]


def build(kind: str, routers: int) -> Fabric:
    """Build a fabric of about ``routers`` routers."""
    if kind == FLAT:
        return clos3(POD_SPINES, routers - POD_SPINES)
    pods = (routers - POD_SPINES) // POD
    supers = max(1, (routers - pods * POD) // POD_SPINES)
    return clos5_areas(pods, POD_LEAVES, POD_SPINES, supers, summarized=True)


def measure(kind: str, routers: int) -> dict[str, float]:
    """Start the fabric, fail ten links, and check that packets still arrive."""
    # The databases are not garbage: collecting over them takes a fifth of the time.
    gc.set_threshold(GC_THRESHOLD)
    fabric = build(kind, routers)
    network, chance = fabric.network, random.Random(SEED)
    began, began_cpu = time.perf_counter(), time.process_time()
    network.start_all()
    settled = network.run_until_quiet(START_DEADLINE, quiet=QUIET)
    started, started_cpu = time.perf_counter(), time.process_time()
    found: dict[str, float] = {
        "routers": len(network.nodes),
        "links": len(fabric.links),
        "start wall": started - began,
        "start cpu": started_cpu - began_cpu,
        "start virtual": settled,
        "start events": network.events,
        "start packets": network.counts["packets"],
        "start bytes": network.counts["bytes"],
    }
    virtual = []
    for end in chance.sample(fabric.links, FAILURES):
        failed = network.now
        network.set_link(*end, up=False)
        virtual.append(network.run_until_quiet(START_DEADLINE, quiet=QUIET) - failed)
    found |= {
        "fail wall": (time.perf_counter() - started) / FAILURES,
        "fail cpu": (time.process_time() - started_cpu) / FAILURES,
        "fail virtual": sorted(virtual)[FAILURES // 2],
        "fail events": (network.events - found["start events"]) / FAILURES,
        "fail packets": (network.counts["packets"] - found["start packets"]) / FAILURES,
        "wall": time.perf_counter() - began,
        "lost walks": sum(not arrives(fabric, chance) for _ in range(WALKS)),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "routes": sum(len(node.kernel.state.routes) for node in network.nodes.values()),
    }
    return found


def arrives(fabric: Fabric, chance: random.Random) -> bool:
    """Forward a packet from a leaf to a host of another, by longest match and random next hop."""
    here, goal = chance.sample(sorted(fabric.leaf_prefixes), 2)
    destination = fabric.leaf_prefixes[goal].network + 9
    for _ in range(MAX_HOPS):
        if here == goal:
            return True
        onward = ways(fabric.network.nodes[here], destination)
        if not onward:
            return False
        here = chance.choice(onward)
    return False


def ways(node: Node, destination: int) -> list[str]:
    """Neighbors to which a node's kernel forwards a packet."""
    state = node.kernel.state
    for length in range(32, -1, -1):
        target = state.routes.get(Prefix(4, destination >> 32 - length << 32 - length, length))
        if target is not None:
            members = state.groups.get(target)
            ids = [target] if members is None else [member[0] for member in members]
            ports = (node.ports.get(state.nexthops[number][0]) for number in ids)
            return [p.peer.node for p in ports if p is not None and p.up and p.peer is not None]
    return []


def in_a_process(kind: str, routers: int) -> dict[str, float]:
    """Run ``measure`` in a separate process, so that sizes do not affect one another."""
    command = [sys.executable, "-m", "bench", "sim_scale", "--one", kind, str(routers)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def exponent(points: list[dict[str, float]], what: str) -> float:
    """Exponent of a figure's growth with the number of routers: a linear fit of logarithms."""
    across = np.log([point["routers"] for point in points])
    return float(np.polyfit(across, np.log([point[what] for point in points]), 1)[0])


def rows(sizes: tuple[int, ...] = SIZES) -> list[Row]:
    """The sizes of the report, and the growth of each figure."""
    # The largest size takes longest by far: the others run in parallel if there are two cores.
    with ThreadPoolExecutor(2 if (os.cpu_count() or 1) > 1 else 1) as pool:
        later = {
            size: pool.submit(in_a_process, PODS, size) for size in sorted(sizes, reverse=True)
        }
        points = [later[size].result() for size in sizes]
    return [*size_rows(points), *growth_rows(points), *verdict_rows(points)]


def size_rows(points: list[dict[str, float]]) -> list[Row]:
    """The figures of each size."""
    found: list[Row] = []
    for point in points:
        name = f"{point['routers']:.0f} routers, {point['links']:.0f} links"
        start = (
            f"{point['start cpu']:.1f} s of CPU; {point['start events']:,.0f} events, "
            f"{point['start packets']:,.0f} messages, "
            f"{point['start bytes'] / 1e6:,.0f} MB on the wires, {point['start virtual']:.2f} s of "
            f"virtual time; {point['routes']:,.0f} routes in all kernels, "
            f"{point['memory'] / 2**20:,.0f} MiB"
        )
        fail = (
            f"{point['fail cpu']:.2f} s of CPU; {point['fail events']:,.0f} events, "
            f"{point['fail packets']:,.0f} messages, hellos included; "
            f"quiet after {point['fail virtual']:.2f} s of virtual time (median)"
        )
        found += [
            {"name": f"{name}: start-up", "ours": point["start wall"], "unit": "s", "note": start},
            {"name": f"{name}: one failure", "ours": point["fail wall"], "unit": "s", "note": fail},
        ]
        found[-2]["points"] = point
    return found


GROWING = (
    ("start cpu", "start-up: CPU"),
    ("start events", "start-up: events"),
    ("start packets", "start-up: messages"),
    ("fail cpu", "a failure: CPU"),
    ("fail events", "a failure: events"),
    ("fail packets", "a failure: messages"),
    ("memory", "memory"),
)


def growth_rows(points: list[dict[str, float]]) -> list[Row]:
    """The exponent with which each figure grows with the number of routers."""
    smallest, largest = points[0]["routers"], points[-1]["routers"]
    return [
        {
            "name": f"{name} grows as routers to the power of",
            "ours": exponent(points, what),
            "unit": "",
            "note": f"least squares on logarithms, {smallest:.0f} to {largest:.0f} routers",
        }
        for what, name in GROWING
    ]


def fitted(points: list[dict[str, float]], what: str, routers: int) -> float:
    """The figure for a number of routers, by the fit."""
    power = exponent(points, what)
    logs = [np.log(point[what]) - power * np.log(point["routers"]) for point in points]
    return float(np.exp(np.mean(logs)) * routers**power)


def verdict_rows(points: list[dict[str, float]]) -> list[Row]:
    """The goals: the time of the largest size, and no lost packet at any size."""
    largest, wanted = points[-1], max(FULL)
    if largest["routers"] < wanted:
        start, fail = (fitted(points, what, wanted) for what in ("start cpu", "fail cpu"))
        took: Row = {
            "name": f"{wanted} routers, start-up and {FAILURES} failures, by the fit",
            "ours": start + FAILURES * fail,
            "unit": "s of CPU",
            "note": f"not run; python -m bench sim_scale --full does; goal <= {GOAL_SECONDS:.0f} s",
        }
    else:
        took = {
            "name": f"{largest['routers']:.0f} routers, start-up and {FAILURES} failures",
            "ours": largest["wall"],
            "unit": "s",
            "goal": f"<= {GOAL_SECONDS:.0f} s",
            "met": largest["wall"] <= GOAL_SECONDS,
        }
    lost = sum(point["lost walks"] for point in points)
    return [
        took,
        {
            "name": f"packets that do not arrive, of {WALKS} walked through each size's kernels",
            "ours": lost,
            "unit": "packets",
            "goal": "0",
            "met": not lost,
        },
    ]


def figures(rows: list[Row], directory: Path) -> list[tuple[str, str]]:
    """Draw the growth and the fits."""
    points = [row.pop("points") for row in rows if "points" in row]
    return [draw(points, directory / "sim_scale.png")]


def draw(points: list[dict[str, float]], file: Path) -> tuple[str, str]:
    """Draw CPU and messages over routers, with the fitted powers."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(9.0, 3.8), layout="constrained")
    panels = (
        ("start cpu", "fail cpu", "CPU, s"),
        ("start packets", "fail packets", "messages"),
    )
    for axes, (start, fail, label) in zip(picture.subplots(1, 2), panels, strict=True):
        across = np.array([point["routers"] for point in points])
        for what, name, colour in (
            (start, "start-up", "#27496d"),
            (fail, "one failure", "#b3402e"),
        ):
            values = np.array([point[what] for point in points])
            power = exponent(points, what)
            axes.plot(across, values, "o", color=colour)
            axes.plot(
                across,
                [fitted(points, what, routers) for routers in across],
                "-",
                color=colour,
                alpha=0.6,
                label=f"{name}: routers^{power:.2f}",
            )
        axes.set(xscale="log", yscale="log", xlabel="routers", ylabel=label)
        axes.set_xticks(across, [f"{x:.0f}" for x in across])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    picture.savefig(file, dpi=110)
    return (
        file.name,
        "The virtual clock: cost of start-up and of a failure by size, with power-law fits",
    )


def main() -> None:
    """Run one size, the named sizes, or the sizes of the report."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["--one"]:
        print(json.dumps(measure(arguments[1], int(arguments[2]))))
        return
    if arguments and arguments != ["--full"]:
        points = []
        for routers in arguments[1:]:
            points.append(in_a_process(arguments[0], int(routers)))
            print({key: round(value, 3) for key, value in points[-1].items()}, flush=True)
        found = growth_rows(points) if len(points) > 1 else []
    else:
        found = rows(FULL if arguments else SIZES)
    show(found)
