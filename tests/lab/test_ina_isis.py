"""Jobs over IS-IS: GENINFO TLVs carry what opaque LSAs carry over OSPF."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fared.lab import topology
from fared.lab.fabric import Fabric
from fared.lab.waiting import await_paths
from tests.lab.ina_jobs import SHORT, Jobs, same
from tests.lab.test_ina import small
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]


def isis() -> topology.LabTopology:
    document = yaml.safe_load(yaml.safe_dump(dict(small().document)))
    document["topology"]["groups"]["router"]["labels"]["fared-lab.protocol"] = "isis"
    return topology.from_document(document | {"name": "ina-isis"}, Path("isis.clab.yml"))


def test_jobs_are_flooded_over_isis(tmp_path: Path):
    with Fabric.from_topology(isis(), directory=tmp_path) as running:
        assert await_paths(running, 60.0) is not None
        jobs = Jobs(running)
        jobs.create("isis")
        wait_for(lambda: jobs.shown("S2")["jobs"], SHORT, "the job is flooded")
        jobs.start("isis", calls=10)
        assert same(jobs.results("isis"))
        jobs.end("isis")
        wait_for(lambda: not jobs.shown("S2")["jobs"], SHORT, "the job has ended")
