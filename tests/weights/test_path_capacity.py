"""Path capacity is the maximum flow of the shortest-path DAG; unknown capacities stay unknown."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from fared.paths.spf.plan import SpfPlan, build_plan
from fared.paths.ted.database import Ted
from fared.paths.weights.path_capacity import (
    CapacityRow,
    WeightMode,
    aggregate_capacities,
    contract,
    fill_unknown,
    link_capacities,
    node_row,
    propagate,
)
from tests.ted.fabrics import GBPS, Fabric, five_stage, three_stage


def plan_of(fabric: Fabric, root: str) -> SpfPlan:
    ted = Ted()
    for name in fabric.names:
        ted.put(fabric.block(name))
    graph = ted.graph()
    return build_plan(graph, graph.index(fabric.id(root)))


def damaged(fabric: Fabric, seed: int) -> Fabric:
    """Three percent of the links failed, sixteen percent slow in one or both directions."""
    random = np.random.default_rng(seed)
    for link in list(fabric.links):
        draw = random.random()
        if draw < 0.03:
            fabric.links = [
                k for k in fabric.links if k.local_id not in {link.local_id, link.remote_id}
            ]
        elif draw < 0.2:
            link.capacity = float(random.choice([25, 50, 100, 200, 300]))
    return fabric


def max_flow(plan: SpfPlan, first: int, ends: list[int]) -> float:
    """Maximum flow in bytes/s from one first hop to any of the ends, on shortest paths only."""
    graph = nx.DiGraph()
    for edge in plan.dag.tolist():
        tail, head = int(plan.graph.src[edge]), int(plan.graph.dst[edge])
        if tail != plan.root:
            graph.add_edge(tail, head, capacity=float(plan.graph.capacity[edge]))
    for end in ends:
        graph.add_edge(end, "end")  # no capacity: unlimited
    if first not in graph or first in ends:
        return np.inf if first in ends else 0.0
    return float(nx.maximum_flow_value(graph, first, "end"))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("stages", [3, 5])
def test_every_first_hop_counts_for_its_maximum_flow(stages, seed):
    fabric = damaged(three_stage(4, 6, parallel=2) if stages == 3 else five_stage(3, 3, 3, 3), seed)
    source = "L1" if stages == 3 else "p1.L1"
    plan = plan_of(fabric, source)
    flow = propagate(plan, plan.graph.capacity)
    for node in range(len(plan.distance)):
        row = node_row(plan, flow, node)
        for hop in np.flatnonzero(row.present).tolist():
            expected = max_flow(plan, int(plan.hops[hop]), [node])
            assert row.bound[hop] == pytest.approx(expected), fabric.name(plan.graph.nodes[node])


@pytest.mark.parametrize("seed", range(6))
def test_anycast_leaves_of_one_pod_count_for_their_maximum_flow(seed):
    fabric = damaged(five_stage(3, 4, 3, 3), seed)
    plan = plan_of(fabric, "p1.L1")
    flow = propagate(plan, plan.graph.capacity)
    ends = [plan.graph.index(fabric.id(name)) for name in ("p2.L1", "p2.L2")]
    ends = [end for end in ends if plan.distance[end] == plan.distance[ends].min()]
    if len(ends) == 1:
        pytest.skip("the damage left one of them nearer")
    row = contract(plan, flow, plan.graph.capacity, tuple(ends)).row
    for hop in np.flatnonzero(row.present).tolist():
        assert row.bound[hop] == pytest.approx(max_flow(plan, int(plan.hops[hop]), ends))


def test_all_first_hops_together_can_carry_no_more_than_what_they_share():
    """What a border router announces: the flow of the whole DAG."""
    fabric = five_stage()
    fabric.limit("SS1.1", "p2.S1", 50)
    fabric.limit("p2.S1", "p2.L1", 100)
    plan = plan_of(fabric, "p1.S1")
    total = aggregate_capacities(plan, plan.graph.capacity)
    assert total[plan.graph.index(fabric.id("p2.L1"))] == pytest.approx(100 * GBPS)
    assert total[plan.graph.index(fabric.id("p2.S1"))] == pytest.approx(1250 * GBPS)


def row(*values: float, unknown: tuple[int, ...] = ()) -> CapacityRow:
    uncertain = np.zeros(len(values), bool)
    uncertain[list(unknown)] = True
    return CapacityRow(np.array(values, np.float64), uncertain, np.ones(len(values), bool))


def test_an_unknown_path_weighs_like_the_median_of_its_siblings():
    assert fill_unknown(row(np.inf, 100, 400, 400, unknown=(0,))).tolist() == [400, 100, 400, 400]


def test_an_unknown_path_never_weighs_more_than_what_is_known_to_lie_on_it():
    assert fill_unknown(row(50, 400, 400, unknown=(0,))).tolist() == [50, 400, 400]


def test_where_nothing_is_known_all_weigh_the_same():
    assert fill_unknown(row(np.inf, np.inf, unknown=(0, 1))).tolist() == [1, 1]


def test_available_bandwidth_has_a_floor_and_falls_back_to_capacity():
    fabric = three_stage(1, 2)
    for link, available in zip(fabric.links, (0.0, 100.0, None, 300.0), strict=True):
        link.available = available
    plan = plan_of(fabric, "L1")
    found = link_capacities(plan.graph, WeightMode.AVAILABLE, 0.02)
    assert sorted((found / GBPS).round(6).tolist()) == [8, 100, 300, 400]
