"""The synthetic fabric of the benchmark behaves as a real one: speakers, LSAs, LSPs, events."""

import pytest

from bench.beside.beside import _prepare
from bench.neighbors.fabric import Fabric
from bench.neighbors.leaf import Leaf
from fared.paths.weights.path_capacity import WeightMode

SPINES, LEAVES = 3, 5


def started(protocol: str) -> Leaf:
    fabric = Fabric(SPINES, LEAVES, te=True)
    fabric.originate()
    fabric.describe()
    return Leaf(fabric, WeightMode.CAPACITY, SPINES, protocol)


def happens(leaf: Leaf, kind: str, link: tuple[int, int]) -> None:
    _prepare(leaf, kind, link)()
    leaf.run(1)


@pytest.mark.parametrize("protocol", ["ospf", "isis"])
def test_a_leaf_learns_the_fabric_and_follows_every_event(protocol):
    leaf = started(protocol)
    leaf.run(16)
    assert all(speaker.full for speaker in leaf.speakers.values())
    even = leaf.weights(4)
    assert sorted(even) == ["s0", "s1", "s2"]
    assert len(set(even.values())) == 1

    happens(leaf, "cut", (1, 4))
    assert sorted(leaf.weights(4)) == ["s0", "s2"]
    happens(leaf, "restore", (1, 4))
    assert leaf.weights(4) == even
    happens(leaf, "metric", (2, 4))
    assert sorted(leaf.weights(4)) == ["s0", "s1"]
    happens(leaf, "metric back", (2, 4))
    happens(leaf, "capacity", (1, 4))
    slow = leaf.weights(4)
    assert slow["s1"] * 2 == slow["s0"] == slow["s2"]
    assert leaf.weights(3) == even
    happens(leaf, "capacity back", (1, 4))
    assert leaf.weights(4) == even
