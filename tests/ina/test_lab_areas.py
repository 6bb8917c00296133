"""One job over both PoDs of a five-stage fabric: areas of OSPF, or levels of IS-IS."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from fared.extensions.lab import topology
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from tests.ina.lab_jobs import SHORT, Jobs, hardly_late, same
from tests.ina.test_lab import ROOT, sent
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow, pytest.mark.soak]
PODS = ("p1", "p2")
NAMES = {"plane1-SS1", "plane2-SS1"} | {
    f"{pod}-{what}" for pod in PODS for what in ("S1", "S2", "L1", "L2", "h1", "h2")
}
CALLS, VALUES = 20, 200_000


def small(name: str) -> topology.LabTopology:
    """Two planes of a super-spine, two PoDs of two leaves, all of which sum."""
    document = yaml.safe_load((ROOT / "containerlab" / f"{name}.clab.yml").read_text())
    inner = document["topology"]
    inner["nodes"] = {node: found for node, found in inner["nodes"].items() if node in NAMES}
    inner["links"] = [
        link for link in inner["links"] if {end.split(":")[0] for end in link["endpoints"]} <= NAMES
    ]
    for group in inner["groups"].values():
        if group.get("labels", {}).get("fared-lab.kind") == "fared":
            group["labels"]["fared-lab.ina"] = "on"
    return topology.from_document(document | {"name": f"{name}-small"}, Path("small.clab.yml"))


def whole(name: str) -> topology.LabTopology:
    """The shipped file: four planes of two super-spines, two PoDs of four leaves, with BIER."""
    document = yaml.safe_load((ROOT / "containerlab" / f"{name}.clab.yml").read_text())
    for group in document["topology"]["groups"].values():
        if group.get("labels", {}).get("fared-lab.kind") == "fared":
            group["labels"] |= {"fared-lab.ina": "on", "fared-lab.bier": "on"}
    return topology.from_document(document, Path(f"{name}.clab.yml"))


@pytest.fixture(params=["clos5", "clos5-isis"])
def all_of_it(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Jobs]:
    with Fabric.from_topology(whole(request.param), directory=tmp_path) as running:
        assert await_paths(running, 240.0) is not None
        wait_for(lambda: all(reached(running)), 60, lambda: f"BFERs: {reached(running)}")
        yield Jobs(running)


def reached(fabric: Fabric) -> list[bool]:
    """Whether each leaf and super-spine reaches all hosts, whose BFR-ids are the lowest."""
    hosts = len(fabric.plan.hosts)
    found = []
    for router in fabric.plan.routers:
        if router.name[3:4] != "S":
            shown = json.loads(fabric.node(router.name).cli("show", "bier", "--json"))["bfers"]
            found.append(
                sum(one["bfr_id"] <= hosts and not one["problem"] for one in shown) == hosts
            )
    return found


@pytest.fixture(params=["clos5", "clos5-isis"])
def jobs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Jobs]:
    with Fabric.from_topology(small(request.param), directory=tmp_path) as running:
        assert await_paths(running, 90.0) is not None
        yield Jobs(running)


def test_a_job_over_both_pods_is_summed_at_spines_and_super_spines(jobs: Jobs):
    head, other = "p1-L1", "p2-L2"
    jobs.create("wide", head=head, routers=4)
    trees = jobs.job("wide", head)["trees"]
    assert {tree["hostname"] for tree in trees} == {"plane1-SS1", "plane2-SS1"}
    for tree in trees:
        ranks = sorted(node["ranks"] for node in tree["nodes"])
        assert ranks == [[0, 1], [0, 1, 2, 3], [2, 3]], "a spine of each PoD, and the root"
    wait_for(lambda: jobs.head("wide", other), SHORT, "the job is known in the other PoD")
    before = sent(jobs.fabric)
    jobs.start("wide", calls=CALLS, elements=VALUES)
    assert same(jobs.results("wide"))
    carried = {link: count - before[link] for link, count in sent(jobs.fabric).items()}
    parts = {link: count / (CALLS * VALUES * 4) for link, count in carried.items()}
    assert all(0.5 <= part < 0.6 for part in parts.values()), f"half of each array: {parts}"
    jobs.end("wide")
    wait_for(lambda: not jobs.shown(other)["jobs"], SHORT, "the job has ended in the other PoD")

    jobs.create("lossy", head=head, routers=4)
    jobs.start("lossy", calls=3 * CALLS, elements=VALUES)
    jobs.kill("p2-S1", "fared-ina")
    results = jobs.results("lossy")
    assert same(results)
    assert hardly_late(results)
    assert [tree["hostname"] for tree in jobs.job("lossy", head)["trees"]] == ["plane2-SS1"]
    jobs.end("lossy")
    wait_for(lambda: not jobs.shown(other)["jobs"], SHORT, "the job has ended in the other PoD")


HEAD, FAR = "p1-L1", "p2-L4"
MBIT = 1e6 / 8


def test_bier_given_trees_relays_and_lost_workers_cross_areas(all_of_it: Jobs, tmp_path: Path):
    """Of the shipped fabrics; each sum is compared with the true one."""
    results_go_by_bier(all_of_it)
    a_given_tree_has_routers_of_both_pods(all_of_it)
    weak_leaves_relay(all_of_it)
    a_lost_worker_of_the_other_pod_comes_back(all_of_it, tmp_path / "stop")


def results_go_by_bier(jobs: Jobs) -> None:
    """A plane carries each result once to a PoD, which has four workers; nobody else copies it."""
    jobs.create("bier", "--bier", head=HEAD, routers=8)
    assert "by BIER" in jobs.fabric.node(HEAD).cli("show", "ina", "job", "bier")
    before = sent(jobs.fabric)
    jobs.start("bier", calls=CALLS, elements=VALUES)
    results = jobs.results("bier")
    assert same(results)
    assert all(one["counters"]["bier"] > 0 for one in results)
    down: Counter[str] = Counter()
    for (near, far), count in sent(jobs.fabric).items():
        if near.startswith("plane"):
            down[far[:2]] += count - before[near, far]
    parts = {pod: count / (CALLS * VALUES * 4) for pod, count in down.items()}
    assert all(1 < part < 1.5 for part in parts.values()), parts
    jobs.end("bier")


def a_given_tree_has_routers_of_both_pods(jobs: Jobs) -> None:
    jobs.create("given", "--tree", "p1-S1,p2-S1,plane1-SS2", head=HEAD, routers=8)
    (tree,) = jobs.job("given", HEAD)["trees"]
    assert (tree["hostname"], tree["kind"]) == ("plane1-SS2", "given")
    summed = {node["hostname"]: node["ranks"] for node in tree["nodes"]}
    assert summed["p2-S1"] == [4, 5, 6, 7]
    jobs.start("given", calls=4, elements=VALUES)
    assert same(jobs.results("given"))
    jobs.end("given")


def weak_leaves_relay(jobs: Jobs) -> None:
    """Two leaves have a quarter at different spines: stars have 2.5 links, with relays 3.25."""
    weak = [("p2-L1", "p2-S1"), ("p2-L2", "p2-S2")]
    for a, b in [*weak, *((b, a) for a, b in weak)]:
        jobs.fabric.shape(a, b, 25 * MBIT)
    jobs.create("relay", "--unicast", head=HEAD, routers=8)

    def rate() -> float:
        return jobs.job("relay", HEAD)["planned"] / (100 * MBIT)

    wait_for(lambda: rate() > 3, 30, lambda: str(jobs.job("relay", HEAD)))
    assert rate() == pytest.approx(3.25, rel=0.05)
    assert "relay" in {tree["kind"] for tree in jobs.job("relay", HEAD)["trees"]}
    jobs.start("relay", calls=CALLS, elements=VALUES)
    assert same(jobs.results("relay"))
    jobs.end("relay")


def a_lost_worker_of_the_other_pod_comes_back(jobs: Jobs, stop: Path) -> None:
    every, given = list(range(8)), {"stop": str(stop), "elements": 50_000}

    def over(rank: int) -> list[list[int]]:
        return [line["over"] for line in jobs.lines("elastic")[rank] if "over" in line]

    jobs.create("elastic", "--elastic", head=HEAD, routers=8)
    workers = jobs.start("elastic", **given)
    told = lambda: jobs.told("elastic")  # noqa: E731
    wait_for(lambda: all(over(rank) == [every] for rank in every), 30, told)
    workers[7].kill()
    wait_for(lambda: all(every[:7] in over(rank) for rank in every[:7]), 20, told)
    assert jobs.job("elastic", FAR)["reason"] == "rank 7 is lost"
    jobs.start_one("elastic", 7, **given)
    wait_for(lambda: all(over(rank)[-1:] == [every] for rank in every), 20, told)
    stop.touch()
    wait_for(lambda: all("ranks" in lines[-1] for lines in jobs.lines("elastic")), 30, told)
    results = [lines[-1] for lines in jobs.lines("elastic")]
    assert [one["sets"] for one in results[:7]] == [[every, every[:7], every]] * 7
    assert hardly_late(results[:7]), results
    jobs.end("elastic")
