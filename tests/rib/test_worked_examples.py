"""The worked examples of path capacity: weights and what one pair of leaves achieves with them.

Rates are Gb/s; every link is 400 unless an example says otherwise. Names: L leaf, S spine,
SS superspine, pN pod N.
"""

from __future__ import annotations

from itertools import permutations

import pytest

from fared.core.ids import ipv4_prefix
from fared.paths.rib.settings import SolverSettings
from fared.paths.weights.path_capacity import WeightMode
from tests.rib.fluid import achieved, capacities, common_rate, weights
from tests.ted.fabrics import Fabric, five_stage, three_stage

pytestmark = pytest.mark.slow

ECMP = SolverSettings(mode=WeightMode.NONE)
SPINES_OF_P1 = [f"p1.S{k}" for k in range(1, 5)]
ANYCAST = ipv4_prefix(0xC0000200, 24)


def test_a_slow_remote_downlink_gets_a_quarter_of_the_traffic_e1():
    fabric = three_stage()
    fabric.limit("S1", "L2", 100)
    to = fabric.prefix("L2")
    assert weights(fabric, "L1", to) == {"S1": 1, "S2": 4, "S3": 4, "S4": 4}
    assert capacities(fabric, "L1", to) == {"S1": 100, "S2": 400, "S3": 400, "S4": 400}
    assert achieved(fabric, "L1", to) == pytest.approx(1300)
    assert achieved(fabric, "L1", to, ECMP) == pytest.approx(400)


def test_one_slow_downlink_in_a_whole_fabric_of_traffic_e1():
    """Every leaf to the next one, then every leaf to every other: the common rate of a pair."""
    fabric = three_stage()
    fabric.limit("S1", "L2", 100)
    leaves = [f"L{n}" for n in range(1, 9)]
    ring = [(a, fabric.prefix(b)) for a, b in zip(leaves, leaves[1:] + leaves[:1], strict=True)]
    assert common_rate(fabric, ring) == pytest.approx(1300)
    assert common_rate(fabric, ring, ECMP) == pytest.approx(400)
    mesh = [(a, fabric.prefix(b)) for a, b in permutations(leaves, 2)]
    assert common_rate(fabric, mesh) == pytest.approx(185.714, abs=0.001)
    assert common_rate(fabric, mesh, ECMP) == pytest.approx(57.143, abs=0.001)


def test_slow_uplink_slow_downlink_and_a_link_down_together_e2():
    fabric = three_stage()
    fabric.limit("S1", "L2", 100)
    fabric.limit("L1", "S2", 200)
    fabric.cut("S3", "L2")
    to = fabric.prefix("L2")
    assert weights(fabric, "L1", to) == {"S1": 1, "S2": 2, "S4": 4}
    assert achieved(fabric, "L1", to) == pytest.approx(700)
    assert achieved(fabric, "L1", to, ECMP) == pytest.approx(300)


def parallel_fabric() -> Fabric:
    fabric = Fabric()
    fabric.node("S1", "S2", "L1", "L2")
    fabric.connect("L1", "S1")
    fabric.connect("L1", "S1")
    fabric.connect("L1", "S2")
    fabric.connect("S1", "L2")
    fabric.connect("S2", "L2")
    return fabric


def test_parallel_uplinks_before_a_single_downlink_share_its_capacity_e3():
    fabric = parallel_fabric()
    to = fabric.prefix("L2")
    solver = fabric.solver("L1")
    solver.solve()
    hops = solver.routes[to].nexthops.hops
    assert [(fabric.name(h.neighbor), h.weight, h.capacity * 8e-9) for h in hops] == [
        ("S1", 1, 200),
        ("S1", 1, 200),
        ("S2", 2, 400),
    ]
    assert achieved(fabric, "L1", to) == pytest.approx(800)
    assert achieved(fabric, "L1", to, ECMP) == pytest.approx(600)


def test_unequal_parallel_uplinks_share_in_proportion_e4():
    fabric = parallel_fabric()
    fabric.connect("S1", "L2")
    fabric.limit("L1", "S1", 100, nth=0)
    to = fabric.prefix("L2")
    solver = fabric.solver("L1")
    solver.solve()
    hops = solver.routes[to].nexthops.hops
    assert [(h.weight, h.capacity * 8e-9) for h in hops] == [(1, 100), (4, 400), (4, 400)]
    assert achieved(fabric, "L1", to) == pytest.approx(900)
    assert achieved(fabric, "L1", to, ECMP) == pytest.approx(300)


def test_an_anycast_prefix_counts_the_links_to_all_its_leaves_e9():
    fabric = three_stage()
    fabric.limit("S1", "L2", 100)
    fabric.limit("S1", "L3", 100)
    fabric.cut("S2", "L3")
    fabric.anycast(ANYCAST, "L2", "L3")
    assert weights(fabric, "L1", ANYCAST) == {"S1": 1, "S2": 2, "S3": 2, "S4": 2}
    assert achieved(fabric, "L1", ANYCAST) == pytest.approx(1400)
    assert achieved(fabric, "L1", ANYCAST, ECMP) == pytest.approx(800)


def e5(fabric: Fabric) -> None:
    fabric.limit("p2.S1", "p2.L1", 100)


def e6(fabric: Fabric) -> None:
    for k in range(1, 5):
        fabric.limit("p1.S1", f"SS1.{k}", 100)


def e7(fabric: Fabric) -> None:
    fabric.cut("p1.S1", "SS1.1")
    fabric.cut("p1.S1", "SS1.2")
    fabric.limit("SS1.3", "p2.S1", 50)
    fabric.limit("SS1.4", "p2.S1", 100)


def e8(fabric: Fabric) -> None:
    for k in range(1, 5):
        fabric.limit(f"SS1.{k}", "p2.S1", 50)
    fabric.limit("p2.S1", "p2.L1", 150)


def e8b(fabric: Fabric) -> None:
    fabric.limit("SS1.1", "p2.S1", 50)
    fabric.limit("p2.S1", "p2.L1", 100)


def e12(fabric: Fabric) -> None:
    fabric.cut("p2.S1", "p2.L1")


@pytest.mark.parametrize(
    ("change", "at_leaf", "at_spine", "rate", "ecmp"),
    [
        (e5, [100, 400, 400, 400], [400, 400, 400, 400], 1300, 400),
        (e6, [400, 400, 400, 400], [100, 100, 100, 100], 1600, 1600),
        (e7, [150, 400, 400, 400], [None, None, 50, 100], 1350, 400),
        (e8, [150, 400, 400, 400], [50, 50, 50, 50], 1350, 600),
        (e8b, [100, 400, 400, 400], [50, 400, 400, 400], 1300, None),
        (e12, [None, 400, 400, 400], None, 1200, None),
    ],
)
def test_between_pods_the_leaf_sees_the_remote_damage(change, at_leaf, at_spine, rate, ecmp):
    """E5 to E8b and E12: leaf to remote leaf over five stages in one flat area."""
    fabric = five_stage()
    change(fabric)
    to = fabric.prefix("p2.L1")
    expected = {f"p1.S{k}": v for k, v in enumerate(at_leaf, start=1) if v}
    assert capacities(fabric, "p1.L1", to) == expected
    if at_spine is not None:
        expected = {f"SS1.{k}": v for k, v in enumerate(at_spine, start=1) if v}
        assert capacities(fabric, "p1.S1", to) == expected
    assert achieved(fabric, "p1.L1", to) == pytest.approx(rate)
    if ecmp is not None:
        assert achieved(fabric, "p1.L1", to, ECMP) == pytest.approx(ecmp)


def test_one_slow_downlink_in_five_stages_full_of_traffic_e5():
    """Every leaf to its like in the next pod, then every leaf to every other."""
    fabric = five_stage(pods=8)
    e5(fabric)
    ring = [
        (f"p{pod}.L{leaf}", fabric.prefix(f"p{pod % 8 + 1}.L{leaf}"))
        for pod in range(1, 9)
        for leaf in range(1, 5)
    ]
    assert common_rate(fabric, ring) == pytest.approx(1300)
    assert common_rate(fabric, ring, ECMP) == pytest.approx(400)
    mesh = [(a, fabric.prefix(b)) for a, b in permutations([leaf for leaf, _ in ring], 2)]
    assert common_rate(fabric, mesh) == pytest.approx(41.935, abs=0.001)
    assert common_rate(fabric, mesh, ECMP) == pytest.approx(12.903, abs=0.001)


def test_anycast_in_two_pods_e10():
    fabric = five_stage()
    fabric.limit("p2.S1", "p2.L1", 100)
    fabric.limit("p3.S1", "p3.L1", 100)
    fabric.anycast(ANYCAST, "p2.L1", "p3.L1")
    assert list(capacities(fabric, "p1.L1", ANYCAST).values()) == [200, 400, 400, 400]
    assert list(capacities(fabric, "p1.S1", ANYCAST).values()) == [200] * 4
    assert achieved(fabric, "p1.L1", ANYCAST) == pytest.approx(1400)
    assert achieved(fabric, "p1.L1", ANYCAST, ECMP) == pytest.approx(800)


def test_anycast_in_two_pods_with_a_skewed_plane_is_the_known_limit_e11():
    """No hop-by-hop rule reaches the optimum of 1600 here; plain ECMP gets 457."""
    fabric = five_stage()
    fabric.limit("p2.S1", "p2.L1", 100)
    for k in (1, 2, 3):
        fabric.cut(f"SS1.{k}", "p3.S1")
    fabric.anycast(ANYCAST, "p2.L1", "p3.L1")
    assert list(capacities(fabric, "p1.L1", ANYCAST).values()) == [400] * 4
    assert list(capacities(fabric, "p1.S1", ANYCAST).values()) == [100, 100, 100, 400]
    assert achieved(fabric, "p1.L1", ANYCAST) == pytest.approx(736.842, abs=0.001)
    assert achieved(fabric, "p1.L1", ANYCAST, ECMP) == pytest.approx(457.14, abs=0.01)


def test_inside_a_pod_five_stages_behave_like_three_e13():
    fabric = five_stage()
    fabric.limit("p1.S1", "p1.L2", 200)
    fabric.limit("p1.L1", "p1.S2", 300)
    to = fabric.prefix("p1.L2")
    assert capacities(fabric, "p1.L1", to) == dict(
        zip(SPINES_OF_P1, [200, 300, 400, 400], strict=True)
    )
    assert achieved(fabric, "p1.L1", to) == pytest.approx(1300)


def test_anycast_on_two_leaves_of_one_pod_e14():
    fabric = five_stage()
    fabric.limit("p2.S1", "p2.L1", 100)
    fabric.limit("p2.S1", "p2.L2", 150)
    fabric.anycast(ANYCAST, "p2.L1", "p2.L2")
    assert capacities(fabric, "p1.L1", ANYCAST) == dict(
        zip(SPINES_OF_P1, [250, 400, 400, 400], strict=True)
    )
    assert list(capacities(fabric, "p1.S1", ANYCAST).values()) == [400] * 4
    assert capacities(fabric, "p2.S1", ANYCAST) == {"p2.L1": 100, "p2.L2": 150}
    assert achieved(fabric, "p1.L1", ANYCAST) == pytest.approx(1450)
