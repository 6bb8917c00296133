"""What fared redistributes arrives at FRR and BIRD, and what they redistribute at fared.

S1 has a network and static routes of which OSPF knows nothing; S2 between F1 and B1 passes on.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from fared.lab.fabric import Fabric, RunningNode
from tests.peers.conftest import Peers, Running
from tests.peers.lan import PORT, Lan
from tests.peers.peers import (
    await_all_paths,
    await_equal_databases,
    database,
    fared,
    tell,
    until,
    vtysh,
    vtysh_json,
)
from tests.peers.recordings import Recordings, complaints, rejected

pytestmark = [pytest.mark.netns, pytest.mark.peers]

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
SOON = 10.0


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


def redistribute(node: Any, sources: Mapping[str, Any]) -> None:
    """Write the sources into the node's file and reload it."""
    file = node.directory / "fared.yaml"
    document = yaml.safe_load(file.read_text())
    document["ospf"]["redistribute"] = dict(sources)
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    said = node.cli("config", "reload")
    assert "refused" not in said


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
            until(lambda n=name: not fabric.view(n).hops(CONNECTED), SOON, f"{name} forgets")


def installed(fabric: Fabric, name: str, prefix: str) -> set[str]:
    return {hop.interface for hop in fabric.view(name).hops(prefix)}


def frr_route(node: RunningNode, prefix: str) -> dict[str, Any]:
    return dict(vtysh_json(node, "show ip ospf route").get(prefix, {}))


def bird_route(node: RunningNode, prefix: str) -> str:
    return str(node.cli(f"show route {prefix} all"))


def test_frr_and_bird_install_what_fared_redistributes(sources: Fabric):
    """Each with its type, its metric and its tag; three prefixes of one network address."""
    for prefix in (*STATIC, CONNECTED):
        for name in ("F1", "B1"):
            until(
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


def test_another_fared_reaches_it_through_frr_and_bird(sources: Fabric):
    until(lambda: installed(sources, "S2", STATIC[0]) == {"F1", "B1"}, SOON, "S2 over both")
    (route,) = fared(sources.node("S2")).request("show routes", args={"prefix": STATIC[0]})[
        "routes"
    ]
    assert (route["type"], route["metric"]) == ("external-1", 50)
    (route,) = fared(sources.node("S2")).request("show routes", args={"prefix": CONNECTED})[
        "routes"
    ]
    assert (route["type"], route["metric"]) == ("external-2", 40)
    await_equal_databases(sources)


def test_what_goes_from_the_kernel_goes_from_everywhere(sources: Fabric):
    """A deleted route at once, and all that hung on a link that lost its carrier."""
    until(lambda: installed(sources, "B1", STATIC[0]) == {"S1"}, SOON, "B1 has it")
    netns = sources.node("S1").netns
    netns.ip("route", "del", STATIC[1])
    for name in ("F1", "B1", "S2"):
        until(lambda n=name: not installed(sources, n, STATIC[1]), SOON, f"{name} forgets")
    netns.ip("link", "set", "x1", "down")
    try:
        for prefix in (STATIC[0], CONNECTED):
            for name in ("F1", "B1", "S2"):
                until(
                    lambda p=prefix, n=name: not installed(sources, n, p), SOON, f"{name} {prefix}"
                )
    finally:
        netns.ip("link", "set", "x1", "up")
    for name in ("F1", "B1", "S2"):
        until(lambda n=name: installed(sources, n, STATIC[0]) != set(), SOON, f"{name} again")
    await_equal_databases(sources)


def test_a_default_route_is_announced_where_it_is_asked_for(sources: Fabric):
    node = sources.node("S1")
    node.netns.ip("route", "add", "default", "via", GATEWAY)
    redistribute(node, {"static": {}})
    for name in ("F1", "B1"):
        until(
            lambda n=name: installed(sources, n, STATIC[0]) == {"S1"}, SOON, f"{name} has statics"
        )
        assert installed(sources, name, DEFAULT) == set()
    redistribute(node, {"default": {"metric-type": 1}})
    for name in ("F1", "B1"):
        until(
            lambda n=name: installed(sources, n, DEFAULT) == {"S1"}, SOON, f"{name} has a default"
        )
        until(lambda n=name: not installed(sources, n, STATIC[0]), SOON, f"{name} no statics")
    node.netns.ip("route", "del", "default")
    for name in ("F1", "B1"):
        until(lambda n=name: not installed(sources, n, DEFAULT), SOON, f"{name} has none again")


def test_two_boundary_routers_with_one_prefix_keep_their_own(sources: Fabric):
    """FRR announces it better, and fared's kernel route has the worse metric: it still counts."""
    prefix, frr, mine = "192.0.2.0/24", sources.node("F1"), sources.node("S1")
    mine.netns.ip("route", "add", prefix, "via", GATEWAY, "metric", "4000")
    frr.netns.ip("route", "add", "blackhole", prefix)
    vtysh(frr, "configure terminal", "router ospf", "redistribute kernel metric 5 metric-type 1")
    try:
        until(lambda: installed(sources, "B1", prefix) == {"S1", "S2"}, SOON, "B1 over both to F1")
        kept = mine.netns.ip("route", "show", prefix).split()
        assert kept == [prefix, "via", GATEWAY, "dev", "x0", "metric", "4000"]
        mine.netns.ip("route", "del", prefix)
        until(lambda: installed(sources, "S1", prefix) == {"F1"}, SOON, "now over F1")
    finally:
        vtysh(frr, "configure terminal", "router ospf", "no redistribute kernel")
        frr.netns.ip("route", "del", "blackhole", prefix)


def test_nobody_took_offence(story: Peers):
    """The logs of FRR and BIRD hold no complaint, and fared refused nothing of theirs."""
    found = complaints(story.fabric)
    assert found == {}, found
    assert rejected(story.fabric) == {}


@pytest.mark.skipif(
    None in map(shutil.which, ("tcpdump", "tshark")), reason="tcpdump or tshark is not installed"
)
def test_wireshark_finds_no_flaw_in_anything_fared_sent(story: Peers):
    story.recordings.stop()
    for name in story.recordings.names():
        verdict = story.recordings.judge(name)
        assert verdict.flawed == []
        assert verdict.kinds["LS Update"] > 0


# Across areas

AREAS = """
name: redistareas
topology:
  nodes:
    S1: {kind: fared}
    A: {kind: fared}
    F1: {kind: frr}
    B1: {kind: bird}
    h1: {}
    h2: {}
    h3: {}
  links:
    - endpoints: ["S1:A", "A:S1"]
    - {endpoints: ["A:F1", "F1:A"], vars: {area: 1}}
    - {endpoints: ["A:B1", "B1:A"], vars: {area: 1}}
    - endpoints: ["S1:h1", "h1:S1"]
    - endpoints: ["F1:h2", "h2:F1"]
    - endpoints: ["B1:h3", "h3:B1"]
"""
OUTSIDE, BEYOND = "203.0.113.0/24", "192.0.2.0/24"


def test_frr_and_bird_in_another_area_find_the_boundary_router_and_it_finds_theirs(
    tmp_path: Path,
):
    """The border router tells each side by type 4 summaries where the externals come from."""
    file = tmp_path / "topology.clab.yml"
    file.write_text(AREAS)
    fabric = Fabric.from_file(file, directory=tmp_path / "state")
    recordings = None
    try:
        fabric.build()
        recordings = Recordings(fabric, tmp_path / "sent")
        fabric.start()
        await_all_paths(fabric, 30.0)
        node, frr = fabric.node("S1"), fabric.node("F1")
        node.netns.ip("route", "add", "blackhole", OUTSIDE)
        redistribute(node, {"static": {"metric": 30, "metric-type": 1}})
        for name in ("F1", "B1"):
            until(lambda n=name: installed(fabric, n, OUTSIDE) == {"A"}, SOON, f"{name} has it")
        found = frr_route(frr, OUTSIDE)
        assert (found["routeType"], found["cost"]) == ("N E1", 50)
        assert re.search(r"OSPF.metric1: 50\b", bird_route(fabric.node("B1"), OUTSIDE))
        assert vtysh_json(frr, "show ip ospf route")[str(node.plan.router_id)]["routeType"] == "R "

        frr.netns.ip("route", "add", "blackhole", BEYOND)
        vtysh(frr, "configure terminal", "router ospf", "redistribute kernel metric-type 1")
        until(lambda: installed(fabric, "S1", BEYOND) == {"A"}, SOON, "S1 has FRR's")
        (route,) = fared(node).request("show routes", args={"prefix": BEYOND})["routes"]
        assert (route["type"], route["metric"]) == ("external-1", 40)

        node.netns.ip("route", "del", "blackhole", OUTSIDE)
        for name in ("F1", "B1", "A"):
            until(lambda n=name: not installed(fabric, n, OUTSIDE), SOON, f"{name} forgets")
        assert complaints(fabric) == {}
        assert rejected(fabric) == {}
        recordings.stop()
        for name in recordings.names():
            assert recordings.judge(name).flawed == []
    finally:
        if recordings is not None:
            recordings.stop()
        fabric.stop()


# On a LAN

FIREWALL = "10.192.0.99"
ROUTERS = {"F": ("fared", 1, 100), "R": ("frr", 3, 50), "B": ("bird", 4, 10)}


@pytest.fixture
def lan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """fared, FRR and BIRD on a bridge, and nothing else at the firewall's address."""
    directory = tmp_path_factory.mktemp("lan")
    for parent in (directory, directory.parent):
        parent.chmod(0o755)
    made = Lan(directory, ROUTERS)
    try:
        yield made
    finally:
        made.close()


def via(lan: Any, name: str, prefix: str) -> set[str | None]:
    return {hop.gateway for hop in lan.views[name].hops(prefix)}


def external_ids(node: Any) -> set[str]:
    return {lsa.advertising_router for lsa in database(node) if lsa.ls_type == 5}


@pytest.mark.timeout(120)
def test_a_next_hop_on_the_lan_is_sent_to_directly_and_one_announcement_is_enough(lan, tmp_path):
    """The forwarding address; and RFC 2328 §12.4.4 where FRR announces just the same."""
    prefix = "203.0.113.0/24"
    recordings = Recordings(lan, tmp_path / "sent")
    try:
        for member in lan.members.values():
            member.start()
        node, frr = lan.node("F"), lan.node("R")
        until(lambda: node.designated()[0] == "DR", 20.0, "fared is the designated router")
        node.netns.ip("route", "add", prefix, "via", FIREWALL, "dev", PORT)
        redistribute(node, {"static": {"metric": 20, "metric-type": 2}})
        for name in ("R", "B"):
            until(lambda n=name: via(lan, n, prefix) == {FIREWALL}, 20.0, f"{name} directly")
        (lsa,) = fared(node).request(
            "show database", args={"type": "as-external", "id": "203.0.113.0"}
        )["as_scope"]
        assert lsa["body"]["forwarding_address"] == FIREWALL

        frr.netns.ip("route", "add", prefix, "via", FIREWALL, "dev", PORT)
        vtysh(
            frr, "configure terminal", "router ospf", "redistribute kernel metric 20 metric-type 2"
        )
        seconds = until(lambda: external_ids(node) == {frr.router_id}, 20.0, "FRR's alone")
        tell(f"left to the higher router id after {seconds:.2f} s")
        assert via(lan, "B", prefix) == {FIREWALL}

        vtysh(frr, "configure terminal", "router ospf", "no redistribute kernel")
        until(lambda: external_ids(node) == {node.router_id}, 20.0, "fared's again")
        assert complaints(lan) == {}
        assert rejected(lan) == {}
    finally:
        recordings.stop()
    if None not in map(shutil.which, ("tcpdump", "tshark")):
        assert recordings.judge("F").flawed == []
