"""Weights of BGP are those of OSPF and IS-IS, which the same routers run on the same links.

In three stages, and in five with planes, detours aside. Links are slow in one direction or both:
each router takes the minimum with its own one.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from fared.core.ids import Prefix
from fared.extensions.sim.fabric import Fabric
from fared.protocols.bgp.packet.attributes import AsPath
from tests.bgp.fabrics import GBPS, clos5, engine, slow, speakers, started, weights

RATES = (100, 200, 400)
SLOW = (10, 25, 100, 333)
WAYS = ((True,), (False,), (True, False))
"""Directions of a link that are slow."""


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
            for ends in dice.choice(WAYS):
                pair = (leaf, spine) if ends else (spine, leaf)
                builder.fabric.network.set_capacity(*pair, dice.choice(SLOW) * GBPS)
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


def lasting(fabric: Fabric, differing: Callable[[Fabric], list[str]] = differences) -> list[str]:
    """Differences that remain: BGP tells a change of less than 3 % after ten seconds, at each
    of three routers."""
    fabric.network.run_until_quiet(60, quiet=0.6)
    if differing(fabric):
        fabric.network.run_for(36.0)
    return differing(fabric)


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


TIERS = (("p2.S1", "p2.L1"), ("p2.S1", "SS1.1"), ("p1.S1", "SS1.2"), ("p1.L1", "p1.S1"))
"""A link of each tier: of the leaf that traffic goes to, then against its direction."""


def usual_hops(name: str, leaf: str) -> int:
    """How far a leaf is in an undamaged fabric; more is a detour, down and up again.

    Of detours the weights may differ: their paths share more than whole routers.
    """
    if name.startswith("SS"):
        return 2
    same_pod = name.partition(".")[0] == leaf.partition(".")[0]
    return (1 if same_pod else 3) + (".L" in name)


def hops(fabric: Fabric, name: str, prefix: Prefix) -> int:
    """How many AS numbers the path in use has."""
    paths = engine(fabric, name).instance.ribs[4].paths(prefix)
    found = [one.path.attributes.find(AsPath) for one in paths]
    return min([one.length for one in found if one is not None], default=0)


def all_differences(fabric: Fabric) -> list[str]:
    """Where weights differ, of routers without a detour."""
    found = []
    for name in fabric.network.nodes:
        for leaf, prefix in fabric.leaf_prefixes.items():
            if name == leaf or hops(fabric, name, prefix) != usual_hops(name, leaf):
                continue
            wanted = weights(fabric, name, "ospf", prefix)
            told = weights(fabric, name, "bgp", prefix)
            if wanted != told:
                found.append(f"{name} to {leaf}: {told}, not {wanted}")
    return found


@pytest.fixture(scope="module")
def five_stages() -> Fabric:
    return started(clos5(speakers(1, igps=True), (2, 1, 2, 2)))


@pytest.mark.parametrize("link", TIERS)
def test_a_slow_link_of_any_tier_of_five_stages_and_its_loss(five_stages, link):
    network = five_stages.network
    slow(five_stages, *link, 25)
    network.run_until_quiet(60, quiet=0.6)
    assert all_differences(five_stages) == []
    assert (
        weights(five_stages, "p1.L1", "bgp", five_stages.leaf_prefixes["p2.L1"])
        == {
            ("p2.S1", "p2.L1"): {"p1.S1": 1, "p1.S2": 16},
            ("p2.S1", "SS1.1"): {"p1.S1": 1, "p1.S2": 1},
            ("p1.S1", "SS1.2"): {"p1.S1": 1, "p1.S2": 1},
            ("p1.L1", "p1.S1"): {"p1.S1": 1, "p1.S2": 16},
        }[link]
    )
    network.set_link(*link, up=False)
    network.run_until_quiet(60, quiet=0.6)
    assert all_differences(five_stages) == []
    network.set_link(*link, up=True)
    slow(five_stages, *link, 400)
    network.run_until_quiet(60, quiet=0.6)
    assert all_differences(five_stages) == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(50))
def test_fifty_random_fabrics_of_five_stages_with_any_link_down(seed):
    dice = random.Random(seed)
    rate = lambda: dice.choice(SLOW if dice.random() < 1 / 3 else RATES)  # noqa: E731
    sizes = (dice.randint(2, 3), dice.randint(1, 2), dice.randint(2, 3), dice.randint(1, 3))
    fabric = started(clos5(speakers(seed, igps=True), sizes, rate))
    assert all_differences(fabric) == []
    network = fabric.network
    for link in dict.fromkeys(fabric.links):
        network.set_link(*link, up=False)
        assert lasting(fabric, all_differences) == [], f"without {link}"
        network.set_link(*link, up=True)
    assert lasting(fabric, all_differences) == []
