"""Plans on a cluster of Dask: worker processes of this machine, one of which is killed."""

import json
import os
import signal

import pytest
from click.testing import CliRunner
from distributed import Client, LocalCluster

from fared.extensions.offline.plan import sets
from fared.extensions.offline.plan.cluster import compute_on_cluster
from fared.extensions.offline.plan.run import PlanTask, SetPart
from fared.extensions.offline.plan.sweep import SetOutcome, capacities
from fared.management.cli.main import main
from tests.offline.fabrics import clos, saved
from tests.plan import networks

WORKERS = 2
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = LocalCluster(
        n_workers=WORKERS,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        local_directory=str(tmp_path_factory.mktemp("dask")),
    )
    with made:
        yield made


def run(tmp_path, *args):
    database = tmp_path / "db.json"
    database.write_text(json.dumps(saved(clos())))
    command = ["plan", "failures", "--lsdb", str(database), "--json", "--doubles", "all", *args]
    return CliRunner().invoke(main, command)


def test_a_cluster_gives_the_same_report(tmp_path, cluster):
    here = run(tmp_path, "--workers", "1")
    there = run(tmp_path, "--scheduler", cluster.scheduler_address)
    assert (there.exit_code, there.output) == (0, here.output)


def test_a_plan_goes_on_when_a_worker_is_killed_and_gives_the_same_rows(cluster):
    fabric = networks.clos(4, 6)
    failures = sets.double_links(fabric, None, 0)
    task = PlanTask(fabric, capacities(fabric), (failures,))
    parts = [SetPart(0, at, at + 1) for at in range(len(failures))]
    with Client(cluster.scheduler_address, set_as_default=False) as client:
        victims = client.run(os.getpid)
    assert len(victims) == WORKERS
    found: dict[SetPart, SetOutcome] = {}
    for part, outcome in compute_on_cluster(task, parts, cluster.scheduler_address):
        found[part] = outcome
        if len(found) == 20:
            os.kill(min(victims.values()), signal.SIGKILL)
    assert sorted(found) == parts
    for part in parts:
        here = task.compute(part)
        for name in SetOutcome.__struct_fields__:
            assert _bytes(getattr(found[part], name)) == _bytes(getattr(here, name)), name


def _bytes(value):
    return value if isinstance(value, int) else value.tobytes()


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--scheduler", "tcp://127.0.0.1:1"), 1, "no scheduler of Dask answers"),
        (("--scheduler", "nowhere"), 1, "no scheduler of Dask answers"),
        (("--scheduler", "tcp://127.0.0.1:1", "--workers", "2"), 2, "not with --scheduler"),
    ],
)
def test_mistakes_are_told(tmp_path, monkeypatch, args, code, words):
    monkeypatch.setattr("fared.extensions.offline.plan.cluster.CONNECT_WITHIN", 0.5)
    result = run(tmp_path, *args)
    assert result.exit_code == code
    assert words in result.output
