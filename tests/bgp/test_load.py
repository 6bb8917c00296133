"""Weights that follow load: of own links, and of what neighbors tell of theirs."""

from __future__ import annotations

import math
import random

import pytest
from msgspec.structs import replace

from fared.extensions.sim.fabric import FabricBuilder, clos3
from fared.extensions.sim.load import Traffic, all_to_all
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import BgpBuilder
from fared.extensions.sim.watch import Watch, Watched
from fared.paths.rib.settings import SolverSettings
from fared.paths.te.advertise import AdvertiseSettings
from fared.paths.weights.adaptation import AdaptationSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.protocols.igp.events import LoadsMeasured
from tests.bgp.fabrics import GBPS, NEIGHBOR, apply, engine, neighbor, ratio, shares, started

EVEN = ratio({"S1": 1, "S2": 1})


def test_a_loaded_uplink_gets_less_and_no_neighbor_is_told():
    solver = SolverSettings(mode=WeightMode.AVAILABLE)
    builder = FabricBuilder(Network(), protocols=[BgpBuilder(NEIGHBOR)], solver=solver)
    fabric = started(clos3(2, 2, builder=builder))
    assert shares(fabric, "L1", "L2") == EVEN
    ports = {name: fabric.network.find_port("L1", name).ifindex for name in ("S1", "S2")}
    received = neighbor(fabric, "S1", "L1").received
    for _ in range(120):
        loads = {ports["S1"]: 300 * GBPS, ports["S2"]: 0.0}
        fabric.network.input("L1", LoadsMeasured(loads))
        fabric.network.run_for(1.0)
    assert 0.15 < shares(fabric, "L1", "L2")["S1"] < 0.25
    assert neighbor(fabric, "S1", "L1").received == received
    for _ in range(120):
        fabric.network.input("L1", LoadsMeasured(dict.fromkeys(ports.values(), 0.0)))
        fabric.network.run_for(1.0)
    assert 0.45 < shares(fabric, "L1", "L2")["S1"] < 0.55


def adaptive(time_constant: float = 20.0) -> FabricBuilder:
    """Routers whose weights follow load, and that tell it."""
    solver = SolverSettings(
        mode=WeightMode.AVAILABLE, adaptation=AdaptationSettings(time_constant=time_constant)
    )
    common = replace(BgpBuilder().common, follows_load=True)
    return FabricBuilder(Network(), protocols=[BgpBuilder(NEIGHBOR, common)], solver=solver)


def test_a_tenant_on_a_link_of_another_router_moves_weights_as_ospf_does():
    """It takes 300G of 400G from a spine to a leaf: the other leaf weighs 1 to 4, and back."""
    fabric = started(clos3(2, 2, builder=adaptive()))
    ospf = started(clos3(2, 2, solver=SolverSettings(mode=WeightMode.AVAILABLE)))
    for each in (fabric, ospf):
        traffic = Traffic(each, {}, background={("S1", "L2"): 300 * GBPS})
        traffic.start()
        each.network.run_for(120)
    wanted = shares(ospf, "L1", "L2")["S1"]
    assert float(wanted) == pytest.approx(0.2, abs=0.02)
    assert float(shares(fabric, "L1", "L2")["S1"]) == pytest.approx(float(wanted), abs=0.01)
    assert shares(fabric, "L2", "L1") == EVEN
    prefix = fabric.leaf_prefixes["L2"]
    told = [one.path for one in engine(fabric, "L1").instance.ribs[4].paths(prefix)]
    assert min([one.available or math.inf for one in told]) == pytest.approx(100 * GBPS)
    assert [one.bandwidth for one in told] == [pytest.approx(400 * GBPS)] * 2


def test_a_router_that_follows_capacity_neither_tells_nor_uses_load():
    fabric = started(clos3(2, 2, builder=adaptive()))
    apply(fabric, "S1", follows_load=False)
    traffic = Traffic(fabric, {}, background={("S1", "L2"): 300 * GBPS})
    traffic.start()
    fabric.network.run_for(60)
    assert shares(fabric, "L1", "L2") == EVEN
    apply(fabric, "S1", follows_load=True)
    fabric.network.run_for(120)
    assert float(shares(fabric, "L1", "L2")["S1"]) == pytest.approx(0.2, abs=0.02)


def test_a_link_that_is_full_loses_no_route_and_gets_the_least_share():
    fabric = started(clos3(2, 2, builder=adaptive()))
    traffic = Traffic(fabric, {}, background={("S1", "L2"): 400 * GBPS})
    traffic.start()
    fabric.network.run_for(120)
    assert 0 < shares(fabric, "L1", "L2")["S1"] < 0.05


def busy(time_constant: float) -> Watched:
    """All-to-all at 60 % of the uplinks of four leaves; others take half of a spine."""
    fabric = started(clos3(4, 4, builder=adaptive(time_constant)))
    ends = [leaf for leaf, other in fabric.links if other == "S1"]
    background = {pair: 200 * GBPS for leaf in ends for pair in ((leaf, "S1"), ("S1", leaf))}
    traffic = Traffic(fabric, all_to_all(fabric, 0.6 * 1600 * GBPS), background=background)
    traffic.start()
    fabric.network.run_for(60 if time_constant else 4)
    return Watch(traffic).run(30 if time_constant else 10)


def test_damped_weights_avoid_the_load_of_others_and_do_not_oscillate():
    seen = busy(20.0)
    assert seen.highest < 0.87
    assert seen.overflow == 0
    assert seen.spread < 3
    assert seen.rewrites < 0.2


def test_undamped_they_oscillate():
    seen = busy(0.0)
    assert seen.spread > 10
    assert seen.highest > 1.2


def test_budget_and_threshold_hold_for_what_load_leaves():
    """Loads of all links change at random each second: no more is told than the budget permits."""
    rules = AdvertiseSettings(budget=0.5)
    builder = adaptive()
    fabric = started(clos3(2, 2, builder=builder))
    for name in fabric.network.nodes:
        apply(fabric, name, advertise=rules)
    network, dice = fabric.network, random.Random(1)
    fabric.network.run_for(30)
    before = neighbor(fabric, "L1", "S1").received
    for _ in range(100):
        for name in ("S1", "S2"):
            port = network.find_port(name, "L2").ifindex
            network.input(name, LoadsMeasured({port: dice.random() * 400 * GBPS}))
        network.run_for(1.0)
    told = neighbor(fabric, "L1", "S1").received - before
    assert 30 < told < 70
    before = neighbor(fabric, "L1", "S1").received
    for name in ("S1", "S2"):
        port = network.find_port(name, "L2").ifindex
        network.input(name, LoadsMeasured({port: 0.0}))
    network.run_for(30)
    settled = neighbor(fabric, "L1", "S1").received
    assert settled <= before + 4
    for step in range(20):
        port = network.find_port("S1", "L2").ifindex
        network.input("S1", LoadsMeasured({port: (step % 2) * 8 * GBPS}))
        network.run_for(1.0)
    assert neighbor(fabric, "L1", "S1").received == settled
