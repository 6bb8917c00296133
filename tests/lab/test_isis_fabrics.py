"""Fabrics over IS-IS in real kernels: both families, both stories, and vendors' own test."""

from __future__ import annotations

import json
import select
import time
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path

import pytest

from fared.extensions.lab import topology, traffic, udp
from fared.extensions.lab.fabric import Fabric
from fared.extensions.lab.kernel_view import shares
from fared.extensions.lab.waiting import Accepts, await_paths, wait_until
from fared.extensions.lab.workloads.jobs import Job
from fared.extensions.lab.workloads.run import run
from tests.lab.damages import TWO_PODS, weigh_damages
from tests.lab.five_stages import drain_spines

DIRECTORY = Path(__file__).parents[2] / "containerlab"
FLOWS = 60_000
THIRDS = [1 / 3, 1 / 3, 1 / 3]
pytestmark = [pytest.mark.netns, pytest.mark.slow]


def weights_become(prefixes: list[str], wanted: list[float], tolerance: float = 0.01) -> Accepts:
    """Whether a kernel's shares toward all prefixes are ``wanted``, in order of interface."""

    def accepts(_: str, view) -> bool:
        for prefix in prefixes:
            found = [share for _, share in sorted(shares(view.hops(prefix)).items())]
            if len(found) != len(wanted) or any(
                abs(a - b) > tolerance for a, b in zip(found, wanted, strict=True)
            ):
                return False
        return True

    return accepts


def hosts_of(fabric: Fabric, leaf: str) -> list[str]:
    """The IPv4 and the IPv6 subnet behind a leaf."""
    plan = fabric.plan.node(leaf)
    return [str(prefix) for prefix in (*plan.host_prefixes, *plan.host_prefixes6)]


def measured(fabric: Fabric, source: str, target: str, flows: int, *, ipv6: bool) -> list[float]:
    """Shares of the uplinks, and at most 0.02 % of the packets lost."""
    report = traffic.measure(fabric, source, target, flows=flows, ipv6=ipv6)
    assert report.delivered >= report.sent * 0.9998
    return [uplink.measured for uplink in report.uplinks]


def assert_weighed(fabric: Fabric, link: tuple[str, str], hosts: tuple[str, str]) -> None:
    """With the link from a spine to a leaf at a quarter, all other leaves send 1:4:4:4 there."""
    spine, slow = link
    fabric.shape(spine, slow, fabric.plan.node(spine).node.rate / 4)
    leaves = [leaf for leaf in fabric.plan.leaves if leaf.name != slow]
    wanted = [1 / 13, 4 / 13, 4 / 13, 4 / 13]
    accepts = weights_become(hosts_of(fabric, slow), wanted)
    assert wait_until(fabric.views(leaves), accepts, 30.0) is not None
    for ipv6 in (False, True):
        assert measured(fabric, *hosts, 10_000, ipv6=ipv6) == pytest.approx(wanted, abs=0.02)


@pytest.fixture
def two_tiers(tmp_path: Path) -> Iterator[Fabric]:
    with Fabric.from_file(DIRECTORY / "clos3-isis.clab.yml", directory=tmp_path / "s") as running:
        yield running


def test_a_slow_link_is_weighed_in_both_families(two_tiers: Fabric):
    """S1-L2 at a quarter: 1:4:4:4 toward L2's hosts on every other leaf, IPv4 and IPv6."""
    assert await_paths(two_tiers, 60.0) is not None
    assert_weighed(two_tiers, ("S1", "L2"), ("h1", "h2"))
    for ipv6 in (False, True):
        job = Job("broadcast", ("h1", "h2"), 2_000_000, elephants=32, iterations=2)
        (done,) = run(two_tiers, [job], ipv6=ipv6, timeout=60.0).jobs
        assert len(done.iterations) == 2


@pytest.fixture
def five_stages(tmp_path: Path) -> Iterator[Fabric]:
    with Fabric.from_file(DIRECTORY / "clos5-isis.clab.yml", directory=tmp_path / "s") as running:
        yield running


@pytest.mark.soak
def test_damages_a_slow_link_and_drained_spines_in_another_level_1_area(five_stages: Fabric):
    """The five-stage story: p2-S1 to p2-L1 at a quarter is 1:4:4:4 at p1-L1, across two levels.

    Before it, nine damages at once, weighed in both families.
    """
    assert await_paths(five_stages, 90.0) is not None
    assert weigh_damages(five_stages, TWO_PODS) == 8 * 7 * 2
    assert_weighed(five_stages, ("p2-S1", "p2-L1"), ("p1-h1", "p2-h1"))
    drain_spines(five_stages)


ANYCAST = ("198.51.100.1/32", "2001:db8:ffff::1/128")
NEIGHBORS = ("N1", "N2", "N3")


def three_neighbors() -> dict:
    """A device under test with a host and three neighbors."""
    router = {"kind": "linux", "labels": {"fared-lab.kind": "fared", "fared-lab.rate": "1G"}}
    links = [["DUT:h1", "h1:DUT"], *([f"DUT:{name}", f"{name}:DUT"] for name in NEIGHBORS)]
    return {
        "name": "rt213",
        "topology": {
            "defaults": {"labels": {"fared-lab.protocol": "isis"}},
            "nodes": {**dict.fromkeys(("DUT", *NEIGHBORS), router), "h1": {"kind": "linux"}},
            "links": [{"endpoints": ends} for ends in links],
        },
    }


def spread(fabric: Fabric, prefix: str) -> list[float]:
    """Send 60,000 five-tuples to a prefix; how they were spread. At most 0.02 % may be lost."""
    view, target = fabric.view("DUT"), ip_address(prefix.partition("/")[0])

    def carried() -> list[int]:
        return [fabric.view(name).counters()["DUT"].received_packets for name in NEIGHBORS]

    before, arrived = view.counters(), sum(carried())
    with ExitStack() as stack:
        for name in NEIGHBORS:
            stack.enter_context(udp.sinks(fabric.node(name), target))
        udp.send(fabric.node("h1"), target, udp.Stream(FLOWS, rate=30_000))
        deadline = time.monotonic() + 5.0
        while sum(carried()) - arrived < FLOWS and time.monotonic() < deadline:
            select.select([], [], [], 0.01)
    assert sum(carried()) - arrived >= FLOWS * 0.9998
    after = view.counters()
    sent = [after[name].sent_packets - before[name].sent_packets for name in NEIGHBORS]
    return [packets / sum(sent) for packets in sent]


def metrics(fabric: Fabric) -> set[int]:
    """The metrics of the routes to the prefixes that all three announce."""
    routes = json.loads(fabric.node("DUT").cli("show", "routes", "--json"))["routes"]
    return {route["metric"] for route in routes if route["prefix"] in ANYCAST}


@pytest.mark.timeout(280)
def test_isis_weights_of_an_anycast_prefix_follow_capacity_as_in_openconfig_rt_2_13(tmp_path: Path):
    """OpenConfig RT-2.13: three neighbors announce one IPv4 and one IPv6 prefix.

    Equal links share equally, the first at half its capacity gives 20/40/40, without weighting
    it is thirds again: within a point over 60,000 five-tuples a family. The metric never moves.
    """
    source = topology.from_document(three_neighbors(), Path(__file__))
    with Fabric.from_topology(source, directory=tmp_path / "s") as fabric:
        for name in NEIGHBORS:
            for prefix in ANYCAST:
                fabric.node(name).netns.ip("addr", "add", prefix, "dev", "lo")
        dut = fabric.views([fabric.plan.node("DUT")])
        rate = fabric.plan.node("DUT").node.rate
        seen = set()
        for act, wanted in (("equal", THIRDS), ("halved", [0.2, 0.4, 0.4]), ("plain", THIRDS)):
            if act == "halved":
                fabric.shape("DUT", "N1", rate / 2)
            if act == "plain":
                file = fabric.node("DUT").directory / "fared.yaml"
                file.write_text(file.read_text() + "adaptive: {enabled: false}\n")
                fabric.node("DUT").cli("config", "reload")
            assert wait_until(dut, weights_become(list(ANYCAST), wanted), 40.0) is not None
            for prefix in ANYCAST:
                assert spread(fabric, prefix) == pytest.approx(wanted, abs=0.01)
            seen |= metrics(fabric)
        assert seen == {10}
