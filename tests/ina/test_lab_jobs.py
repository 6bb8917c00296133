"""Jobs that daemons flood: trees follow failures in the middle of calls, sums stay right."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from tests.ina.lab_jobs import (
    SHORT,
    Jobs,
    hardly_late,
    lose_a_worker_and_take_it_back,
    same,
    survive_failures,
)
from tests.ina.test_lab import small
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with Fabric.from_topology(small(), directory=tmp_path_factory.mktemp("lab")) as running:
        assert await_paths(running, 60.0) is not None
        yield Jobs(running)


@pytest.fixture
def jobs(shared: Jobs) -> Iterator[Jobs]:
    """The fabric, whole again for each test."""
    yield shared
    fabric = shared.fabric
    for job in shared.shown("L2")[
        "jobs"
    ]:  # of a test that failed: others would share links with it
        shared.end(job["name"])
    for router in ("S1", "L1"):
        if {process.name for process in fabric.node(router).processes} != {"fared", "fared-ina"}:
            fabric.stop_node(router)
            fabric.start_node(router)
    for leaf in ("L1", "L2", "L3"):
        fabric.heal("S1", leaf)
    assert await_paths(fabric, 60.0) is not None


def test_a_job_is_known_everywhere_and_ends_everywhere(jobs: Jobs):
    jobs.create("known")
    for router in ("S1", "S2", "L3"):
        wait_for(lambda r=router: jobs.shown(r)["jobs"], SHORT, "the job is flooded")
    wait_for(lambda: jobs.job("known", "S1")["here"], SHORT, "fared-ina has the job")
    assert jobs.job("known", "S1")["here"]["trees"] == 1
    jobs.start("known", calls=3)
    assert same(jobs.results("known"))
    wait_for(
        lambda: metric(jobs, "S1", 'ina_packets_total{job="known",result="added",type="data"}'),
        30,
        "sums",
    )
    assert metric(jobs, "S1", 'ina_epoch{job="known"}') == 1
    assert metric(jobs, "S1", "ina_process_up") == 1
    jobs.end("known")
    for router in ("S1", "L3"):
        wait_for(
            lambda r=router: not jobs.shown(r)["jobs"],
            SHORT,
            lambda r=router: f"{r} has {jobs.shown(r)['jobs']}",
        )


def test_show_ina_job_tells_rates_and_for_whom_routers_wait(jobs: Jobs):
    """Rank 2 sleeps. S1 lacks its values; L1, where nothing is summed, knows that from a worker."""
    jobs.create("waits")
    jobs.start("waits", calls=4, silent=[3, 2], timeout=60.0)
    for router in ("S1", "L1"):
        wait_for(
            lambda r=router: jobs.job("waits", r)["waits_for"] == [2],
            SHORT,
            lambda r=router: str(jobs.job("waits", r)),
        )
    head, spine = jobs.job("waits", "L1"), jobs.job("waits", "S1")
    assert (head["here"]["trees"], spine["here"]["trees"]) == (0, 1)
    assert [tree["hostname"] for tree in head["trees"]] == ["S1", "S2"]
    assert head["planned"] == pytest.approx(2 * 100e6 / 8)
    assert all(tree["nodes"][0]["ranks"] == [0, 1, 2] for tree in head["trees"])
    drawn = json.loads(jobs.fabric.node("L1").cli("show", "fabric", "--json"))["jobs"]
    (trees,) = (job["trees"] for job in drawn if job["name"] == "waits")
    assert [tree["branches"] for tree in trees] == [
        [{"router": tree["root"], "parent": None}] for tree in head["trees"]
    ]
    assert head["repeated"] > 0
    assert [worker["state"] for worker in head["workers"]] == ["joined", None, None]
    mine = next(tree["here"] for tree in spine["trees"] if tree["here"])
    assert mine["open"] > 0
    assert mine["sums"] > 0
    assert mine["waits_for"] == [2]
    wait_for(lambda: jobs.job("waits")["seen"] is not None, SHORT, "a rate is seen")
    text = jobs.fabric.node("L1").cli("show", "ina", "job", "waits")
    assert "Waits for     rank 2" in text or "Waits for  rank 2" in text, text
    assert metric(jobs, "L1", 'ina_repeated_total{job="waits"}') > 0
    assert metric(jobs, "S1", 'ina_waits_for{job="waits"}') == 1
    waited = metric(jobs, "S1", 'ina_wait_seconds{job="waits"}')
    wait_for(
        lambda: metric(jobs, "S1", 'ina_wait_seconds{job="waits"}') > waited > 0, SHORT, "it waits"
    )
    jobs.end("waits")


def metric(jobs: Jobs, router: str, name: str) -> float:
    """A value of the daemon's metrics; 0 if it is not there."""
    url = "http://127.0.0.1:9547/metrics"
    program = f"import urllib.request as u; print(u.urlopen({url!r}).read().decode())"
    text = jobs.fabric.node(router).netns.run([sys.executable, "-c", program]).stdout
    found = [line for line in text.splitlines() if line.startswith(f"fared_{name} ")]
    return float(found[0].split()[-1]) if found else 0.0


def fail_link(jobs: Jobs) -> None:
    jobs.fabric.fail("S1", "L2")


def fail_spine(jobs: Jobs) -> None:
    jobs.kill("S1", "fared-ina")
    jobs.kill("S1", "fared")
    for leaf in ("L1", "L2", "L3"):
        jobs.fabric.fail("S1", leaf)


def fail_process(jobs: Jobs) -> None:
    jobs.kill("S1", "fared-ina")


@pytest.mark.parametrize(
    "fail",
    [
        fail_spine,
        *(pytest.param(other, marks=pytest.mark.soak) for other in (fail_link, fail_process)),
    ],
)
def test_trees_avoid_what_failed_in_the_middle_of_calls(jobs: Jobs, fail):
    name = fail.__name__
    jobs.create(name)
    jobs.start(name, calls=60)
    fail(jobs)
    wait_for(lambda: jobs.job(name)["epoch"] > 1, SHORT, lambda: str(jobs.job(name)))
    results = jobs.results(name)
    assert same(results)
    assert min(result["epoch"] for result in results) >= 2
    assert [tree["root"] for tree in jobs.job(name)["trees"]] == ["10.255.0.2"]
    assert hardly_late(results), results
    jobs.end(name)


@pytest.mark.soak
def test_links_that_fail_one_after_the_other_delay_sums_by_less_than_a_second(jobs: Jobs):
    survive_failures(jobs, "soak")


def test_another_leaf_takes_over_when_the_daemon_of_the_head_crashes(jobs: Jobs):
    """The daemon starts again, as systemd does it, and knows the job from the others."""
    jobs.create("headless")
    jobs.start("headless", calls=100)
    jobs.kill("L1", "fared")
    jobs.restart("L1")
    second = "10.255.0.4"
    wait_for(lambda: jobs.head("headless", "S2") == second, 20, "L2 leads the job")
    results = jobs.results("headless")
    assert same(results)
    assert hardly_late(results), results
    wait_for(lambda: jobs.head("headless", "L1") == second, 20, "L1 follows")
    jobs.end("headless")


@pytest.mark.soak
def test_a_job_has_a_relay_while_two_leaves_are_weak_at_two_spines(jobs: Jobs):
    """L2 sends over S2 and L1 to S1; the loss of S2-L1, which only the relay needs, is repaired."""
    jobs.create("relay")
    slow = (("S1", "L2"), ("L2", "S1"), ("S2", "L3"), ("L3", "S2"))
    for a, b in slow:
        jobs.fabric.shape(a, b, 25e6 / 8)
    try:
        wait_for(lambda: weights(jobs, "relay") == [1, 1, 3], 20, lambda: str(jobs.job("relay")))
        jobs.start("relay", calls=40)
        jobs.fabric.fail("S2", "L1")
        results = jobs.results("relay")
        assert same(results)
        assert hardly_late(results), results
        wait_for(lambda: len(weights(jobs, "relay")) < 3, SHORT, lambda: str(jobs.job("relay")))
    finally:
        jobs.fabric.heal("S2", "L1")
        for a, b in slow:
            jobs.fabric.shape(a, b, 100e6 / 8)
    jobs.end("relay")


def weights(jobs: Jobs, name: str) -> list[int]:
    return [tree["weight"] for tree in jobs.job(name)["trees"]]


def test_weights_follow_a_changed_rate(jobs: Jobs):
    jobs.create("rates")
    for a, b in (("S1", "L2"), ("L2", "S1")):
        jobs.fabric.shape(a, b, 25e6 / 8)
    wanted = [1, 4]
    wait_for(
        lambda: [tree["weight"] for tree in jobs.job("rates", "S1")["trees"]] == wanted,
        SHORT,
        lambda: str(jobs.job("rates", "S1")),
    )
    for a, b in (("S1", "L2"), ("L2", "S1")):
        jobs.fabric.shape(a, b, 100e6 / 8)
    jobs.end("rates")


@pytest.mark.soak
def test_two_jobs_have_a_spine_each_and_one_has_both_when_the_other_ends(jobs: Jobs):
    jobs.create("first")
    jobs.create("second")

    def roots(name: str) -> set[str]:
        return {tree["root"] for tree in jobs.job(name, "S1")["trees"]}

    wait_for(
        lambda: len(roots("first") | roots("second")) == len(roots("first")) * 2 == 2,
        SHORT,
        lambda: str(jobs.shown("S1")),
    )
    for name in ("first", "second"):
        jobs.start(name, calls=20)
    for name in ("first", "second"):
        assert same(jobs.results(name))
    assert jobs.job("second")["planned"] == pytest.approx(100e6 / 8)
    assert "sums for second" in jobs.fabric.node("L1").cli("show", "ina", "job", "first")
    jobs.fabric.node("L1").cli("ina", "delete", "second")
    wait_for(lambda: len(roots("first")) == 2, SHORT, lambda: str(jobs.shown("S1")))
    jobs.end("first")


def test_a_killed_worker_is_named_in_other_racks(jobs: Jobs):
    jobs.create("killed")
    workers = jobs.start("killed", calls=10**6)
    workers[1].kill()
    wait_for(lambda: len(jobs.lines("killed")[0]) == len(jobs.lines("killed")[2]) == 2, 30, "told")
    found = [jobs.lines("killed")[rank][1] for rank in (0, 2)]
    assert [(one.get("error"), one.get("ranks")) for one in found] == [("WorkerLost", [1])] * 2
    jobs.end("killed")


def test_an_elastic_job_goes_on_without_a_killed_worker_and_takes_it_back(
    jobs: Jobs, tmp_path: Path
):
    lose_a_worker_and_take_it_back(jobs, "elastic", tmp_path / "stop")
    log = (jobs.fabric.node("L1").directory / "fared.log").read_text()
    events = [json.loads(line) for line in log.splitlines() if "ina-epoch" in line]
    (event,) = (one for one in events if one["job"] == "elastic" and one["epoch"] == 2)
    assert (event["workers"], event["lost"]) == (2, [1])


def test_an_elastic_job_with_one_worker_left_ends_and_says_why(jobs: Jobs, tmp_path: Path):
    jobs.create("alone", "--elastic")
    workers = jobs.start("alone", stop=str(tmp_path / "stop"), elements=5000)
    for worker in workers[1:]:
        worker.kill()
    wait_for(lambda: "error" in jobs.lines("alone")[0][-1], SHORT, lambda: jobs.told("alone"))
    line = jobs.lines("alone")[0][-1]
    assert line["error"] == "JobEnded"
    assert "2 workers are needed" in line["text"]
