"""Routers on a LAN among point-to-point links: forwarding, weights, and the loss of who leads
it."""

from fractions import Fraction

import pytest

from fared.core.ids import parse_prefix
from fared.extensions.sim import invariants
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, FabricBuilder
from fared.extensions.sim.network import Network

MEMBERS = ("R1", "R2", "R3", "R4")
LAN = parse_prefix("10.192.1.0/24")


def started(**options) -> Fabric:
    """R1 to R4 on a LAN; R5 hangs on R1 and R2."""
    builder = FabricBuilder(Network(seed=2, **options))
    for name in (*MEMBERS, "R5"):
        builder.router(name)
        builder.hosts(name)
    builder.lan(*MEMBERS)
    builder.link("R1", "R5")
    builder.link("R2", "R5")
    builder.fabric.network.start_all()
    builder.fabric.network.run_until_quiet(120, quiet=6.0)
    return builder.fabric


def violations(fabric: Fabric) -> list[str]:
    return [*invariants.same_databases(fabric), *invariants.shortest_path_forwarding(fabric)]


def shares(fabric: Fabric, name: str, toward: str) -> dict[str, Fraction]:
    return invariants.forwarding(fabric, fabric.leaf_prefixes[toward])[name]


def test_everybody_forwards_along_shortest_paths_through_the_lan():
    fabric = started()
    assert violations(fabric) == []
    assert shares(fabric, "R3", "R1") == {"R1": 1}
    assert shares(fabric, "R3", "R5") == {"R1": Fraction(1, 2), "R2": Fraction(1, 2)}


def test_start_up_ends_as_soon_as_the_lan_is_settled():
    """Two routers that serve no LAN stay in 2-Way: nobody waits for more."""
    fabric = started()
    for router in fabric.network.routers():
        assert router.startup.ready
        assert max(router.startup.reached.values()) < 41


def test_the_subnet_of_the_lan_is_connected_for_its_members_and_routed_for_others():
    fabric = started()
    routers = fabric.network.nodes
    assert routers["R1"].running.solver.routes[LAN].nexthops is None
    far = routers["R5"].running.solver.routes[LAN]
    assert far.nexthops is not None
    assert {hop.interface for hop in far.nexthops.hops} == {"R1", "R2"}


def test_what_a_router_can_send_into_the_lan_bounds_the_paths_through_it():
    """R1 has a quarter of the others' rate on the LAN: R5 sends 1 of 5 its way."""
    fabric = started()
    fabric.network.set_capacity("R1", "R3", DEFAULT_CAPACITY / 4)
    fabric.network.run_for(2.0)
    assert shares(fabric, "R5", "R3") == {"R1": Fraction(1, 5), "R2": Fraction(4, 5)}


@pytest.mark.parametrize("lost", ["R3", "R4"])
def test_a_designated_router_that_loses_its_link_is_replaced(lost):
    """R4 is designated, R3 its backup."""
    fabric = started()
    network = fabric.network
    network.set_link(lost, "R1", up=False)
    network.run_until_quiet(60, quiet=6.0)
    rest = [name for name in MEMBERS if name != lost]
    for name in rest:
        assert shares(fabric, name, "R1" if name != "R1" else "R2")
        assert lost not in invariants.forwarding(fabric, fabric.leaf_prefixes[lost])
    assert violations(fabric) == []
    network.set_link(lost, "R1", up=True)
    network.run_until_quiet(60, quiet=6.0)
    assert violations(fabric) == []


def test_databases_on_a_lan_become_equal_although_packets_are_lost():
    fabric = started(loss=0.05)
    fabric.network.set_capacity("R1", "R3", DEFAULT_CAPACITY / 2)
    fabric.network.run_until_quiet(120, quiet=11.0)
    assert invariants.same_databases(fabric) == []
