"""Weights of BGP are those of OSPF and IS-IS, which the same routers run on the same links.

In three stages, links slow in both directions alike: BGP tells what a link carries as its sender
knows it, whichever way traffic goes.
"""

from __future__ import annotations

import random

import pytest

from fared.extensions.sim.fabric import Fabric
from tests.bgp.fabrics import GBPS, slow, speakers, started, weights

RATES = (100, 200, 400)
SLOW = (10, 25, 100, 333)


def generated(seed: int, spines: int, leaves: int) -> Fabric:
    """Each leaf has one or two links to each spine; a third of the pairs is slower."""
    dice = random.Random(seed)
    builder = speakers(seed, igps=True)
    names = [f"S{at + 1}" for at in range(spines)], [f"L{at + 1}" for at in range(leaves)]
    builder.routers([*names[0], *names[1]])
    for leaf in names[1]:
        builder.hosts(leaf)
        for spine in names[0]:
            for _ in range(dice.choice((1, 1, 1, 2))):
                builder.link(leaf, spine, dice.choice(RATES) * GBPS)
    for leaf, spine in builder.fabric.links:
        if dice.random() < 1 / 3:
            slow(builder.fabric, leaf, spine, dice.choice(SLOW))
    return builder.fabric


def differences(fabric: Fabric) -> list[str]:
    """Where the weights of a leaf, or of a spine with a link to the other one, differ."""
    found = []
    for name, node in fabric.network.nodes.items():
        near = {end.node for port in node.ports.values() if port.up for end in port.far}
        for leaf, prefix in fabric.leaf_prefixes.items():
            if name == leaf or (name not in fabric.leaf_prefixes and leaf not in near):
                continue
            wanted = weights(fabric, name, "ospf", prefix)
            told = weights(fabric, name, "bgp", prefix)
            prefix6 = fabric.leaf_prefixes6[leaf]
            told6 = weights(fabric, name, "bgp", prefix6)
            if not wanted == told == weights(fabric, name, "isis", prefix):
                found.append(f"{name} to {leaf}: {told}, not {wanted}")
            if told6 != weights(fabric, name, "isis", prefix6):
                found.append(f"{name} to {leaf} over IPv6: {told6}")
    return found


def lasting(fabric: Fabric) -> list[str]:
    """Differences that remain: BGP tells a change of less than 3 % after ten seconds, at each
    of three routers."""
    fabric.network.run_until_quiet(60, quiet=0.6)
    if differences(fabric):
        fabric.network.run_for(36.0)
    return differences(fabric)


def fail_each_link(fabric: Fabric) -> None:
    assert lasting(fabric) == []
    network = fabric.network
    for leaf, spine in dict.fromkeys(fabric.links):
        network.set_link(leaf, spine, up=False)
        assert lasting(fabric) == [], f"without {leaf} {spine}"
        network.set_link(leaf, spine, up=True)
        assert lasting(fabric) == [], f"with {leaf} {spine} again"


def test_a_random_fabric_with_any_link_down():
    fail_each_link(started(generated(1, 3, 2)))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3, 53))
def test_fifty_random_fabrics_with_any_link_down(seed):
    dice = random.Random(seed)
    fail_each_link(started(generated(seed, dice.randint(2, 5), dice.randint(2, 6))))
