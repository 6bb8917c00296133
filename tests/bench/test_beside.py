"""The synthetic fabric of the benchmark behaves as a real one: speakers, LSAs, LSPs, events."""

import pytest

from bench.beside import _prepare
from bench.beside_fabric import Fabric
from bench.leaf import Leaf
from fared.core.ids import ipv4_prefix
from fared.paths.weights.path_capacity import WeightMode

SPINES, LEAVES = 3, 5


def joined(protocol: str) -> Leaf:
    """Leaf 0, a real router, with all spines as neighbors."""
    fabric = Fabric(SPINES, LEAVES, te=True)
    fabric.originate()
    fabric.describe()
    leaf = Leaf(fabric, WeightMode.CAPACITY, SPINES, protocol)
    leaf.run(16)
    return leaf


def weights(leaf: Leaf, number: int) -> dict[str, int]:
    """Next hops of the route to the network of a leaf, with their weights."""
    prefix = ipv4_prefix(leaf.fabric.host_network(number), 24)
    nexthops = leaf.router.solver.routes[prefix].nexthops
    return {hop.interface: hop.weight for hop in nexthops.hops}


def happens(leaf: Leaf, kind: str, link: tuple[int, int]) -> None:
    _prepare(leaf, kind, link)()
    leaf.run(1)


@pytest.mark.parametrize("protocol", ["ospf", "isis"])
def test_a_leaf_learns_the_fabric_and_follows_every_event(protocol):
    leaf = joined(protocol)
    assert all(speaker.full for speaker in leaf.speakers.values())
    even = weights(leaf, 4)
    assert sorted(even) == ["s0", "s1", "s2"]
    assert len(set(even.values())) == 1

    happens(leaf, "cut", (1, 4))
    assert sorted(weights(leaf, 4)) == ["s0", "s2"]
    happens(leaf, "restore", (1, 4))
    assert weights(leaf, 4) == even
    happens(leaf, "metric", (2, 4))
    assert sorted(weights(leaf, 4)) == ["s0", "s1"]
    happens(leaf, "metric back", (2, 4))
    happens(leaf, "capacity", (1, 4))
    slow = weights(leaf, 4)
    assert slow["s1"] * 2 == slow["s0"] == slow["s2"]
    assert weights(leaf, 3) == even
    happens(leaf, "capacity back", (1, 4))
    assert weights(leaf, 4) == even
