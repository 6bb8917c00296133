"""Jobs on shared links: scores and shifts equal those of an exhaustive search."""

import itertools
import json
import math
import random

import pytest
from click.testing import CliRunner

from fared.extensions.offline.plan.jobs import circle
from fared.extensions.offline.plan.jobs.circle import (
    CircleError,
    JobPattern,
    LinkShare,
    best_shifts,
    score,
)
from fared.extensions.offline.plan.jobs.measured import MeasureError, pattern_of
from fared.extensions.offline.plan.jobs.shifts import affinity_parts, schedule
from fared.extensions.offline.plan.routes import WeightedRoutes
from fared.management.cli.main import main
from fared.management.documents.load import Load, LoadSamples
from tests.api.sample import sample
from tests.offline.fabrics import clos, saved
from tests.plan.networks import clos as clos_fabric


def job(name, period, busy):
    return JobPattern(name, period, busy)


def link(capacity=100.0, name="up", **rates):
    return LinkShare(name, capacity, rates)


def by_definition(of, jobs, shifts):
    """1 - sum(excess) / (|A| C), place by place."""
    length = math.lcm(*(one.period for one in jobs))
    excess = 0.0
    for place in range(length):
        whole = sum(
            of.rates.get(one.name, 0.0)
            for one in jobs
            if (place - shifts[one.name]) % one.period < one.busy
        )
        excess += max(whole - of.capacity, 0.0)
    return 1 - excess / (length * of.capacity)


def exhaustive(links, jobs):
    shifts = itertools.product(*(range(one.period) for one in jobs))
    named = ({one.name: at for one, at in zip(jobs, some, strict=True)} for some in shifts)
    return max(sum(by_definition(one, jobs, some) for one in links) for some in named)


def test_two_halves_fit_and_do_not_without_a_shift():
    jobs, up = [job("a", 10, 5), job("b", 10, 5)], link(a=100.0, b=100.0)
    shifts = best_shifts([up], jobs)
    assert shifts == {"a": 0, "b": 5}
    assert score(up, jobs, shifts) == 1.0
    assert score(up, jobs, {"a": 0, "b": 0}) == 0.5


def test_periods_of_40_and_60_share_a_circle_of_120():
    """The example of the seed's talk: the least common multiple of the iteration times."""
    jobs = [job("a", 40, 10), job("b", 60, 20)]
    assert circle.circle_length(jobs) == 120
    up = link(a=100.0, b=100.0)
    # gcd 20: a's turns are at 0, 20 of each 20 places, b takes all of them
    assert score(up, jobs, best_shifts([up], jobs)) == pytest.approx(exhaustive([up], jobs))
    short = [job("a", 40, 10), job("b", 60, 10)]
    assert score(up, short, best_shifts([up], short)) == 1.0


@pytest.mark.parametrize(
    "speed_ups",
    [
        pytest.param((1.3, 1.28), id="DLRM, DLRM"),
        pytest.param((1.18, 1.18, 1.01), id="VGG19, VGG16, ResNet50"),
    ],
)
def test_jobs_that_the_authors_measured_as_compatible_are_so(speed_ups):
    """From the table of the seed's talk: how much faster an iteration is without contention.

    With a fair share of the link, an iteration of c + m seconds takes c + 2 m; so m is this part
    of c + m. The table has no pattern of its incompatible jobs, from which it could be told.
    """
    period = 1000
    jobs = [
        job(str(n), period, round(period * (speed_up - 1))) for n, speed_up in enumerate(speed_ups)
    ]
    up = link(**{one.name: 100.0 for one in jobs})
    assert score(up, jobs, {one.name: 0 for one in jobs}) < 1.0
    assert score(up, jobs, best_shifts([up], jobs)) == 1.0


def test_jobs_that_communicate_for_more_than_the_whole_period_are_not_compatible():
    jobs, up = [job("a", 10, 6), job("b", 10, 6)], link(a=100.0, b=100.0)
    assert score(up, jobs, best_shifts([up], jobs)) == pytest.approx(0.8)


@pytest.mark.parametrize("seed", range(12))
def test_small_cases_equal_an_exhaustive_search(seed):
    rng = random.Random(seed)
    jobs = []
    for name in "abc"[: rng.choice((2, 3))]:
        period = rng.choice((4, 6, 8, 12))
        jobs.append(job(name, period, rng.randint(1, period)))
    links = [
        LinkShare(str(n), 100.0, {one.name: rng.choice((0.0, 40.0, 70.0, 100.0)) for one in jobs})
        for n in range(rng.choice((1, 2)))
    ]
    shifts = best_shifts(links, jobs)
    found = sum(by_definition(one, jobs, shifts) for one in links)
    assert found == pytest.approx(exhaustive(links, jobs))
    assert found == pytest.approx(sum(score(one, jobs, shifts) for one in links))


def test_the_search_for_many_jobs_finds_what_fits(monkeypatch):
    monkeypatch.setattr(circle, "_MOST_TRIED", 0)
    jobs = [job(name, 12, 3) for name in "abcd"]
    up = link(a=100.0, b=100.0, c=100.0, d=100.0)
    assert score(up, jobs, best_shifts([up], jobs)) == 1.0


def test_shifts_are_consistent_over_all_links_of_a_loop():
    """a-b, b-c, c-a each share a link: the affinity graph has a loop, and thirds fit."""
    jobs = [job(name, 12, 4) for name in "abc"]
    pairs = [
        link(name="1", a=9.0, b=9.0),
        link(name="2", b=9.0, c=9.0),
        link(name="3", c=9.0, a=9.0),
    ]
    links = [LinkShare(one.name, 9.0, one.rates) for one in pairs]
    found = schedule(links, jobs)
    assert found.score == 1.0
    assert [one.alone for one in found.shared] == [1.0] * 3
    halves = schedule(links, [job(name, 12, 6) for name in "abc"])
    assert [one.alone for one in halves.shared] == [1.0] * 3
    assert halves.score < 1.0  # each pair fits by itself, all three do not


def test_jobs_without_a_common_link_are_planned_apart():
    jobs = [job(name, 10, 5) for name in "abcd"]
    links = [link(a=60.0, b=60.0), link(name="other", c=60.0, d=60.0)]
    assert [[one.name for one in part] for part in affinity_parts(links, jobs)] == [
        ["a", "b"],
        ["c", "d"],
    ]
    assert schedule(links, jobs).shifts == {"a": 0, "b": 5, "c": 0, "d": 5}


def test_compatible_jobs_are_kept_as_far_apart_as_their_periods_permit():
    """Iterations are never equally long, and jobs that overlap once stay together."""
    up = link(a=100.0, b=100.0, c=100.0)
    found = schedule([up], [job("a", 100, 40), job("b", 100, 20), job("c", 100, 10)])
    assert found.margins == dict.fromkeys("abc", 10)
    assert found.shifts == {"a": 0, "b": 50, "c": 80}
    whole = schedule([link(a=100.0, b=100.0)], [job("a", 10, 5), job("b", 10, 5)])
    assert whole.margins == {"a": 0, "b": 0}
    small = schedule([link(a=30.0, b=30.0)], [job("a", 10, 5), job("b", 10, 5)])
    assert small.margins == {"a": 5, "b": 5}  # they may communicate at once


def test_periods_without_a_short_common_multiple_are_refused():
    with pytest.raises(CircleError, match="coarser --tick"):
        circle.circle_length([job("a", 997, 1), job("b", 991, 1)])


def test_traffic_follows_the_weights_of_every_router():
    fabric = clos_fabric(2, 3)
    at = fabric.names.index
    loads = WeightedRoutes(fabric).loads({(at("L1"), at("L2")): 50.0})
    graph = fabric.graph
    used = {
        (fabric.names[graph.src[e]], fabric.names[graph.dst[e]]): loads[e]
        for e in loads.nonzero()[0]
    }
    assert used == dict.fromkeys((("L1", "S1"), ("L1", "S2"), ("S1", "L2"), ("S2", "L2")), 25.0)


JOBS = """
jobs:
  - {name: a, period: 200ms, busy: 100ms, bandwidth: 1600G, hosts: [L1, L2, L3]}
  - {name: b, period: 200ms, duty: 50%, bandwidth: 1600G, hosts: [L1, L4, L5]}
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    file = tmp_path_factory.mktemp("jobs") / "db.json"
    file.write_text(json.dumps(saved(clos())))
    return str(file)


def run(tmp_path, text, *args):
    file = tmp_path / "jobs.yaml"
    file.write_text(text)
    return CliRunner().invoke(main, ["plan", "jobs", str(file), *args])


def test_the_command_shifts_jobs_over_the_links_that_routing_uses(tmp_path, database):
    result = run(tmp_path, JOBS, "--lsdb", database, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["format"] == "fared-plan-jobs/1"
    assert {one["link"] for one in found["links"]} == {
        name for n in range(1, 5) for name in (f"L1 > S{n}", f"S{n} > L1")
    }
    assert [one["shift"] for one in found["jobs"]] == [0.0, pytest.approx(0.1)]
    assert (found["score"], found["apart"], found["better"]) == (1.0, [], None)
    assert found["links"][0]["unshifted"] == pytest.approx(0.5)


def test_incompatible_jobs_are_named_with_a_better_placement(tmp_path, database):
    longer = JOBS.replace("100ms", "150ms").replace("50%", "75%").replace("L5]", "L5, L6]")
    result = run(tmp_path, longer, "--lsdb", database, "--json")
    found = json.loads(result.output)
    assert found["score"] == pytest.approx(0.5)
    assert found["apart"][0]["jobs"] == ["a", "b"]
    assert found["better"] is None  # both need L1, whichever hosts they exchange
    shown = run(tmp_path, longer, "--lsdb", database)
    assert "a and b: 0.500 at best on" in shown.output
    assert max(map(len, shown.output.splitlines())) <= 80


def test_links_can_be_given_instead_of_a_database_as_in_the_example(tmp_path):
    path = tmp_path / "circle.svg"
    result = CliRunner().invoke(main, ["plan", "jobs", "--example", "--draw", str(path)])
    assert result.exit_code == 0, result.output
    assert "2 jobs, 1 shared link, score 1.000" in result.output
    drawn = path.read_text()
    assert ">All begin together: score 0.917<" in drawn
    assert ">Shifted: score 1.000<" in drawn
    assert ">above the capacity<" in drawn


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give a FILE, or --example"),
        (["x.yaml", "--example"], "give a FILE, or --example"),
        (["--example", "--draw", "circle.pdf"], ".png or .svg"),
    ],
)
def test_a_plan_needs_one_file_and_a_picture_a_format(arguments, words):
    result = CliRunner().invoke(main, ["plan", "jobs", *arguments])
    assert result.exit_code != 0
    assert words in result.output


def samples(period, busy, rate, *, seconds=60.0, every=0.25, noise=0.1, seed=1):
    """What a daemon measures of a job: means of intervals, with a little of other traffic."""
    rng = random.Random(seed)
    fine = 25
    times, loads = [], []
    for number in range(int(seconds / every)):
        begun = number * every
        on = sum((begun + every * n / fine) % period < busy for n in range(fine)) / fine
        times.append(begun + every)
        loads.append(rate * (on + noise * rng.random()))
    return times, loads


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("period", "busy"), [(2.0, 1.0), (3.1, 0.9), (5.0, 4.0), (1.3, 0.5)])
def test_the_pattern_of_a_job_is_found_in_the_load_of_a_link(period, busy, seed):
    found = pattern_of(*samples(period, busy, 1e8, seed=seed))
    assert found.period == pytest.approx(period, rel=0.1, abs=0.05)
    assert found.busy == pytest.approx(busy, rel=0.25)
    assert found.bandwidth == pytest.approx(1.05e8, rel=0.1)


@pytest.mark.parametrize(
    ("times", "loads", "words"),
    [
        (range(5), [1.0] * 5, "too few"),
        (range(100), [5.0] * 100, "often enough"),
        (range(100), [float(at % 2) for at in range(100)], "samples only"),
        (
            range(400),
            [float(math.isqrt(at) % 2) for at in range(400)],
            "not periodically",
        ),
    ],
)
def test_loads_without_a_period_are_refused(times, loads, words):
    with pytest.raises(MeasureError, match=words):
        pattern_of(list(map(float, times)), list(loads))


def test_a_measured_job_needs_its_hosts_only(tmp_path, database):
    times, loads = samples(2.0, 0.8, 1e11)
    ages = [60 - t for t in times]
    row = sample(LoadSamples, interface="S1", ages=ages, loads=list(map(float, loads)))
    document = sample(Load, interfaces=[row])
    file = tmp_path / "l1.json"
    file.write_text(json.dumps(document))
    text = """
jobs:
  - {name: a, hosts: [L1, L2, L3]}
  - {name: b, period: 2s, busy: 800ms, bandwidth: 800G, hosts: [L1, L4]}
"""
    given = ("--lsdb", database, "--from-load", f"a=S1@{file}", "--tick", "100ms")
    found = json.loads(run(tmp_path, text, *given, "--json").output)
    assert found["jobs"][0]["period"] == pytest.approx(2.0)
    assert found["jobs"][0]["busy"] == pytest.approx(0.8, abs=0.15)
    assert found["score"] == 1.0
    for wrong, code, words in (
        ("a=S2@" + str(file), 1, "no load of 'S2'"),
        ("c=S1@" + str(file), 1, "no job is named c"),
        ("b=S1@" + str(file), 1, "has hosts only"),
        ("a=S1", 2, "not JOB=INTERFACE@FILE"),
        ("a=S1@/dev/null", 1, "show load"),
    ):
        result = run(tmp_path, text, *given, "--from-load", wrong)
        assert (result.exit_code, words in result.output) == (code, True), result.output
    assert "not measured" in run(tmp_path, text, "--lsdb", database).output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("jobs: []", "jobs: List should have at least 1 item"),
        ("- a", "file: "),
        ("jobs: [{name: a, period: 1s, links: {x: 1G}}]", "either busy or duty"),
        ("jobs: [{name: a, period: 1s, busy: 2s, links: {x: 1G}}]", "at most its period"),
        ("jobs: [{name: a, period: 1s, busy: 1s, links: {x: 1G}}]", "no link 'x'"),
        ("jobs: [{name: a, period: 1s, busy: 1s, hosts: [L1, L2]}]", "and bandwidth"),
        ("jobs: [{name: a, period: soon, busy: 1s, hosts: [L1]}]", "not a duration"),
        (JOBS.replace("name: b", "name: a"), "two jobs are named a"),
        (JOBS, "need --lsdb"),
        (JOBS.replace("200ms", "0.4ms").replace("100ms", "0.2ms"), "no multiple of the tick"),
    ],
)
def test_mistakes_in_the_file_are_told(tmp_path, text, words):
    result = run(tmp_path, text)
    assert result.exit_code == 1
    assert words in result.output
