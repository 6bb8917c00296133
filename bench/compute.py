"""Duration of route computation: from a full computation to the change of one capacity.

Three-stage and five-stage fabrics of up to 10,000 routers, computed at a leaf, a spine and a
superspine. FULL runs the ``AreaSolver`` of the daemon on a graph: SPF with all next hops, path
capacities, integer weights and groups, toward every node. It is compared with networkx, which
computes distances and predecessors only, and with the change of one capacity, which would need
FULL without incremental computation. ``reaction`` runs the whole ``RouteSolver``: from the arrival
of blocks to the changed routes of all prefixes. ``compute_lsas`` adds rows from LSAs to the
operations for the kernel. Times are CPU time, the best of several runs.

Run alone (``python -m bench compute``) or through the benchmark runner, which calls ``rows()``.
"""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx

from bench.router import compute_lsas
from bench.router.fabrics import (
    COST,
    SUPERS,
    Blocks,
    fabric,
    leaf,
    local_links,
    odd_rates,
    pods,
    spine,
    stub_leaves,
    with_capacity,
    without,
)
from bench.router.timing import in_turn
from fared.core.ids import NodeId
from fared.paths.rib.area import AreaSolver
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.database import Ted
from fared.paths.ted.model import NodeBlock

AREA = 0
BATCH = 100
REPEAT = 15
OFTEN = 40
SMALL = 10_000
"""Up to this number of directed links, measurements are repeated more often."""
BIG = 100_000
"""From this number of directed links on, measurements are repeated less often."""
SETTINGS = SolverSettings(max_paths=1024)


@dataclass(frozen=True)
class Row:
    """One measurement. Times in ms; ``goal`` is the lowest ratio or the highest time."""

    name: str
    ours_ms: float
    other_ms: float | None = None
    ratio: float | None = None
    goal: str = "-"
    met: bool = True
    drawn: bool = True
    """Whether the picture of ratios shows it."""


@dataclass(frozen=True)
class Shape:
    """A fabric, and the goals for a leaf in it, in ms."""

    name: str
    make: Callable[[], Blocks]
    full: float
    capacity: float
    levels: int
    degraded: tuple[NodeId, NodeId]
    ratios: tuple[float, float] | None = None
    graph: float | None = None


THREE = (spine(1), leaf(2))
"""A spine's link down to a far leaf."""
SHAPES = (
    Shape("4x8", lambda: fabric(4, 8), 0.5, 0.2, 3, THREE),
    Shape("32x128", lambda: fabric(32, 128), 0.5, 0.2, 3, THREE),
    Shape("64x512", lambda: fabric(64, 512), 3.0, 0.7, 3, THREE, (10.0, 20.0)),
    Shape("128x1024", lambda: fabric(128, 1024), 12.0, 3.0, 3, THREE),
    Shape("8 pods (figure 2)", lambda: pods(8, 4, 4, 4), 0.5, 0.2, 5, (spine(5), leaf(6))),
    Shape("32 pods", lambda: pods(32, 32, 16, 16), 2.5, 0.5, 5, (spine(17), leaf(34))),
    Shape("96 pods", lambda: pods(96, 64, 32, 24), 25.0, 6.0, 5, (spine(33), leaf(66)), None, 12.0),
)


def best(run: Callable[[int], object], repeat: int = REPEAT) -> float:
    """The lowest CPU time of several runs in ms; ``run`` gets the number of the run."""
    times = []
    gc.collect()
    gc.disable()
    try:
        for number in range(repeat):
            start = time.process_time()
            run(number)
            times.append(time.process_time() - start)
    finally:
        gc.enable()
    return min(times) * 1e3


def limited(name: str, ours: float, limit: float | None) -> Row:
    """A row of a time, which should not exceed ``limit``."""
    goal = "-" if limit is None else f"<= {limit:g} ms"
    return Row(name, ours, goal=goal, met=limit is None or ours <= limit)


def beside(name: str, ours: float, other: float, least: float | None = None) -> Row:
    """A row of two times; the other should be ``least`` times as long as ours."""
    ratio = other / ours
    goal = "-" if least is None else f">= {least:g}x"
    drawn = name.endswith(("networkx SPF", "singly"))
    return Row(name, ours, other, ratio, goal, least is None or ratio >= least, drawn)


def area_solver(ted: Ted, root: NodeId) -> AreaSolver:
    solver = AreaSolver(root)
    solver.ted = ted
    block = ted.block(root)
    assert block is not None
    solver.links = local_links(block)
    return solver


def database(blocks: Blocks) -> Ted:
    ted = Ted()
    for block in blocks.values():
        ted.put(block)
    return ted


def rows() -> list[Row]:
    """All measurements of route computation."""
    found: list[Row] = []
    for shape in SHAPES:
        found += shape_rows(shape)
        gc.collect()
    for spines, leaves, label, link_prefixes in (
        (4, 8, "all prefixes", True),
        (64, 512, "all prefixes", True),
        (64, 512, "loopback and leaf prefixes", False),
        (128, 1024, "loopback and leaf prefixes", False),
    ):
        slow = 0.01 if spines > 4 else 0.0
        blocks = fabric(spines, leaves, link_prefixes=link_prefixes, slow=slow)
        found += reaction_rows(f"{spines}x{leaves}, {label}", blocks, THREE)
    found += reaction_rows("32 pods", pods(32, 32, 16, 16), (spine(17), leaf(34)))
    found += reaction_rows("96 pods", pods(96, 64, 32, 24), (spine(33), leaf(66)))
    for row in compute_lsas.rows():
        ratio = None if row.smallest is None else row.smallest / row.milliseconds
        found.append(Row(row.name, row.milliseconds, row.smallest, ratio, drawn=False))
    return found


def shape_rows(shape: Shape) -> list[Row]:
    """One fabric: its graph, and the computation at each kind of router."""
    blocks = shape.make()
    start = time.process_time()
    ted = database(blocks)
    taken = (time.process_time() - start) * 1e3
    start = time.process_time()
    graph = ted.graph()
    first = (time.process_time() - start) * 1e3
    name, links = shape.name, len(graph.src)
    repeat = OFTEN if links <= SMALL else REPEAT if links < BIG else 7
    found = [
        Row(f"{name} ({len(graph.nodes)} routers, {links} directed links) blocks taken in", taken),
        Row(f"{name} blocks to graph, the first time", first),
    ]
    end = shape.degraded[1]

    def again(_: int) -> None:
        ted.remove(end)
        ted.put(blocks[end])
        ted.graph()

    anew = best(again, repeat)
    found.append(limited(f"{name} blocks to graph, a router gone and back", anew, shape.graph))
    found += link_rows(name, ted, blocks, shape.degraded, anew)
    networkx = networkx_ms(ted, leaf(0), 1 if links >= BIG else 3)
    at_leaf = area_solver(ted, leaf(0))
    found += view_rows(shape, "leaf", at_leaf, blocks, repeat=repeat, networkx=networkx)
    stubs = database(stub_leaves(blocks))
    views = [("spine", spine(0))]
    views += [("superspine", spine(SUPERS))] if shape.levels > 3 else []
    for label, root in views:
        for leaves, base in (("leaves transit", ted), ("leaves stub", stubs)):
            there = blocks if base is ted else stub_leaves(blocks)
            repeat = repeat if links < BIG else 3
            what = f"{label}, {leaves}"
            found += view_rows(shape, what, area_solver(base, root), there, repeat=repeat)
    return found


def link_rows(
    name: str, ted: Ted, blocks: Blocks, ends: tuple[NodeId, NodeId], anew: float
) -> list[Row]:
    """A link lost and restored, as both ends report it, compared with building the graph anew."""
    far, end = ends

    def told(*news: NodeBlock) -> None:
        for block in news:
            ted.put(block)
            ted.graph()

    times = in_turn(
        {
            "link lost": lambda: told(without(blocks[far], end), without(blocks[end], far)),
            "link restored": lambda: told(blocks[far], blocks[end]),
        },
        7,
    )
    return [
        beside(f"{name} {what}, both ends: blocks to graph / anew", spent, anew)
        for what, spent in times.items()
    ]


def networkx_ms(ted: Ted, root: NodeId, repeat: int) -> float:
    """Distances and predecessors by networkx."""
    graph, built = ted.graph(), nx.DiGraph()
    nodes = graph.nodes.tolist()
    built.add_weighted_edges_from(
        ((nodes[tail], nodes[head], COST) for tail, head in zip(graph.src, graph.dst, strict=True)),
        weight="metric",
    )
    return best(
        lambda _: nx.dijkstra_predecessor_and_distance(built, root, weight="metric"), repeat
    )


def view_rows(
    shape: Shape,
    label: str,
    solver: AreaSolver,
    blocks: Blocks,
    *,
    repeat: int,
    networkx: float | None = None,
) -> list[Row]:
    """One router: a full computation, and the change of one capacity. Goals are for a leaf."""
    far, end = shape.degraded
    solver.update(SETTINGS)

    def full(_: int) -> None:
        solver.forget()
        solver.update(SETTINGS)

    full_ms = best(full, repeat)
    rates = [with_capacity(blocks[far], end, rate) for rate in odd_rates(OFTEN)]

    def capacity(number: int) -> None:
        solver.ted.put(rates[number])
        solver.update(SETTINGS)

    capacity_ms = best(capacity, max(repeat, REPEAT))
    solver.ted.put(blocks[far])
    at_leaf = networkx is not None
    name = f"{shape.name} {label}:"
    found = [
        limited(f"{name} FULL", full_ms, shape.full if at_leaf else None),
        limited(f"{name} capacity change", capacity_ms, shape.capacity if at_leaf else None),
        beside(f"{name} capacity change / FULL", capacity_ms, full_ms),
    ]
    if networkx is None:
        return found
    least_full, least_capacity = shape.ratios or (None, None)
    return [
        *found,
        beside(f"{name} FULL / networkx SPF", full_ms, networkx, least_full),
        beside(f"{name} capacity change / networkx SPF", capacity_ms, networkx, least_capacity),
    ]


def reaction_rows(name: str, blocks: Blocks, ends: tuple[NodeId, NodeId]) -> list[Row]:
    """``RouteSolver`` of a leaf: from arriving blocks to the changed routes of all prefixes."""
    root, (far, end) = leaf(0), ends
    solver = RouteSolver(root, SolverSettings(max_paths=128))
    for node, block in blocks.items():
        solver.put_block(AREA, node, block)
    solver.set_local_links(AREA, local_links(blocks[root]))
    first = best(lambda _: solver.solve(), 1)
    uplink = NodeId(int(blocks[root].neighbors[1]))

    def told(*news: NodeBlock, each: bool = False) -> None:
        for block in news:
            solver.put_block(AREA, block.node, block)
            if each:
                solver.solve()
        if not each:
            solver.solve()

    def capacity(near: NodeId, to: NodeId) -> float:
        rates = [with_capacity(blocks[near], to, rate) for rate in odd_rates(REPEAT)]
        spent = best(lambda number: told(rates[number]))
        told(blocks[near])
        return spent

    remote, mine = capacity(far, end), capacity(root, uplink)
    lost = without(blocks[far], end), without(blocks[end], far)
    links = in_turn(
        {
            "link lost, told by both ends": lambda: told(*lost, each=True),
            "link restored, told by both ends": lambda: told(blocks[far], blocks[end], each=True),
        },
        7,
    )
    found = [
        Row(f"reaction {name}: first routes", first),
        Row(f"reaction {name}: capacity of a far downlink", remote),
        Row(f"reaction {name}: capacity of an own uplink", mine),
        *(Row(f"reaction {name}: {what}", spent) for what, spent in links.items()),
    ]
    batches = [batch(blocks, root, number) for number in range(8)]
    if len(batches[0]) == BATCH:
        one_by_one = best(lambda number: told(*batches[number], each=True), 3)
        together = best(lambda number: told(*batches[number + 3]), 5)
        found.append(
            beside(f"reaction {name}: {BATCH} capacities at once / singly", together, one_by_one)
        )
    return found


def batch(blocks: Blocks, root: NodeId, number: int) -> list[NodeBlock]:
    """Changes of one capacity each at ``BATCH`` routers."""
    rates = odd_rates(BATCH)
    others = [block for node, block in blocks.items() if node != root][-BATCH:]
    return [
        with_capacity(block, int(block.neighbors[number % len(block.neighbors)]), rate / 2)
        for block, rate in zip(others, rates, strict=False)
    ]


def figures(rows: list[dict[str, Any]], directory: Path) -> list[tuple[str, str]]:
    """Draw CPU time of a leaf over the size of the fabric."""
    from matplotlib.figure import Figure

    found = {row["name"]: row for row in rows}
    links = {
        shape.name: int(match[1])
        for shape in SHAPES
        for name in found
        if name.startswith(f"{shape.name} (") and (match := re.search(r"(\d+) directed", name))
    }
    picture = Figure(figsize=(8.0, 4.2), layout="constrained")
    axes = picture.subplots()
    for levels, stages, style in ((3, "3 stages", "o-"), (5, "5 stages", "s--")):
        names = [shape.name for shape in SHAPES if shape.levels == levels]
        across = [links[name] for name in names]
        for what, key, label, colour in (
            ("FULL / networkx SPF", "other", "networkx: SPF alone", "#8a8a8a"),
            ("FULL", "ours", "fared: SPF, weights, groups", "#27496d"),
            ("capacity change", "ours", "fared: a capacity changes", "#2a7f4f"),
        ):
            times = [found[f"{name} leaf: {what}"][key] for name in names]
            axes.plot(across, times, style, color=colour, label=f"{label}, {stages}", markersize=5)
    axes.set(xscale="log", yscale="log", xlabel="directed links", ylabel="CPU, ms, at a leaf")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    picture.savefig(directory / "compute.png", dpi=110)
    return [("compute.png", "Compute: what a leaf takes, by size of the fabric")]


def main() -> None:
    print(f"{'':72} {'ours ms':>9} {'other ms':>9} {'ratio':>8}  goal")
    for row in rows():
        other = "-" if row.other_ms is None else f"{row.other_ms:.2f}"
        ratio = "-" if row.ratio is None else f"{row.ratio:.1f}x"
        verdict = "" if row.goal == "-" else (" met" if row.met else " MISSED")
        print(f"{row.name:72} {row.ours_ms:9.3f} {other:>9} {ratio:>8}  {row.goal}{verdict}")
