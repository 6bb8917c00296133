"""A plan with a lost link cut out is the plan of the fabric without that link."""

from __future__ import annotations

import numpy as np
import pytest

from fared.rib.solver import RouteSolver
from fared.spf.patch import cut_plan
from fared.spf.plan import Plan, build_plan
from fared.ted import splice
from fared.ted.database import Ted
from fared.weights.path_capacity import propagate
from tests.ted.fabrics import AREA, Fabric, five_stage, three_stage

FABRICS = {
    "three stages": (lambda: three_stage(4, 6), "L1"),
    "three stages, from a spine": (lambda: three_stage(3, 5), "S1"),
    "five stages": (lambda: five_stage(2, 3, 2, 2), "p1.L1"),
    "five stages, from a spine": (lambda: five_stage(3, 2, 2, 2), "p1.S1"),
    "five stages, from the top": (lambda: five_stage(3, 2, 2, 2), "SS1.1"),
}


@pytest.fixture(autouse=True)
def _spliced(monkeypatch):
    """Small graphs are made anew as a rule."""
    monkeypatch.setattr(splice, "_SMALL_GRAPH", 0)


def same_paths(patched: Plan, built: Plan) -> None:
    """Both say the same, slot for slot and edge for edge."""
    names = ("distance", "hops", "via", "slot_node", "slot_hop", "slot_count", "row_of")
    for name in names:
        assert np.array_equal(getattr(patched, name), getattr(built, name)), name
    used = built.slot_count > 0
    assert np.array_equal(patched.slot_start[used], built.slot_start[used])
    for one, other in zip(patched.levels, built.levels, strict=True):
        assert np.array_equal(one, other)
    capacity = np.arange(1.0, len(built.graph.src) + 1)
    flows = [propagate(plan, capacity).bound for plan in (patched, built)]
    assert np.array_equal(*flows)


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize("seed", range(6))
def test_links_cut_one_after_the_other(name, seed):
    make, root = FABRICS[name]
    fabric, random = make(), np.random.default_rng(seed)
    ted = Ted()
    for node in fabric.names:
        ted.put(fabric.block(node))
    graph = ted.graph()
    plan, patched = build_plan(graph, graph.index(fabric.id(root))), 0
    for _ in range(12):
        link = fabric.links[int(random.integers(len(fabric.links)))]
        fabric.cut(link.tail, link.head)
        for node in (link.tail, link.head):
            ted.put(fabric.block(node))
        graph = ted.graph()
        built = build_plan(graph, graph.index(fabric.id(root)))
        loss = graph.loss
        assert loss.before() is plan.graph
        patch = cut_plan(plan, graph, loss.cut)
        if patch is not None:
            same_paths(patch.plan, built)
            values = np.arange(float(len(plan.slot_node)))
            assert len(patch.without(values)) == len(built.slot_node)
            patched += 1
        plan = built if patch is None else patch.plan
    assert patched or root == "p1.S1"


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize("seed", range(3))
def test_routes_after_any_losses_and_changes_of_capacity_equal_a_fresh_start(name, seed):
    """Also where both come at once, and where a link comes back."""
    make, root = FABRICS[name]
    fabric, whole, random = make(), make(), np.random.default_rng(seed)
    solver = fabric.solver(root)
    solver.solve()
    for turn in range(14):
        link = whole.links[int(random.integers(len(whole.links)))]
        told = {link.tail, link.head}
        if turn % 7 == 6:
            fabric.links += [k for k in whole.links if {k.tail, k.head} == told]
        else:
            fabric.cut(link.tail, link.head)
        if turn % 3 == 1:
            other = fabric.links[int(random.integers(len(fabric.links)))]
            other.capacity = float(random.choice([50, 100, 123, 200]))
            told |= {other.tail, other.head}
        take(solver, fabric, told, root)
        fresh: RouteSolver = fabric.solver(root)
        fresh.solve()
        assert dict(solver.routes) == dict(fresh.routes)


def take(solver: RouteSolver, fabric: Fabric, told: set[str], root: str) -> None:
    """Let the solver hear of it, and check that what it says has changed is what has."""
    for node in sorted(told):
        solver.put_block(AREA, fabric.id(node), fabric.block(node))
    solver.set_local_links(AREA, fabric.local_links(root))
    before = dict(solver.routes)
    for prefix, route in solver.solve().changed.items():
        before.pop(prefix, None)
        if route is not None:
            before[prefix] = route
    assert before == dict(solver.routes)
