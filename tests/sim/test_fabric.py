"""The seed's Figure 1 on a virtual clock: tests of a whole fabric of routers."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import pytest

from fared.extensions.sim import invariants
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, clos3, clos5
from fared.extensions.sim.network import Network
from fared.paths.fib.model import PutGroup, PutRoute
from fared.protocols.igp import events as igp
from fared.router import events
from tests.sim.shared import mend

pytestmark = pytest.mark.slow


def started(seed: int = 1, leaves: int = 4, **options) -> Fabric:
    fabric = clos3(4, leaves, network=Network(seed=seed, **options))
    fabric.network.start_all()
    fabric.network.run_until_quiet(120)
    return fabric


@pytest.fixture(scope="module")
def one_for_all() -> Fabric:
    return started(leaves=8)


@pytest.fixture
def shared(one_for_all: Fabric) -> Iterator[Fabric]:
    """The figure, shared; whatever a test did to its links is mended."""
    yield one_for_all
    mend(one_for_all)


def shares(fabric: Fabric, leaf: str, toward: str) -> dict[str, Fraction]:
    return invariants.forwarding(fabric, fabric.leaf_prefixes[toward])[leaf]


def watch_writes(fabric: Fabric, name: str) -> Counter:
    """Count what a node writes to its kernel from now on."""
    kernel, writes = fabric.network.nodes[name].kernel, Counter()
    apply = kernel.apply

    def counting(operations):
        writes.update(type(operation).__name__ for operation in operations)
        return apply(operations)

    kernel.apply = counting
    return writes


def test_the_parts_of_the_budget_of_announcements_add_up(shared):
    """Of the ends that routers found in their graphs: all 32 links, from both ends."""
    engines = [router.instances["ospf"].engine for router in shared.network.routers()]
    budgets = [budget for engine in engines for budget in engine.budgets.values()]
    assert {budget.ends.shared[1] for budget in budgets} == {64}
    assert sum(budget.ends.shared[0] for budget in budgets) == 64


def test_adjacencies_form_in_milliseconds_and_every_prefix_has_four_next_hops(shared):
    fabric = shared
    for router in fabric.network.routers():
        assert router.startup.ready
        assert all(seconds < 0.3 for seconds in router.startup.reached.values())
    assert shares(fabric, "L1", "L2") == {f"S{i}": Fraction(1, 4) for i in range(1, 5)}
    assert invariants.same_databases(fabric) == []
    assert invariants.shortest_path_forwarding(fabric) == []


def test_a_link_at_a_quarter_makes_every_other_leaf_weigh_1_4_4_4_without_spf(shared):
    fabric = shared
    runs = [router.journal.counts["spf"] for router in fabric.network.routers()]
    fabric.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    fabric.network.run_for(1.0)
    wanted = {"S1": Fraction(1, 13), **{f"S{i}": Fraction(4, 13) for i in (2, 3, 4)}}
    for leaf in ("L1", "L3", "L4", "L5", "L6", "L7", "L8"):
        assert shares(fabric, leaf, "L2") == wanted
        assert shares(fabric, leaf, "L1" if leaf != "L1" else "L3")["S1"] == Fraction(1, 4)
    assert [router.journal.counts["spf"] for router in fabric.network.routers()] == runs


def test_a_capacity_change_rewrites_one_group_and_no_route():
    """The first divergence of one destination splits a shared group, once; then groups only."""
    fabric = started()
    fabric.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    fabric.network.run_for(1.0)
    writes = watch_writes(fabric, "L1")
    fabric.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 2)
    fabric.network.run_for(1.0)
    assert writes == {PutGroup.__name__: 1}
    fabric.network.set_capacity("L1", "S3", DEFAULT_CAPACITY / 8)  # concerns all its routes
    fabric.network.run_for(1.0)
    assert PutRoute.__name__ not in writes


def test_a_group_is_shared_by_all_routes_with_its_weights():
    fabric = started()
    fabric.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    fabric.network.run_for(30.0)
    state = fabric.network.nodes["L1"].kernel.state
    assert len(state.groups) == len(set(state.groups.values())) == 2


def test_routes_leave_a_failed_link_at_once_and_return_after_it_heals(shared):
    fabric = shared
    fabric.network.set_link("S1", "L2", up=False)
    fabric.network.run_for(0.05)
    assert "S1" not in shares(fabric, "L5", "L2")
    fabric.network.set_link("S1", "L2", up=True)
    fabric.network.run_for(0.5)
    assert shares(fabric, "L5", "L2")["S1"] == Fraction(1, 4)
    fabric.network.run_until_quiet(60)
    assert invariants.same_databases(fabric) == []


def test_a_killed_router_leaves_its_routes_and_adopts_them_unchanged_when_it_returns():
    fabric = started()
    network = fabric.network
    network.run_for(6.0)  # after which unused groups are gone
    network.kill("L1")
    network.run_for(1.0)
    before = network.nodes["L1"].kernel.dump()
    assert before.routes
    writes = watch_writes(fabric, "L1")
    network.start("L1")
    network.run_until_quiet(60)
    assert network.nodes["L1"].running.startup.ready
    assert writes == {}
    assert network.nodes["L1"].kernel.dump() == before


def test_stale_routes_are_swept_only_after_the_last_adjacency_is_full():
    fabric = started()
    network = fabric.network
    network.kill("L1")
    network.kill("L4")
    network.run_for(10.0)  # L4 is unreachable for the others, L1 still routes to it
    stale = fabric.leaf_prefixes["L4"]
    kernel = network.nodes["L1"].kernel
    network.start("L1")
    assert stale in kernel.state.routes
    router = network.nodes["L1"].running
    while stale in kernel.state.routes:
        full = router.progress().full
        network.run_for(0.0005)
        assert network.now < 60
    assert full == 4 or router.progress().full == 4


def test_a_clean_exit_removes_all_routes():
    fabric = started()
    network = fabric.network
    network.input("S1", igp.ShutdownRequested())
    network.run_for(0.3)
    assert "S1" not in shares(fabric, "L1", "L2")
    network.input("S1", events.WithdrawRequested())
    state = network.nodes["S1"].kernel.dump()
    assert not state.routes
    assert not state.groups
    assert not state.nexthops


@pytest.mark.parametrize("seed", [1, 2])
def test_databases_become_equal_while_a_tenth_of_all_packets_is_lost(seed):
    fabric = started(seed, loss=0.1)
    fabric.network.set_link("S2", "L3", up=False)
    fabric.network.set_capacity("S1", "L2", DEFAULT_CAPACITY / 4)
    fabric.network.run_until_quiet(120)
    assert invariants.same_databases(fabric) == []
    assert invariants.shortest_path_forwarding(fabric) == []
    assert invariants.proportional_weights(fabric) == []


def test_the_same_seed_gives_the_same_run():
    first, second = started(5, loss=0.05), started(5, loss=0.05)
    assert first.network.counts == second.network.counts
    assert [r.journal.counts for r in first.network.routers()] == [
        r.journal.counts for r in second.network.routers()
    ]


def test_five_stages_in_one_flat_area_see_damage_in_the_far_pod():
    """Example E5: p2.S1 -> p2.L1 at 100 of 400 Gbit/s is seen by p1.L1 as 100,400,400,400."""
    fabric = clos5(2, 2, 4, 2, network=Network(seed=3))
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    fabric.network.set_capacity("p2.S1", "p2.L1", DEFAULT_CAPACITY / 4)
    fabric.network.run_until_quiet(60)
    assert shares(fabric, "p1.L1", "p2.L1") == {
        "p1.S1": Fraction(1, 13),
        **{f"p1.S{i}": Fraction(4, 13) for i in (2, 3, 4)},
    }
    assert invariants.shortest_path_forwarding(fabric) == []
