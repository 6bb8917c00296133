"""Fabrics over IS-IS on the virtual clock: two families, two levels, two protocols."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from fared.core.ids import Prefix
from fared.extensions.sim import area_invariants, level_invariants
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, FabricBuilder
from fared.extensions.sim.levels import COMMON, clos3_isis, clos5_levels
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import IsisBuilder, Levels, OspfBuilder
from fared.paths.ted.model import PathType
from fared.protocols.isis.ids import Level
from fared.router import events
from tests.sim.shared import fail_and_heal

pytestmark = pytest.mark.slow

SLOW = DEFAULT_CAPACITY / 4


def seeds(always: int, soak: int) -> list:
    """The first few in every run, the others in a soak."""
    return [
        seed if seed < always else pytest.param(seed, marks=pytest.mark.soak)
        for seed in range(soak)
    ]


def started(fabric: Fabric) -> Fabric:
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    assert all(router.startup.ready for router in fabric.network.routers())
    return fabric


def weights(fabric: Fabric, name: str, prefix: Prefix) -> dict[str, int]:
    route = fabric.network.nodes[name].running.table.routes[prefix]
    return {hop.interface: hop.weight for hop in route.nexthops.hops}


def capacities(fabric: Fabric, name: str, prefix: Prefix) -> list[float]:
    route = fabric.network.nodes[name].running.table.routes[prefix]
    return [hop.capacity / 125e6 for hop in route.nexthops.hops]


def both(fabric: Fabric, leaf: str) -> tuple[Prefix, Prefix]:
    return fabric.leaf_prefixes[leaf], fabric.leaf_prefixes6[leaf]


@pytest.fixture(scope="module")
def three_stages() -> Fabric:
    """Level 2, 4 spines, 8 leaves; every test leaves it healed."""
    return started(clos3_isis(4, 8, network=Network(seed=5)))


def test_routes_of_a_started_fabric_are_correct_in_both_families(three_stages: Fabric):
    assert level_invariants.violations(three_stages) == []


@pytest.mark.parametrize("seed", seeds(4, 20))
def test_routes_are_correct_after_random_failures_and_healings(three_stages: Fabric, seed: int):
    fail_and_heal(three_stages, random.Random(seed), level_invariants.violations)


def test_databases_become_equal_although_frames_are_lost():
    """A tenth of all frames lost: the fabric starts all the same and ends right."""
    fabric = started(clos3_isis(2, 4, network=Network(seed=3, loss=0.1)))
    fabric.network.loss = 0.0
    fabric.network.run_until_quiet(60)
    assert level_invariants.violations(fabric) == []


def test_isis_routes_over_links_without_addresses():
    """Without any IPv4 address on a link, IPv4 goes over IPv6 next hops with the same weights."""
    fabric = started(clos3_isis(4, 3, levels=Levels(numbered=False)))
    fabric.network.set_capacity("S1", "L2", SLOW)
    fabric.network.run_for(3)
    for prefix in both(fabric, "L2"):
        assert weights(fabric, "L1", prefix) == {"S1": 1, "S2": 4, "S3": 4, "S4": 4}
        route = fabric.network.nodes["L1"].running.table.routes[prefix]
        assert {hop.family for hop in route.nexthops.hops} == {6}
    assert level_invariants.violations(fabric) == []


@pytest.fixture(scope="module")
def five_stages() -> Fabric:
    """Two PoDs in level 1, four planes in level 2; every test leaves it healed."""
    return started(clos5_levels(2, 3, 4, 2, network=Network(seed=9)))


def test_every_pod_reaches_every_other_through_leaking(five_stages: Fabric):
    """Prefixes of the other PoD come down with the down bit, and nothing loops."""
    assert area_invariants.delivered(five_stages) == []
    assert level_invariants.same_databases(five_stages) == []
    for prefix in both(five_stages, "p2.L1"):
        route = five_stages.network.nodes["p1.L1"].running.table.routes[prefix]
        assert (route.path_type, route.metric) == (PathType.LEVEL_1_DOWN, 50)
        assert weights(five_stages, "p1.L1", prefix) == {f"p1.S{k}": 1 for k in (1, 2, 3, 4)}


def test_e5_a_degraded_link_in_another_pod_is_weighed_across_levels(five_stages: Fabric):
    """Example E5: 100, 400, 400, 400 at a leaf of PoD 1, not 400 x 4."""
    network = five_stages.network
    network.set_capacity("p2.S1", "p2.L1", SLOW)
    network.run_for(4)
    for prefix in both(five_stages, "p2.L1"):
        assert capacities(five_stages, "p1.L1", prefix) == pytest.approx([100, 400, 400, 400])
        assert list(weights(five_stages, "p1.L1", prefix).values()) == [1, 4, 4, 4]
    network.set_capacity("p2.S1", "p2.L1", DEFAULT_CAPACITY)
    network.run_for(4)
    assert list(weights(five_stages, "p1.L1", both(five_stages, "p2.L1")[0]).values()) == [1] * 4


def test_small_changes_of_leaked_capacities_are_not_advertised(five_stages: Fabric):
    """Two per cent are below the threshold: no spine issues an LSP in the other PoD."""
    network, systems = five_stages.network, set(five_stages.router_ids.values())
    leaf = network.nodes["p1.L1"]
    before = level_invariants.lsps(leaf, Level.ONE, systems)
    network.set_capacity("p2.S1", "p2.L1", DEFAULT_CAPACITY * 0.98)
    network.run_for(4)
    assert level_invariants.lsps(leaf, Level.ONE, systems) == before
    network.set_capacity("p2.S1", "p2.L1", DEFAULT_CAPACITY)
    network.run_for(4)


@pytest.mark.parametrize("seed", seeds(2, 8))
def test_routes_of_five_stages_are_correct_after_failures_anywhere(five_stages: Fabric, seed: int):
    """One link each in a PoD and in a plane dies and heals; every way ends where it should."""
    network, dice = five_stages.network, random.Random(seed)
    pods = [link for link in five_stages.links if ".L" in link[0]]
    planes = [link for link in five_stages.links if link[1].startswith("SS")]
    dead = [dice.choice(pods), dice.choice(planes)]
    for ends in dead:
        network.set_link(*ends, up=False)
        network.run_for(dice.choice((0.0, 0.02, 0.3)))
    network.run_until_quiet(60)
    assert area_invariants.delivered(five_stages) == []
    for ends in dead:
        network.set_link(*ends, up=True)
    network.run_until_quiet(60)
    assert area_invariants.delivered(five_stages) == []
    assert level_invariants.same_databases(five_stages) == []


def test_without_leaking_a_leaf_follows_the_attached_bit():
    """Level 2 stays up there: leaves get a default route toward all spines of their PoD."""
    common = replace(COMMON, level2_to_level1=False)
    fabric = started(clos5_levels(2, 2, 2, 1, common=common))
    leaf = fabric.network.nodes["p1.L1"].running
    assert fabric.leaf_prefixes["p2.L1"] not in leaf.table.routes
    for default in (Prefix(4, 0, 0), Prefix(6, 0, 0)):
        assert weights(fabric, "p1.L1", default) == {"p1.S1": 1, "p1.S2": 1}
    assert area_invariants.delivered(fabric) == []
    fabric.network.set_link("p1.S1", "SS1.1", up=False)
    fabric.network.run_until_quiet(30)
    assert weights(fabric, "p1.L1", Prefix(4, 0, 0)) == {"p1.S2": 1}


def test_two_protocols_share_one_table_by_preference():
    """OSPF (110) before IS-IS (115) for IPv4; IPv6 is of IS-IS alone; each stands in for the
    other."""
    fabric = started(clos3_isis(2, 3, beside=[OspfBuilder()]))
    network = fabric.network
    prefix, prefix6 = both(fabric, "L2")
    router = network.nodes["L1"].running
    assert (router.table.source(prefix), router.table.source(prefix6)) == ("ospf", "isis")
    assert level_invariants.violations(fabric) == []
    # OSPF goes silent on the spine's ports: what IS-IS knows takes over, link by link.
    for node in ("S1", "S2"):
        for port in network.nodes[node].ports.values():
            port.settings.pop("ospf", None)
            network._notify(port)
    network.run_until_quiet(30)
    assert router.table.source(prefix) == "isis"
    assert weights(fabric, "L1", prefix) == {"S1": 1, "S2": 1}


def test_preference_of_the_protocols_can_be_configured():
    """With a lower number IS-IS wins, while running and without a gap."""
    fabric = started(clos3_isis(2, 3, beside=[OspfBuilder()]))
    network, prefix = fabric.network, fabric.leaf_prefixes["L2"]
    router = network.nodes["L1"].running
    settings = replace(router.settings, preferences={"ospf": 110, "isis": 100})
    network.input("L1", events.RouterSettingsApplied(settings))
    network.run_for(1)
    assert router.table.source(prefix) == "isis"
    assert prefix in network.nodes["L1"].kernel.state.routes


def test_routers_with_the_overload_bit_carry_no_transit_traffic():
    """The overload bit: S1 carries nothing through, and is still reached itself."""
    fabric = started(clos3_isis(4, 3))
    node = fabric.network.nodes["S1"]
    fabric.network.input("S1", events.RouterSettingsApplied(node.settings.drain()))
    fabric.network.run_until_quiet(30)
    for prefix in both(fabric, "L2"):
        assert set(weights(fabric, "L1", prefix)) == {"S2", "S3", "S4"}
    loopback = Prefix(4, fabric.router_ids["S1"], 32)
    assert set(weights(fabric, "L1", loopback)) == {"S1"}


def test_parallel_links_share_the_traffic_of_their_neighbor():
    """Two links to S1, one to S2: S1 gets twice the traffic, half of it on each link."""
    builder = FabricBuilder(Network(), protocols=[IsisBuilder(COMMON)])
    for name in ("L1", "L2", "S1", "S2"):
        builder.router(name)
    for leaf in ("L1", "L2"):
        builder.hosts(leaf)
        for spine in ("S1", "S1", "S2"):
            builder.link(leaf, spine)
    fabric = started(builder.fabric)
    for prefix in both(fabric, "L2"):
        assert weights(fabric, "L1", prefix) == {"S1": 1, "S1.1": 1, "S2": 1}
    fabric.network.set_capacity("L1", "S1", SLOW)
    fabric.network.run_for(3)
    for prefix in both(fabric, "L2"):
        assert weights(fabric, "L1", prefix) == {"S1": 1, "S1.1": 4, "S2": 4}
