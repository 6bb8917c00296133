"""Workers go on over a ring when no spine sums any more, as the daemons decide it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fared.extensions.lab import topology
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from tests.ina.lab_jobs import SHORT, Jobs, same
from tests.ina.test_lab import ROOT
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]


def four_leaves() -> topology.LabTopology:
    """Two spines, four leaves: one leaf that sums for three others would be a parameter server."""
    document = yaml.safe_load((ROOT / "containerlab" / "ina.clab.yml").read_text())
    names = {f"{kind}{n}" for kind in "Lh" for n in range(1, 5)} | {"S1", "S2"}
    inner = document["topology"]
    inner["nodes"] = {name: node for name, node in inner["nodes"].items() if name in names}
    inner["links"] = [
        link for link in inner["links"] if {end[:2] for end in link["endpoints"]} <= names
    ]
    inner["groups"]["router"]["labels"]["fared-lab.rate"] = "100M"
    return topology.from_document(document | {"name": "ina-ring"}, Path("ring.clab.yml"))


@pytest.mark.soak
def test_sums_go_on_over_a_ring_when_no_spine_sums_any_more(tmp_path: Path):
    with Fabric.from_topology(four_leaves(), directory=tmp_path) as running:
        assert await_paths(running, 60.0) is not None
        jobs = Jobs(running)
        jobs.create("ring")
        assert [tree["hostname"] for tree in jobs.job("ring")["trees"]] == ["S1", "S2"]
        jobs.start("ring", calls=60, timeout=60.0)
        for spine in ("S1", "S2"):
            jobs.kill(spine, "fared-ina")
        wait_for(
            lambda: jobs.job("ring")["trees"] == [], SHORT, lambda: str(jobs.job("ring")["reason"])
        )
        results = jobs.results("ring", 120.0)
        assert same(results)
        assert jobs.job("ring")["reason"].endswith("no aggregation tree, workers form a ring")
        assert {result["epoch"] for result in results} == {jobs.job("ring")["epoch"]}
        text = running.node("L1").cli("show", "ina", "job", "ring")
        assert "none: workers form a ring over TCP" in text
        assert "S1  no tree: does not sum" in text
        jobs.end("ring")
