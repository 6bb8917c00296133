"""Why trees are as they are: the limit of each, and why other routers have none."""

from __future__ import annotations

from msgspec.structs import replace

from fared.extensions.ina.control.reasons import JobReasons, NoRoot, reasons_of
from fared.extensions.ina.plan.model import Capacities, SummingJob
from fared.extensions.ina.plan.planner import plan_job
from tests.ina.fabrics import both, clos, leaf

JOB = SummingJob("job", {1: leaf(1), 2: leaf(2), 3: leaf(3)})


def reasons(network: Capacities) -> JobReasons:
    return reasons_of(network, JOB, plan_job(network, JOB, relays=False))


def test_the_weakest_direction_of_a_link_limits_its_tree():
    found = reasons(clos(2, 3, {(leaf(2), 1): 0.25}))
    slow, whole = found.trees
    assert (slow.root, slow.rate, slow.links) == (1, 0.25, ((leaf(2), 1),))
    assert (whole.root, whole.rate, len(whole.links)) == (2, 1.0, 6)
    assert not found.others


def test_a_router_without_a_link_to_a_leaf_is_no_root():
    found = reasons(clos(3, 3, both(1, 2, 0.0)))
    assert [tree.root for tree in found.trees] == [2, 3]
    assert found.others == (NoRoot(1, "has no link to", leaf(2)),)


def test_a_router_that_does_not_sum_is_no_root():
    network = clos(2, 3, {})
    found = reasons(replace(network, adders=network.adders - {2}))
    assert [tree.root for tree in found.trees] == [1]
    assert found.others == (NoRoot(2, "does not sum"),)


def test_memory_of_a_router_limits_its_tree():
    network = replace(clos(1, 3, {}), memory={1: 0.001}, slot_seconds=0.001)
    (tree,) = reasons(network).trees
    assert (tree.rate, tree.links, tree.routers) == (0.5, (), (1,))


def test_a_tree_that_is_not_planned_any_more_has_no_reason():
    before = reasons(clos(2, 3, {})).trees[0]
    after = reasons(clos(2, 3, both(1, 2, 0.0)))
    assert after.of(before.root, before.parents) is None
    assert after.of(2, after.trees[0].parents) is not None
