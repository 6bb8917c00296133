"""56 routers in two tiers: after any failures and healings everybody agrees and nothing is lost."""

import random

import pytest

from fared.sim import invariants
from fared.sim.fabric import DEFAULT_CAPACITY, Fabric, clos3
from fared.sim.network import Network

SPINES, LEAVES = 4, 52
SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 20))]


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """A started fabric; every test leaves it healed."""
    fabric = clos3(SPINES, LEAVES, network=Network(seed=7))
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    return fabric


def violations(fabric: Fabric) -> list[str]:
    """All invariants, read from the databases and the simulated kernels."""
    return [
        *invariants.same_databases(fabric),
        *invariants.shortest_path_forwarding(fabric),
        *invariants.proportional_weights(fabric),
    ]


def test_a_fresh_fabric_is_ready_and_right(fabric):
    assert all(router.startup.ready for router in fabric.network.routers())
    assert violations(fabric) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_random_failures_and_healings_end_well(fabric, seed):
    """Links die, degrade and come back at random moments, some while others still converge."""
    network, dice = fabric.network, random.Random(seed)
    dead = dice.sample(fabric.links, dice.randint(1, 5))
    slow = [link for link in dice.sample(fabric.links, 4) if link not in dead]
    for leaf, spine in dead:
        network.set_link(leaf, spine, up=False)
        network.run_for(dice.choice((0.0, 0.001, 0.02, 0.3)))
    for leaf, spine in slow:
        ends = (leaf, spine) if dice.random() < 0.5 else (spine, leaf)
        network.set_capacity(*ends, DEFAULT_CAPACITY / dice.choice((2, 4, 8)))
    network.run_until_quiet(60)
    assert violations(fabric) == []

    for leaf, spine in dead:
        network.set_link(leaf, spine, up=True)
        network.run_for(dice.choice((0.0, 0.001, 0.02, 0.3)))
    for leaf, spine in slow:
        network.set_capacity(leaf, spine, DEFAULT_CAPACITY)
        network.set_capacity(spine, leaf, DEFAULT_CAPACITY)
    network.run_until_quiet(60)
    assert violations(fabric) == []
