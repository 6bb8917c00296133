"""Each of two routers of ours takes the minimum with its own direction of their link itself."""

from __future__ import annotations

import pytest

from fared.extensions.sim.fabric import clos3
from tests.bgp.fabrics import (
    GBPS,
    apply_neighbor,
    clos5,
    engine,
    neighbor,
    ratio,
    shares,
    speakers,
    started,
    weights,
)

EVEN, SLOWER = ratio({"S1": 1, "S2": 1}), ratio({"S1": 1, "S2": 4})
TIERS = (("p2.S1", "p2.L1"), ("SS1.1", "p2.S1"), ("p1.S1", "SS1.2"), ("p1.L1", "p1.S1"))
"""A link of each tier, as traffic from p1 to p2 passes it."""


def test_a_link_that_is_slow_in_one_direction_counts_for_traffic_in_that_direction():
    fabric = started(clos3(2, 2, builder=speakers()))
    network = fabric.network
    assert neighbor(fabric, "S1", "L2").agreed.own_minimum
    network.set_capacity("L2", "S1", 100 * GBPS)
    network.run_until_quiet(30)
    assert shares(fabric, "L1", "L2") == EVEN
    assert shares(fabric, "L2", "L1") == SLOWER
    network.set_capacity("L2", "S1", 400 * GBPS)
    network.set_capacity("S1", "L2", 100 * GBPS)
    network.run_until_quiet(30)
    assert shares(fabric, "L1", "L2") == SLOWER
    assert shares(fabric, "L2", "L1") == EVEN


def test_a_neighbor_is_told_nothing_when_our_direction_of_its_link_changes():
    fabric = started(clos3(2, 2, builder=speakers()))
    before = neighbor(fabric, "S1", "L1").received
    fabric.network.set_capacity("L1", "S1", 100 * GBPS)
    fabric.network.run_for(30)
    assert neighbor(fabric, "S1", "L1").received == before
    assert shares(fabric, "L1", "L2") == SLOWER


def test_a_neighbor_where_a_missing_value_is_no_limit_of_its_own_is_told_ours():
    """It weighs all paths equally if one has no value, so that ours is to have one."""
    fabric = started(clos3(2, 2, builder=speakers()))
    spine = neighbor(fabric, "S1", "L2").settings.path_bandwidth
    ecmp = type(spine)(missing="ecmp")
    apply_neighbor(fabric, "S1", ["L1", "L2"], path_bandwidth=ecmp)
    fabric.network.run_until_quiet(30)
    assert neighbor(fabric, "L2", "S1").agreed.own_minimum is False
    assert neighbor(fabric, "S1", "L2").agreed.own_minimum is True
    prefix = fabric.leaf_prefixes["L2"]
    (one,) = engine(fabric, "S1").instance.ribs[4].paths(prefix)
    assert one.path.bandwidth == pytest.approx(400 * GBPS)


def test_a_link_that_is_drained_at_one_end_counts_less_in_both_directions():
    fabric = started(clos3(2, 2, builder=speakers()))
    fabric.network.set_share("L2", "S1", 0.25)
    fabric.network.run_until_quiet(30)
    assert shares(fabric, "L1", "L2") == shares(fabric, "L2", "L1") == SLOWER
    fabric.network.set_share("L2", "S1", 1.0)
    fabric.network.run_until_quiet(30)
    assert shares(fabric, "L1", "L2") == shares(fabric, "L2", "L1") == EVEN


@pytest.fixture(scope="module")
def five_stages():
    return started(clos5(speakers(1, igps=True), (2, 1, 2, 2)))


@pytest.mark.parametrize("link", TIERS)
def test_in_five_stages_a_direction_of_any_tier_counts_as_in_ospf(five_stages, link):
    fabric, network = five_stages, five_stages.network
    for ends in (link, link[::-1]):
        network.set_capacity(*ends, 25 * GBPS)
        network.run_until_quiet(60, quiet=0.6)
        for source, toward in (("p1.L1", "p2.L1"), ("p2.L1", "p1.L1")):
            prefix = fabric.leaf_prefixes[toward]
            told = weights(fabric, source, "bgp", prefix)
            assert told == weights(fabric, source, "ospf", prefix)
            along = (ends == link) == (source == "p1.L1")
            # of two superspines one is slow: 400G + 25G of 400G are still enough
            whole = not along or any(one.startswith("SS") for one in ends)
            assert (len(set(told.values())) == 1) is whole
        network.set_capacity(*ends, 400 * GBPS)
        network.run_until_quiet(60, quiet=0.6)
