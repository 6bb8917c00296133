"""One job over both PoDs of a five-stage fabric: areas of OSPF, or levels of IS-IS."""

from __future__ import annotations

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
