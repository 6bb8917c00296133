"""Collectives over TCP on a real fabric, and their completion times."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console

from fared.extensions.lab import topology
from fared.extensions.lab import traffic as traffic_
from fared.extensions.lab.errors import LabError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.packet_order import PacketOrder
from fared.extensions.lab.tables import segment_order_table
from fared.extensions.lab.tcp_order import TcpOrder, order_of
from fared.extensions.lab.traffic_command import traffic
from fared.extensions.lab.waiting import await_paths, interfaces
from fared.extensions.lab.workloads import patterns
from fared.extensions.lab.workloads.bounds import bound
from fared.extensions.lab.workloads.collectives import COLLECTIVES
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.report import Iteration, JobReport, LinkUse, WorkloadReport
from fared.extensions.lab.workloads.run import run
from fared.extensions.lab.workloads.tables import completion_table, uses_table
from tests.lab.test_fabric import TOPOLOGY
from tests.waiting import wait_for

MBIT = 1e6 / 8


def three_leaves() -> topology.LabTopology:
    """Two spines, three leaves, a host each; 100 Mbit/s."""
    document = yaml.safe_load(TOPOLOGY.replace("fared-lab.kind: frr", "fared-lab.kind: fared"))
    document["topology"]["nodes"] |= {"L3": {"group": "router"}, "h3": {}}
    document["topology"]["links"] += [
        {"endpoints": [f"{a}:{b}", f"{b}:{a}"]}
        for a, b in (("S1", "L3"), ("S2", "L3"), ("L3", "h3"))
    ]
    return topology.from_document(document, Path("small.clab.yml"))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    with Fabric.from_topology(three_leaves(), directory=tmp_path_factory.mktemp("lab")) as running:
        yield running


@pytest.fixture
def fabric(shared: Fabric) -> Fabric:
    """One fabric for all tests, whole again for each."""
    for spine in ("S1", "S2"):
        shared.shape(spine, "L2", 100 * MBIT)
        shared.heal(spine, "L2")
    shared.heal("L2", "h2")
    assert await_paths(shared, 60.0) is not None
    return shared


def report() -> WorkloadReport:
    """Two jobs, one of which had no path, and a link."""
    ring = Job("all-reduce-ring", ("h1", "h2", "h3"), 3_000_000)
    cut = Job("all-to-all", ("h1", "h2"), 1000, iterations=None, seconds=1.0)
    times = (Iteration(0.0, 0.4), Iteration(0.4, 0.2), Iteration(0.7, 0.3))
    order = TcpOrder(12_345_678, 1_234_567, events=80_000, extent=300, retransmitted=9, spurious=7)
    jobs = (
        JobReport(ring, 4, 12_000_000, 0.15, times, order),
        JobReport(cut, 1, 1000, None, (), order_of([])),
    )
    link = LinkUse("S1", "L2", "L2", 12.5e6, (0.5, 1.0))
    return WorkloadReport("small", 1.0, jobs, (0.5, 1.0), (link,))


@pytest.mark.netns
def test_jobs_run_side_by_side_and_every_byte_crosses_the_links(fabric: Fabric):
    """The bytes the leaves' kernels count are those of the schedules, and headers."""
    jobs = [
        Job("all-reduce-ring", ("h1", "h2", "h3"), 1_500_000, elephants=2, iterations=2),
        Job("all-to-all", ("h3", "h1"), 1_000_001, iterations=3),
    ]
    leaves = fabric.plan.leaves

    def sent() -> int:
        return sum(
            fabric.view(leaf.name).counters()[port.name].sent_bytes
            for leaf in leaves
            for port in leaf.fabric_ports
        )

    before = sent()
    done = run(fabric, jobs, interval=0.1, timeout=60.0)
    ring, pair = done.jobs
    assert (ring.steps, ring.moved, len(ring.iterations)) == (4, 6_000_000, 2)
    assert (pair.steps, pair.moved, len(pair.iterations)) == (1, 1_000_001, 3)
    payload = 2 * 6_000_000 + 3 * 1_000_001
    assert payload < sent() - before < 1.3 * payload
    for job in done.jobs:
        assert job.bound is not None
        assert all(one.seconds > 0.5 * job.bound for one in job.iterations), "but for bursts"
        assert all(
            later.begun >= first.begun + first.seconds
            for first, later in zip(job.iterations, job.iterations[1:], strict=False)
        )
    assert len(done.links) == 12
    assert all(len(link.utilisation) == len(done.times) for link in done.links)
    assert max(max(link.utilisation) for link in done.links) > 0.1


@pytest.mark.netns
def test_jobs_compute_between_iterations_and_begin_after_their_shift(fabric: Fabric):
    one = Job("all-to-all", ("h1", "h2"), 100_000, iterations=3, compute=0.3)
    jobs = [one, replace(one, hosts=("h1", "h3"), shift=0.2)]
    for job, report in zip(jobs, run(fabric, jobs, timeout=60.0).jobs, strict=True):
        done = report.iterations
        assert done[0].begun >= job.shift
        for first, later in itertools.pairwise(done):
            assert later.begun >= first.begun + first.seconds + 0.3
        assert report.cycle == pytest.approx((done[2].begun - done[0].begun) / 2)


@pytest.mark.netns
def test_a_training_step_and_requests_run_side_by_side_each_task_behind_those_it_waits_for(
    fabric: Fabric,
):
    """Three stages of a pipeline, two micro-batches; and an open loop of requests to h3."""
    hosts = ("h1", "h2", "h3")
    stages = patterns.pipeline(3, 50_000, 2, "1f1b", 0.01)
    load = {"count": 5, "rate": 50.0, "request": 100, "answer": 20_000, "compute": 0.02}
    asked = patterns.requests(3, 1, sticky=False, seed=1, **load)
    jobs = [
        Job("pipeline", hosts, 50_000, elephants=2, iterations=2, tasks=stages),
        Job("requests", hosts, 20_000, iterations=1, tasks=asked),
    ]
    chain, open_loop = run(fabric, jobs, timeout=60.0).jobs
    assert (chain.moved, len(chain.iterations)) == (8 * 50_000, 2)
    for task, time in zip(stages.tasks, chain.times, strict=True):
        ready = max((chain.times[before].ended for before in task.after), default=0.0)
        assert time.begun >= ready + task.compute - 1e-9
    assert chain.bound is not None
    assert chain.bound >= (2 + 2) * 3 * 0.01, (
        "it computes three times for each micro-batch and more"
    )
    assert chain.median > 0.9 * chain.bound, "but for bursts, which shapers let pass at once"
    assert len(open_loop.latencies) == 5
    assert open_loop.alone is not None
    assert min(open_loop.latencies) > 0.02
    assert [phase.name for phase in open_loop.phases] == ["request", "answer"]
    assert all(len(phase.seconds) == 1 for phase in open_loop.phases)


@pytest.mark.netns
def test_the_bound_is_computed_from_the_present_links(fabric: Fabric):
    """Shaped by hand, or failed: what the kernel says counts, whoever did it."""
    job = Job("broadcast", ("h1", "h2"), 2_000_000, elephants=8, iterations=1)

    def least() -> float | None:
        return run(fabric, [job], timeout=60.0).jobs[0].bound

    assert least() == pytest.approx(0.08)
    fabric.node("S1").netns.run(
        [
            "tc",
            "qdisc",
            "change",
            "dev",
            "L2",
            "root",
            "tbf",
            "rate",
            "60mbit",
            "burst",
            "62500",
            "limit",
            "300000",
        ]
    )
    assert least() == pytest.approx(0.1)
    fabric.fail("S1", "L2")
    uplinks = fabric.view("L1")
    wait_for(lambda: interfaces(uplinks.hops("10.0.2.0/24")) == {"S2"}, 20.0, "L1 leaves S1")
    assert least() == pytest.approx(0.16)


@pytest.mark.netns
def test_iterations_begin_only_in_the_on_part_of_a_period(fabric: Fabric):
    """0.2 s on, 0.2 s off, until no more may begin."""
    job = Job("all-gather", ("h1", "h3"), 20_000, iterations=None, seconds=0.9, period=0.4)
    (done,) = run(fabric, [job], timeout=60.0).jobs
    begun = [one.begun for one in done.iterations]
    assert all(at % 0.4 < 0.2 for at in begun)
    assert {int(at // 0.4) for at in begun} == {0, 1, 2}


@pytest.mark.netns
def test_the_same_seed_gives_the_same_flows_and_they_keep_their_paths(fabric: Fabric):
    """Uplinks carry the same twice, losses or not; and the same ports can be used at once again."""
    job = Job("broadcast", ("h1", "h2"), 2_400_000, elephants=12, iterations=1)
    uplinks = fabric.plan.equal_cost_ports("L1", "L2")

    def split(seed: int) -> list[float]:
        before = fabric.view("L1").counters()
        run(fabric, [job], timeout=60.0, seed=seed)
        after = fabric.view("L1").counters()
        return [after[up.name].sent_bytes - before[up.name].sent_bytes for up in uplinks]

    first = split(7)
    assert sum(first) > 2_400_000
    assert split(7) == pytest.approx(first, abs=100_000), "half a flow"


@pytest.fixture
def sprayed(fabric: Fabric) -> Iterator[Fabric]:
    """L1 sends the packets to h2 over S1 and S2 in turn, however slow these are."""
    if shutil.which("nft") is None:
        pytest.skip("nft is not installed")
    leaf = fabric.node("L1").netns
    for mark, hop in enumerate(sorted(fabric.view("L1").hops("10.0.2.0/24")), 1):
        route = ("default", "via", str(hop.gateway), "dev", hop.interface)
        leaf.ip("route", "add", *route, "table", f"10{mark}")
        leaf.ip("rule", "add", "fwmark", str(mark), "lookup", f"10{mark}")
    chosen = "meta mark set numgen inc mod 2 map { 0 : 1, 1 : 2 }"
    rules = ["{ type filter hook prerouting priority mangle; }", f"ip daddr 10.0.2.0/24 {chosen}"]
    lines = [f"add chain ip spray every {rules[0]}", f"add rule ip spray every {rules[1]}"]
    leaf.run(["nft", "-f", "-"], stdin="\n".join(["add table ip spray", *lines, ""]))
    yield fabric
    leaf.run(["nft", "delete", "table", "ip", "spray"])
    for mark in ("1", "2"):
        leaf.ip("rule", "del", "fwmark", mark)
        leaf.ip("route", "flush", "table", f"10{mark}")


@pytest.mark.netns
def test_packets_sprayed_over_unequal_paths_are_reported_out_of_order(sprayed: Fabric):
    """The queue of the slow path grows to 50 ms; of flows that keep their path all are in order."""
    sprayed.shape("S1", "L2", 10 * MBIT)
    send = {"flows": 1, "packets_per_flow": 1200, "rate": 4000, "payload": 1000}
    report = traffic_.measure(sprayed, "h1", "h2", **send)
    assert [up.measured for up in report.uplinks] == pytest.approx([0.5, 0.5], abs=0.01)
    assert report.order is not None
    assert 600 < report.order.received <= report.delivered, "delivered: ARP and the like too"
    assert report.order.ratio > 0.2
    assert report.order.extent > 3
    assert report.order.n_reordered > 0
    job = Job("broadcast", ("h1", "h2"), 2_000_000, iterations=1)
    order = run(sprayed, [job], timeout=60.0).jobs[0].order
    assert order.segments > 2_000_000 / 64_000
    assert order.out_of_order > 0
    back = traffic_.measure(sprayed, "h2", "h1", **send)
    assert back.order == PacketOrder(received=1200)


@pytest.mark.netns
def test_a_host_that_cannot_be_reached_is_an_error_and_no_socket_stays(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
):
    """The link to h2 is down: connecting fails, in words; hosts that do not exist are refused."""
    monkeypatch.setattr("fared.extensions.lab.workloads.flows._CONNECT_DEADLINE", 0.3)
    fabric.fail("L2", "h2")
    job = Job("scatter", ("h1", "h2"), 1000)
    with pytest.raises(LabError, match="h1 cannot connect to h2"):
        run(fabric, [job])
    assert not fabric.node("h2").netns.run(["ss", "-Htan"]).stdout.strip()
    with pytest.raises(LabError, match="no node 'h9'"):
        run(fabric, [Job("scatter", ("h1", "h9"), 1000)])
    with pytest.raises(LabError, match="h2 has no IPv6 address"):
        run(fabric, [job], ipv6=True)
    with pytest.raises(LabError, match="congestion control 'cubik'"):
        run(fabric, [job], congestion="cubik")
    with pytest.raises(LabError, match="0 packets of a flow: not 1 or more"):
        traffic_.measure(fabric, "h1", "h2", packets_per_flow=0)
    with pytest.raises(LabError, match="70000 bytes of payload: not 8 to 65000"):
        traffic_.measure(fabric, "h1", "h2", payload=70000)


def test_the_bound_of_a_job_is_the_sum_over_its_steps():
    """A ring of three with 1.5 MB: 4 steps of 0.5 MB over two uplinks of 12.5 MB/s each."""
    fabric = Fabric.from_topology(three_leaves())
    ring = Job("all-reduce-ring", ("h1", "h2", "h3"), 1_500_000)
    assert bound(ring, fabric.plan, lambda _: 100 * MBIT) == pytest.approx(4 * 0.5 / 25)
    tree = Job("all-reduce-tree", ("h1", "h2", "h3"), 1_500_000)
    assert bound(tree, fabric.plan, lambda _: 100 * MBIT) == pytest.approx(4 * 1.5 / 25)


@pytest.mark.parametrize(
    ("job", "says"),
    [
        (Job("all-to-one", ("h1", "h2"), 1), "no collective 'all-to-one'"),
        (Job("all-to-all", ("h1", "h1"), 1), "two different hosts"),
        (Job("all-to-all", ("h1", "L2"), 1), "L2 is not a host"),
        (Job("all-to-all", ("h1", "h2"), 0), "one byte"),
        (Job("all-to-all", ("h1", "h2"), 1, iterations=None), "number of iterations"),
        (Job("all-to-all", ("h1", "h2"), 1, duty=0.0), "period"),
    ],
)
def test_invalid_jobs_are_refused(job: Job, says: str):
    """Before anything is connected."""
    with pytest.raises(LabError, match=says):
        job.check(Fabric.from_topology(three_leaves()).plan)


def test_the_report_is_one_json_document_and_tables_of_80_columns():
    """Both say the same: the ring took twice the least time."""
    document = json.loads(report().as_json())
    assert document["format"] == "fared-workload/1"
    ring, cut = document["jobs"]
    assert (ring["median"], ring["efficiency"], len(ring["completions"])) == (0.3, 0.5, 3)
    assert (cut["bound"], cut["median"], cut["completions"]) == (None, None, [])
    assert ring["order"] == {
        "segments": 12_345_678,
        "out_of_order": 1_234_567,
        "events": 80_000,
        "extent": 300,
        "retransmitted": 9,
        "spurious": 7,
    }
    assert document["links"][0]["utilisation"] == [0.5, 1.0]
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(completion_table(report()))
    console.print(
        segment_order_table({f"10 {job.job.collective}": job.order for job in report().jobs})
    )
    console.print(uses_table(report()))
    told = console.export_text()
    assert "all-reduce-ring" in told
    assert "50%" in told
    assert "no path" in told
    assert "12,345,678  1,234,567  10.0%     300       9         7" in told
    assert "S1 > L2" in told


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_report_is_drawn_as_png_or_svg(tmp_path: Path, suffix: str):
    """Two panels: links over time, and completion times."""
    pytest.importorskip("matplotlib")
    from fared.extensions.lab.workloads.plots import draw

    path = tmp_path / f"workload.{suffix}"
    draw(report(), path)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG") if suffix == "png" else b"<svg" in data
    with pytest.raises(LabError, match=r"the format of a picture is \.png or \.svg"):
        draw(report(), tmp_path / "workload.gif")


def test_sizes_are_bytes_with_a_suffix():
    """What is not a size is refused before any lab is looked for."""
    wrong = CliRunner().invoke(traffic, ["broadcast", "--size", "3x"])
    assert wrong.exit_code == 2
    assert "not a size such as 16M" in wrong.output


@pytest.mark.parametrize("name", COLLECTIVES)
def test_every_collective_is_a_command_with_options_of_its_own(name: str):
    listed = CliRunner().invoke(traffic, ["--help"])
    assert f"  {name} " in listed.output
    told = CliRunner().invoke(traffic, [name, "--help"])
    assert told.exit_code == 0
    assert "--elephants" in told.output


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ([], "--from and --to are required, or a workload"),
        (["--from", "h1"], "--from and --to are required, or a workload"),
        (["--json", "all-gather"], "--json must follow all-gather"),
        (["all-gathr"], "Did you mean one of: 'all-gather', 'all-gather-bier'?"),
    ],
)
def test_an_unknown_workload_is_refused_with_a_hint(arguments: list[str], hint: str):
    wrong = CliRunner().invoke(traffic, arguments)
    assert wrong.exit_code == 2
    assert hint in wrong.output
