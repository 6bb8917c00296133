"""A plan patched after changes of the graph equals a new plan; its delta lists the changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.rib.solver import RouteSolver
from fared.spf.patch import _FEW_EDGES, PlanDelta, advance
from fared.spf.plan import SpfPlan, build_plan
from fared.ted.database import Ted
from fared.weights.path_capacity import propagate
from tests.ted.fabrics import AREA, Fabric, five_stage, three_stage


def without(fabric: Fabric, tail: str, head: str) -> Fabric:
    fabric.cut(tail, head)
    return fabric


FABRICS = {
    "three stages": (lambda: three_stage(4, 6), "L1"),
    "three stages, an uplink lost": (lambda: without(three_stage(4, 6), "S2", "L1"), "L1"),
    "three stages, from a spine": (lambda: three_stage(3, 5), "S1"),
    "five stages": (lambda: five_stage(2, 3, 2, 2), "p1.L1"),
    "five stages, from a spine": (lambda: five_stage(3, 2, 2, 2), "p1.S1"),
    "five stages, from the top": (lambda: five_stage(3, 2, 2, 2), "SS1.1"),
}


def same_paths(advanced: SpfPlan, built: SpfPlan) -> None:
    """Assert that two plans are equal, slot by slot and edge by edge."""
    names = ("distance", "hops", "via", "slot_node", "slot_hop", "slot_count", "row_of")
    for name in names:
        assert np.array_equal(getattr(advanced, name), getattr(built, name)), name
    used = built.slot_count > 0
    assert np.array_equal(advanced.slot_start[used], built.slot_start[used])
    for one, other in zip(advanced.levels, built.levels, strict=True):
        assert np.array_equal(one, other)
    capacity = np.arange(1.0, len(built.graph.src) + 1)
    flows = [propagate(plan, capacity).bound for plan in (advanced, built)]
    assert np.array_equal(*flows)


def slots(plan: SpfPlan) -> list[tuple[int, int]]:
    return list(zip(plan.slot_node.tolist(), plan.slot_hop.tolist(), strict=True))


def true_of(old: SpfPlan, new: SpfPlan, delta: PlanDelta) -> None:
    """Assert that the delta of a plan lists all its differences from the plan before."""
    if not delta.moved:
        assert np.array_equal(old.graph.nodes, new.graph.nodes)
        assert np.array_equal(old.distance, new.distance)
    if delta.rebuilt:
        return
    former, present = slots(old), slots(new)
    gone = former[delta.low : delta.high]
    assert former[: delta.low] + former[delta.high :] == present
    assert {node for node, _ in gone} <= {delta.node}
    values = np.arange(float(len(former)))
    left = np.delete(values, np.s_[delta.low : delta.high])
    assert not len(delta.changed(values, left))
    left[len(left) // 2 :][:1] += 0.5
    assert delta.changed(values, left).tolist() == [len(left) // 2][: len(left)]


def change(fabric: Fabric, whole: Fabric, what: str, draw: int) -> set[str]:
    """Change a link, or whether a router lets traffic pass; the routers that advertise it."""
    link = whole.links[draw % len(whole.links)]
    ends = {link.tail, link.head}
    here = [k for k in fabric.links if {k.tail, k.head} == ends]
    if what == "cut":
        fabric.cut(link.tail, link.head)
    elif what == "restored":
        fabric.cut(link.tail, link.head)
        fabric.links += [k for k in whole.links if {k.tail, k.head} == ends]
    elif what == "stub":
        fabric.stubs ^= {link.tail}
    else:
        for k in here:
            k.metric, k.capacity = (20, k.capacity) if what == "costly" else (k.metric, 100.0)
    return ends


_CHANGES = st.tuples(
    st.sampled_from(["cut", "cut", "cut", "cut", "restored", "costly", "slow", "stub"]),
    st.integers(0, 10**6),
    st.booleans(),
)


@settings(max_examples=100)
@given(st.sampled_from(sorted(FABRICS)), st.lists(_CHANGES, max_size=12))
def test_a_plan_patched_after_any_changes_equals_one_built_from_scratch(name, changes):
    """This includes plans that are patched for several changes at once."""
    make, root = FABRICS[name]
    fabric, whole, ted = make(), make(), Ted()
    for node in fabric.names:
        ted.put(fabric.block(node))
    since = ted.since(0)
    plan = advance(None, since.graph.index(fabric.id(root)), since).plan
    for what, draw, follows in changes:
        for node in sorted(change(fabric, whole, what, draw)):
            ted.put(fabric.block(node))
            ted.graph()
        if not follows:
            continue
        since = ted.since(since.version)
        at = since.graph.index(fabric.id(root))
        step = advance(plan, at, since)
        assert step.before is plan
        plan = step.plan
        same_paths(plan, build_plan(since.graph, at))
        true_of(step.before, plan, step.delta)


@pytest.mark.parametrize(
    "name",
    ["three stages", "three stages, an uplink lost", "three stages, from a spine", "five stages"],
)
def test_a_lost_link_that_changes_no_distance_is_removed_in_place(name):
    """The plan is not built again: only the slots of one node change."""
    make, root = FABRICS[name]
    fabric, ted = make(), Ted()
    for node in fabric.names:
        ted.put(fabric.block(node))
    since = ted.since(0)
    plan = advance(None, since.graph.index(fabric.id(root)), since).plan
    link = next(k for k in fabric.links if root not in (k.tail, k.head))
    fabric.cut(link.tail, link.head)
    ted.put(fabric.block(link.tail))
    delta = advance(plan, plan.root, ted.since(since.version)).delta
    assert (delta.spf_ran, delta.rebuilt, delta.moved) == (True, False, False)


def test_links_lost_among_many_are_removed_as_among_few():
    """Edges are renumbered in another way where a depth has more than ``_FEW_EDGES``."""
    fabric, ted = three_stage(18, 31), Ted()
    for node in fabric.names:
        ted.put(fabric.block(node))
    since = ted.since(0)
    plan = advance(None, since.graph.index(fabric.id("L1")), since).plan
    assert max(map(len, plan.levels)) > _FEW_EDGES
    for spine, leaf in (("S3", "L9"), ("S1", "L31"), ("S18", "L2")):
        fabric.cut(spine, leaf)
        for node in (spine, leaf):
            ted.put(fabric.block(node))
            since = ted.since(since.version)
            step = advance(plan, plan.root, since)
            plan = step.plan
            assert not step.delta.rebuilt
            same_paths(plan, build_plan(since.graph, plan.root))


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize("seed", range(3))
def test_routes_after_any_losses_and_changes_of_capacity_equal_a_fresh_start(name, seed):
    """This includes both at once, and links that return."""
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
    """Pass a change to the solver, and check that its reported changes are the actual ones."""
    for node in sorted(told):
        solver.put_block(AREA, fabric.id(node), fabric.block(node))
    solver.set_local_links(AREA, fabric.local_links(root))
    before = dict(solver.routes)
    for prefix, route in solver.solve().changed.items():
        before.pop(prefix, None)
        if route is not None:
            before[prefix] = route
    assert before == dict(solver.routes)
