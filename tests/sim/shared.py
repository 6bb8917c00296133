"""Fabrics that the tests of a module share: to start one takes longer than most tests."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric


def mend(fabric: Fabric) -> None:
    """Restore every link at its full capacity, and wait until the fabric has converged."""
    network = fabric.network
    for a, b in fabric.links:
        for one, other in ((a, b), (b, a)):
            port = network.find_port(one, other)
            if not port.admin_up:
                network.set_link(one, other, up=True)
            if port.capacity != DEFAULT_CAPACITY:
                network.set_capacity(one, other, DEFAULT_CAPACITY)
    network.run_until_quiet(60)


def fail_and_heal(fabric: Fabric, dice: Random, violations: Callable[[Fabric], list[str]]) -> None:
    """Fail, degrade and restore links at random times, some before the fabric has converged.

    No invariant is violated after convergence, neither with failures nor after all repairs.
    """
    network = fabric.network
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
    mend(fabric)
    assert violations(fabric) == []
