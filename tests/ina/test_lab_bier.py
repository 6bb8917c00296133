"""Results of all-reduces by BIER: each worker gets each once, and no link carries one twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fared.extensions.ina.slots.packet import largest_payload
from fared.extensions.lab import topology
from fared.extensions.lab.addressing import AddressPlan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ina_job import LabJob
from fared.extensions.lab.ina_workers import Workers
from fared.extensions.lab.ina_workload import run_ina
from fared.extensions.lab.ranks import rank_of
from fared.extensions.lab.waiting import await_paths
from fared.kernel.nft import find_nft
from tests.ina.test_lab import HEADERS, counters, repeated_bytes, sent, small_document
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.netns,
    pytest.mark.slow,
    pytest.mark.skipif(find_nft() is None, reason="nftables is not installed"),
]

HOSTS = ("h1", "h2", "h3", "h4")
SIZE, ITERATIONS = 1_000_000, 4
CHUNKS = -(-SIZE // largest_payload(9000, 64))


def two_at_a_leaf(protocol: str, bier: str) -> topology.LabTopology:
    """Two spines, three leaves; L1 has the workers h1 and h4."""
    document = small_document()
    inner = document["topology"]
    inner["nodes"]["h4"] = {"group": "host"}
    inner["links"].append({"endpoints": ["h4:L1", "L1:h4"], "mtu": 9000})
    labels = inner["groups"]["router"]["labels"]
    labels |= {"fared-lab.protocol": protocol, "fared-lab.bier": bier}
    return topology.from_document(document | {"name": "ina-bier"}, Path("bier.clab.yml"))


FABRICS = [("isis", "on"), ("ospf", "php"), pytest.param(("ospf", "on"), marks=pytest.mark.soak)]


@pytest.fixture(scope="module", params=FABRICS, ids="-".join)
def fabric(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fabric]:
    made = two_at_a_leaf(*request.param)
    with Fabric.from_topology(made, directory=tmp_path_factory.mktemp("lab")) as running:
        assert await_paths(running, 60.0) is not None
        wait_for(lambda: reached(running), 40, "all BFERs are reached")
        yield running


def reached(fabric: Fabric) -> bool:
    shown = [
        json.loads(fabric.node(router.name).cli("show", "bier", "--json"))["bfers"]
        for router in fabric.plan.routers
    ]
    return all(sum(not bfer["problem"] for bfer in bfers) == 9 for bfers in shown)


def test_each_worker_gets_each_result_once_by_bier(fabric: Fabric):
    """Chunks and barriers; every sum is verified. Repeated results, if any, come by unicast."""
    report = run_ina(fabric, HOSTS, SIZE, ITERATIONS, timeout=60, bier=True)
    assert len(report.jobs[0].iterations) == ITERATIONS
    told = counters(fabric, *HOSTS)
    # A router below which several workers are asks for all of them.
    repeated = sum(found.get("repeated", 0) for found in told)
    wanted = ITERATIONS * (CHUNKS + 1)
    for found in told:
        assert wanted - repeated <= found["bier"] <= wanted
        assert found["bier"] > wanted / 2, "most of them, on a busy machine too"
        assert found.get("duplicate", 0) <= repeated
        assert not {"address", "control-sum", "bier-not-received"} & {*found}


def test_a_link_to_two_workers_carries_each_result_once_by_bier_and_twice_by_unicast(
    fabric: Fabric,
):
    wanted = SIZE * ITERATIONS / 2 * (1 + HEADERS)
    for bier, copies in ((False, 2), (True, 1)):
        before = sent(fabric)
        run_ina(fabric, HOSTS, SIZE, ITERATIONS, timeout=60, bier=bier)
        carried = {link: after - before[link] for link, after in sent(fabric).items()}
        more = repeated_bytes(fabric, *HOSTS) / wanted
        for spine in ("S1", "S2"):
            times = carried[spine, "L1"] / wanted
            assert copies * 0.97 <= times <= copies * 1.3 + more, (bier, spine, times)


def test_a_job_of_the_daemons_sends_results_by_bier(fabric: Fabric):
    """The head knows the BFR-ids of all workers, and by default each result goes down once."""
    addresses = [str(rank_of(fabric.plan, host).address()) for host in HOSTS]
    head = fabric.node("L1")
    wait_for(lambda: len(summing(fabric)) == 5, 20, "all routers sum")
    head.cli("ina", "create", "told", "--workers", ",".join(addresses))
    assert "by BIER" in head.cli("show", "ina", "job", "told")
    workers = Workers(fabric, "told", HOSTS, SIZE, ITERATIONS, timeout=60)
    try:
        workers.start()
        wait_for(lambda: not workers.running(0.0), 60, "all calls")
    finally:
        workers.stop()
        head.cli("ina", "delete", "told")
    told = counters(fabric, *HOSTS)
    repeated, wanted = sum(f.get("repeated", 0) for f in told), ITERATIONS * (CHUNKS + 1)
    assert all(wanted - repeated <= found["bier"] <= wanted for found in told)


def summing(fabric: Fabric) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(fabric.node("L1").cli("--json", "ina", "jobs"))[
        "routers"
    ]
    return found


def test_a_job_by_bier_needs_a_bfr_id_of_each_worker(fabric: Fabric):
    address = str(rank_of(fabric.plan, "h1").address())
    router = str(rank_of(fabric.plan, "h2").gateway)
    with pytest.raises(LabError, match=f"{router} has no BFR-id"):
        fabric.node("L1").cli("ina", "create", "x", "--workers", f"{address},{router}", "--bier")


def test_hosts_without_a_bfr_id_are_told(fabric: Fabric, monkeypatch: pytest.MonkeyPatch):
    job = LabJob(fabric, "none", 1, HOSTS)
    plain = {name: replace(plan, bfr=None) for name, plan in fabric.plan.nodes.items()}
    monkeypatch.setattr(fabric, "plan", AddressPlan(plain))
    assert str(job.way_by_bier()).startswith("h1 has no BFR-id: L1 needs")
