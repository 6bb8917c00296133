"""The weakest pair that a router shows is the planner's, and networkx's."""

import random

import numpy as np
import pytest

from fared.extensions.offline.plan.sweep import capacities
from fared.management.documents.sliced import finished
from fared.paths.spf import search
from fared.paths.weights import pairs
from fared.paths.weights.pairs import PairCapacities, all_pairs
from tests.plan.networks import anything, clos, max_flow, network, pods


def of(fabric):
    found = PairCapacities()
    assert finished(all_pairs(fabric.graph, fabric.ends, found))
    return found


def planned(fabric):
    """The capacities of all pairs by the planner."""
    values = np.round(capacities(fabric))
    return values[~np.eye(len(values), dtype=bool)]


@pytest.mark.parametrize("seed", range(40))
def test_of_any_network_it_is_the_planners(seed):
    fabric = anything(random.Random(seed))
    found, expected = of(fabric), planned(fabric)
    assert found.least == expected.min()
    assert (found.alike, found.pairs) == ((expected == expected.min()).sum(), len(expected))
    tail, head = (fabric.names[fabric.graph.index(end)] for end in found.ends)
    ends = [fabric.names[end] for end in fabric.ends.tolist()]
    assert round(capacities(fabric)[ends.index(tail), ends.index(head)]) == found.least
    if found.usual is not None:
        assert 2 * (expected == found.usual).sum() > len(expected)


def slowed(fabric, *links):
    """Links between two routers have a quarter of the capacity from the first to the second."""
    for a, b in links:
        edge = fabric.graph.edge(*(fabric.names.index(name) for name in (a, b)))
        for values in (fabric.graph.capacity, fabric.capacity):
            values[edge] = 25.0
    return fabric


@pytest.mark.parametrize(
    ("fabric", "pair", "capacity"),
    [
        (slowed(clos(4, 8), ("S1", "L5"), ("L3", "S2")), ("L3", "L5"), 250.0),
        (slowed(pods(2, 3, 2, 2), ("p1-S0", "p1-L2")), ("p0-L0", "p1-L2"), 125.0),
    ],
    ids=["three stages", "five stages"],
)
def test_a_damaged_pair_is_the_weakest_with_its_maximum_flow(fabric, pair, capacity):
    found = of(fabric)
    assert tuple(fabric.names[fabric.graph.index(end)] for end in found.ends) == pair
    nodes = [fabric.graph.index(end) for end in found.ends]
    assert found.least == capacity == max_flow(fabric.graph, fabric.capacity, *nodes)
    assert found.usual == planned(fabric).max()


def test_equal_leaves_are_computed_once(monkeypatch):
    roots = []

    def noting(graph, root):
        roots.append(root)
        return search.shortest_paths(graph, root)

    monkeypatch.setattr(pairs, "shortest_paths", noting)
    found = of(slowed(clos(4, 40), ("S1", "L5"), ("L3", "S2")))
    assert len(roots) == 3
    assert (found.least, found.alike, found.pairs) == (250.0, 1, 40 * 39)


def test_what_is_too_much_work_is_not_begun(monkeypatch):
    """Where metrics differ, each root is more."""
    ends = [("L1", 10.0), ("L2", 20.0), ("L3", 30.0)]
    for metric, done in ((10, True), (5, False)):
        links = [(leaf, "S", metric if rate == 10 else 10, rate, rate) for leaf, rate in ends]
        fabric = network(links, ends=("L*",))
        monkeypatch.setattr(pairs, "MOST_WORK", 3 * (2 * len(links) + 2 * pairs._STEP))
        assert finished(all_pairs(fabric.graph, fabric.ends, PairCapacities())) == done


def test_an_unknown_capacity_is_no_capacity():
    fabric = network([("L1", "S", 1, 10.0, 10.0), ("L2", "S", 1, 5.0, 5.0), ("L3", "S", 1, 9, 9)])
    lost = fabric.graph.edge(*(fabric.names.index(name) for name in ("L2", "S")))
    fabric.graph.capacity[lost] = np.nan
    found = PairCapacities()
    assert finished(all_pairs(fabric.graph, np.flatnonzero(fabric.graph.nodes < 4), found))
    assert (found.least, found.pairs, found.unknown) == (5.0, 4, 2)
