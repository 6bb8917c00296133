"""The TED: two-way check, parallel links, unknown capacities, and changes of capacity alone."""

from __future__ import annotations

import numpy as np
import pytest

from fared.paths.ted.change import ChangeKind
from fared.paths.ted.database import Ted
from fared.paths.ted.rows import snap
from tests.ted.fabrics import GBPS, Fabric, three_stage


def ted_of(fabric: Fabric) -> Ted:
    ted = Ted()
    for name in fabric.names:
        ted.put(fabric.block(name))
    return ted


def edge_value(ted: Ted, fabric: Fabric, tail: str, head: str, values: str = "capacity"):
    graph = ted.graph()
    edge = graph.edge(graph.index(fabric.id(tail)), graph.index(fabric.id(head)))
    return None if edge is None else float(getattr(graph, values)[edge])


def pair(*capacities: float | None, metric: int = 10) -> Fabric:
    fabric = Fabric()
    for capacity in capacities:
        fabric.connect("A", "B", capacity, metric)
    return fabric


def test_a_link_counts_only_if_the_other_end_lists_it_back():
    fabric = pair(400)
    fabric.links = [link for link in fabric.links if link.tail == "A"]
    assert len(ted_of(fabric).graph().src) == 0


def test_a_link_to_an_unknown_router_is_ignored():
    fabric = pair(400)
    ted = Ted()
    ted.put(fabric.block("A"))
    assert len(ted.graph().src) == 0
    ted.put(fabric.block("B"))
    assert len(ted.graph().src) == 2


def test_parallel_links_add_up():
    fabric = pair(400, 100)
    assert edge_value(ted_of(fabric), fabric, "A", "B") == pytest.approx(500 * GBPS)


def test_a_costlier_parallel_link_carries_nothing():
    fabric = pair(400)
    fabric.connect("A", "B", 100, metric=20)
    ted = ted_of(fabric)
    assert edge_value(ted, fabric, "A", "B") == pytest.approx(400 * GBPS)
    assert edge_value(ted, fabric, "A", "B", "metric") == 10


def test_an_unknown_capacity_is_taken_from_the_far_end_of_the_same_link():
    """Parallel links are told apart by their ids."""
    fabric = pair(400, 100)
    fabric.limit("A", "B", None, nth=1)
    assert edge_value(ted_of(fabric), fabric, "A", "B") == pytest.approx(500 * GBPS)
    fabric.limit("B", "A", None, nth=1)
    ted = ted_of(fabric)
    assert edge_value(ted, fabric, "A", "B") == pytest.approx(800 * GBPS), "the mean of its kind"


def test_a_link_unknown_at_both_ends_stays_unknown():
    fabric = pair(None)
    assert np.isnan(edge_value(ted_of(fabric), fabric, "A", "B"))


def test_the_far_end_filling_in_follows_its_changes():
    fabric = pair(400)
    fabric.limit("A", "B", None)
    ted = ted_of(fabric)
    ted.graph()
    fabric.limit("B", "A", 100)
    assert ted.put(fabric.block("B")) is ChangeKind.CAPACITY
    assert edge_value(ted, fabric, "A", "B") == pytest.approx(100 * GBPS)


def test_a_capacity_change_writes_in_place_and_keeps_the_graph():
    fabric = three_stage()
    ted = ted_of(fabric)
    graph, known = ted.graph(), ted.since(0).version
    fabric.limit("S1", "L2", 100)
    assert ted.put(fabric.block("S1")) is ChangeKind.CAPACITY
    assert (ted.graph() is graph, ted.since(known).kind) == (True, ChangeKind.CAPACITY)
    assert ted.since(known).version == known + 1
    assert edge_value(ted, fabric, "S1", "L2") == pytest.approx(100 * GBPS)
    assert edge_value(ted, fabric, "S1", "L3") == pytest.approx(400 * GBPS)


def test_the_same_block_again_changes_nothing():
    fabric = three_stage()
    ted = ted_of(fabric)
    assert ted.put(fabric.block("S1")) is ChangeKind.NONE


@pytest.mark.parametrize("seed", range(5))
def test_an_update_in_place_equals_a_new_graph(seed):
    random = np.random.default_rng(seed)
    fabric = three_stage(parallel=2)
    for link in fabric.links:
        link.capacity = None if random.random() < 0.2 else float(random.integers(1, 8) * 100)
    ted = ted_of(fabric)
    known = ted.since(0).version
    for link in fabric.links:
        if link.capacity is not None and random.random() < 0.3:
            link.capacity = float(random.integers(1, 8) * 100)
            ted.put(fabric.block(link.tail))
    assert ted.since(known).kind is ChangeKind.CAPACITY
    np.testing.assert_allclose(ted.graph().capacity, ted_of(fabric).graph().capacity)


@pytest.mark.parametrize("unknown", [0.0, 0.4, 1.0], ids=["known", "some unknown", "unknown"])
@pytest.mark.parametrize("seed", range(8))
def test_removal_of_lost_links_in_place_equals_a_new_graph(seed, unknown):
    """Either end is first; one of parallel links or all are lost; other links change as well."""
    random = np.random.default_rng(seed)
    fabric = three_stage(3, 4, parallel=1 + seed % 2)
    for link in fabric.links:
        link.capacity = None if random.random() < unknown else link.capacity
    if seed == 3:
        fabric.lans = {"S1"}
    ted = ted_of(fabric)
    while fabric.links:
        ted.graph()
        lost = fabric.links[int(random.integers(len(fabric.links)))]
        if random.random() < 0.3:
            fabric.links.remove(lost)
        else:
            ends = (lost.tail, lost.head)
            fabric.links = [k for k in fabric.links if (k.tail, k.head) != ends]
        for link in fabric.links:
            if link.tail == lost.tail and random.random() < 0.3:
                link.capacity = float(random.integers(1, 8) * 100)
        assert ted.put(fabric.block(lost.tail)) >= ChangeKind.ONE_WAY
        ours, theirs = ted.graph(), ted_of(fabric).graph()
        for name in ("indptr", "src", "dst", "metric", "reverse", "capacity", "available"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
        assert ours.uniform_metric == theirs.uniform_metric


@pytest.mark.parametrize("capacity", [400.0, None])
def test_the_second_end_to_lose_a_link_leaves_the_graph_as_it_is(capacity):
    fabric = three_stage()
    for link in fabric.links:
        link.capacity = 400.0 if link.tail == "L2" else capacity
    ted = ted_of(fabric)
    whole, before = ted.graph(), ted.since(0).version
    fabric.cut("S1", "L2")
    ted.put(fabric.block("S1"))
    without, known = ted.graph(), ted.since(0).version
    assert (len(whole.src), len(without.src)) == (64, 62)
    tail, head = whole.index(fabric.id("S1")), whole.index(fabric.id("L2"))
    lost = {whole.edge(tail, head), whole.edge(head, tail)}
    assert set(ted.since(before).cut) == lost
    assert ted.put(fabric.block("L2")) is ChangeKind.DROPPED
    assert ted.graph() is without
    assert ted.since(known).kind is ChangeKind.NONE
    fabric.limit("L2", "S2", 100)
    ted.put(fabric.block("L2"))
    assert ted.since(known).kind is ChangeKind.CAPACITY


def test_the_order_of_arrival_does_not_matter():
    fabric = three_stage()
    other = Ted()
    for name in reversed(fabric.names):
        other.put(fabric.block(name))
    ours, theirs = ted_of(fabric).graph(), other.graph()
    for name in ("nodes", "indptr", "src", "dst", "metric", "reverse", "capacity"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_removing_a_node_removes_its_links():
    fabric = three_stage()
    ted = ted_of(fabric)
    assert ChangeKind.LOSS is ted.remove(fabric.id("S1"))
    assert len(ted.graph().src) == 2 * 3 * 8
    assert ted.remove(fabric.id("S1")) is ChangeKind.NONE


def test_a_transit_network_costs_and_limits_nothing_on_the_way_out():
    fabric = Fabric(lans={"lan"})
    fabric.connect("A", "lan", 100)
    fabric.connect("B", "lan", 100)
    ted = ted_of(fabric)
    assert edge_value(ted, fabric, "lan", "B", "metric") == 0
    assert np.isinf(edge_value(ted, fabric, "lan", "B"))
    assert edge_value(ted, fabric, "A", "lan") == pytest.approx(100 * GBPS)


def test_ieee_singles_on_the_wire_are_read_as_the_intended_value():
    values = np.array([np.float32(g * 1e9 / 8) for g in (0.0008, 25, 100, 400, 1600)], np.float64)
    assert (snap(values) * 8e-9).tolist() == [0.0008, 25, 100, 400, 1600]
    assert np.isnan(snap(np.array([np.nan]))[0])
    assert snap(np.array([0.0]))[0] == 0.0
