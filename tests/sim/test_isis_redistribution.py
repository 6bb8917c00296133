"""Static and connected routes of both families in fabrics over IS-IS, and across levels."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.ids import Prefix, parse_prefix
from fared.core.routes import KERNEL_SOURCES, LocalRoute, RouteSource
from fared.extensions.sim.fabric import GIGABIT, Fabric
from fared.extensions.sim.levels import clos3_isis, clos5_levels
from fared.extensions.sim.network import Network
from fared.paths.ted.model import PathType
from fared.protocols.isis.ids import LevelSet
from fared.protocols.isis.settings import RedistributeSettings, Redistribution
from fared.router.events import RouterSettingsApplied

OUTSIDE = (parse_prefix("203.0.113.0/24"), parse_prefix("2001:db8:cafe::/48"))
SOMEWHERE = LocalRoute(((99, 0),))


def configure(fabric: Fabric, name: str, levels: LevelSet, metric: int = 0) -> None:
    """Before or after the start: static and connected routes are announced."""
    how = Redistribution(levels, metric)
    node = fabric.network.nodes[name]
    node.settings = node.settings.with_protocol("isis", redistribute=RedistributeSettings(how, how))
    if node.router is not None:
        fabric.network.input(name, RouterSettingsApplied(node.settings))


def announce(fabric: Fabric, name: str, route: LocalRoute | None = SOMEWHERE, **where) -> None:
    """Give a router's kernel a route of each family, or take them away."""
    for prefix in OUTSIDE:
        fabric.network.set_local_route(name, prefix, route, **where)


def quiet(fabric: Fabric) -> Fabric:
    fabric.network.run_until_quiet(fabric.network.now + 120)
    return fabric


def started(fabric: Fabric) -> Fabric:
    fabric.network.start_all()
    return quiet(fabric)


def hops(fabric: Fabric, name: str, prefix: Prefix) -> dict[str, int] | None:
    """Whom a router sends to, with weights; None without a route, empty for one of its own."""
    node = fabric.network.nodes[name]
    route = node.running.table.routes.get(prefix)
    if route is None:
        return None
    found = () if route.nexthops is None else route.nexthops.hops
    return {node.ports[hop.ifindex].peer.node: hop.weight for hop in found}


@pytest.mark.parametrize("source", KERNEL_SOURCES)
def test_traffic_is_shared_by_two_routers_that_redistribute_and_each_keeps_its_own_route(
    source: RouteSource,
):
    """L1 and L2 announce the same: spines spread over both; one withdraws, the other remains."""
    fabric = clos3_isis(2, 4, network=Network(seed=3))
    for name in ("L1", "L2"):
        configure(fabric, name, LevelSet.TWO)
        announce(fabric, name, source=source)
    started(fabric)
    for prefix in OUTSIDE:
        assert set(hops(fabric, "S1", prefix)) == {"L1", "L2"}
        assert set(hops(fabric, "L3", prefix)) == {"S1", "S2"}
        for name in ("L1", "L2"):
            own = fabric.network.nodes[name].running.table.routes[prefix]
            assert own.path_type is PathType.LEVEL_2_REDISTRIBUTED
            assert prefix not in fabric.network.nodes[name].kernel.dump().routes
    announce(fabric, "L1", None, source=source)
    quiet(fabric)
    for prefix in OUTSIDE:
        assert set(hops(fabric, "S1", prefix)) == {"L2"}
        assert set(hops(fabric, "L1", prefix)) == {"S1", "S2"}
    announce(fabric, "L2", None, source=source)
    quiet(fabric)
    assert all(hops(fabric, name, p) is None for name in fabric.network.nodes for p in OUTSIDE)


def test_all_traffic_follows_the_lower_metric_until_its_route_is_withdrawn():
    fabric = clos3_isis(2, 4, network=Network(seed=3))
    for name, metric in (("L1", 0), ("L2", 100)):
        configure(fabric, name, LevelSet.TWO, metric)
        announce(fabric, name)
    started(fabric)
    for prefix in OUTSIDE:
        assert set(hops(fabric, "S1", prefix)) == {"L1"}
        assert hops(fabric, "L2", prefix) == {}
    announce(fabric, "L1", None)
    quiet(fabric)
    assert all(set(hops(fabric, "S1", prefix)) == {"L2"} for prefix in OUTSIDE)


def test_a_restarted_router_redistributes_the_routes_in_its_kernel():
    fabric = clos3_isis(2, 4, network=Network(seed=3))
    configure(fabric, "L1", LevelSet.TWO)
    announce(fabric, "L1")
    started(fabric)
    fabric.network.kill("L1")
    fabric.network.run_for(1)
    fabric.network.start("L1")
    quiet(fabric)
    assert all(set(hops(fabric, "S1", prefix)) == {"L1"} for prefix in OUTSIDE)


@pytest.fixture(scope="module")
def five_stages() -> Fabric:
    """Leaf 1 of PoD 1, of level 1, redistributes; all spines leak both ways."""
    fabric = clos5_levels(2, 2, 2, 2, network=Network(seed=4))
    configure(fabric, "p1.L1", LevelSet.ONE)
    announce(fabric, "p1.L1")
    return started(fabric)


@pytest.mark.parametrize("prefix", OUTSIDE, ids=str)
def test_in_five_stages_all_routers_learn_a_redistributed_route_through_leaking(
    five_stages: Fabric, prefix: Prefix
):
    """Up in PoD 1, down in PoD 2, by way of all spines; no spine is led back into its PoD."""
    assert set(hops(five_stages, "p1.L2", prefix)) == {"p1.S1", "p1.S2"}
    assert set(hops(five_stages, "p2.L1", prefix)) == {"p2.S1", "p2.S2"}
    for plane in ("1", "2"):
        spine, tops = f"S{plane}", {f"SS{plane}.1", f"SS{plane}.2"}
        assert set(hops(five_stages, f"p2.{spine}", prefix)) == tops
        assert set(hops(five_stages, f"SS{plane}.1", prefix)) == {f"p1.{spine}"}
        assert set(hops(five_stages, f"p1.{spine}", prefix)) == {"p1.L1"}


def test_in_five_stages_two_pods_redistribute_a_prefix_and_withdraw_it(five_stages: Fabric):
    """The nearer one counts in each PoD; where it goes the other is used, then nothing."""
    fabric = five_stages
    configure(fabric, "p2.L1", LevelSet.ONE)
    announce(fabric, "p2.L1")
    quiet(fabric)
    for prefix in OUTSIDE:
        assert set(hops(fabric, "p2.S1", prefix)) == {"p2.L1"}
        assert set(hops(fabric, "SS1.1", prefix)) == {"p1.S1", "p2.S1"}
    announce(fabric, "p1.L1", None)
    quiet(fabric)
    for prefix in OUTSIDE:
        assert set(hops(fabric, "p1.L1", prefix)) == {"p1.S1", "p1.S2"}
        assert set(hops(fabric, "SS1.1", prefix)) == {"p2.S1"}
    announce(fabric, "p2.L1", None)
    quiet(fabric)
    try:
        assert all(hops(fabric, name, p) is None for name in fabric.network.nodes for p in OUTSIDE)
    finally:
        announce(fabric, "p1.L1")
        quiet(fabric)


def drain(fabric: Fabric, *names: str) -> None:
    for name in names:
        node = fabric.network.nodes[name]
        fabric.network.input(name, RouterSettingsApplied(node.settings.drain()))
    quiet(fabric)


def test_what_a_drained_router_redistributes_is_used_last():
    fabric = clos3_isis(2, 3, network=Network(seed=3))
    for name in ("L1", "L2"):
        configure(fabric, name, LevelSet.TWO)
        announce(fabric, name)
    started(fabric)
    drain(fabric, "L1")
    assert all(hops(fabric, "S1", prefix) == {"L2": 1} for prefix in OUTSIDE)
    announce(fabric, "L2", None)
    quiet(fabric)
    assert all(hops(fabric, "S1", prefix) == {"L1": 1} for prefix in OUTSIDE)


def test_what_drained_routers_redistribute_and_leak_twice_is_still_reached():
    """Three times the highest metric that is added, which a path may still have."""
    fabric = clos5_levels(2, 1, 2, 1, network=Network(seed=3))
    configure(fabric, "p1.L1", LevelSet.ONE, metric=16_777_215)
    announce(fabric, "p1.L1")
    started(fabric)
    drain(fabric, "p1.L1", "p1.S1", "p1.S2", "p2.S1", "p2.S2")
    assert all(set(hops(fabric, "p2.L1", p)) == {"p2.S1", "p2.S2"} for p in OUTSIDE)


def test_traffic_is_shared_by_the_path_capacities_of_redistributed_routes_in_both_families():
    """As a leaked prefix: sub-TLV 250 of the entry, 25 Gbit/s at L1 and 100 at L2."""
    fabric = clos3_isis(2, 4, network=Network(seed=3))
    for name, gigabits in (("L1", 25), ("L2", 100)):
        configure(fabric, name, LevelSet.TWO)
        announce(fabric, name, replace(SOMEWHERE, capacity=gigabits * GIGABIT))
    started(fabric)
    for prefix in OUTSIDE:
        assert hops(fabric, "S1", prefix) == {"L1": 1, "L2": 4}
    announce(fabric, "L1", replace(SOMEWHERE, capacity=50 * GIGABIT))
    quiet(fabric)
    for prefix in OUTSIDE:
        assert hops(fabric, "S1", prefix) == {"L1": 1, "L2": 2}
    announce(fabric, "L1")
    quiet(fabric)
    for prefix in OUTSIDE:
        assert hops(fabric, "S1", prefix) == {"L1": 4, "L2": 1}, "nothing limits beyond L1"
