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


def pods(count: int, leaves: int, planes: int, supers: int) -> dict[NodeId, NodeBlock]:
    """Five stages: spine k of every pod connected to all superspines of plane k."""

    def made(node: NodeId, ends: list[NodeId]) -> NodeBlock:
        return make_block(node, ends, np.full(len(ends), RATE))

    found = []
    for k in range(planes):
        tops = [spine(65536 + k * supers + top) for top in range(supers)]
        middles = [spine(pod * planes + k) for pod in range(count)]
        found += [made(top, middles) for top in tops]
        for pod, middle in enumerate(middles):
            below = [leaf(pod * leaves + at) for at in range(leaves)]
            found.append(made(middle, below + tops))
    for pod in range(count):
        above = [spine(pod * planes + k) for k in range(planes)]
        found += [made(leaf(pod * leaves + at), above) for at in range(leaves)]
    return {block.node: block for block in found}


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
    found += pod_rows("32 pods", pods(32, 32, 16, 16), 2.5, 0.5)
    found += pod_rows("96 pods", pods(96, 64, 32, 24), 25.0, 6.0)
    found += solver_rows(4, 8, "all prefixes", link_prefixes=True)
    for label, link_prefixes in (
        ("loopback and leaf prefixes", False),
        ("and link prefixes", True),
    ):
        found += solver_rows(64, 512, label, link_prefixes=link_prefixes)
    return found


def pod_rows(
    name: str, blocks: dict[NodeId, NodeBlock], full_limit: float, capacity_limit: float
) -> list[Row]:
    """A leaf of a five-stage fabric: from scratch, one capacity, one link lost and restored."""
    settings, root, far = SolverSettings(max_paths=1024), leaf(0), spine(40)
    solver = area_solver(blocks, root)
    solver.update(settings)

    def full(_: int) -> None:
        solver.forget()
        solver.update(settings)

    end = NodeId(int(blocks[far].neighbors[3]))
    rates = [with_capacity(blocks[far], end, RATE / (n + 3)) for n in range(REPEAT)]

    def capacity(number: int) -> None:
        solver.ted.put(rates[number])
        solver.update(settings)

    found = [
        _limit(f"{name} FULL", best(full), full_limit),
        _limit(f"{name} capacity change", best(capacity), capacity_limit),
    ]
    times: dict[str, list[float]] = {}
    for _ in range(5):
        for what, block in (
            ("link lost, first end", without(blocks[far], end)),
            ("link lost, second end", without(blocks[end], far)),
            ("link restored, first end", blocks[far]),
            ("link restored, second end", blocks[end]),
        ):
            start = time.process_time()
            solver.ted.put(block)
            solver.ted.graph()
            times.setdefault(what, []).append((time.process_time() - start) * 1e3)
    found += [
        Row(f"{name} {what}: block to graph", min(spent), None, None, "-", met=True)
        for what, spent in times.items()
    ]
    return found


def _ratio(name: str, ours: float, other: float, least: float | None) -> Row:
    ratio = other / ours
    goal = "-" if least is None else f">= {least:g}x"
    return Row(name, ours, other, ratio, goal, met=least is None or ratio >= least)


def _limit(name: str, ours: float, limit: float) -> Row:
    return Row(name, ours, None, None, f"<= {limit:g} ms", met=ours <= limit)


def solver_rows(spines: int, leaves: int, label: str, *, link_prefixes: bool) -> list[Row]:
    """``RouteSolver.solve`` after one change, with the block's arrival."""
    slow = 0.01 if spines > 4 else 0.0
    blocks, root = fabric(spines, leaves, link_prefixes=link_prefixes, slow=slow), leaf(0)
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

    def change(near: NodeBlock, other: NodeBlock) -> Callable[[int], None]:
        def run(_: int) -> None:
            for block in (near, other):
                solver.put_block(AREA, block.node, block)
                solver.solve()

        return run

    end = leaf(5)
    lose = change(without(blocks[one], end), without(blocks[end], one))
    restore = change(blocks[one], blocks[end])
    removal, restored = [], []
    for _ in range(REPEAT):
        removal.append(best(lose, 1))
        restored.append(best(restore, 1))
    name = f"{spines}x{leaves} solve(), {label}:"
    return [
        Row(f"{name} {what}", spent, None, None, "-", met=True)
        for what, spent in (
            ("first", first),
            ("remote capacity change", capacity),
            ("own uplink capacity change", uplink),
            ("link lost, told by both ends", min(removal)),
            ("link restored, told by both ends", min(restored)),
        )
    ]


def main() -> None:
    print(f"{'':72} {'ours ms':>9} {'other ms':>9} {'ratio':>8}  goal")
    for row in rows():
        other = "-" if row.other_ms is None else f"{row.other_ms:.2f}"
        ratio = "-" if row.ratio is None else f"{row.ratio:.1f}x"
        verdict = "" if row.goal == "-" else (" met" if row.met else " MISSED")
        print(f"{row.name:72} {row.ours_ms:9.3f} {other:>9} {ratio:>8}  {row.goal}{verdict}")


if __name__ == "__main__":
    main()
