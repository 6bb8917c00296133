"""The worked examples of path capacity over BGP: each with the weights that the IGPs have.

In fabrics of three stages, and of five with planes, they are the same.
"""

from __future__ import annotations

from random import Random

import pytest

from fared.core.ids import ipv4_prefix
from fared.extensions.sim import invariants
from fared.extensions.sim.fabric import Fabric, clos3
from tests.bgp.fabrics import (
    GBPS,
    clos5,
    engine,
    ratio,
    shares,
    slow,
    speakers,
    started,
    weights,
)
from tests.sim.shared import fail_and_heal, mend

ANYCAST = ipv4_prefix(0x0A090000, 24)


@pytest.fixture(scope="module")
def figure_1() -> Fabric:
    return started(clos3(4, 4, builder=speakers()))


@pytest.fixture
def four(figure_1):
    """Four spines, four leaves, links of 400 Gbit/s; a test's damage is mended."""
    yield figure_1
    mend(figure_1)


def test_routes_of_both_families_reach_every_kernel_over_unnumbered_sessions(four):
    even = ratio({"S1": 1, "S2": 1, "S3": 1, "S4": 1})
    for source in four.leaf_prefixes:
        for target in four.leaf_prefixes.keys() - {source}:
            assert shares(four, source, target) == even
            prefix = four.leaf_prefixes6[target]
            assert weights(four, source, "bgp", prefix) == dict.fromkeys(even, 1)
    assert all(router.startup.ready for router in four.network.routers())


def test_e1_a_downlink_at_a_quarter_is_known_to_other_leaves(four):
    four.network.set_capacity("S1", "L2", 100 * GBPS)
    four.network.run_for(0.1)
    assert shares(four, "L1", "L2") == ratio({"S1": 1, "S2": 4, "S3": 4, "S4": 4})
    assert shares(four, "L1", "L3") == ratio({"S1": 1, "S2": 1, "S3": 1, "S4": 1})


def test_e2_with_a_slow_uplink_and_a_lost_link(four):
    four.network.set_capacity("S1", "L2", 100 * GBPS)
    four.network.set_capacity("L1", "S2", 200 * GBPS)
    four.network.set_link("S3", "L2", up=False)
    four.network.run_for(0.1)
    assert shares(four, "L1", "L2") == ratio({"S1": 1, "S2": 2, "S4": 4})


def test_e13_slow_links_at_both_ends(four):
    four.network.set_capacity("S1", "L2", 200 * GBPS)
    four.network.set_capacity("L1", "S2", 300 * GBPS)
    four.network.run_for(0.1)
    assert shares(four, "L1", "L2") == ratio({"S1": 2, "S2": 3, "S3": 4, "S4": 4})


def parallel(first: tuple[float, ...], second: tuple[float, ...]) -> Fabric:
    """Two spines; L1 and L2 have these links to S1, and one of 400 to S2."""
    builder = speakers()
    builder.routers(["S1", "S2", "L1", "L2"])
    for leaf, rates in (("L1", first), ("L2", second)):
        builder.hosts(leaf)
        for rate in rates:
            builder.link(leaf, "S1", rate * GBPS)
        builder.link(leaf, "S2", 400 * GBPS)
    return started(builder.fabric)


def test_e3_parallel_links_share_what_is_behind_them():
    fabric = parallel((400, 400), (400,))
    prefix = fabric.leaf_prefixes["L2"]
    assert weights(fabric, "L1", "bgp", prefix) == {"S1": 1, "S1.1": 1, "S2": 2}


def test_e4_parallel_links_of_different_capacity():
    fabric = parallel((100, 400), (400, 400))
    prefix = fabric.leaf_prefixes["L2"]
    assert weights(fabric, "L1", "bgp", prefix) == {"S1": 1, "S1.1": 4, "S2": 4}


def test_e9_a_prefix_of_two_leaves_adds_up_to_the_uplink():
    fabric = clos3(4, 4, builder=speakers())
    for leaf in ("L2", "L3"):
        node = fabric.network.nodes[leaf]
        node.settings = node.settings.with_protocol("bgp", networks=(ANYCAST,))
        fabric.network.set_capacity("S1", leaf, 100 * GBPS)
    fabric.network.set_link("S2", "L3", up=False)
    started(fabric)
    assert weights(fabric, "L1", "bgp", ANYCAST) == {"S1": 1, "S2": 2, "S3": 2, "S4": 2}
    assert weights(fabric, "S1", "bgp", ANYCAST) == {"L2": 1, "L3": 1}


@pytest.fixture(scope="module")
def figure_2() -> Fabric:
    """Two pods of two spines and two leaves, two planes of two superspines."""
    return started(clos5(speakers(), (2, 2, 2, 2)))


def test_e6_slow_links_of_a_spine_add_up(figure_2):
    """Of the links to superspines each is another path: what they carry together counts."""
    for top in ("SS1.1", "SS1.2"):
        slow(figure_2, "p1.S1", top, 100)
    figure_2.network.run_for(0.2)
    assert shares(figure_2, "p1.L1", "p2.L1") == ratio({"p1.S1": 1, "p1.S2": 2})
    mend(figure_2)


def test_e5_a_downlink_behind_all_superspines_counts_once(figure_2):
    """Each superspine names the spine that its paths pass through, and what that carries."""
    slow(figure_2, "p2.S1", "p2.L1", 100)
    figure_2.network.run_for(0.2)
    assert shares(figure_2, "p1.L1", "p2.L1") == ratio({"p1.S1": 1, "p1.S2": 4})
    assert shares(figure_2, "p2.L2", "p2.L1") == ratio({"p2.S1": 1, "p2.S2": 4})
    mend(figure_2)


def crooked(fabric: Fabric) -> list[str]:
    """Next hops that are not on a shortest path, of both families."""
    return [
        *invariants.shortest_path_forwarding(fabric),
        *invariants.shortest_path_forwarding(fabric, fabric.leaf_prefixes6),
    ]


def test_after_any_failures_all_shortest_paths_are_used_in_three_stages(four):
    assert crooked(four) == []
    fail_and_heal(four, Random(1), crooked)


def test_after_any_failures_all_shortest_paths_are_used_in_five_stages(figure_2):
    fail_and_heal(figure_2, Random(1), crooked)


def test_a_lost_leaf_is_not_looked_for_along_all_paths():
    """Each router has an AS of its own: without a gap, paths through other leaves are tried by
    thousands of messages."""
    fabric = started(clos3(4, 6, builder=speakers()))
    neighbors = [
        one
        for name in fabric.router_ids
        for one in engine(fabric, name).instance.neighbors.values()
    ]
    before = sum(one.received for one in neighbors)
    for spine in ("S1", "S2", "S3", "S4"):
        fabric.network.set_link("L2", spine, up=False)
    fabric.network.run_for(0.2)
    assert all(not shares(fabric, name, "L2") for name in fabric.router_ids if name != "L2")
    assert sum(one.received for one in neighbors) - before < 4 * len(neighbors)
