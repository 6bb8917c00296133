"""The summaries of a border router follow every change, and nothing else changes them."""

from __future__ import annotations

import random

from fared.core.ids import ipv4_prefix
from fared.paths.ted.model import PathType
from tests.ted.fabrics import AREA, GBPS, Fabric, five_stage, three_stage

NET, OTHER = ipv4_prefix(0xC0000200, 24), ipv4_prefix(0xC0000300, 24)


def follow(known, solver):
    changes, _ = solver.take_advertisements()
    for prefix, reached in changes.items():
        assert known.get(prefix) != reached
        if reached is None:
            del known[prefix]
        else:
            known[prefix] = reached
    return changes


def put(solver, fabric: Fabric) -> None:
    for name in fabric.names:
        solver.put_block(AREA, fabric.id(name), fabric.block(name))
    solver.solve()


def shake(fabric: Fabric, dice: random.Random) -> None:
    """Change a capacity, what is announced, or the presence of a link."""
    link = dice.choice(fabric.links)
    match dice.randrange(4):
        case 0:
            fabric.cut(link.tail, link.head)
        case 1:
            items = fabric.prefixes[dice.choice(fabric.names)]
            if len(items) > 1:
                items.pop()
        case 2:
            capacity = dice.choice((None, 50 * GBPS, 1e4 * GBPS))
            fabric.anycast(dice.choice((NET, OTHER)), link.head, metric=5, capacity=capacity)
        case _:
            fabric.limit(link.tail, link.head, dice.choice((None, 100, 200, 400)))


def test_after_any_changes_summaries_equal_those_of_a_new_solver():
    for seed in range(6):
        dice = random.Random(seed)
        fabric = five_stage(2, 2, 2, 2) if seed % 2 else three_stage(3, 4)
        root = "p1.S1" if seed % 2 else "S1"
        solver = fabric.solver(root)
        solver.solve()
        known: dict = {}
        follow(known, solver)
        for _ in range(25):
            shake(fabric, dice)
            solver.set_local_links(AREA, fabric.local_links(root))
            put(solver, fabric)
            if dice.random() < 0.3:
                continue  # several runs before the summaries are read
            follow(known, solver)
            fresh = fabric.solver(root)
            fresh.solve()
            assert known == fresh.take_advertisements()[0]


def test_a_remote_capacity_concerns_only_what_lies_behind_it():
    """The next hops of p1.S1 stay as they are: it is p2.S1 that has less to give."""
    fabric = five_stage(2, 2)
    fabric.anycast(NET, "p2.L1")
    solver = fabric.solver("p1.S1")
    solver.solve()
    known: dict = {}
    assert len(follow(known, solver)) == len(fabric.names) + 1
    assert follow(known, solver) == {}
    fabric.limit("p2.S1", "p2.L1", 100)
    solver.put_block(AREA, fabric.id("p2.S1"), fabric.block("p2.S1"))
    assert solver.solve().changed == {}
    changes = follow(known, solver)
    behind = ("p2.L1", "p2.S2", "p2.S3", "p2.S4")
    assert set(changes) == {NET, *map(fabric.prefix, behind)}
    assert changes[NET].capacity == 100 * GBPS


def test_external_routes_are_not_summarized():
    fabric = three_stage()
    fabric.anycast(NET, "L1")
    fabric.prefixes["L1"][-1] = fabric.prefixes["L1"][-1].__class__(NET, 1, PathType.EXTERNAL_2)
    solver = fabric.solver("S1")
    solver.solve()
    known: dict = {}
    follow(known, solver)
    assert NET not in known
    assert NET in solver.routes
