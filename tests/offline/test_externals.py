"""Saved databases with externals: the tool computes the routes of each router."""

import pytest

from fared.core.ids import dotted
from fared.core.routes import LocalRoute
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import Fabric, FabricBuilder, clos3
from fared.extensions.sim.network import Network
from fared.router.events import RouterSettingsApplied
from tests.offline.fabrics import all_tables, answer, live_table, live_tables, saved, table
from tests.sim.externals import OUTSIDE, announce, configure, started, static

PREFIX = str(OUTSIDE)


@pytest.mark.parametrize("type_2", [True, False])
def test_two_boundary_routers_of_which_one_is_better(type_2):
    """From every root, also from the worse one, which keeps the route of its kernel."""
    fabric = clos3(2, 3, network=Network(seed=5))
    announce(fabric, "L1", metric=5, type_2=type_2)
    announce(fabric, "L2", metric=6, type_2=type_2)
    started(fabric)
    document = saved(fabric, "L3")
    assert all_tables(document) == live_tables(fabric)
    (route,) = [r for r in answer(document, "--root", "L2")["routes"] if r["prefix"] == PREFIX]
    assert route["connected"]


def test_the_externals_of_a_router_that_is_drained_are_used_last():
    fabric = clos3(2, 3, network=Network(seed=5))
    announce(fabric, "L1", metric=5)
    announce(fabric, "L2", metric=6)
    started(fabric)
    document = saved(fabric, "L3")
    settings = fabric.network.nodes["L1"].settings.drain()
    fabric.network.input("L1", RouterSettingsApplied(settings))
    fabric.network.run_until_quiet(60)
    assert all_tables(document, "--overload", "L1") == live_tables(fabric)


C, HOST = 0x0AC00103, 0x0AC00163
"""A router on the LAN, and a host that speaks no OSPF."""


def lan(next_hop: int) -> Fabric:
    """A and B advertise the same next hop on their LAN, at different metrics; D is behind C."""
    builder = FabricBuilder(Network(seed=7))
    for name in ("A", "B", "C", "D"):
        builder.router(name)
    builder.lan("A", "B", "C")
    builder.link("C", "D")
    fabric = builder.fabric
    for name, metric in (("A", 5), ("B", 6)):
        (port,) = (p for p in fabric.network.nodes[name].ports.values() if p.name == "lan1")
        configure(fabric, name, static(metric))
        towards = LocalRoute(((port.ifindex, next_hop),))
        fabric.network.set_local_route(name, OUTSIDE, towards)
    fabric.network.start_all()
    fabric.network.run_until_quiet(60, quiet=6)
    return fabric


@pytest.mark.parametrize("next_hop", [C, HOST])
def test_a_forwarding_address_on_a_lan(next_hop):
    fabric = lan(next_hop)
    found = all_tables(saved(fabric, "D"))
    live = live_tables(fabric)
    assert PREFIX in live[dotted(fabric.router_ids["D"])]
    assert {name: routes.get(PREFIX) for name, routes in found.items()} == {
        name: routes.get(PREFIX) for name, routes in live.items()
    }


def test_across_areas_and_from_the_border_router_that_announces():
    fabric = clos5_areas(2, 2, 2, 2, network=Network(seed=1))
    announce(fabric, "p1.S1")
    announce(fabric, "p1.L2", metric=3)
    started(fabric)
    for source, root in (("p1.S1", "p1.S1"), ("p1.S1", "p1.L1"), ("p2.L1", "p2.L1")):
        found = table(answer(saved(fabric, source), "--root", root))
        assert found[PREFIX] == live_table(fabric, root)[PREFIX]


def test_a_boundary_router_that_fails_leaves_the_other_one():
    fabric = clos3(2, 3, network=Network(seed=5))
    announce(fabric, "L1", metric=5)
    announce(fabric, "L2", metric=6)
    started(fabric)
    document = saved(fabric, "L3")
    for failed, metric in ((), 5), (("--fail-node", "L1"), 6):
        (route,) = [r for r in answer(document, *failed)["routes"] if r["prefix"] == PREFIX]
        assert (route["type"], route["metric"]) == ("external-2", metric)
