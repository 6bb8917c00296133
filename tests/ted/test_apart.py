"""Routers without a two-way link take no part in the graph of a solver, and change no result."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.database import Ted
from tests.ted.fabrics import AREA, Fabric, three_stage


def line(*names: str) -> Fabric:
    fabric = Fabric()
    for one, other in pairwise(names):
        fabric.connect(one, other)
    return fabric


def forged(fabric: Fabric, name: str, *ends: str):
    """The block of a router that lists these, who do not list it."""
    told = Fabric(names=[*fabric.names], prefixes=dict(fabric.prefixes))
    for end in ends:
        told.connect(name, end)
    fabric.node(name)
    return told.block(name)


def nodes(ted: Ted) -> list[int]:
    return ted.graph().nodes.tolist()


def test_a_router_that_nobody_lists_does_not_enlarge_the_graph():
    fabric = line("A", "B")
    ted = Ted(fabric.id("A"))
    for name in "AB":
        ted.put(fabric.block(name))
    before = ted.graph()
    stranger = forged(fabric, "X", "A", "B")
    assert ted.put(stranger) is ChangeKind.ONE_WAY
    assert ted.put(forged(fabric, "X", "B")) is ChangeKind.DROPPED
    assert ted.graph() is before
    assert ted.block(fabric.id("X")) is not None
    assert list(ted.blocks) == sorted(fabric.id(name) for name in "ABX")
    assert (ted.apart, ted.links(fabric.id("X"))) == (1, None)
    assert ted.remove(fabric.id("X")) is ChangeKind.DROPPED
    assert ted.put(fabric.block("A")) is ChangeKind.NONE
    assert ted.graph() is before
    assert (ted.apart, fabric.id("X") in ted.blocks) == (0, False)


def test_it_joins_the_graph_with_its_first_two_way_link():
    fabric = line("A", "B", "C")
    ends = fabric.id("A"), fabric.id("B"), fabric.id("C")
    ted = Ted(ends[0])
    ted.put(fabric.block("A"))
    assert ted.put(fabric.block("C")) is ChangeKind.ONE_WAY
    assert (nodes(ted), ted.apart) == ([ends[0]], 1)
    assert ted.put(fabric.block("B")) is ChangeKind.TOPOLOGY
    assert (nodes(ted), ted.apart) == (sorted(ends), 0)


def test_a_link_that_a_known_router_lists_at_last_joins_its_other_end():
    fabric = line("A", "B")
    ted = Ted(fabric.id("A"))
    for name in "AB":
        ted.put(fabric.block(name))
    ted.graph()
    fabric.connect("B", "C")
    assert ted.put(fabric.block("C")) is ChangeKind.ONE_WAY
    assert ted.put(fabric.block("B")) is ChangeKind.TOPOLOGY
    assert nodes(ted) == sorted(fabric.id(name) for name in "ABC")


def test_a_link_to_itself_leads_nowhere():
    fabric = line("A", "B")
    ted = Ted(fabric.id("A"))
    ted.put(forged(fabric, "X", "X"))
    assert (nodes(ted), ted.apart) == ([], 1)


def test_it_is_the_only_router_of_its_own_paths():
    fabric = line("A", "B")
    ted = Ted(fabric.id("A"))
    ted.put(fabric.block("B"))
    assert nodes(ted.seen_from(fabric.id("B"))) == [fabric.id("B")]
    assert ted.seen_from(fabric.id("A")) is ted


def test_what_a_run_of_the_solver_knows_includes_it():
    fabric = line("A", "B")
    solver = RouteSolver(fabric.id("A"), SolverSettings())
    for name in "AB":
        solver.put_block(AREA, fabric.id(name), fabric.block(name))
    stranger = forged(fabric, "X", "A")
    solver.put_block(AREA, stranger.node, stranger)
    assert solver.solve().nodes == 3


@pytest.mark.parametrize("seed", range(20))
def test_the_graph_is_that_of_all_routers_but_those_without_edges(seed):
    """In any order of arrival, and with links and routers that come and go."""
    rng = random.Random(seed)
    fabric = three_stage()
    root = fabric.id(fabric.names[0])
    some, every = Ted(root), Ted()
    for _ in range(120):
        name = rng.choice(fabric.names)
        links = [*fabric.links]
        fabric.links = [link for link in links if rng.random() < 0.8 or link.tail != name]
        block = fabric.block(name)
        fabric.links = links
        for ted in (some, every):
            ted.put(block)
        if rng.random() < 0.1:
            gone = fabric.id(rng.choice(fabric.names[1:]))
            some.remove(gone), every.remove(gone)
        if rng.random() < 0.5:
            same_edges(some, every)
    assert {*some.blocks} == {*every.blocks}
    same_edges(some, every)


def same_edges(some: Ted, every: Ted) -> None:
    left, right = some.graph(), every.graph()
    for ends in ("src", "dst"):
        np.testing.assert_array_equal(
            left.nodes[getattr(left, ends)], right.nodes[getattr(right, ends)]
        )
    for values in ("metric", "capacity", "available", "reverse"):
        np.testing.assert_array_equal(getattr(left, values), getattr(right, values))
