"""Training steps as graphs of tasks: in any order that they permit, every rank gets its data."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.extensions.lab import topology
from fared.extensions.lab.addressing import make_plan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.workloads import model as model_
from fared.extensions.lab.workloads.bounds import job_bounds
from fared.extensions.lab.workloads.graph import COMPUTE, GraphTask, TaskGraph
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.sizes import shares, split
from fared.extensions.lab.workloads.step import (
    AXES,
    BACKWARD,
    DATA,
    EXPERT,
    FORWARD,
    PASSES,
    PIPELINE,
    TENSOR,
    TrainingStep,
)

MBIT = 1e6 / 8
ROOT = Path(__file__).resolve().parents[2]
GPT = ROOT / "containerlab" / "gpt-3b.model.yml"
TRAFFIC = {TENSOR: 85e6, PIPELINE: 1e6, DATA: 741e3, EXPERT: 10e6}


@st.composite
def steps(draw: st.DrawFn) -> TrainingStep:
    """Steps of up to 27 ranks, with or without experts."""
    data, tensor, pipeline = (draw(st.integers(1, 3)) for _ in range(3))
    experts = draw(st.sampled_from([0, 1, data, tensor, data * tensor, 2 * data * tensor]))
    return TrainingStep(
        data=data,
        tensor=tensor,
        pipeline=pipeline,
        experts=experts,
        layers=draw(st.integers(1, 2)),
        micro_batches=draw(st.integers(1, 4)),
        passes=draw(st.sampled_from(tuple(PASSES))),
        order=tuple(draw(st.permutations(AXES))),
        traffic=TRAFFIC,
        skew=draw(st.floats(1.0, 1.5)) if experts > 1 else 1.0,
        compute=draw(st.sampled_from([0.0, 0.1])),
    )


def in_some_order(graph: TaskGraph, seed: int) -> Iterator[GraphTask]:
    """Yield the tasks in a random order in which each comes behind those it waits for."""
    drawn = random.Random(seed)
    waiting = [len(task.after) for task in graph.tasks]
    behind: dict[int, list[int]] = {}
    for number, task in enumerate(graph.tasks):
        for before in task.after:
            behind.setdefault(before, []).append(number)
    ready = [number for number, count in enumerate(waiting) if not count]
    while ready:
        chosen = ready.pop(drawn.randrange(len(ready)))
        yield graph.tasks[chosen]
        for number in behind.get(chosen, ()):
            waiting[number] -= 1
            if not waiting[number]:
                ready.append(number)
    assert not any(waiting)


def execute(graph: TaskGraph, seed: int = 0) -> dict[str, list[list[frozenset[int]]]]:
    """Return, by buffer, member and block, whose contributions are there in the end."""
    found: dict[str, list[list[frozenset[int]]]] = {}
    for task in in_some_order(graph, seed):
        count = max(2, len(task.members))
        start = [[frozenset({member})] * count for member in task.members]
        state = found.setdefault(task.buffer, start)
        before = [list(blocks) for blocks in state]
        for send in task.step:
            for block in send.blocks:
                kept = state[send.target][block] if send.adds else frozenset[int]()
                assert not kept & before[send.source][block], "nothing is added twice"
                state[send.target][block] = kept | before[send.source][block]
    return found


@settings(max_examples=15, deadline=None)
@given(step=steps(), seed=st.integers(0, 1000))
def test_after_a_step_every_group_has_its_sums_and_every_stage_what_it_waits_for(
    step: TrainingStep, seed: int
):
    """In any order: no send of a reduce comes before the sum that it passes on."""
    graph = step.graph()
    state = execute(graph, seed)
    for buffer, members in {
        (t.buffer, t.members) for t in graph.tasks if t.phase in (TENSOR, DATA)
    }:
        assert state[buffer] == [[frozenset(members)] * max(2, len(members))] * len(members)
    for buffer, (source, _) in {(t.buffer, t.members) for t in graph.tasks if t.phase == PIPELINE}:
        assert state[buffer][1][0] == {source}


@settings(max_examples=15, deadline=None)
@given(step=steps())
def test_a_step_sends_the_bytes_of_its_model_however_it_is_mapped(step: TrainingStep):
    """But for rounding: each message is a whole number of bytes."""
    graph = step.graph()
    able = {
        TENSOR: step.tensor > 1,
        DATA: step.data > 1,
        PIPELINE: step.pipeline > 1,
        EXPERT: step.group > 1,
    }
    for phase, possible in able.items():
        moved = sum(graph.transfers(phase).values())
        assert moved == (pytest.approx(TRAFFIC[phase], rel=0.01) if possible else 0)
    assert set(graph.phases) == {phase for phase, possible in able.items() if possible}


@settings(max_examples=15, deadline=None)
@given(step=steps())
def test_each_parallelism_stays_between_the_ranks_that_have_it_in_common(step: TrainingStep):
    """Tensor parallel ranks differ in one place only, so do replicas, and stages are neighbors."""
    axes = itertools.product(range(step.data), range(step.tensor), range(step.pipeline))
    places = {step.rank(*place): place for place in axes}
    assert sorted(places) == list(range(step.ranks))
    moves = {TENSOR: {(0, 1, 0)}, DATA: {(1, 0, 0)}, PIPELINE: {(0, 0, 1)}}
    graph = step.graph()
    for phase, allowed in moves.items():
        for a, b in graph.transfers(phase):
            apart = tuple(x != y for x, y in zip(places[a], places[b], strict=True))
            assert apart in allowed
    for a, b in graph.transfers(EXPERT):
        assert places[a][2] == places[b][2]


@settings(max_examples=15, deadline=None)
@given(step=steps())
def test_a_backward_pass_follows_the_forward_pass_of_all_stages(step: TrainingStep):
    """The gradients of a stage are reduced behind everything that it computes."""
    graph = step.graph()
    waits = nx.DiGraph((a, b) for b, task in enumerate(graph.tasks) for a in task.after)
    waits.add_nodes_from(range(len(graph.tasks)))
    sent = {t.buffer: n for n, t in enumerate(graph.tasks) if t.phase == PIPELINE}
    for buffer, number in sent.items():
        if buffer.startswith(BACKWARD):
            micro_batch = buffer.split(",")[0].split()[1]
            source = graph.tasks[number].members[0]
            there = {n for b, n in sent.items() if b.startswith(f"{FORWARD} {micro_batch},")}
            to_source = {n for n in there if graph.tasks[n].members[1] == source}
            assert to_source <= nx.ancestors(waits, number)
    reduces = [n for n, task in enumerate(graph.tasks) if task.phase == DATA]
    for number in reduces:
        members = set(graph.tasks[number].members)
        own = {
            at
            for at, task in enumerate(graph.tasks)
            if task.phase == TENSOR and members & set(task.members)
        }
        assert own <= nx.ancestors(waits, number)


@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 1), (2, 4), (4, 2), (4, 8)])
def test_1f1b_holds_the_activations_of_few_micro_batches_and_gpipe_of_all(
    stages: int, micro_batches: int
):
    """Of at most as many as there are stages from this one to the last."""
    for name, stage in itertools.product(PASSES, range(stages)):
        passes = PASSES[name](stage, stages, micro_batches)
        assert sorted(passes) == sorted(
            itertools.product((BACKWARD, FORWARD), range(micro_batches))
        )
        held = list(itertools.accumulate(1 if way == FORWARD else -1 for way, _ in passes))
        most = min(micro_batches, stages - stage) if name == "1f1b" else micro_batches
        assert max(held) == most


def test_chains_of_the_pipeline_overlap():
    """Four stages, eight micro-batches, 1 s forward, 2 s backward: 3 (8 + 3) s, not 3 x 8 x 4."""
    step = TrainingStep(pipeline=4, micro_batches=8, compute=1.0, traffic={PIPELINE: 56.0})
    graph = step.graph()
    assert graph.longest([0.0] * len(graph.tasks)) == 33.0
    assert sum(task.compute for task in graph.tasks) == 3 * 8 * 4


@given(count=st.integers(1, 64), skew=st.floats(1.0, 8.0), message=st.integers(0, 10**9))
def test_uneven_parts_add_up_and_the_first_has_the_skew(count: int, skew: float, message: int):
    skew = min(skew, max(1.0, 0.9 * count))
    parts = shares(count, skew)
    assert sum(parts) == pytest.approx(1.0)
    assert parts[0] == pytest.approx(skew / count)
    assert list(parts) == sorted(parts, reverse=True)
    sizes = split(message, parts)
    assert sum(sizes) == message
    assert all(abs(size - message * part) <= 1 for size, part in zip(sizes, parts, strict=True))


def test_tokens_come_back_from_experts_as_many_as_went():
    """Four experts on four ranks, the first with 1.5 times the mean."""
    step = TrainingStep(data=2, tensor=2, experts=4, traffic={EXPERT: 4.8e6}, skew=1.5)
    assert step.messages() == {EXPERT: 400_000}
    there, back, *_ = (task for task in step.graph().tasks if task.phase == EXPERT)
    received = [sum(s for (_, b), s in there.transfers().items() if b == r) for r in range(4)]
    assert received[0] == 3 * 400_000 * 1.5 / 4
    assert received == sorted(received, reverse=True)
    assert back.transfers() == {(b, a): size for (a, b), size in there.transfers().items()}


def test_the_bound_of_a_step_is_its_longest_path_and_of_a_phase_all_its_bytes():
    """On clos3, each rank with four uplinks: a stage waits for one micro-batch more than it has."""
    plan = make_plan(topology.load(ROOT / "containerlab" / "clos3.clab.yml"))
    graph = model_.load(GPT).step().graph()
    job = Job("step", tuple(f"h{n}" for n in range(1, 9)), 1, tasks=graph)
    found = job_bounds(job, plan, lambda _: 100 * MBIT)
    assert found.phases[TENSOR] == pytest.approx(85e6 / 8 / (400 * MBIT) * (4 + 1) / 4, rel=1e-3)
    waits = nx.DiGraph()
    for number, task in enumerate(graph.tasks):
        for before in task.after or ("begin",):
            waits.add_edge(before, number, weight=task.compute + found.tasks[number])
    assert found.whole == pytest.approx(nx.dag_longest_path_length(waits))
    assert found.whole >= max(found.phases.values())


def test_the_model_that_comes_with_fared_sends_what_the_draft_says():
    """85, 1 and 0.741 GB at a thousandth, most in messages of about 125 MB."""
    step = model_.load(GPT).step()
    moved = {phase: sum(step.graph().transfers(phase).values()) for phase in step.graph().phases}
    assert moved == {
        TENSOR: pytest.approx(85e6, rel=1e-4),
        PIPELINE: 1_000_000,
        DATA: 741_000,
    }
    assert step.messages()[TENSOR] == pytest.approx(125e3, rel=0.1)
    assert not any(task.phase == COMPUTE for task in step.graph().tasks)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("layers: 4\nlayrs: 3\n", r"model.yml:2:1: layrs: unknown key .*did you mean 'layers'"),
        (
            "traffic: {tensor: much}\n",
            r"model.yml:1:19: traffic.tensor: expected bytes such as 85G",
        ),
        ("order: [tensor, data]\n", r"model.yml:1:8: order: expected each of tensor, data, pipe"),
        (
            "layers: 3\nparallelism: {pipeline: 2}\n",
            r"model.yml:1:9: layers: expected a multiple of parallelism.pipeline \(2\), got 3",
        ),
        (
            "experts: 3\nparallelism: {data: 2}\n",
            r"model.yml:1:10: .*3 experts do not divide 2 ranks",
        ),
        ("experts: 2\nparallelism: {data: 2}\nskew: 2\n", "a skew of 2 is from 1 to below 2"),
        ("scale: 0\n", r"model.yml:1:8: scale: expected a number above 0, at most 1, got 0"),
        ("micro-batches: [\n", r"model.yml:2:1: expected well-formed YAML"),
        (
            "parallelism: {tensor: 1024, data: 1024}\nlayers: 1024\n",
            "messages are more than 100,000",
        ),
    ],
)
def test_a_wrong_model_is_refused_with_file_and_line(tmp_path: Path, text: str, says: str):
    file = tmp_path / "model.yml"
    file.write_text(text)
    with pytest.raises(LabError, match=says):
        model_.load(file)


def test_options_replace_values_of_a_model_and_are_checked_too():
    model = model_.load(GPT)
    step = model_.changed(model, {"data": 4, "pipeline": 1}, {"experts": 4, "skew": None}).step()
    assert (step.data, step.tensor, step.pipeline, step.experts, step.skew) == (4, 2, 1, 4, 1.0)
    with pytest.raises(
        LabError, match=r"layers: expected a multiple of parallelism.pipeline \(4\)"
    ):
        model_.changed(model, {"pipeline": 4}, {})
