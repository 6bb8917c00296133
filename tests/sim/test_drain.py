"""Routers out of service: others avoid a drained router, and keep it as a last resort."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import pytest
from msgspec.structs import replace

from fared.core.ids import AreaId, Prefix
from fared.extensions.sim import area_invariants
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import Fabric, FabricBuilder, clos3
from fared.extensions.sim.invariants import forwarding
from fared.extensions.sim.levels import COMMON, clos5_levels
from fared.extensions.sim.network import Network
from fared.paths.fib.simulated import SimulatedFib
from fared.protocols.ospf.settings import AreaSettings
from fared.router.events import RouterSettingsApplied

pytestmark = pytest.mark.slow

DEFAULT = Prefix(4, 0, 0)
POD_1, POD_2 = ("p1.S1", "p1.S2"), ("p2.S1", "p2.S2")
NO_LEAKING = replace(COMMON, level2_to_level1=False)
STUB = AreaSettings(AreaId(0), stub=True, summary=False)
FIVE_STAGES: dict[str, Callable[[], Fabric]] = {
    "ospf": lambda: clos5_areas(2, 2, 2, 1),
    "ospf stub areas": lambda: clos5_areas(2, 2, 2, 1, pod_area=STUB),
    "isis": lambda: clos5_levels(2, 2, 2, 1),
    "isis attached bit": lambda: clos5_levels(2, 2, 2, 1, common=NO_LEAKING),
}


def started(fabric: Fabric) -> Fabric:
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    return fabric


def settle(fabric: Fabric, *names: str, drained: bool = True) -> None:
    """Drain or undrain routers at once, and wait until nothing changes."""
    for name in names:
        settings = fabric.network.nodes[name].settings
        fabric.network.input(name, RouterSettingsApplied(settings.drain() if drained else settings))
    fabric.network.run_until_quiet(60)


def ways(fabric: Fabric, source: str, target: str) -> set[str]:
    """The next hops of a router toward the hosts of a leaf."""
    found = forwarding(fabric, fabric.leaf_prefixes[target])
    return set(found.get(source) or forwarding(fabric, DEFAULT)[source])


def default_only(fabric: Fabric) -> bool:
    """Whether leaves have nothing but a default route to other PoDs."""
    return "p1.L1" not in forwarding(fabric, fabric.leaf_prefixes["p2.L1"])


def watch_writes(kernel: SimulatedFib, look: Callable[[], None], monkeypatch: pytest.MonkeyPatch):
    """Look after each write to a kernel."""
    apply = kernel.apply

    def applied(operations):
        done = apply(operations)
        look()
        return done

    monkeypatch.setattr(kernel, "apply", applied)


@pytest.mark.rfc("RFC 2328 §16.1", "RFC 6987 §2")
def test_a_drained_router_is_the_last_resort_of_ospf():
    """RFC 2328 §16.1: 65535 is a cost; RFC 6987 lowers preference only."""
    fabric = started(clos3(2, 2))
    settle(fabric, "S1")
    assert ways(fabric, "L1", "L2") == {"S2"}
    for leaf in ("L1", "L2"):
        fabric.network.set_link("S2", leaf, up=False)
    fabric.network.run_until_quiet(60)
    assert ways(fabric, "L1", "L2") == {"S1"}


def test_spines_that_are_all_drained_share_the_traffic():
    fabric = started(clos3(2, 2))
    settle(fabric, "S1", "S2")
    shares = forwarding(fabric, fabric.leaf_prefixes["L2"])["L1"]
    assert shares == {"S1": Fraction(1, 2), "S2": Fraction(1, 2)}


def test_a_fabric_whose_spines_are_stub_routers_on_start_up_forwards_meanwhile():
    fabric = clos3(2, 2)
    for name in ("S1", "S2"):
        node = fabric.network.nodes[name]
        node.settings = node.settings.with_protocol("ospf", stub_router_on_startup=20.0)
    fabric.network.start_all()
    fabric.network.run_for(2.0)
    assert ways(fabric, "L1", "L2") == {"S1", "S2"}


def test_paths_cross_several_drained_routers_in_a_row():
    builder = FabricBuilder(Network())
    row = ("L1", "S1", "S2", "S3", "L2")
    for name in row:
        builder.router(name)
    for leaf in ("L1", "L2"):
        builder.hosts(leaf)
    for one, other in pairwise(row):
        builder.link(one, other)
    fabric = started(builder.fabric)
    settle(fabric, "S1", "S2", "S3")
    assert area_invariants.delivered(fabric) == []


@pytest.fixture(scope="module", params=FIVE_STAGES)
def five_stages(request: pytest.FixtureRequest) -> Fabric:
    """Two PoDs of two spines and two leaves; their border routers are in service again at last."""
    return started(FIVE_STAGES[request.param]())


def test_all_pods_avoid_a_drained_border_router(five_stages: Fabric):
    settle(five_stages, "p1.S1")
    assert ways(five_stages, "p1.L1", "p1.L2") == {"p1.S2"}
    assert ways(five_stages, "p1.L1", "p2.L1") == {"p1.S2"}
    if not default_only(five_stages):
        assert ways(five_stages, "p2.L1", "p1.L1") == {"p2.S2"}
    settle(five_stages, "p1.S1", drained=False)


@pytest.mark.parametrize("drained", [POD_1, POD_1 + POD_2, ("p1.S1", "p2.S2")])
def test_the_way_remains_when_all_routers_of_a_boundary_are_drained(
    five_stages: Fabric, drained: tuple[str, ...]
):
    settle(five_stages, *drained)
    assert area_invariants.delivered(five_stages) == []
    settle(five_stages, *drained, drained=False)


def test_to_drain_a_border_router_and_to_put_it_back_interrupts_no_path(
    five_stages: Fabric, monkeypatch: pytest.MonkeyPatch
):
    """Whenever any router has written to its kernel, all packets still arrive."""
    problems: list[str] = []

    def look() -> None:
        problems.extend(area_invariants.delivered(five_stages))

    for node in five_stages.network.nodes.values():
        watch_writes(
            node.kernel,
            lambda: problems.extend(area_invariants.delivered(five_stages)),
            monkeypatch,
        )
    settle(five_stages, "p1.S1")
    settle(five_stages, "p1.S1", drained=False)
    assert problems == []


@pytest.mark.parametrize("cost", [None, 30])
def test_a_range_of_a_drained_border_router_is_used_last(cost: int | None):
    """Whether its cost is that of its components or configured."""
    fabric = clos5_areas(2, 2, 2, 1, summarized=True)
    for name in POD_1 + POD_2:
        node = fabric.network.nodes[name]
        areas = tuple(
            replace(area, ranges=tuple(replace(item, cost=cost) for item in area.ranges))
            for area in node.settings.protocols["ospf"].areas
        )
        node.settings = node.settings.with_protocol("ospf", areas=areas)
    started(fabric)
    hosts = fabric.leaf_prefixes["p1.L1"]
    ranges = fabric.network.nodes["p1.S1"].settings.protocols["ospf"].areas[0].ranges
    (block,) = [item.prefix for item in ranges if item.prefix.covers(hosts)]
    settle(fabric, "p1.S1")
    assert set(forwarding(fabric, block)["p2.L1"]) == {"p2.S2"}
    settle(fabric, "p1.S2")
    assert set(forwarding(fabric, block)["p2.L1"]) == {"p2.S1", "p2.S2"}
