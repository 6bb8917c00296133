"""What training and inference send besides collectives, and how it is reported and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from fared.extensions.lab import topology
from fared.extensions.lab.addressing import make_plan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.tcp_order import order_of
from fared.extensions.lab.traffic_command import traffic
from fared.extensions.lab.workloads import federation, patterns, tables
from fared.extensions.lab.workloads.graph import TaskGraph
from fared.extensions.lab.workloads.heat import matrix
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.report import (
    Iteration,
    JobReport,
    PhaseReport,
    TaskTime,
    WorkloadReport,
    under_way,
)
from tests.lab.test_step import ROOT, execute


def test_each_even_rank_sends_to_the_next_one():
    graph = patterns.send(5, 1000)
    assert graph.transfers() == {(0, 1): 1000, (2, 3): 1000}


def test_a_pipeline_sends_each_micro_batch_down_the_chain_and_its_gradients_back():
    graph = patterns.pipeline(3, 1000, 4, "1f1b", 0.0)
    assert graph.transfers() == dict.fromkeys([(0, 1), (1, 2), (2, 1), (1, 0)], 4000)
    sums = execute(graph)
    assert all(there[0] == frozenset({int(name.split()[2])}) for name, (_, there) in sums.items())


@settings(max_examples=20, deadline=None)
@given(
    ranks=st.integers(2, 12),
    storage=st.integers(1, 4),
    message=st.integers(1, 10**9),
    layers=st.integers(1, 9),
)
def test_no_byte_of_a_checkpoint_or_a_cache_is_lost(
    ranks: int, storage: int, message: int, layers: int
):
    """Every writer sends its part to all stores, every reader its cache to one decoder."""
    writers = max(1, ranks - storage)
    stored = patterns.checkpoint(writers + storage, storage, message).transfers()
    assert {a for a, _ in stored} | {b for _, b in stored} <= set(range(writers + storage))
    for writer in range(writers):
        parts = [size for (a, _), size in stored.items() if a == writer]
        assert sum(parts) == message
        assert max(parts) - min(parts) <= 1 or message < storage
    cached = patterns.kv_cache(writers + storage, storage, message, layers)
    assert cached.transfers() == {
        (rank, writers + rank % storage): message for rank in range(writers)
    }
    assert execute(cached)


@pytest.mark.parametrize("mode", federation.MODES)
@pytest.mark.parametrize("sites", [(1, 1), (3, 2, 2), (1, 4)])
def test_after_a_round_of_a_federation_everybody_has_the_models_of_all(
    mode: str, sites: tuple[int, ...]
):
    state = execute(federation.federated(mode, sites, 1000))["model"]
    everybody = frozenset(range(sum(sites)))
    for blocks in state:
        held = blocks if mode == federation.RING else blocks[:1]
        assert frozenset().union(*held) == everybody


@pytest.mark.parametrize(
    ("mode", "between", "most"), [("centralized", 8, 2), ("semi", 6, 1), ("mesh", 24, 4)]
)
def test_what_crosses_links_between_sites_is_least_with_leaders(mode: str, between: int, most: int):
    """Three sites of two ranks: how many models leave their sites, and most from one to one."""
    moved = federation.federated(mode, (2, 2, 2), 1).transfers()
    crossing = {pair: size for pair, size in moved.items() if pair[0] // 2 != pair[1] // 2}
    assert sum(crossing.values()) == between
    by_sites: dict[tuple[int, int], int] = {}
    for (one, other), size in crossing.items():
        pair = one // 2, other // 2
        by_sites[pair] = by_sites.get(pair, 0) + size
    assert max(by_sites.values()) == most


def test_requests_come_at_the_same_random_times_with_the_same_seed_and_stick_to_a_server():
    load = {"count": 500, "rate": 100.0, "request": 10, "answer": 1000, "compute": 0.01, "seed": 3}
    graph = patterns.requests(6, 2, sticky=True, **load)
    assert graph == patterns.requests(6, 2, sticky=True, **load)
    assert {(a, b) for a, b in graph.transfers("request")} == {(0, 4), (1, 5), (2, 4), (3, 5)}
    arrivals = [graph.tasks[first].compute for first, _ in graph.requests]
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] == pytest.approx(5.0, rel=0.2)
    assert all(graph.tasks[last].after == (first,) for first, last in graph.requests)
    anywhere = patterns.requests(6, 2, sticky=False, **load)
    assert len(anywhere.transfers("answer")) == 8


def test_a_job_with_several_busy_phases_computes_between_them():
    """An all-gather of 3 MB, 0.2 s, one of 6 MB, 0.5 s: two Up phases in an iteration."""
    graph, last = patterns.busy_phases("all-gather", 3, [(3_000_000, 0.2), (6_000_000, 0.5)])
    assert graph.phases == ("phase 1", "phase 2")
    assert [sum(graph.transfers(phase).values()) for phase in graph.phases] == [6e6, 12e6]
    assert (graph.longest([0.0] * len(graph.tasks)), last) == (0.2, 0.5)


def test_experts_get_uneven_tokens_and_answer_as_many():
    graph = patterns.experts(4, 4_000_000, 2.0, 0.0)
    there, back = graph.transfers("dispatch"), graph.transfers("combine")
    assert {(b, a): size for (a, b), size in there.items()} == back
    assert there[1, 0] == 2_000_000
    assert there[0, 3] < there[0, 2] < there[0, 1] < 2_000_000
    with pytest.raises(ValueError, match="a skew of 4 is from 1 to below 4"):
        patterns.experts(4, 1000, 4.0, 0.0)


def test_options_that_a_phase_replaces_are_refused_beside_it():
    words = ["all-gather", "--phase", "3M:200ms", "--compute", "0.5"]
    refused = CliRunner().invoke(traffic, words)
    assert refused.exit_code == 2
    assert "--compute has no effect beside --phase" in refused.output


def test_a_phase_is_under_way_while_any_of_its_tasks_is():
    times = [TaskTime(0.0, 1.0), TaskTime(0.5, 2.0), TaskTime(3.0, 4.0), TaskTime(3.2, 3.5)]
    assert under_way(times) == 3.0
    assert under_way([]) == 0.0


def sends(graph: TaskGraph, *hosts: str) -> tuple[dict[tuple[str, str], int], ...]:
    return tuple(
        {(hosts[a], hosts[b]): size for (a, b), size in task.transfers().items()}
        for task in graph.tasks
    )


def report() -> WorkloadReport:
    """Requests of h1 to h2, and three hosts with experts."""
    load = {"count": 4, "rate": 9.0, "request": 10, "answer": 1000, "compute": 0.0, "seed": 3}
    asked = patterns.requests(2, 1, sticky=False, **load)
    tokens = patterns.experts(3, 3_000_000, 1.5, 0.0)
    done = (Iteration(0.0, 1.0),)
    times = tuple(TaskTime(0.4 * n, 0.4 * n + 0.3) for n in range(len(tokens.tasks)))
    phases = (
        PhaseReport("dispatch", 1, 6_000_000, 0.1, (0.4,)),
        PhaseReport("combine", 1, 6_000_000, None, (0.3,)),
    )
    jobs = (
        JobReport(
            Job("requests", ("h1", "h2"), 1000, tasks=asked, iterations=1),
            8,
            4040,
            0.5,
            done,
            order_of([]),
            latencies=(0.01, 0.04, 0.02, 0.03),
            alone=0.008,
            sends=sends(asked, "h1", "h2"),
        ),
        JobReport(
            Job("experts", ("h3", "h1", "h2"), 3_000_000, tasks=tokens, iterations=1),
            2,
            12_000_000,
            0.3,
            done,
            order_of([]),
            phases,
            times,
            sends=sends(tokens, "h3", "h1", "h2"),
        ),
    )
    return WorkloadReport("small", 1.0, jobs, (0.5, 1.0), ())


def test_phases_and_percentiles_of_latencies_are_reported():
    asked, tokens = json.loads(report().as_json())["jobs"]
    assert asked["latencies"] == {
        "alone": 0.008,
        "p50": 0.02,
        "p95": 0.04,
        "p99": 0.04,
        "seconds": [0.01, 0.04, 0.02, 0.03],
    }
    assert [phase["median"] for phase in tokens["phases"]] == [0.4, 0.3]
    assert "tasks" not in tokens
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(tables.phases_table(report().jobs[1]))
    console.print(tables.latency_table(report().jobs[0]))
    told = console.export_text()
    assert "dispatch      6     6M       1M      0.1     0.4       25%" in told
    assert "no path" in told
    assert "0.008  0.02  0.04  0.04  0.04" in told


def test_the_heat_map_has_every_byte_between_hosts_of_all_jobs(tmp_path: Path):
    hosts, values = matrix(report())
    assert hosts == ["h1", "h2", "h3"]
    assert values[0][1] == 40 + report().jobs[1].job.graph.transfers()[1, 2]
    total = sum(sum(job.job.graph.transfers().values()) for job in report().jobs)
    assert sum(map(sum, values)) == total
    pytest.importorskip("matplotlib")
    from fared.extensions.lab.workloads import heat, plots

    for draw, name in ((heat.draw, "heat.svg"), (plots.draw, "tasks.svg")):
        draw(report(), tmp_path / name)
    assert ">3M<" not in (tmp_path / "heat.svg").read_text()
    assert "combine" in (tmp_path / "tasks.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["step", "--model", "gpt-4"], "no model 'gpt-4' comes with fared; there is gpt-3b"),
        (["step"], "Missing option '--model'"),
        (["checkpoint"], "Missing option '--storage'"),
        (["all-gather", "--phase", "8M:soon"], "a phase is SIZE:DURATION such as 8M:200ms"),
        (["requests", "--servers", "h1", "--rate", "0"], "a rate is above 0"),
        (["experts", "--skew", "0.5"], "0.5 is not in the range x>=1.0"),
        (["send", "--skew", "2"], "No such option '--skew'"),
    ],
)
def test_wrong_options_are_refused_before_any_lab_is_looked_for(arguments: list[str], says: str):
    wrong = CliRunner().invoke(traffic, arguments)
    assert wrong.exit_code == 2
    assert says in wrong.output


def test_more_ranks_than_hosts_are_refused():
    plan = make_plan(topology.load(ROOT / "containerlab" / "clos3.clab.yml"))
    job = Job("step", ("h1", "h2"), 1, tasks=patterns.experts(3, 3000, 1.5, 0.0))
    with pytest.raises(LabError, match="step: 3 ranks need as many hosts or GPUs, not 2"):
        job.check(plan)
