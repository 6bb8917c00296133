"""In-network aggregation in a lab: real packets through routers that sum, bytes on each link."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from fared.extensions.ina.plan.bounds import least_cut
from fared.extensions.ina.plan.planner import plan_job
from fared.extensions.ina.plan.stripes import stripe_weights
from fared.extensions.lab import topology
from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.ina_job import LabJob, capacities, lab_tree, summing_job
from fared.extensions.lab.ina_workload import run_ina, run_jobs
from fared.extensions.lab.port import PortAddresses
from fared.extensions.lab.waiting import await_paths

ROOT = Path(__file__).parents[2]
MBIT = 1e6 / 8
MTU = 9000
HEADERS = (14 + 28 + 40) / 8896
"""Ethernet, IPv4 and UDP, the packet's own header, of the values of a jumbo frame."""


def small_document() -> dict[str, Any]:
    """The file of two spines, three leaves, a worker each; 100 Mbit/s, jumbo frames."""
    document = yaml.safe_load((ROOT / "containerlab" / "ina.clab.yml").read_text())
    names = {"S1", "S2", "L1", "L2", "L3", "h1", "h2", "h3"}
    inner = document["topology"]
    inner["nodes"] = {name: node for name, node in inner["nodes"].items() if name in names}
    inner["links"] = [
        link for link in inner["links"] if {end[:2] for end in link["endpoints"]} <= names
    ]
    inner["groups"]["router"]["labels"]["fared-lab.rate"] = "100M"
    return dict(document, name="ina-small")


def small() -> topology.LabTopology:
    """The fabric of that file."""
    return topology.from_document(small_document(), Path("small.clab.yml"))


def loaded(name: str) -> AddressPlan:
    return make_plan(topology.load(ROOT / "containerlab" / name))


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    with Fabric.from_topology(small(), directory=tmp_path_factory.mktemp("lab")) as running:
        assert await_paths(running, 60.0) is not None
        yield running


def sent(fabric: Fabric) -> dict[tuple[str, str], int]:
    """Bytes that each router has sent to each other one."""
    return {
        (port.node, port.peer): fabric.view(router.name).counters()[port.name].sent_bytes
        for router in fabric.plan.routers
        for port in router.fabric_ports
    }


def counters(fabric: Fabric, *hosts: str) -> list[dict[str, Any]]:
    """Those of each worker of the last job."""
    logs = [fabric.node(host).directory / "ina-worker.log" for host in hosts]
    return [json.loads(log.read_text().splitlines()[-1])["counters"] for log in logs]


def repeated_bytes(fabric: Fabric, *hosts: str) -> int:
    """What a link may have carried in vain, since workers on a busy machine asked once more."""
    repeated: int = sum(found.get("repeated", 0) for found in counters(fabric, *hosts))
    return 2 * repeated * MTU


@pytest.mark.netns
@pytest.mark.slow
def test_each_uplink_carries_its_part_of_the_array_once_each_way(fabric: Fabric):
    """Two stars halve the array; a link at a third of the rate gets a quarter of it."""
    size, iterations = 3_000_000, 4
    for shares in ({"S1": 0.5, "S2": 0.5}, {"S1": 0.25, "S2": 0.75}):
        before = sent(fabric)
        report = run_ina(fabric, ("h1", "h2", "h3"), size, iterations, timeout=60)
        carried = {link: after - before[link] for link, after in sent(fabric).items()}
        assert len(report.jobs[0].iterations) == iterations
        repeats = repeated_bytes(fabric, "h1", "h2", "h3")
        for (near, far), found in carried.items():
            spine = near if near in shares else far
            wanted = size * iterations * shares[spine] * (1 + HEADERS)
            assert wanted * 0.97 <= found <= wanted * 1.3 + repeats, (near, far)
        for a, b in (("S1", "L2"), ("L2", "S1")):
            fabric.shape(a, b, 100 / 3 * MBIT)
    for a, b in (("S1", "L2"), ("L2", "S1")):
        fabric.shape(a, b, 100 * MBIT)


@pytest.mark.netns
@pytest.mark.slow
def test_a_relay_carries_what_two_weak_leaves_at_two_spines_would_waste(fabric: Fabric):
    """Stars have half of an uplink; with a relay for L2 over S2 and L1 it is a quarter more."""
    size, iterations, slow = 3_000_000, 2, (("S1", "L2"), ("S2", "L3"))
    for a, b in slow:
        fabric.shape(a, b, 25 * MBIT)
        fabric.shape(b, a, 25 * MBIT)
    try:
        before = sent(fabric)
        report = run_ina(fabric, ("h1", "h2", "h3"), size, iterations, timeout=60)
        carried = {link: after - before[link] for link, after in sent(fabric).items()}
        repeats = repeated_bytes(fabric, "h1", "h2", "h3")
    finally:
        for a, b in slow:
            fabric.shape(a, b, 100 * MBIT)
            fabric.shape(b, a, 100 * MBIT)
    assert report.jobs[0].bound == pytest.approx(size / (125 * MBIT))
    parts = {("L2", "S1"): 1, ("L2", "S2"): 4, ("S2", "L1"): 4, ("L1", "S1"): 4, ("L3", "S2"): 1}
    for (near, far), part in parts.items():
        wanted = size * iterations * part / 5 * (1 + HEADERS)
        for link in ((near, far), (far, near)):
            assert wanted * 0.97 <= carried[link] <= wanted * 1.3 + repeats, link


@pytest.mark.netns
@pytest.mark.slow
def test_two_jobs_over_the_same_hosts_share_the_links(fabric: Fabric):
    """Planned together, each has a spine; every sum of both is verified."""
    report = run_jobs(fabric, [("h1", "h2", "h3"), ("h3", "h1")], 200_000, 2, timeout=60)
    assert [len(job.job.hosts) for job in report.jobs] == [3, 2]
    assert [len(job.iterations) for job in report.jobs] == [2, 2]


@pytest.mark.netns
@pytest.mark.slow
@pytest.mark.parametrize("reduced_to", [None, 1])
def test_a_server_may_be_the_root(fabric: Fabric, reduced_to: int | None):
    """L1 sums h1 alone, and h3 what comes from there and from h2; every sum is verified.

    Of a reduce only rank 1 gets it: the array of the other one stays as it is.
    """
    report = run_ina(fabric, ("h1", "h2"), 100_000, 2, timeout=60, tree="L1,h3", root=reduced_to)
    assert len(report.jobs[0].iterations) == 2
    assert report.jobs[0].bound == pytest.approx(100_000 / (200 * MBIT))
    assert not fabric.node("h3").processes


@pytest.mark.netns
def test_jobs_that_cannot_be_are_told(fabric: Fabric):
    with pytest.raises(LabError, match="two different hosts"):
        run_ina(fabric, ("h1",), 1000, 1)
    nothing = LabJob(fabric, "none", 1, ("h1", "h2"))
    with pytest.raises(LabError, match="no aggregation tree"):
        nothing.plan(lambda _: 0.0)
    with pytest.raises(LabError, match="no router 'S9': S1, "):
        run_ina(fabric, ("h1", "h2"), 1000, 1, tree="L1,S9")
    with pytest.raises(LabError, match="L3 would sum nothing: no worker's way to the root S1"):
        run_ina(fabric, ("h1", "h2"), 1000, 1, tree="L3,S1")


def damaged(port: PortAddresses) -> float:
    return (12.5 if {port.node, port.peer} == {"S1", "L2"} else 50) * MBIT


def test_the_lab_of_four_spines_stripes_by_what_each_carries():
    plan = loaded("ina.clab.yml")
    job = summing_job(plan, "job", [host.name for host in plan.hosts])
    for rate, weights, parts in (
        (lambda _: 50 * MBIT, (1, 1, 1, 1), 4),
        (damaged, (1, 4, 4, 4), 3.25),
    ):
        network = capacities(plan, rate)
        trees = plan_job(network, job).trees
        assert stripe_weights([rated.rate for rated in trees]) == weights
        assert least_cut(network, job) == pytest.approx(parts * 50 * MBIT)


def test_the_drafts_figure_1_sums_where_no_link_carries_an_array_twice():
    plan = loaded("ina-figure1.clab.yml")
    job = summing_job(plan, "job", [host.name for host in plan.hosts if host.node.worker])
    assert (len(plan.hosts), sorted(job.workers)) == (8, [1, 2, 3, 4])
    names = {router.number: router.name for router in plan.routers}
    (rated,) = plan_job(capacities(plan, lambda _: 50 * MBIT), job).trees
    assert {names[node] for node in rated.tree.nodes} == {"s1", "s2", "s5"}
    routers = {link: n for link, n in rated.tree.loads().items() if min(link) > 0}
    assert set(routers.values()) == {1}
    assert rated.rate == 50 * MBIT
    (tree,) = (node.node.tree for node in plan.routers if node.node.tree)
    drafts = replace(job, given=lab_tree(plan, tree))
    (rated,) = plan_job(capacities(plan, lambda _: 50 * MBIT), drafts).trees
    bits = {names[node]: bits for node, bits in rated.tree.bit_strings().items()}
    assert bits == {"s1": 0b0011, "s7": 0b1100, "s6": 0b1111}
    assert rated.rate == pytest.approx(50 * MBIT / 3)
