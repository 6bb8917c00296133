"""Two tiers of routers: after any failures and repairs, all agree and no route is lost."""

import random

import pytest

from fared.extensions.sim import invariants
from fared.extensions.sim.fabric import Fabric, clos3
from fared.extensions.sim.network import Network
from tests.sim.shared import fail_and_heal

pytestmark = pytest.mark.slow

SPINES = 4
LEAVES = [16, pytest.param(52, marks=pytest.mark.soak)]
"""Starting 56 routers takes half a minute, 20 of them a tenth of that."""
SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 20))]


@pytest.fixture(scope="module", params=LEAVES)
def fabric(request: pytest.FixtureRequest) -> Fabric:
    """A started fabric; every test leaves it healed."""
    fabric = clos3(SPINES, request.param, network=Network(seed=7))
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


def test_a_started_fabric_is_ready_and_its_routes_are_correct(fabric):
    assert all(router.startup.ready for router in fabric.network.routers())
    assert violations(fabric) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_routes_are_correct_after_random_failures_and_healings(fabric, seed):
    fail_and_heal(fabric, random.Random(seed), violations)
