"""Hosts with several links: each NIC sends by itself, and GPUs are ranks by their NIC."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fared.extensions.lab import iperf, pictures, topology, traffic
from fared.extensions.lab.addressing import AddressPlan, make_plan
from fared.extensions.lab.errors import LabError, TopologyError
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kinds import kind_of
from fared.extensions.lab.main import main
from fared.extensions.lab.node import configure_interfaces
from fared.extensions.lab.ranks import all_ranks, check_ranks, crossing, rank_of, read_ranks
from fared.extensions.lab.source_routes import host_routes
from fared.extensions.lab.tcp_order import order_of
from fared.extensions.lab.waiting import await_paths
from fared.extensions.lab.workloads.bounds import bound
from fared.extensions.lab.workloads.graph import GraphBuilder
from fared.extensions.lab.workloads.heat import matrix
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.report import (
    Iteration,
    JobReport,
    PhaseReport,
    TaskTime,
    WorkloadReport,
)
from fared.extensions.lab.workloads.run import run

MBIT = 1e6 / 8
TWO_RAILS = """
name: rails
topology:
  defaults: {labels: {fared-lab.rate: 100M, fared-lab.protocol: isis}}
  groups: {router: {labels: {fared-lab.kind: fared}}}
  nodes: {S: {group: router}, R1: {group: router}, R2: {group: router}, g1: {}, g2: {}, h: {}}
  links:
    - endpoints: ["S:R1", "R1:S"]
    - endpoints: ["S:R2", "R2:S"]
    - endpoints: ["R1:g1", "g1:nic1"]
    - endpoints: ["R2:g1", "g1:nic2"]
    - endpoints: ["R1:g2", "g2:nic1"]
    - endpoints: ["R2:g2", "g2:nic2"]
    - endpoints: ["R1:h", "h:R1"]
"""


def parse(text: str = TWO_RAILS) -> topology.LabTopology:
    return topology.from_document(yaml.safe_load(text), Path("rails.clab.yml"))


@pytest.fixture
def plan() -> AddressPlan:
    return make_plan(parse())


def test_a_nic_is_a_rank_with_the_address_and_the_leaf_of_its_link(plan: AddressPlan):
    """NICs count from 1, in the order of the file."""
    rank = rank_of(plan, "g1.2")
    assert (rank.host, rank.nic.name, rank.leaf) == ("g1", "nic2", "R2")
    assert (str(rank.address()), str(rank.gateway)) == ("10.0.2.2", "10.0.2.1")
    assert (str(rank.address(ipv6=True)), str(rank.prefix())) == ("2001:db8:2::2", "10.0.2.0/24")
    assert [rank.name for rank in all_ranks(plan)] == ["g1.1", "g1.2", "g2.1", "g2.2", "h"]
    assert rank_of(plan, "h.1") == rank_of(plan, "h"), "a host with one link has its own name"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, ("g1.1", "g1.2", "g2.1", "g2.2", "h")),
        ("h, g2.1", ("h", "g2.1")),
        ("g2,h", ("g2.1", "g2.2", "h")),
        ("g*.2,g1.1", ("g1.2", "g2.2", "g1.1")),
    ],
)
def test_a_list_names_ranks_servers_and_patterns(
    plan: AddressPlan, text: str | None, names: Sequence[str]
):
    assert read_ranks(plan, text) == names


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("g1", "g1 has 2 NICs: name one of g1.1 to g1.2"),
        ("g1.3", "g1 has 2 NICs: there is no g1.3"),
        ("h.2", "h has one NIC: there is no h.2"),
        ("R1", "R1 is not a host with a link"),
        ("g3.1", "no node 'g3.1'; there are S, R1, R2, g1"),
    ],
)
def test_names_that_are_no_rank_are_refused(plan: AddressPlan, name: str, says: str):
    with pytest.raises(LabError, match=says):
        rank_of(plan, name)


def test_a_pattern_without_ranks_is_refused_with_those_there_are(plan: AddressPlan):
    with pytest.raises(LabError, match=r"no rank matches 'g\*\.3': g1\.1, g1\.2, g2\.1, g2\.2, h"):
        read_ranks(plan, "g*.3")


def test_a_node_keeps_its_name_when_it_looks_like_a_gpu():
    """But not beside a server whose NIC has it."""
    plan = make_plan(parse(TWO_RAILS.replace("h: {}", "h.1: {}").replace('"h:R1"', '"h.1:R1"')))
    assert rank_of(plan, "h.1").host == "h.1"
    text = TWO_RAILS.replace("h: {}", "g1.2: {}").replace('"h:R1"', '"g1.2:R1"')
    with pytest.raises(TopologyError, match=r"node g1\.2: this is the name of NIC 2 of host g1"):
        parse(text)


def test_gpus_of_one_server_do_not_use_the_fabric(plan: AddressPlan):
    """What they exchange takes no time; a step has only what crosses the fabric."""
    step = {("g1.1", "g1.2"): 5, ("g1.1", "g2.1"): 7, ("g2.2", "g1.1"): 11}
    assert crossing(plan, step) == {("g1.1", "g2.1"): 7, ("g2.2", "g1.1"): 11}
    job = Job("all-to-all", ("g1.1", "g1.2", "g2.1", "g2.2"), 4_000_000)
    # Between rails: 1 MB from g1.1 to g2.2 and 1 MB from g2.1 to g1.2, up the one link of R1.
    assert bound(job, plan, lambda _: 100 * MBIT) == pytest.approx(2e6 / (100 * MBIT))


def test_pictures_show_nothing_that_gpus_of_one_server_exchange(plan: AddressPlan):
    """Neither the heat map nor the lanes: a phase inside servers has no bar."""
    hosts, build = ("g1.1", "g1.2", "g2.1"), GraphBuilder()
    build.send("tensor", "", 0, 1, 5)
    build.send("data", "", 0, 2, 7)
    job = Job("step", hosts, 12, tasks=build.graph())
    phases = tuple(
        PhaseReport(name, 1, size, 0, (1,)) for name, size in (("tensor", 0), ("data", 7))
    )
    times, done = (TaskTime(0, 1), TaskTime(0, 1)), (Iteration(0, 1),)
    report = JobReport(job, 2, 7, 0, done, order_of([]), phases, times, sends=job.sends(plan))
    shown = matrix(WorkloadReport("rails", 1, (report,), (), ()))
    assert shown == (list(hosts), [[0, 0, 7], [0, 0, 0], [0, 0, 0]])
    pytest.importorskip("matplotlib")
    from fared.extensions.lab.workloads import plots

    axes = pictures.figure(4, 4).subplots()
    plots.draw_tasks(axes, report)
    assert len(axes.collections) == 1, "one bar"


@pytest.mark.parametrize(
    ("names", "apart", "says"),
    [
        (("g1.1", "g1.1", "g2.1"), False, "two different hosts or GPUs"),
        (("h", "h.1"), False, "two different hosts or GPUs"),
        (("g1.1", "g1.2"), False, "all ranks are GPUs of g1: nothing crosses the fabric"),
        (("g1.1", "g2.1", "g1.2"), True, r"g1\.1 and g1\.2 are in one server: choose one GPU"),
    ],
)
def test_ranks_of_a_job_are_different_and_not_all_of_one_server(
    plan: AddressPlan, names: Sequence[str], apart: bool, says: str
):
    with pytest.raises(LabError, match=says):
        check_ranks(plan, names, apart=apart)


def test_a_host_with_one_link_has_a_default_route_and_one_with_several_a_table_for_each(
    plan: AddressPlan,
):
    assert list(host_routes(plan.node("h"))) == [
        "route replace default via 10.0.5.1 dev R1",
        "route replace ::/0 via 2001:db8:5::1 dev R1",
    ]
    assert [line for line in host_routes(plan.node("g2")) if "::" not in line] == [
        "route replace default via 10.0.3.1 dev nic1",
        "route replace default via 10.0.3.1 dev nic1 table 1001",
        "route replace default via 10.0.4.1 dev nic2 table 1002",
    ]
    assert kind_of("linux").sysctls(plan.node("h")) == {}
    assert kind_of("linux").sysctls(plan.node("g1")) == {
        "ipv4.ip_forward": 0,
        "ipv6.conf.all.forwarding": 0,
    }, "rails do not meet in a server"


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fabric]:
    with Fabric.from_topology(parse(), directory=tmp_path_factory.mktemp("lab")) as running:
        assert await_paths(running, 60.0) is not None
        yield running


@pytest.mark.netns
def test_what_a_nic_sends_leaves_by_that_nic(fabric: Fabric):
    """The kernel has a rule for each address, once; each flow enters the fabric in its rail."""
    host = fabric.node("g1")
    configure_interfaces(host.netns, host.plan)  # as a container that is started again
    for family, net in (("-4", "10.0.{}.2"), ("-6", "2001:db8:{}::2")):
        rules = json.loads(host.netns.ip("-j", family, "rule", "show"))
        mine = [(r["priority"], r["src"], r["table"]) for r in rules if r["src"] != "all"]
        assert mine == [(1000 + n, net.format(n), str(1000 + n)) for n in (1, 2)]
    for ipv6 in (False, True):
        there = traffic.measure(fabric, "g1.2", "g2.1", flows=1000, ipv6=ipv6)
        assert (there.leaf, there.delivered) == ("R2", 1000)
        assert [(up.interface, up.packets >= 1000) for up in there.uplinks] == [("S", True)]
    with pytest.raises(LabError, match=r"g1\.2 and g1\.1 are in the same server, g1"):
        traffic.measure(fabric, "g1.2", "g1.1")
    with pytest.raises(LabError, match=r"g1\.2 and g2\.2 are on the same router, R2"):
        traffic.measure(fabric, "g1.2", "g2.2")


@pytest.mark.netns
def test_collectives_run_between_gpus_and_use_the_fabric_between_servers_only(fabric: Fabric):
    """Four GPUs, one step: of twelve blocks eight leave a server, of these four their rail."""
    names = ("g1.1", "g1.2", "g2.1", "g2.2")

    def sent() -> int:
        leaves = (fabric.view(leaf).counters() for leaf in ("R1", "R2"))
        return sum(counters["S"].sent_bytes for counters in leaves)

    before = sent()
    report = run(fabric, [Job("all-to-all", names, 4_000_000, iterations=1)], timeout=60.0)
    (done,) = report.jobs
    assert done.moved == 8_000_000
    assert done.bound == pytest.approx(2e6 / (100 * MBIT))
    assert sum(map(sum, matrix(report)[1])) == done.moved
    assert 4_000_000 < sent() - before < 1.3 * 4_000_000


@pytest.mark.netns
def test_iperf_sends_from_the_gpu_that_is_named(fabric: Fabric):
    if shutil.which("iperf3") is None:
        pytest.skip("iperf3 is not installed")
    before = fabric.view("R2").counters()["S"].sent_bytes
    moved = iperf.transfer(fabric, "g1.2", "g2.1", streams=1, seconds=1)
    assert fabric.view("R2").counters()["S"].sent_bytes - before > moved.goodput * 0.8


@pytest.mark.netns
def test_a_shell_completes_ranks(fabric: Fabric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """From the state file; in a list, those that it does not have yet."""
    directory = tmp_path / "rails"
    shutil.copytree(fabric.directory, directory, ignore=lambda *_: ["nodes"])
    monkeypatch.setattr("fared.extensions.lab.holder.choose", lambda _: Chosen(directory))
    fabric.directory, kept = directory, fabric.directory
    fabric.write_state()
    fabric.directory = kept

    def completed(*words: str) -> list[str]:
        told = CliRunner().invoke(
            main,
            prog_name="fared-lab",
            env={
                "_FARED_LAB_COMPLETE": "bash_complete",
                "COMP_WORDS": " ".join(("fared-lab", *words)),
                "COMP_CWORD": str(len(words)),
            },
        )
        return [line.partition(",")[2] for line in told.output.splitlines()]

    assert completed("traffic", "--from", "g1") == ["g1.1", "g1.2"]
    job = ("traffic", "all-gather", "--job")
    assert completed(*job, "scatter:g2.1,g2") == ["g2.1,g2.2"], "bash keeps what is before a colon"


class Chosen:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
