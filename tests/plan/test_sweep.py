"""The sweep of failures gives what a new SPF, and networkx, give for each failure by itself."""

import random

import numpy as np
import pytest

from fared.extensions.offline.plan import sets
from fared.extensions.offline.plan.paths import edge_changes, without_edges
from fared.extensions.offline.plan.rows import merged
from fared.extensions.offline.plan.run import (
    PlanTask,
    SetPart,
    WorkersDiedError,
    compute_all,
    parts_of,
)
from fared.extensions.offline.plan.sets import Failures
from fared.extensions.offline.plan.sweep import FailureRows, capacities, sweep
from tests.plan.networks import anything, clos, from_scratch, max_flow, network, pods


def swept(fabric, failures, healthy=None):
    healthy = capacities(fabric) if healthy is None else healthy
    return sweep(fabric, failures, 0, len(failures), healthy)


def check_rows(fabric, failures):
    healthy = capacities(fabric)
    outcome = swept(fabric, failures, healthy)
    least: dict[tuple[int, int], tuple[float, int]] = {}
    for at in range(len(failures)):
        after = from_scratch(fabric, failures, at)
        pairs = {pair: value for pair, value in after.items() if healthy[pair] > 0}
        left = {pair: min(value / healthy[pair], 1.0) for pair, value in pairs.items()}
        name = failures.name(fabric, at)
        worst = tuple(outcome.worst[at].tolist())
        assert outcome.left[at] == pytest.approx(min(left.values(), default=1.0)), name
        if outcome.left[at] < 1.0:
            assert left[worst] == pytest.approx(min(left.values())), name
            assert outcome.capacity[at] == pytest.approx(pairs[worst]), name
        if left:
            assert outcome.mean[at] == pytest.approx(sum(left.values()) / len(left)), name
        lost = {pair for pair, value in pairs.items() if value < healthy[pair] * (1 - 1e-9)}
        assert outcome.reduced[at] == len(lost), name
        assert outcome.cut[at] == sum(value == 0 for value in pairs.values()), name
        for pair, value in pairs.items():
            if pair in lost:
                least[pair] = min(least.get(pair, (np.inf, -1)), (value, at))
    for pair, (value, at) in least.items():
        assert outcome.pair_least[pair] == pytest.approx(value)
        assert outcome.pair_cause[pair] == at
    assert (outcome.pair_cause >= 0).sum() == len(least)


SHAPES = {
    "clos": lambda: clos(3, 4),
    "pods": lambda: pods(3, 2, 2, 2),
    "one uplink": lambda: network(
        [("L1", "S1", 1, 10.0, 10.0), ("L2", "S1", 1, 10.0, 10.0), ("L2", "S2", 1, 5.0, 10.0)]
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["links", "nodes", "doubles", "degrade"])
def test_all_rows_equal_those_of_a_new_spf(shape, kind):
    fabric = SHAPES[shape]()
    make = {
        "links": sets.single_links,
        "nodes": sets.single_nodes,
        "doubles": lambda f: sets.double_links(f, None, 0),
        "degrade": lambda f: sets.degraded_links(f, 0.25),
    }
    check_rows(fabric, make[kind](fabric))


@pytest.mark.parametrize("most", [100, pytest.param(None, marks=pytest.mark.soak)])
def test_pairs_of_links_of_8x16_equal_those_of_a_new_spf(most):
    """All 8,128 pairs of its 128 links, or some of them."""
    fabric = clos(8, 16)
    failures = sets.double_links(fabric, most, 4)
    assert len(failures) == (most or 8128)
    check_rows(fabric, failures)


@pytest.mark.parametrize("seed", range(25))
def test_rows_of_graphs_of_any_shape_equal_those_of_a_new_spf(seed):
    fabric = anything(random.Random(seed))
    check_rows(fabric, sets.single_links(fabric))
    check_rows(fabric, sets.single_nodes(fabric))
    check_rows(fabric, sets.double_links(fabric, 60, seed))


@pytest.mark.parametrize("fabric", [clos(3, 5), pods(2, 2, 2, 2)], ids=["clos", "pods"])
def test_the_capacity_left_in_a_clos_is_the_maximum_flow_over_shortest_paths(fabric):
    failures = sets.double_links(fabric, 40, 3)
    healthy = capacities(fabric)
    for at in range(len(failures)):
        changes = edge_changes(fabric, failures, at, at + 1)
        capacity = fabric.capacity.copy()
        capacity[changes.edge] = changes.capacity
        graph, capacity = without_edges(fabric.graph, capacity)
        outcome = sweep(fabric, failures, at, at + 1, healthy)
        row, end = outcome.worst[0].tolist()
        flow = max_flow(graph, capacity.tolist(), int(fabric.ends[row]), int(fabric.ends[end]))
        assert outcome.capacity[0] == pytest.approx(flow)


def test_parallel_links_fail_one_by_one():
    fabric = network(
        [("L1", "S1", 1, 10.0, 10.0), ("L1", "S1", 1, 30.0, 30.0), ("L2", "S1", 1, 40.0, 40.0)],
        ends=("L*",),
    )
    assert fabric.link_names == ("L1-S1#1", "L1-S1#2", "L2-S1")
    outcome = swept(fabric, sets.single_links(fabric))
    assert outcome.left.tolist() == pytest.approx([0.75, 0.25, 0.0])
    assert swept(fabric, sets.double_links(fabric, None, 0)).cut.tolist() == [2, 2, 2]


def test_a_result_does_not_depend_on_the_parts_and_processes():
    fabric = pods(3, 2, 2, 2)
    failures = sets.double_links(fabric, None, 0)
    healthy = capacities(fabric)
    task = PlanTask(fabric, healthy, (failures,))
    whole = merged(failures, [swept(fabric, failures)], fabric)
    for workers in (1, 3):
        found = [outcome for _, outcome in compute_all(task, parts_of([failures]), workers)]
        again = merged(failures, found, fabric)
        for name in FailureRows.__struct_fields__:
            assert getattr(whole, name).tobytes() == getattr(again, name).tobytes(), name


class _Mortal(PlanTask):
    """A task whose worker dies at one part: the first time, or always."""

    def compute(self, part):
        marker = self.sets[1]
        if part.first == 64 and (marker is None or not marker.exists()):
            if marker is not None:
                marker.touch()
            raise SystemExit
        return PlanTask(self.fabric, self.healthy, self.sets[:1]).compute(part)


def test_when_a_worker_dies_another_one_does_its_part(tmp_path):
    fabric = clos(4, 6)
    failures = sets.double_links(fabric, None, 0)
    task = _Mortal(fabric, capacities(fabric), (failures, tmp_path / "died"))
    found = dict(compute_all(task, parts_of([failures]), 2))
    assert (tmp_path / "died").exists()
    assert sorted(found) == parts_of([failures])


def test_failures_that_kill_every_worker_end_the_plan():
    fabric = clos(4, 6)
    failures = sets.double_links(fabric, None, 0)
    task = _Mortal(fabric, capacities(fabric), (failures, None))
    with pytest.raises(WorkersDiedError):
        dict(compute_all(task, [SetPart(0, 0, 64), SetPart(0, 64, 128)], 2))


def test_drawn_doubles_are_different_pairs_of_all():
    fabric = clos(3, 4)
    every = sets.double_links(fabric, None, 0)
    drawn = sets.double_links(fabric, 20, 5)
    assert len(every) == every.population == 66
    assert (len(drawn), drawn.population, drawn.seed) == (20, 66, 5)
    pairs = {tuple(sorted(pair)) for pair in drawn.links.reshape(-1, 2).tolist()}
    assert len(pairs) == 20
    assert pairs <= {tuple(pair) for pair in every.links.reshape(-1, 2).tolist()}


def test_the_interval_of_drawn_doubles_covers_the_mean_of_all_in_95_of_100_seeds():
    fabric = clos(4, 6)
    every = merged_of(fabric, sets.double_links(fabric, None, 0))
    mean = every.mean_interval(0.0)[0]
    covered = 0
    for seed in range(100):
        drawn = merged_of(fabric, sets.double_links(fabric, 60, seed))
        _, low, high = drawn.mean_interval(2.576)
        covered += low <= mean <= high
    assert covered >= 95


def merged_of(fabric, failures: Failures):
    return merged(failures, [swept(fabric, failures)], fabric)
