"""The same stillness with hundreds of routers: what holds in twelve must not depend on them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric
from fared.extensions.sim.levels import clos3_isis, clos5_levels
from fared.extensions.sim.load import Demands, Traffic
from fared.extensions.sim.watch import Watch
from fared.paths.rib.settings import SolverSettings
from fared.paths.weights.adaptation import AdaptationSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.router import events

JOB = 16
"""Leaves that a job is spread over; all others only route."""
UPLINKS = 4 * DEFAULT_CAPACITY
DAMPED, UNDAMPED = AdaptationSettings(), AdaptationSettings(time_constant=0.0)

FABRICS: dict[str, tuple[Callable[[], Fabric], str]] = {
    "3-stage-40": (lambda: clos3_isis(4, 36), "S1"),
    "5-stage-40": (lambda: clos5_levels(2, 8, 4, 4), "p2.S1"),
    "3-stage-200": (lambda: clos3_isis(4, 196), "S1"),
    "5-stage-208": (lambda: clos5_levels(12, 10, 4, 10), "p2.S1"),
}
"""Over IS-IS: a flat OSPF area of two hundred routers takes longer to start than all the rest."""


def follow(fabric: Fabric, adaptation: AdaptationSettings | None) -> None:
    """Have all routers follow load from now on, None: capacities, as a reload does."""
    solver = SolverSettings()
    if adaptation is not None:
        solver = SolverSettings(mode=WeightMode.AVAILABLE, adaptation=adaptation)
    for name, node in fabric.network.nodes.items():
        changed = replace(node.running.settings, solver=solver)
        fabric.network.input(name, events.RouterSettingsApplied(changed))


def job(fabric: Fabric) -> Demands:
    """All-to-all at 60 % of the uplinks."""
    leaves = list(fabric.leaf_prefixes)[:JOB]
    rate = 0.6 * UPLINKS / (len(leaves) - 1)
    return {(a, fabric.leaf_prefixes[b]): rate for a in leaves for b in leaves if a != b}


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("name", FABRICS)
def test_background_load_is_avoided_without_oscillating(name: str):
    """Half of a spine is taken: by capacity 1.1, by load below 0.9 and still; undamped it
    swings."""
    build, spine = FABRICS[name]
    fabric = build()
    fabric.network.start_all()
    fabric.network.run_until_quiet(120)
    ends = [(a, b) for a, b in fabric.links if spine in (a, b)]
    half = {way: DEFAULT_CAPACITY / 2 for a, b in ends for way in ((a, b), (b, a))}
    traffic = Traffic(fabric, job(fabric), background=half)
    assert max(traffic.utilisation().values()) > 1.05

    traffic.start()
    follow(fabric, DAMPED)
    Watch(traffic).run(90)
    seen = Watch(traffic).run(300)
    assert seen.highest < 0.9
    assert seen.overflow == 0
    assert seen.spread < 3
    assert seen.rewrites < 0.2
    assert seen.advertised < 0.05

    # What stands still at the very balance needs a push.
    follow(fabric, None)
    Watch(traffic).run(1)
    follow(fabric, UNDAMPED)
    Watch(traffic).run(3)
    seen = Watch(traffic).run(10)
    assert seen.swing > 10
    assert seen.rewrites > 0.2
    assert seen.highest > 1
