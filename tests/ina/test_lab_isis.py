"""Jobs over IS-IS: GENINFO TLVs carry what opaque LSAs carry over OSPF."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fared.extensions.lab import topology
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.waiting import await_paths
from tests.ina.lab_jobs import SHORT, Jobs, lose_a_worker_and_take_it_back, same, survive_failures
from tests.ina.test_lab import small_document
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.slow]


def isis() -> topology.LabTopology:
    document = small_document()
    document["topology"]["groups"]["router"]["labels"]["fared-lab.protocol"] = "isis"
    return topology.from_document(document | {"name": "ina-isis"}, Path("isis.clab.yml"))


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with Fabric.from_topology(isis(), directory=tmp_path_factory.mktemp("lab")) as running:
        assert await_paths(running, 60.0) is not None
        yield Jobs(running)


def test_jobs_are_flooded_over_isis(jobs: Jobs):
    jobs.create("isis")
    wait_for(lambda: jobs.shown("S2")["jobs"], SHORT, "the job is flooded")
    jobs.start("isis", calls=10)
    assert same(jobs.results("isis"))
    jobs.end("isis")
    wait_for(lambda: not jobs.shown("S2")["jobs"], SHORT, "the job has ended")


@pytest.mark.soak
def test_links_that_fail_one_after_the_other_delay_sums_by_less_than_a_second(jobs: Jobs):
    survive_failures(jobs, "soak")


def test_an_elastic_job_goes_on_without_a_killed_worker_and_takes_it_back(
    jobs: Jobs, tmp_path: Path
):
    lose_a_worker_and_take_it_back(jobs, "elastic", tmp_path / "stop")
