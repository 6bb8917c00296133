"""Parallel links between the same pair of routers, told apart by nothing but their addresses."""

from fractions import Fraction

from fared.extensions.sim import invariants
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, FabricBuilder
from fared.extensions.sim.network import Network
from fared.paths.rib.settings import SolverSettings


def bundle(count: int = 8, **options) -> Fabric:
    builder = FabricBuilder(Network(seed=4), solver=SolverSettings(**options))
    for name in ("A", "B"):
        builder.router(name)
        builder.hosts(name)
    for _ in range(count):
        builder.link("A", "B")
    builder.fabric.network.start_all()
    builder.fabric.network.run_until_quiet(60)
    return builder.fabric


def weights(fabric: Fabric) -> dict[str, Fraction]:
    """A's shares toward the hosts of B, by interface."""
    route = fabric.network.nodes["A"].running.solver.routes[fabric.leaf_prefixes["B"]]
    assert route.nexthops is not None
    total = route.nexthops.total_weight
    return {hop.interface: Fraction(hop.weight, total) for hop in route.nexthops.hops}


def test_eight_parallel_links_have_equal_weights_and_seven_remain_after_a_loss():
    fabric = bundle(max_paths=8)
    assert set(weights(fabric).values()) == {Fraction(1, 8)}
    fabric.network.set_link("A", "B", up=False)
    fabric.network.run_for(0.1)
    left = weights(fabric)
    assert set(left.values()) == {Fraction(1, 7)}
    assert len(left) == 7
    fabric.network.set_link("A", "B", up=True)
    fabric.network.run_until_quiet(60)
    assert len(weights(fabric)) == 8
    assert invariants.same_databases(fabric) == []


def test_max_paths_selects_the_first_two_links_and_the_next_after_a_loss():
    fabric = bundle(max_paths=2)
    assert set(weights(fabric)) == {"B", "B.1"}
    fabric.network.set_link("A", "B", up=False)
    fabric.network.run_for(0.1)
    assert set(weights(fabric)) == {"B.1", "B.2"}


def test_the_weight_of_a_slow_parallel_link_follows_its_capacity():
    fabric = bundle(4)
    fabric.network.set_capacity("A", "B", DEFAULT_CAPACITY / 4)
    fabric.network.run_for(2.0)
    slow = Fraction(1, 13)
    assert weights(fabric) == {"B": slow, **{f"B.{n}": Fraction(4, 13) for n in (1, 2, 3)}}
