"""How long route computation takes, next to networkx on the same graph in the same process.

networkx computes distances and predecessors only; ours adds path capacities, groups and integer
weights. Run alone (``python bench/compute.py``) or through the benchmark runner, which calls
``rows()``. Times are CPU time of this process, the best of several runs, since benchmarks often
share their machine. FULL is SPF, path capacities, next-hop sets and integer weights toward every
node, from a graph already built; networkx too starts from a built graph.
"""

from __future__ import annotations

# ruff: noqa: E402 - threads are limited before NumPy is loaded
import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

import networkx as nx
import numpy as np

from fared.core.ids import NodeId, ipv4_prefix
from fared.rib.area import AreaSolver
from fared.rib.settings import SolverSettings
from fared.rib.solver import RouteSolver
from fared.ted.export import to_networkx
from fared.ted.model import LocalLink, NodeBlock, PrefixAttachment

AREA = 0
RATE = 50e9
COST = 10
REPEAT = 15


@dataclass(frozen=True)
class Row:
    """One measurement. Times in ms; ``goal`` is the least ratio or, for ``limit``, the most ms."""

    name: str
    ours_ms: float
    other_ms: float | None
    ratio: float | None
    goal: str
    met: bool


def spine(number: int) -> NodeId:
    return NodeId((10 << 24) + (255 << 16) + number + 1)


def leaf(number: int) -> NodeId:
    return NodeId((10 << 24) + (254 << 16) + number + 1)


def make_block(
    node: NodeId,
    neighbors: list[NodeId],
    capacities: np.ndarray,
    *,
    link_prefixes: bool = False,
) -> NodeBlock:
    """A router with one link to each neighbor, its loopback and perhaps its link prefixes."""
    size = len(neighbors)
    ends = np.array(neighbors, np.int64)
    prefixes = [PrefixAttachment(ipv4_prefix(node, 32), 0)]
    if node >> 16 & 255 == 254:
        prefixes.append(
            PrefixAttachment(ipv4_prefix((100 << 24) + ((node & 0xFFFF) << 8), 24), COST)
        )
    if link_prefixes:
        for end in neighbors:
            low, high = sorted((int(node), int(end)))
            number = (low & 0xFFFF) * 4096 + (high & 0xFFFF)
            prefixes.append(PrefixAttachment(ipv4_prefix((128 << 24) + number * 2, 31), COST))
    return NodeBlock(
        node=node,
        neighbors=ends,
        metrics=np.full(size, COST, np.int64),
        capacities=capacities,
        availables=capacities.copy(),
        local_ids=ends + (1 << 20),
        remote_ids=np.full(size, int(node) + (1 << 20), np.int64),
        prefixes=tuple(prefixes),
    )


def fabric(
    spines: int, leaves: int, *, link_prefixes: bool = False, slow: float = 0.0
) -> dict[NodeId, NodeBlock]:
    """Three stages; ``slow`` of all links at half rate."""
    random = np.random.default_rng(7)

    def capacities(count: int) -> np.ndarray:
        return np.where(random.random(count) < slow, RATE / 2, RATE)

    ups, downs = [spine(s) for s in range(spines)], [leaf(k) for k in range(leaves)]
    made = [make_block(n, downs, capacities(leaves), link_prefixes=link_prefixes) for n in ups]
    made += [make_block(n, ups, capacities(spines), link_prefixes=link_prefixes) for n in downs]
    return {block.node: block for block in made}


def local_links(block: NodeBlock) -> tuple[LocalLink, ...]:
    return tuple(
        LocalLink(
            ifindex=index + 2,
            interface=f"swp{index + 1}",
            neighbor=NodeId(int(neighbor)),
            gateway=int(neighbor) + (1 << 20),
            local_id=int(block.local_ids[index]),
            metric=int(block.metrics[index]),
            bandwidth=RATE,
        )
        for index, neighbor in enumerate(block.neighbors.tolist())
    )


def without(block: NodeBlock, neighbor: int) -> NodeBlock:
    keep = block.neighbors != neighbor
    return NodeBlock(
        node=block.node,
        neighbors=block.neighbors[keep],
        metrics=block.metrics[keep],
        capacities=block.capacities[keep],
        availables=block.availables[keep],
        local_ids=block.local_ids[keep],
        remote_ids=block.remote_ids[keep],
        prefixes=block.prefixes,
        transit=block.transit,
    )


def with_capacity(block: NodeBlock, neighbor: int, rate: float) -> NodeBlock:
    capacities = np.where(block.neighbors == neighbor, rate, block.capacities)
    return NodeBlock(
        node=block.node,
        neighbors=block.neighbors,
        metrics=block.metrics,
        capacities=capacities,
        availables=capacities.copy(),
        local_ids=block.local_ids,
        remote_ids=block.remote_ids,
        prefixes=block.prefixes,
        transit=block.transit,
    )


def best(run: Callable[[int], object], repeat: int = REPEAT) -> float:
    """The least CPU time of several runs in ms; each is told its number."""
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


def area_solver(blocks: dict[NodeId, NodeBlock], root: NodeId) -> AreaSolver:
    solver = AreaSolver(root)
    for block in blocks.values():
        solver.ted.put(block)
    solver.links = local_links(blocks[root])
    return solver


def measure_full(spines: int, leaves: int, slow: float) -> float:
    """In ms: SPF, path capacities, next-hop sets and weights from scratch."""
    settings = SolverSettings(max_paths=1024)
    blocks, root = fabric(spines, leaves, slow=slow), leaf(0)
    solver = area_solver(blocks, root)
    solver.ted.graph()

    def full(_: int) -> None:
        solver.forget()
        solver.update(settings)

    return best(full)


def measure(spines: int, leaves: int) -> tuple[float, float, float]:
    """In ms: capacity only, blocks to graph, networkx."""
    settings = SolverSettings(max_paths=1024)
    blocks, root = fabric(spines, leaves), leaf(0)
    solver = area_solver(blocks, root)
    solver.update(settings)
    degraded = spine(1 % spines)
    rates = [with_capacity(blocks[degraded], leaf(2), RATE / (n + 3)) for n in range(REPEAT)]

    def capacity(number: int) -> None:
        solver.ted.put(rates[number])
        solver.update(settings)

    capacity_ms = best(capacity)
    graph = to_networkx(solver.ted, parallel=False)

    def build(_: int) -> None:
        solver.ted.remove(degraded)
        solver.ted.put(blocks[degraded])
        solver.ted.graph()

    build_ms = best(build, 5)
    networkx_ms = best(
        lambda _: nx.dijkstra_predecessor_and_distance(graph, root, weight="metric"), 5
    )
    return capacity_ms, build_ms, networkx_ms


_SIZES = ((4, 8, 0.5, 0.2), (32, 128, 0.5, 0.2), (64, 512, 3.0, 0.7), (128, 1024, 12.0, 3.0))
_GOALS = {(64, 512): (10.0, 20.0)}


def rows() -> list[Row]:
    """All measurements of route computation."""
    found = []
    for spines, leaves, full_limit, capacity_limit in _SIZES:
        capacity, build, other = measure(spines, leaves)
        full = measure_full(spines, leaves, 0.0)
        damaged = measure_full(spines, leaves, 0.01)
        least_full, least_capacity = _GOALS.get((spines, leaves), (None, None))
        name = f"{spines}x{leaves}"
        found += [
            _ratio(f"{name} FULL / networkx SPF", full, other, least_full),
            _limit(f"{name} FULL", full, full_limit),
            _ratio(f"{name} FULL, 1 % of links slow / networkx SPF", damaged, other, None),
            _limit(f"{name} FULL, 1 % of links slow", damaged, full_limit),
            _ratio(f"{name} capacity change / networkx SPF", capacity, other, least_capacity),
            _limit(f"{name} capacity change", capacity, capacity_limit),
            Row(f"{name} blocks to graph", build, None, None, "-", met=True),
        ]
    for label, link_prefixes in (
        ("loopback and leaf prefixes", False),
        ("and link prefixes", True),
    ):
        found += solver_rows(label, link_prefixes=link_prefixes)
    return found


def _ratio(name: str, ours: float, other: float, least: float | None) -> Row:
    ratio = other / ours
    goal = "-" if least is None else f">= {least:g}x"
    return Row(name, ours, other, ratio, goal, met=least is None or ratio >= least)


def _limit(name: str, ours: float, limit: float) -> Row:
    return Row(name, ours, None, None, f"<= {limit:g} ms", met=ours <= limit)


def solver_rows(label: str, *, link_prefixes: bool) -> list[Row]:
    """``RouteSolver.solve`` at 64x512 after one change, with the block's arrival."""
    blocks, root = fabric(64, 512, link_prefixes=link_prefixes, slow=0.01), leaf(0)
    solver = RouteSolver(root, SolverSettings())
    for node, block in blocks.items():
        solver.put_block(AREA, node, block)
    solver.set_local_links(AREA, local_links(blocks[root]))
    start = time.process_time()
    solver.solve()
    first = (time.process_time() - start) * 1e3
    one, far = spine(1), leaf(2)
    rates = [with_capacity(blocks[one], far, RATE / (n + 3)) for n in range(REPEAT)]

    def degrade(number: int) -> None:
        solver.put_block(AREA, one, rates[number])
        solver.solve()

    capacity = best(degrade)
    mine = [with_capacity(blocks[root], one, RATE / (n + 3)) for n in range(REPEAT)]

    def degrade_mine(number: int) -> None:
        solver.put_block(AREA, root, mine[number])
        solver.solve()

    uplink = best(degrade_mine)

    def remove(number: int) -> None:
        for node, end in ((one, leaf(5 + number)), (leaf(5 + number), one)):
            solver.put_block(AREA, node, without(blocks[node], end))
        solver.solve()

    removal = best(remove)
    name = f"64x512 solve(), {label}:"
    return [
        Row(f"{name} first", first, None, None, "-", met=True),
        Row(f"{name} remote capacity change", capacity, None, None, "-", met=True),
        Row(f"{name} own uplink capacity change", uplink, None, None, "-", met=True),
        Row(f"{name} link removal", removal, None, None, "-", met=True),
    ]


def main() -> None:
    print(f"{'':58} {'ours ms':>9} {'other ms':>9} {'ratio':>8}  goal")
    for row in rows():
        other = "-" if row.other_ms is None else f"{row.other_ms:.2f}"
        ratio = "-" if row.ratio is None else f"{row.ratio:.1f}x"
        verdict = "" if row.goal == "-" else (" met" if row.met else " MISSED")
        print(f"{row.name:58} {row.ours_ms:9.3f} {other:>9} {ratio:>8}  {row.goal}{verdict}")


if __name__ == "__main__":
    main()
