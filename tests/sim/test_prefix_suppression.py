"""Fabrics whose networks between routers are not advertised: who is reached, and over what."""

from __future__ import annotations

from fractions import Fraction

import pytest
from msgspec.structs import replace

from fared.core.ids import Prefix, parse_prefix
from fared.extensions.sim import invariants, level_invariants
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, LOOPBACKS6, Fabric, FabricBuilder, clos3
from fared.extensions.sim.levels import COMMON
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import IsisBuilder, OspfBuilder
from tests.api.answers import run_view
from tests.api.seen import seen_from

LAN = parse_prefix("10.192.1.0/24")
SPINES, LEAVES = 4, 8


def started(fabric: Fabric, quiet: float = 1.0) -> Fabric:
    fabric.network.start_all()
    fabric.network.run_until_quiet(120, quiet=quiet)
    return fabric


def suppress(fabric: Fabric) -> None:
    """What a reload of every router does: the settings of its links to others change in place."""
    for a, b in fabric.links:
        for name, toward in ((a, b), (b, a)):
            port = fabric.network.find_port(name, toward)
            for proto, settings in port.settings.items():
                port.settings[proto] = replace(settings, prefix_suppression=True)
            fabric.network.set_capacity(name, toward, port.capacity)
    fabric.network.run_until_quiet(60)


@pytest.fixture(scope="module", params=["ospf", "isis"])
def quiet(request: pytest.FixtureRequest) -> Fabric:
    """4 spines and 8 leaves, reloaded to advertise loopbacks and the networks of hosts only.

    A leaf held 46 routes before; over IS-IS 18 of IPv6 too, where links have no networks. The
    reload ends no adjacency.
    """
    isis = request.param == "isis"
    speaker = IsisBuilder(COMMON) if isis else OspfBuilder()
    builder = FabricBuilder(Network(seed=7), protocols=[speaker])
    fabric = started(clos3(SPINES, LEAVES, builder=builder))
    assert len(installed(fabric, "L1")) == (46 + 18 if isis else 46)
    suppress(fabric)
    assert flaps(fabric) == [0] * 2 * SPINES * LEAVES
    return fabric


def flaps(fabric: Fabric) -> list[int]:
    """How often each end of each link lost its neighbor."""
    return [
        row["flaps"]
        for name in fabric.network.nodes
        for row in run_view(seen_from(fabric, name), "show neighbors", {})["neighbors"]
    ]


def installed(fabric: Fabric, name: str) -> set[Prefix]:
    return set(fabric.network.nodes[name].kernel.state.routes)


def wanted(fabric: Fabric, name: str) -> set[Prefix]:
    """Loopbacks and networks of hosts of all other routers."""
    six = bool(fabric.leaf_prefixes6)
    found = set()
    for other, router_id in fabric.router_ids.items():
        if other == name:
            continue
        found.add(Prefix(4, router_id, 32))
        if six:
            found.add(Prefix(6, LOOPBACKS6 | router_id, 128))
        for prefixes in (fabric.leaf_prefixes, fabric.leaf_prefixes6):
            found.update(prefix for leaf, prefix in prefixes.items() if leaf == other)
    return found


def violations(fabric: Fabric) -> list[str]:
    if fabric.leaf_prefixes6:
        return level_invariants.violations(fabric)
    return [*invariants.same_databases(fabric), *invariants.shortest_path_forwarding(fabric)]


def test_every_router_has_routes_to_loopbacks_and_hosts_and_nothing_else(quiet: Fabric):
    assert violations(quiet) == []
    for name in quiet.network.nodes:
        assert installed(quiet, name) == wanted(quiet, name)


def test_a_leaf_holds_18_routes_of_a_family_instead_of_46(quiet: Fabric):
    families = 2 if quiet.leaf_prefixes6 else 1
    assert len(installed(quiet, "L1")) == 18 * families


def test_weights_and_failures_are_as_in_any_fabric(quiet: Fabric):
    """A slow link is weighed from afar, a dead one left; nothing of the link itself is routed."""
    network = quiet.network
    network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    network.run_until_quiet(60)
    shares = invariants.forwarding(quiet, quiet.leaf_prefixes["L2"])["L1"]
    assert shares == {"S1": Fraction(1, 13), **{f"S{n}": Fraction(4, 13) for n in (2, 3, 4)}}
    network.set_link("S1", "L2", up=False)
    network.run_until_quiet(60)
    assert violations(quiet) == []
    assert installed(quiet, "L1") == wanted(quiet, "L1")
    network.set_link("S1", "L2", up=True)
    network.set_capacity("S1", "L2", DEFAULT_CAPACITY)
    network.run_until_quiet(60)
    assert violations(quiet) == []


def test_routers_on_and_behind_a_lan_are_reached_without_a_route_to_the_lan():
    builder = FabricBuilder(Network(seed=2), prefix_suppression=True)
    for name in ("R1", "R2", "R3", "R4"):
        builder.router(name)
        builder.hosts(name)
    builder.lan("R1", "R2", "R3")
    builder.link("R1", "R4")
    fabric = started(builder.fabric, quiet=6.0)
    assert violations(fabric) == []
    for name in fabric.network.nodes:
        assert installed(fabric, name) == wanted(fabric, name)
        assert LAN not in fabric.network.nodes[name].running.solver.routes
