"""A border between IS-IS and OSPF beside FRR: what FRR makes of it, and passes on.

I1 runs IS-IS, S1 is the border, F1 and S2 run OSPF.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import yaml

from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.management.api.client import DaemonRefusedError
from tests.peers.conftest import Peers, Running
from tests.peers.peers import fared, full_neighbors, vtysh
from tests.peers.recordings import complaints, rejected
from tests.peers.redistribution import frr_route, installed
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

TOPOLOGY = """
name: border
topology:
  nodes:
    I1: {kind: fared, labels: {fared-lab.protocol: isis}}
    S1: {kind: fared}
    F1: {kind: frr}
    S2: {kind: fared}
  links:
    - endpoints: ["I1:S1", "S1:I1"]
    - endpoints: ["S1:F1", "F1:S1"]
    - endpoints: ["F1:S2", "S2:F1"]
"""
OF_FRR = "203.0.113.0/24"
OF_OSPF, OF_ISIS = 4200000110, 4200000115
MBIT = 125_000
SOON = 30.0


def whole(fabric: Fabric, seconds: float) -> float:
    """Wait until both neighbors of F1 are full; return when."""
    wait_for(lambda: len(full_neighbors(fabric.node("F1"))) == 2, seconds, "F1 has neighbors")
    return time.monotonic()


@pytest.fixture(scope="module")
def peers(running: Running) -> Iterator[Peers]:
    with running(TOPOLOGY, whole) as up:
        node = up.fabric.node("S1")
        file = node.directory / "fared.yaml"
        document = yaml.safe_load(file.read_text())
        document["interfaces"] = {"I1": {"bandwidth": "25M"}}
        document["ospf"]["redistribute"] = {"isis": {}}
        document["isis"] = {
            "net": "49.0001.0102.5500.0099.00",
            "redistribute": {"ospf": {}},
            "interfaces": {"I1": {}},
        }
        up.fabric.stop_node("S1")
        file.write_text(yaml.safe_dump(document, sort_keys=False))
        up.fabric.start_node("S1")
        whole(up.fabric, SOON)
        yield up


@pytest.fixture
def border(peers: Peers) -> Fabric:
    return peers.fabric


def loopback(fabric: Fabric, name: str) -> str:
    return f"{fabric.plan.node(name).router_id}/32"


def set_scope(node: RunningNode, scope: str) -> None:
    file = node.directory / "fared.yaml"
    document = yaml.safe_load(file.read_text())
    document["ospf"]["external-capacity-scope"] = scope
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    node.cli("config", "reload")


def capacities(node: RunningNode, scope: str) -> set[str]:
    """What extended prefix LSAs of the area, or of AS scope, say."""
    try:
        shown = fared(node).request("show database", args={"type": "extended-prefix"})
    except DaemonRefusedError as error:
        if "no LSA matches" not in str(error):
            raise
        return set()
    areas = [lsa for area in shown["areas"] for lsa in area["lsas"]]
    return {lsa["about"] for lsa in (shown["as_scope"] if scope == "as" else areas)}


def test_frr_installs_a_route_of_isis_and_floods_its_path_capacity_on(border: Fabric):
    """The LSA reaches S2 only through FRR, and limits the next hop there."""
    prefix = loopback(border, "I1")
    wait_for(lambda: installed(border, "F1", prefix) == {"S1"}, SOON, "F1 has it")
    found = frr_route(border.node("F1"), prefix)
    assert (found["routeType"], found["type2cost"], found["tag"]) == ("N E2", 20, OF_ISIS)
    wait_for(lambda: installed(border, "S2", prefix) == {"F1"}, SOON, "S2 has it")
    assert capacities(border.node("S2"), "areas") == {f"{prefix}, as-external, path capacity 25M"}
    explained = fared(border.node("S2")).request("explain", args={"prefix": prefix})
    (hop,) = explained["nexthops"]
    assert hop["capacity"] == 25 * MBIT
    assert "It is redistributed from IS-IS: S1 with 25M." in explained["summary"]


def test_frr_without_mpls_te_floods_the_lsa_of_as_scope(border: Fabric):
    """With ``mpls-te on`` ospfd 8.4 crashes on it: so it is not the default."""
    prefix, node = loopback(border, "I1"), border.node("S1")
    vtysh(border.node("F1"), "configure terminal", "router ospf", "no mpls-te")
    try:
        set_scope(node, "as")
        told = {f"{prefix}, as-external, path capacity 25M"}
        wait_for(lambda: capacities(border.node("S2"), "as") == told, SOON, "S2 has it")
        assert "Opaque-Type 7" in vtysh(border.node("F1"), "show ip ospf database opaque-as")
        wait_for(lambda: not capacities(border.node("S2"), "areas"), SOON, "it is flushed")
    finally:
        set_scope(node, "area")
        wait_for(lambda: not capacities(border.node("S2"), "as"), SOON, "it is flushed")
        vtysh(border.node("F1"), "configure terminal", "router ospf", "mpls-te on")


def test_externals_of_frr_cross_the_border(border: Fabric):
    frr = border.node("F1")
    frr.netns.ip("route", "add", "blackhole", OF_FRR)
    vtysh(frr, "configure terminal", "router ospf", "redistribute kernel metric 5")
    try:
        wait_for(lambda: installed(border, "I1", OF_FRR) == {"S1"}, SOON, "I1 has it")
        args = {"prefix": OF_FRR}
        (route,) = fared(border.node("I1")).request("show routes", args=args)["routes"]
        assert (route["type"], route["tag"]) == ("level-2", OF_OSPF)
        assert installed(border, "S1", OF_FRR) == {"F1"}
    finally:
        vtysh(frr, "configure terminal", "router ospf", "no redistribute kernel")
        frr.netns.ip("route", "del", "blackhole", OF_FRR)
    wait_for(lambda: not installed(border, "I1", OF_FRR), SOON, "I1 forgets it")


def test_no_implementation_logs_a_complaint(story: Peers):
    found = complaints(story.fabric)
    assert found == {}, found
    assert rejected(story.fabric) == {}
