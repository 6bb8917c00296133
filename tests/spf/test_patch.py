"""A plan patched after changes of the graph equals a new plan; its delta lists the changes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.paths.rib.solver import RouteSolver
from fared.paths.spf.patch import Advance, PlanDelta, advance
from fared.paths.spf.plan import SpfPlan, build_plan
from fared.paths.ted.database import Ted
from fared.paths.weights.lost_link import after_loss
from fared.paths.weights.path_capacity import SlotCapacities, aggregate_capacities, propagate
from tests.ted.fabrics import AREA, Fabric, five_stage, three_stage


def without(fabric: Fabric, tail: str, head: str) -> Fabric:
    fabric.cut(tail, head)
    return fabric


def few_uplinks(fabric: Fabric) -> Fabric:
    """The first leaf has two: paths to the other spines cross other leaves."""
    for name in fabric.names:
        if name.startswith("S") and name not in ("S4", "S7"):
            fabric.cut(name, "L1")
    return fabric


FABRICS = {
    "three stages": (lambda: three_stage(4, 6), "L1"),
    "three stages, an uplink lost": (lambda: without(three_stage(4, 6), "S2", "L1"), "L1"),
    "three stages, few uplinks": (lambda: few_uplinks(three_stage(9, 7)), "L1"),
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
    size = len(built.graph.src)
    for capacity in (
        np.arange(1.0, size + 1),
        *(fractions(size, some) for some in (0.0, 0.02, 0.2)),
    ):
        ours, theirs = (propagate(plan, capacity) for plan in (advanced, built))
        same_flow(ours, theirs)
        sums = [aggregate_capacities(plan, capacity) for plan in (advanced, built)]
        assert np.array_equal(*sums, equal_nan=True)


def same_flow(ours: SlotCapacities, theirs: SlotCapacities) -> None:
    assert np.array_equal(ours.bound, theirs.bound)
    assert (ours.unknown is None) == (theirs.unknown is None)
    assert ours.unknown is None or np.array_equal(ours.unknown, theirs.unknown)


def fractions(size: int, unknown: float = 0.0) -> np.ndarray:
    """Capacities that are rounded in sums, and some unknown ones."""
    random = np.random.default_rng(size)
    values = random.integers(1, 1000, size) / 7
    values[random.random(size) < unknown] = np.nan
    return values


def swept(step: Advance, cut: tuple[int, ...] | None) -> bool:
    """Assert that path capacities after a cut equal those of a sweep; whether they needed none."""
    if cut is None or step.delta.rebuilt or step.before is None:
        return False
    found = []
    for unknown in (0.0, 0.05):
        before = fractions(len(step.before.graph.dst), unknown)
        capacity = np.delete(before, cut)
        flow = after_loss(propagate(step.before, before), step.plan, step.delta, capacity)
        found.append(flow is not None)
        if flow is not None:
            same_flow(flow, propagate(build_plan(step.plan.graph, step.plan.root), capacity))
    return found[0]


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


@settings(max_examples=150)
@given(st.sampled_from(sorted(FABRICS)), st.lists(_CHANGES, max_size=12))
def test_a_plan_patched_after_any_changes_equals_one_built_from_scratch(name, changes):
    """This includes plans that are patched for several changes at once, and path capacities."""
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
        swept(step, since.cut)
        same_paths(plan, build_plan(since.graph, at))
        true_of(step.before, plan, step.delta)


@pytest.mark.parametrize(
    "name",
    [
        "three stages",
        "three stages, an uplink lost",
        "three stages, few uplinks",
        "three stages, from a spine",
        "five stages",
    ],
)
@pytest.mark.parametrize("nth", range(0, 40, 7))
def test_a_lost_link_that_changes_no_distance_is_removed_in_place(name, nth):
    """The plan is neither built again nor swept: only the slots of one node change."""
    make, root = FABRICS[name]
    fabric, ted = make(), Ted()
    for node in fabric.names:
        ted.put(fabric.block(node))
    since = ted.since(0)
    plan = advance(None, since.graph.index(fabric.id(root)), since).plan
    links = [
        k
        for k in fabric.links
        if root not in (k.tail, k.head) and (root[:2], "SS") != (k.tail[:2], k.head[:2])
    ]
    link = links[nth % len(links)]
    fabric.cut(link.tail, link.head)
    ted.put(fabric.block(link.tail))
    since = ted.since(since.version)
    step = advance(plan, plan.root, since)
    delta = step.delta
    assert (delta.spf_ran, delta.rebuilt, delta.moved) == (True, False, False)
    assert swept(step, since.cut)
    same_paths(step.plan, build_plan(since.graph, plan.root))


def test_links_are_lost_one_after_the_other():
    """The steps of the plan stay as they were laid out, and lack more and more."""
    fabric, ted = three_stage(18, 31), Ted()
    for spine in range(6, 19):
        fabric.cut("L1", f"S{spine}")
    for node in fabric.names:
        ted.put(fabric.block(node))
    since = ted.since(0)
    plan = advance(None, since.graph.index(fabric.id("L1")), since).plan
    laid = plan.laid.steps
    for spine, leaf in (("S3", "L9"), ("S1", "L31"), ("S18", "L2"), ("S1", "L9"), ("S2", "L9")):
        fabric.cut(spine, leaf)
        for node in (spine, leaf):
            ted.put(fabric.block(node))
            since = ted.since(since.version)
            step = advance(plan, plan.root, since)
            plan = step.plan
            assert plan.laid.steps is laid
            assert since.cut is None or swept(step, since.cut)
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
