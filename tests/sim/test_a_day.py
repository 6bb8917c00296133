"""Failures all day long on the virtual clock: after each hour all is right, memory levels off."""

import gc
import random
from pathlib import Path

import pytest

from fared.extensions.sim import invariants
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, clos3
from fared.extensions.sim.network import Network
from tests.sim.shared import mend

pytestmark = pytest.mark.slow

HOUR = 3600.0
EVERY = 22.0
"""Seconds between two events: 24 hours have 3,900."""
FILLED = 4
"""Hours until the journals of all routers are full."""
ROUTERS = [f"S{n}" for n in range(1, 5)] + [f"L{n}" for n in range(1, 9)]
DAYS = [
    (2, 150.0),
    pytest.param(24, HOUR, marks=(pytest.mark.soak, pytest.mark.timeout(7200))),
]


def resident() -> int:
    """Memory of this process, bytes."""
    gc.collect()
    words = Path("/proc/self/statm").read_text().split()
    return int(words[1]) << 12


def disturb(fabric: Fabric, rng: random.Random, dead: set[str]) -> None:
    """One event: a link fails, heals or has another capacity, a router dies or comes back."""
    network = fabric.network
    spine, leaf = rng.choice(ROUTERS[:4]), rng.choice(ROUTERS[4:])
    match rng.randrange(8):
        case 0 if len(dead) < 2:
            name = rng.choice([name for name in ROUTERS if name not in dead])
            network.kill(name)
            dead.add(name)
        case 0 | 1 if dead:
            name = rng.choice(sorted(dead))
            dead.remove(name)
            network.start(name)
        case 2 | 3:
            network.set_capacity(spine, leaf, DEFAULT_CAPACITY * rng.choice((0.1, 0.25, 0.5, 1)))
        case 4 | 5:
            network.set_link(spine, leaf, up=False)
        case _:
            network.set_link(spine, leaf, up=True)


def violations(fabric: Fabric) -> list[str]:
    return [
        *invariants.same_databases(fabric),
        *invariants.shortest_path_forwarding(fabric),
        *invariants.proportional_weights(fabric),
    ]


@pytest.mark.parametrize(("periods", "seconds"), DAYS, ids=["minutes", "day"])
def test_after_each_hour_of_random_failures_nothing_is_violated(periods: int, seconds: float):
    fabric = clos3(4, 8, network=Network(seed=24))
    fabric.network.start_all()
    fabric.network.run_until_quiet(120)
    rng, dead, count, sizes = random.Random(24), set[str](), 0, [resident()]
    for _ in range(periods):
        end = fabric.network.now + seconds
        while fabric.network.now < end:
            disturb(fabric, rng, dead)
            count += 1
            fabric.network.run_for(rng.uniform(0, 2 * EVERY))
        for name in sorted(dead):
            fabric.network.start(name)
        dead.clear()
        mend(fabric)
        assert violations(fabric) == []
        sizes.append(resident())
    told = ", ".join(f"{size / 1e6:.1f}" for size in sizes)
    print(f"\n{count} events, {fabric.network.now / HOUR:.1f} h; MB: {told}")  # noqa: T201
    if periods > FILLED:
        assert sizes[-1] < 1.02 * sizes[FILLED]
