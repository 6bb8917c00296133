"""Networks for plans, and the same answers computed the slow way, by networkx and from scratch."""

from __future__ import annotations

import itertools
import random
from types import SimpleNamespace

import networkx as nx
import numpy as np

from fared.core.ids import NodeId, ipv4_prefix
from fared.extensions.offline.plan.fabric import PlanFabric, read_fabric
from fared.extensions.offline.plan.paths import edge_changes, without_edges
from fared.extensions.offline.plan.sets import Failures
from fared.paths.spf.plan import build_plan
from fared.paths.ted.graph import Graph
from fared.paths.ted.model import NodeBlock, PrefixReachability
from fared.paths.weights.path_capacity import aggregate_capacities

Link = tuple[str, str, int, float, float]
"""Two routers, the metric, and the capacities of both directions."""


def network(links, stubs=(), ends=(), hosts=()) -> PlanFabric:
    """A fabric of named routers; ``stubs`` carry no transit, ``hosts`` advertise a network."""
    names = sorted({name for link in links for name in link[:2]})
    ids = {name: NodeId(number + 1) for number, name in enumerate(names)}
    rows: dict[str, list[tuple[int, int, float, int, int]]] = {name: [] for name in names}
    for number, (a, b, metric, there, back) in enumerate(links):
        near, far = 2 * number + 1, 2 * number + 2
        rows[a].append((ids[b], metric, there, near, far))
        rows[b].append((ids[a], metric, back, far, near))
    blocks = {}
    for name, listed in rows.items():
        columns = list(zip(*listed, strict=True))
        prefixes = [PrefixReachability(ipv4_prefix(0x0A000000 + (ids[name] << 8), 24), 1)]
        blocks[ids[name]] = NodeBlock(
            node=ids[name],
            neighbors=np.array(columns[0], np.int64),
            metrics=np.array(columns[1], np.int64),
            capacities=np.array(columns[2], float),
            availables=np.full(len(listed), np.nan),
            local_ids=np.array(columns[3], np.int64),
            remote_ids=np.array(columns[4], np.int64),
            prefixes=tuple(prefixes) if name in hosts else (),
            transit=name not in stubs,
            hostname=name,
        )
    world = SimpleNamespace(blocks={0: blocks}, hostnames={ids[name]: name for name in names})
    return read_fabric(world, ends=ends)


def clos(spines: int, leaves: int, capacity: float = 100.0) -> PlanFabric:
    links = [
        (f"L{leaf}", f"S{spine}", 10, capacity, capacity)
        for leaf in range(1, leaves + 1)
        for spine in range(1, spines + 1)
    ]
    return network(links, ends=("L*",))


def pods(count: int, leaves: int, planes: int, supers: int) -> PlanFabric:
    links = []
    for plane, pod in itertools.product(range(planes), range(count)):
        links += [(f"p{pod}-L{n}", f"p{pod}-S{plane}", 10, 100.0, 100.0) for n in range(leaves)]
        links += [(f"p{pod}-S{plane}", f"X{plane}.{n}", 10, 100.0, 100.0) for n in range(supers)]
    return network(links, ends=("p*-L*",))


def anything(rng: random.Random) -> PlanFabric:
    """A connected graph of any shape: unequal metrics and capacities, parallel links, stubs."""
    size = rng.randint(4, 9)
    names = [f"R{n}" for n in range(size)]
    uniform = rng.random() < 0.4
    pairs = [(names[n], names[rng.randrange(n)]) for n in range(1, size)]
    pairs += [tuple(rng.sample(names, 2)) for _ in range(rng.randint(1, 2 * size))]
    links = [
        (*pair, 10 if uniform else rng.choice((5, 10, 20)), *rng.choices((10.0, 25.0, 40.0), k=2))
        for pair in pairs
    ]
    return network(links, stubs=rng.sample(names, rng.randint(0, 1)))


def from_scratch(fabric: PlanFabric, failures: Failures, at: int) -> dict[tuple[int, int], float]:
    """Capacities of all pairs of surviving ends after one failure, each by a new SPF."""
    changes = edge_changes(fabric, failures, at, at + 1)
    capacity = fabric.capacity.copy()
    capacity[changes.edge] = changes.capacity
    graph, capacity = without_edges(fabric.graph, capacity)
    dead = set(failures.nodes[failures.node_start[at] : failures.node_start[at + 1]].tolist())
    found = {}
    for row, root in enumerate(fabric.ends.tolist()):
        flow = aggregate_capacities(build_plan(graph, root), capacity)
        for end, node in enumerate(fabric.ends.tolist()):
            if row != end and not dead & {root, node}:
                found[row, end] = float(flow[node])
    return found


def max_flow(graph: Graph, capacity, source: int, target: int) -> float:
    """networkx on the shortest paths by networkx."""
    whole = nx.DiGraph()
    for tail, head, metric, rate in zip(
        graph.src.tolist(), graph.dst.tolist(), graph.metric.tolist(), capacity, strict=True
    ):
        whole.add_edge(tail, head, weight=metric, capacity=rate)
    if source not in whole or target not in whole or not nx.has_path(whole, source, target):
        return 0.0
    paths = nx.all_shortest_paths(whole, source, target, weight="weight")
    dag = nx.DiGraph()
    for path in paths:
        for tail, head in itertools.pairwise(path):
            dag.add_edge(tail, head, capacity=whole[tail][head]["capacity"])
    return nx.maximum_flow_value(dag, source, target)
