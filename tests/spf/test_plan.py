"""Shortest paths, compared with networkx on random graphs, and fared's own rules."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from fared.paths.spf.plan import build_plan
from fared.paths.spf.search import UNREACHABLE
from fared.paths.ted.database import Ted
from fared.paths.ted.model import MAX_LINK_METRIC
from tests.ted.fabrics import Fabric, five_stage, three_stage


def plan_of(fabric: Fabric, root: str):
    ted = Ted()
    for name in fabric.names:
        ted.put(fabric.block(name))
    graph = ted.graph()
    return build_plan(graph, graph.index(fabric.id(root)))


def view(fabric: Fabric, root: str) -> dict[str, tuple[int, set[str]]]:
    """Distance and first hops of every reachable node, by name."""
    plan = plan_of(fabric, root)
    names = [fabric.name(node) for node in plan.graph.nodes]
    return {
        names[at]: (int(plan.distance[at]), {names[hop] for hop in plan.first_hops(at)})
        for at in range(len(names))
        if plan.distance[at] != UNREACHABLE
    }


def expected(fabric: Fabric, root: str) -> dict[str, tuple[int, set[str]]]:
    """The same by networkx: Dijkstra on two-way links, without those that SPF must not cross."""
    ends = {(link.tail, link.head) for link in fabric.links}
    graph = nx.DiGraph()
    graph.add_node(root)
    for link in fabric.links:
        if (link.head, link.tail) in ends and (link.tail == root or link.tail not in fabric.stubs):
            metric = min(
                link.metric, graph.get_edge_data(link.tail, link.head, {}).get("m", link.metric)
            )
            graph.add_edge(link.tail, link.head, m=metric)
    banned = [(a, b) for a, b, metric in graph.edges(data="m") if metric >= MAX_LINK_METRIC]
    graph.remove_edges_from(banned)
    predecessors, distance = nx.dijkstra_predecessor_and_distance(graph, root, weight="m")

    def first(node: str) -> set[str]:
        found = set()
        for before in predecessors[node]:
            found |= {node} if before == root else first(before)
        return found

    return {node: (far, first(node)) for node, far in distance.items()}


def random_fabric(seed: int, metrics: list[int]) -> Fabric:
    random = np.random.default_rng(seed)
    fabric = Fabric()
    names = [f"N{i}" for i in range(int(random.integers(4, 14)))]
    fabric.node(*names)
    for _ in range(len(names) * 3):
        a, b = random.choice(names, 2, replace=False)
        fabric.connect(str(a), str(b), 400, int(random.choice(metrics)))
        fabric.links[-1].metric = int(random.choice(metrics))
    fabric.links = [link for link in fabric.links if random.random() > 0.1]
    fabric.stubs = {name for name in names if random.random() < 0.15}
    return fabric


@pytest.mark.rfc("RFC 2328 §16.1")
@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_agree_with_networkx(seed):
    """Parallel and one-way links, routers not to be crossed, links at the maximum metric."""
    never = MAX_LINK_METRIC
    metrics = [[10], [1, 2, 3], [1, 7, 10, 100], [10, never], [1, 2, never], [never]][seed % 6]
    fabric = random_fabric(seed, metrics)
    for root in fabric.names[:3]:
        assert view(fabric, root) == expected(fabric, root)


@pytest.mark.parametrize("root", ["p1.L1", "p1.S1", "SS1.1"])
def test_the_fast_and_the_general_search_agree(root):
    """One costlier link off all paths makes metrics unequal and changes nothing."""
    fabric = five_stage(pods=2)
    fast = view(fabric, root)
    fabric.node("X")
    fabric.connect("p2.L4", "X", metric=1000)
    general = view(fabric, root)
    assert general.pop("X")[0] > 1000
    assert fast == general == {k: v for k, v in expected(fabric, root).items() if k != "X"}


@pytest.mark.rfc("RFC 6987 §2", "ISO 10589 §7.2.8.1")
def test_a_stub_router_is_reached_but_not_crossed():
    fabric = three_stage(2, 2)
    fabric.stubs = {"S1"}
    found = view(fabric, "L1")
    assert found["S1"] == (10, {"S1"})
    assert found["L2"] == (20, {"S2"})
    assert view(fabric, "S1")["L1"] == (10, {"L1"}), "it still leaves itself"


@pytest.mark.rfc("RFC 2328 §16.1.1")
def test_behind_a_transit_network_the_first_hops_are_the_routers_on_it():
    fabric = Fabric(lans={"lan"})
    for name in ("A", "B", "C"):
        fabric.connect(name, "lan")
    fabric.connect("B", "D")
    fabric.connect("C", "D")
    found = view(fabric, "A")
    assert found["lan"] == (10, set()), "directly attached"
    assert found["B"] == (10, {"B"})
    assert found["D"] == (20, {"B", "C"})


def test_a_transit_network_among_point_to_point_links():
    """Levels where only some nodes have a first hop: the network between A and B is on a path."""
    fabric = Fabric(lans={"near", "far"})
    for name, lan in (("A", "near"), ("B", "near"), ("B", "far"), ("C", "far")):
        fabric.connect(name, lan)
    fabric.connect("C", "D")
    fabric.connect("A", "E")
    found = view(fabric, "A")
    assert found == {
        "A": (0, set()),
        "near": (10, set()),
        "B": (10, {"B"}),
        "E": (10, {"E"}),
        "far": (20, {"B"}),
        "C": (20, {"B"}),
        "D": (30, {"B"}),
    }
    assert view(fabric, "B")["E"] == (20, {"A"})
    assert view(fabric, "C")["A"] == (20, {"B"})


def test_metric_zero_between_routers_makes_no_loop():
    """IS-IS permits it."""
    fabric = Fabric()
    for a, b in (("A", "B"), ("B", "C"), ("C", "D"), ("B", "D")):
        fabric.connect(a, b, metric=0 if a != "A" else 10)
    found = view(fabric, "A")
    assert {name: far for name, (far, _) in found.items()} == {"A": 0, "B": 10, "C": 10, "D": 10}
    assert all(hops == {"B"} for name, (_, hops) in found.items() if name != "A")


def test_a_node_with_one_predecessor_shares_its_row():
    """In a planar fabric, a spine has as many rows as pods and planes, not as leaves."""
    plan = plan_of(five_stage(), "p1.S1")
    fabric = five_stage()
    row = {
        fabric.name(plan.graph.nodes[at]): int(plan.row_of[at]) for at in range(len(plan.row_of))
    }
    assert row["p2.L1"] == row["p2.L4"] == row["p2.S1"] != row["p3.L1"]


def test_paths_of_unequal_metrics_may_have_hundreds_of_edges():
    """Two chains of 300 routers, one of costlier links."""
    fabric = Fabric()
    for chain, metric in (("A", 1), ("B", 2)):
        names = ["R", *(f"{chain}{n}" for n in range(300)), f"Z{chain}"]
        fabric.node(*(name for name in names if name not in fabric.names))
        for tail, head in itertools.pairwise(names):
            fabric.connect(tail, head, metric=metric)
    assert view(fabric, "R") == expected(fabric, "R")
