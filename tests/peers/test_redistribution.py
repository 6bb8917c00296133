"""What fared redistributes arrives at FRR and BIRD, and what they redistribute at fared.

S1 has a network and static routes of which OSPF knows nothing; S2 between F1 and B1 passes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from fared.extensions.lab.fabric import Fabric
from tests.peers.conftest import Peers, Running
from tests.peers.peers import await_equal_databases, fared, vtysh
from tests.peers.recordings import WIRESHARK, complaints, rejected
from tests.peers.redistribution import bird_route, frr_route, installed, redistribute
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

TOPOLOGY = """
name: redist
topology:
  nodes:
    S1: {kind: fared}
    S2: {kind: fared}
    F1: {kind: frr}
    B1: {kind: bird}
    h1: {}
    h2: {}
  links:
    - endpoints: ["S1:F1", "F1:S1"]
    - endpoints: ["S1:B1", "B1:S1"]
    - endpoints: ["S2:F1", "F1:S2"]
    - endpoints: ["S2:B1", "B1:S2"]
    - endpoints: ["F1:h1", "h1:F1"]
    - endpoints: ["B1:h2", "h2:B1"]
"""
CONNECTED = "198.51.100.0/24"
STATIC = ("203.0.113.0/24", "203.0.113.0/25", "203.0.113.0/32")
GATEWAY = "198.51.100.2"
DEFAULT = "0.0.0.0/0"
SOON = 20.0


@pytest.fixture(scope="module")
def peers(running: Running) -> Iterator[Peers]:
    with running(TOPOLOGY) as up:
        netns = up.fabric.node("S1").netns
        netns.batch(
            "ip",
            [
                "link add x0 type veth peer name x1",
                "addr add 198.51.100.1/24 dev x0",
                "link set x0 up",
                "link set x1 up",
            ],
        )
        yield up


@pytest.fixture
def sources(fabric: Fabric) -> Iterator[Fabric]:
    """S1 redistributes static routes as type 1, connected ones as type 2."""
    node = fabric.node("S1")
    node.netns.batch("ip", [f"route add {prefix} via {GATEWAY}" for prefix in STATIC])
    static = {"metric": 30, "metric-type": 1}
    redistribute(node, {"static": static, "connected": {"metric": 40, "tag": 77}})
    try:
        yield fabric
    finally:
        redistribute(node, {})
        node.netns.batch("ip", ["route flush proto boot"])
        for name in ("S2", "F1", "B1"):
            wait_for(lambda n=name: not fabric.view(n).hops(CONNECTED), SOON, f"{name} forgets")


def test_frr_and_bird_install_what_fared_redistributes(sources: Fabric):
    """Each with its type, its metric and its tag; three prefixes of one network address."""
    for prefix in (*STATIC, CONNECTED):
        for name in ("F1", "B1"):
            wait_for(
                lambda p=prefix, n=name: installed(sources, n, p) == {"S1"},
                SOON,
                f"{name} {prefix}",
            )
    frr, bird = sources.node("F1"), sources.node("B1")
    for prefix in STATIC:
        found = frr_route(frr, prefix)
        assert (found["routeType"], found["cost"]) == ("N E1", 40)
        assert "Type: OSPF-E1 " in bird_route(bird, prefix)
        assert re.search(r"OSPF.metric1: 40\b", bird_route(bird, prefix))
    found = frr_route(frr, CONNECTED)
    assert (found["routeType"], found["type2cost"], found["tag"]) == ("N E2", 40, 77)
    shown = bird_route(bird, CONNECTED)
    assert "Type: OSPF-E2 " in shown
    assert re.search(r"OSPF.metric2: 40\b", shown)
    assert "OSPF.tag: 0x0000004d" in shown


def test_a_redistributed_route_reaches_another_fared_through_frr_and_bird(sources: Fabric):
    wait_for(lambda: installed(sources, "S2", STATIC[0]) == {"F1", "B1"}, SOON, "S2 over both")
    (route,) = fared(sources.node("S2")).request("show routes", args={"prefix": STATIC[0]})[
        "routes"
    ]
    assert (route["type"], route["metric"]) == ("external-1", 50)
    (route,) = fared(sources.node("S2")).request("show routes", args={"prefix": CONNECTED})[
        "routes"
    ]
    assert (route["type"], route["metric"]) == ("external-2", 40)
    await_equal_databases(sources)


def test_a_route_deleted_from_the_kernel_is_withdrawn_everywhere(sources: Fabric):
    """A deleted route at once, and all that hung on a link that lost its carrier."""
    wait_for(lambda: installed(sources, "B1", STATIC[0]) == {"S1"}, SOON, "B1 has it")
    netns = sources.node("S1").netns
    netns.ip("route", "del", STATIC[1])
    for name in ("F1", "B1", "S2"):
        wait_for(lambda n=name: not installed(sources, n, STATIC[1]), SOON, f"{name} forgets")
    netns.ip("link", "set", "x1", "down")
    try:
        for prefix in (STATIC[0], CONNECTED):
            for name in ("F1", "B1", "S2"):
                wait_for(
                    lambda p=prefix, n=name: not installed(sources, n, p), SOON, f"{name} {prefix}"
                )
    finally:
        netns.ip("link", "set", "x1", "up")
    for name in ("F1", "B1", "S2"):
        wait_for(lambda n=name: installed(sources, n, STATIC[0]) != set(), SOON, f"{name} again")
    await_equal_databases(sources)


def test_a_default_route_is_advertised_if_configured(sources: Fabric):
    node = sources.node("S1")
    node.netns.ip("route", "add", "default", "via", GATEWAY)
    redistribute(node, {"static": {}})
    for name in ("F1", "B1"):
        wait_for(
            lambda n=name: installed(sources, n, STATIC[0]) == {"S1"}, SOON, f"{name} has statics"
        )
        assert installed(sources, name, DEFAULT) == set()
    redistribute(node, {"default": {"metric-type": 1}})
    for name in ("F1", "B1"):
        wait_for(
            lambda n=name: installed(sources, n, DEFAULT) == {"S1"}, SOON, f"{name} has a default"
        )
        wait_for(lambda n=name: not installed(sources, n, STATIC[0]), SOON, f"{name} no statics")
    node.netns.ip("route", "del", "default")
    for name in ("F1", "B1"):
        wait_for(lambda n=name: not installed(sources, n, DEFAULT), SOON, f"{name} has none again")


def test_two_boundary_routers_with_one_prefix_keep_their_own(sources: Fabric):
    """FRR announces it better, and fared's kernel route has the worse metric: it still counts."""
    prefix, frr, mine = "192.0.2.0/24", sources.node("F1"), sources.node("S1")
    mine.netns.ip("route", "add", prefix, "via", GATEWAY, "metric", "4000")
    frr.netns.ip("route", "add", "blackhole", prefix)
    vtysh(frr, "configure terminal", "router ospf", "redistribute kernel metric 5 metric-type 1")
    try:
        wait_for(
            lambda: installed(sources, "B1", prefix) == {"S1", "S2"}, SOON, "B1 over both to F1"
        )
        kept = mine.netns.ip("route", "show", prefix).split()
        assert kept == [prefix, "via", GATEWAY, "dev", "x0", "metric", "4000"]
        mine.netns.ip("route", "del", prefix)
        wait_for(lambda: installed(sources, "S1", prefix) == {"F1"}, SOON, "now over F1")
    finally:
        vtysh(frr, "configure terminal", "router ospf", "no redistribute kernel")
        frr.netns.ip("route", "del", "blackhole", prefix)


def test_no_implementation_logs_a_complaint(story: Peers):
    """The logs of FRR and BIRD hold no complaint, and fared refused nothing of theirs."""
    found = complaints(story.fabric)
    assert found == {}, found
    assert rejected(story.fabric) == {}


@WIRESHARK
def test_wireshark_finds_no_flaw_in_anything_fared_sent(story: Peers):
    story.recordings.stop()
    for name in story.recordings.names():
        verdict = story.recordings.judge(name)
        assert verdict.flawed == []
        assert verdict.kinds["LS Update"] > 0
