"""Plans of failures: whole fabrics on all cores, and rates beside networkx and ngraph.

``ngraph`` (PyPI, C++ inside) computes the maximum flow over shortest paths, networkx the same on
the DAG of each pair; all results must be equal. ``python -m bench plan`` prints the rows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import networkx as nx
import numpy as np
from distributed import Client, LocalCluster

from bench.router.fabrics import RATE, Blocks, fabric, leaf, pods, spine, with_capacity
from bench.rows import compared
from fared.extensions.offline.plan import sets
from fared.extensions.offline.plan.cluster import compute_on_cluster
from fared.extensions.offline.plan.equal import classes_of_doubles, equal_routers
from fared.extensions.offline.plan.fabric import PlanFabric, read_fabric
from fared.extensions.offline.plan.rows import SetResult, merged
from fared.extensions.offline.plan.run import PlanTask, compute_all, parts_of
from fared.extensions.offline.plan.sweep import capacities
from fared.extensions.offline.world import World

SECONDS_GOAL = 60.0
WORKERS = 2
SPINES, LEAVES = 8, 16
GROWTH = 32, 256
BY_NETWORKX = 4
"""Failures that networkx computes: half a second each."""
NGRAPH_GOAL, NETWORKX_GOAL = 10.0, 100.0


def read(blocks: Blocks) -> PlanFabric:
    return read_fabric(cast("World", SimpleNamespace(blocks={0: blocks}, hostnames={})))


def swept(network: PlanFabric, failures: sets.Failures, workers: int) -> tuple[SetResult, float]:
    """Return the rows and the seconds that they took, with the healthy capacities."""
    begun = time.perf_counter()
    task = PlanTask(network, capacities(network), (failures,))
    found = [outcome for _, outcome in compute_all(task, parts_of([failures]), workers)]
    result = merged(failures, found, network)
    return result, time.perf_counter() - begun


def whole_row(name: str, blocks: Blocks) -> dict[str, Any]:
    """From the blocks of the routers to the worst case of every pair."""
    begun = time.perf_counter()
    network = read(blocks)
    result, spent = swept(network, sets.single_links(network), WORKERS)
    pairs = int((result.pair_cause >= 0).sum())
    return {
        "name": f"{name}, {len(result.left):,} single link failures, {WORKERS} processes",
        "ours": time.perf_counter() - begun,
        "unit": "s",
        "goal": f"< {SECONDS_GOAL:g} s",
        "met": time.perf_counter() - begun < SECONDS_GOAL,
        "note": f"{name}: {len(result.left) / spent:,.0f} failures a second, the worst case of "
        f"{pairs:,} pairs, each failure by itself.",
    }


def classes_row(name: str, blocks: Blocks) -> dict[str, Any]:
    """All pairs of links, by classes of equal pairs."""
    begun = time.perf_counter()
    network = read(blocks)
    failures = classes_of_doubles(network, equal_routers(network))
    swept(network, failures, 1)
    return {
        "name": f"{name}, all {failures.count():,} pairs of links in {len(failures)} classes",
        "ours": time.perf_counter() - begun,
        "unit": "s",
        "goal": f"< {SECONDS_GOAL:g} s",
        "met": time.perf_counter() - begun < SECONDS_GOAL,
    }


def damaged() -> Blocks:
    """8x16 with a tenth of the links at half rate, both ways."""
    blocks = fabric(SPINES, LEAVES)
    for number in range(0, SPINES * LEAVES, 11):
        ends = spine(number % SPINES), leaf(number // SPINES)
        for near, far in (ends, ends[::-1]):
            blocks[near] = with_capacity(blocks[near], far, RATE / 2)
    return blocks


def rate_rows() -> list[dict[str, Any]]:
    """Failures a second of 8x16, all pairs of leaves each, in one process."""
    network = read(damaged())
    failures = sets.single_links(network)
    swept(network, failures, 1)
    result, spent = swept(network, failures, 1)
    healthy = capacities(network)
    ours = len(failures) / spent
    found = []
    for name, other, goal in (
        ("networkx", _networkx(network, BY_NETWORKX), NETWORKX_GOAL),
        ("ngraph", _ngraph(network), NGRAPH_GOAL),
    ):
        row = compared(
            f"{SPINES}x{LEAVES}, all pairs: failures a second, {name} beside",
            ours,
            None if other is None else other[1],
            "/s",
            goal,
            more_is_better=True,
        )
        if other is None:
            row |= {"goal": None, "met": None, "note": f"{name} is not installed."}
        else:
            row["met"] &= _equal(result, healthy, other[0])
            row["note"] = f"The worst pairs of {len(other[0])} failures are equal, or it is missed."
        found.append(row)
    return found


Flows = list[np.ndarray[Any, np.dtype[np.float64]]]
"""For each failure the capacities of all pairs (P, P)."""


def _equal(result: SetResult, healthy: np.ndarray[Any, Any], flows: Flows) -> bool:
    off = ~np.eye(len(healthy), dtype=bool)
    for at, after in enumerate(flows):
        part = np.minimum(after[off] / healthy[off], 1.0)
        same = np.isclose(part.min(), result.left[at]) and np.isclose(part.mean(), result.mean[at])
        if not same or (part < 1 - 1e-9).sum() != result.reduced[at]:
            return False
    return True


def _networkx(network: PlanFabric, count: int) -> tuple[Flows, float]:
    graph, ends = network.graph, network.ends.tolist()
    whole = nx.DiGraph()
    for tail, head, rate in zip(
        graph.src.tolist(), graph.dst.tolist(), network.capacity.tolist(), strict=True
    ):
        whole.add_edge(tail, head, capacity=rate)
    flows: Flows = []
    begun = time.perf_counter()
    for edges in network.link_edges[:count].tolist():
        after = whole.copy()
        after.remove_edges_from([(int(graph.src[e]), int(graph.dst[e])) for e in edges])
        far = dict(nx.all_pairs_shortest_path_length(after))
        found = np.full((len(ends), len(ends)), np.inf)
        for row, source in enumerate(ends):
            for end, target in enumerate(ends):
                if source != target:
                    found[row, end] = _dag_flow(after, far, source, target)
        flows.append(found)
    return flows, count / (time.perf_counter() - begun)


def _dag_flow(graph: nx.DiGraph, far: dict[int, dict[int, int]], source: int, target: int) -> float:
    length = far[source][target]
    dag = nx.DiGraph()
    for tail, head, capacity in graph.edges(data="capacity"):
        if far[source][tail] + 1 + far[head][target] == length:
            dag.add_edge(tail, head, capacity=capacity)
    return float(nx.maximum_flow_value(dag, source, target))


def _ngraph(network: PlanFabric) -> tuple[Flows, float] | None:
    try:
        from ngraph import Link, Mode, Network, Node, analyze
    except ImportError:
        return None
    graph, ends = network.graph, network.ends.tolist()
    model = Network()
    for node in range(len(graph.nodes)):
        model.add_node(Node(f"L{node}" if node in ends else f"S{node}"))
    names = list(model.nodes)
    links = []
    for forward, back in network.link_edges.tolist():
        a, b = int(graph.src[forward]), int(graph.dst[forward])
        if network.capacity[forward] != network.capacity[back]:
            raise ValueError("ngraph's links have one capacity for both directions")
        link = Link(names[a], names[b], capacity=float(network.capacity[forward]), cost=1)
        model.add_link(link)
        links.append(link.id)
    begun = time.perf_counter()
    context = analyze(model, source="^(L.*)$", sink="^(L.*)$", mode=Mode.PAIRWISE)
    flows: Flows = []
    for link in links:
        after = context.max_flow(shortest_path=True, excluded_links={link})
        found = np.full((len(ends), len(ends)), np.inf)
        for row, source in enumerate(ends):
            for end, target in enumerate(ends):
                if source != target:
                    found[row, end] = after[names[source], names[target]]
        flows.append(found)
    return flows, len(links) / (time.perf_counter() - begun)


def growth_rows() -> list[dict[str, Any]]:
    """Failures a second with one and two processes, here and on a cluster of Dask."""
    network = read(fabric(*GROWTH))
    failures = sets.single_links(network)
    task = PlanTask(network, capacities(network), (failures,))
    parts = parts_of([failures])
    name = f"{GROWTH[0]}x{GROWTH[1]}, {len(failures):,} failures"
    rates = [_rate(failures, compute_all(task, parts, workers)) for workers in (1, 2)]
    found = [
        {
            "name": f"{name}: failures a second, 2 processes / 1",
            "ours": rates[1],
            "other": rates[0],
            "unit": "/s",
            "ratio": rates[1] / rates[0],
        }
    ]
    on_cluster = []
    for workers in (1, 2):
        begun = time.perf_counter()
        with LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster:
            started = time.perf_counter() - begun
            for _ in compute_on_cluster(task, parts[:1], cluster.scheduler_address):
                pass  # the workers load what they need
            parted = compute_on_cluster(task, parts, cluster.scheduler_address)
            on_cluster.append(_rate(failures, parted))
            with Client(cluster.scheduler_address, set_as_default=False) as client:
                memory = max(client.run(_resident).values()) / 2**20
    found.append(
        {
            "name": f"{name}: failures a second, 2 workers of Dask / 1",
            "ours": on_cluster[1],
            "other": on_cluster[0],
            "unit": "/s",
            "ratio": on_cluster[1] / on_cluster[0],
            "note": f"A worker of Dask takes {memory:.0f} MiB; scheduler and two workers are there "
            f"after {started:.1f} s.",
        }
    )
    found.append(
        {
            "name": f"{name}: failures a second, 2 workers of Dask / 2 processes",
            "ours": on_cluster[1],
            "other": rates[1],
            "unit": "/s",
            "ratio": on_cluster[1] / rates[1],
        }
    )
    return found


def _rate(failures: sets.Failures, computed: Iterator[object]) -> float:
    begun = time.perf_counter()
    for _ in computed:
        pass
    return len(failures) / (time.perf_counter() - begun)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def rows() -> list[dict[str, Any]]:
    """All measurements of plans."""
    return [
        *rate_rows(),
        *growth_rows(),
        whole_row("64x512", fabric(64, 512)),
        classes_row("64x512", fabric(64, 512)),
        whole_row("32 pods of 32 leaves, 16 planes", pods(32, 32, 16, 16)),
    ]
