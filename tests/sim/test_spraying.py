"""Sprayed packets in a fabric: each router's rounds follow the weights of its groups."""

from __future__ import annotations

from collections import Counter
from math import gcd

import pytest
from msgspec.structs import replace

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, FabricBuilder, clos3
from fared.extensions.sim.levels import COMMON
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import BgpBuilder, IsisBuilder, OspfBuilder
from fared.paths.fib.settings import Granularity, SpraySettings
from fared.paths.fib.spray_planner import SprayPlanner
from fared.router import events
from tests.bgp.fabrics import NEIGHBOR

PACKET = SpraySettings(Granularity.PACKET)


@pytest.fixture(
    params=[OspfBuilder(), IsisBuilder(COMMON), BgpBuilder(NEIGHBOR)], ids=["ospf", "isis", "bgp"]
)
def fabric(request) -> Fabric:
    network = Network()
    made = clos3(4, 4, builder=FabricBuilder(network, protocols=(request.param,)))
    for number, node in enumerate(network.nodes.values()):
        node.settings = replace(node.settings, spray=replace(PACKET, phase=number / 8))
    network.start_all()
    network.run_until_quiet(120)
    return made


def planner(fabric: Fabric, name: str) -> SprayPlanner:
    programming = fabric.network.nodes[name].running.spraying.programming
    assert programming is not None
    return programming.planner


def assert_rounds_follow_groups(fabric: Fabric) -> None:
    for name, node in fabric.network.nodes.items():
        made, kernel = planner(fabric, name), node.kernel.state
        assert made.installed == made.desired
        wanted = {
            group_id: members
            for group_id, members in kernel.groups.items()
            if len(members) > 1 and group_id in kernel.routes.values()
        }
        assert made.installed.rounds.keys() == wanted.keys()
        for group_id, members in wanted.items():
            divisor = gcd(*(member.weight for member in members))
            packets = Counter(made.installed.rounds[group_id].order)
            assert packets == {m.nexthop_id: m.weight // divisor for m in members}
        assert made.installed.marks.keys() == {
            member.nexthop_id for members in wanted.values() for member in members
        }


def test_rounds_follow_the_weights_of_all_routers(fabric: Fabric):
    assert_rounds_follow_groups(fabric)
    for leaf in ("L1", "L2", "L3", "L4"):
        made = planner(fabric, leaf)
        others = [p for to, p in fabric.leaf_prefixes.items() if to != leaf]
        assert all(map(made.sprayed, others))
        assert not made.sprayed(fabric.leaf_prefixes[leaf])


def test_a_slow_link_changes_the_rounds_of_the_other_leaves(fabric: Fabric):
    before = {leaf: planner(fabric, leaf).counters.copy() for leaf in ("L1", "L3")}
    fabric.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 5)
    fabric.network.run_for(5)
    assert_rounds_follow_groups(fabric)
    for leaf, counted in before.items():
        made = planner(fabric, leaf)
        state = fabric.network.nodes[leaf].kernel.state
        order = made.installed.rounds[state.routes[fabric.leaf_prefixes["L2"]]].order
        assert sorted(Counter(order).values()) == [1, 5, 5, 5]
        assert made.counters["put-match"] == counted["put-match"]
        assert made.counters["put-mark"] == counted["put-mark"]


def test_a_lost_link_leaves_no_round_over_it(fabric: Fabric):
    fabric.network.set_link("L1", "S1", up=False)
    fabric.network.run_for(10)
    assert_rounds_follow_groups(fabric)
    assert {len(r.order) for r in planner(fabric, "L1").installed.rounds.values()} == {3}
    fabric.network.set_link("L1", "S1", up=True)
    fabric.network.run_for(20)
    assert_rounds_follow_groups(fabric)
    assert {len(r.order) for r in planner(fabric, "L1").installed.rounds.values()} == {4}


def test_a_reload_to_flows_and_back(fabric: Fabric):
    network = fabric.network
    settings = network.nodes["L1"].settings
    made = planner(fabric, "L1")
    network.input("L1", events.RouterSettingsApplied(replace(settings, spray=SpraySettings())))
    network.run_for(1)
    assert made.installed.empty
    network.input("L1", events.RouterSettingsApplied(settings))
    network.run_for(1)
    assert_rounds_follow_groups(fabric)
