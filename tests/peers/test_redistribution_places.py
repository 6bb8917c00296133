"""Redistribution across areas, and on a LAN."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fared.extensions.lab.fabric import Fabric
from tests.peers.lan import PORT, Lan
from tests.peers.peers import await_all_paths, database, fared, tell, vtysh, vtysh_json
from tests.peers.recordings import Recordings, complaints, rejected
from tests.peers.redistribution import bird_route, frr_route, installed, redistribute
from tests.waiting import seconds_until, wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

SOON = 20.0

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


def test_asbrs_of_fared_frr_and_bird_are_reached_from_another_area(
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
            wait_for(lambda n=name: installed(fabric, n, OUTSIDE) == {"A"}, SOON, f"{name} has it")
        found = frr_route(frr, OUTSIDE)
        assert (found["routeType"], found["cost"]) == ("N E1", 50)
        assert re.search(r"OSPF.metric1: 50\b", bird_route(fabric.node("B1"), OUTSIDE))
        assert vtysh_json(frr, "show ip ospf route")[str(node.plan.router_id)]["routeType"] == "R "

        frr.netns.ip("route", "add", "blackhole", BEYOND)
        vtysh(frr, "configure terminal", "router ospf", "redistribute kernel metric-type 1")
        wait_for(lambda: installed(fabric, "S1", BEYOND) == {"A"}, SOON, "S1 has FRR's")
        (route,) = fared(node).request("show routes", args={"prefix": BEYOND})["routes"]
        assert (route["type"], route["metric"]) == ("external-1", 40)

        node.netns.ip("route", "del", "blackhole", OUTSIDE)
        for name in ("F1", "B1", "A"):
            wait_for(lambda n=name: not installed(fabric, n, OUTSIDE), SOON, f"{name} forgets")
        assert complaints(fabric) == {}
        assert rejected(fabric) == {}
        recordings.stop()
        for name in recordings.names():
            assert recordings.judge(name).flawed == []
    finally:
        if recordings is not None:
            recordings.stop()
        fabric.stop()


FIREWALL = "10.192.0.99"
ROUTERS = {"F": ("fared", 1, 100), "R": ("frr", 3, 50), "B": ("bird", 4, 10)}


@pytest.fixture
def lan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """fared, FRR and BIRD on a bridge, and nothing else at the firewall's address."""
    with Lan.in_directory(tmp_path_factory, ROUTERS) as made:
        yield made


def via(lan: Any, name: str, prefix: str) -> set[str | None]:
    return {hop.gateway for hop in lan.views[name].hops(prefix)}


def external_ids(node: Any) -> set[str]:
    return {lsa.advertising_router for lsa in database(node) if lsa.ls_type == 5}


@pytest.mark.timeout(120)
def test_a_forwarding_address_on_the_lan_is_used_and_one_of_two_equal_lsas_is_kept(lan, tmp_path):
    """The forwarding address; and RFC 2328 §12.4.4 where FRR announces just the same."""
    prefix = "203.0.113.0/24"
    recordings = Recordings(lan, tmp_path / "sent")
    try:
        node, frr = lan.node("F"), lan.node("R")
        node.start()  # alone at first: whoever is on the LAN first stays its designated router
        wait_for(lambda: node.designated()[0] == "DR", 20.0, "fared is the designated router")
        for member in lan.members.values():
            if member is not node:
                member.start()
        node.netns.ip("route", "add", prefix, "via", FIREWALL, "dev", PORT)
        redistribute(node, {"static": {"metric": 20, "metric-type": 2}})
        for name in ("R", "B"):
            wait_for(lambda n=name: via(lan, n, prefix) == {FIREWALL}, 20.0, f"{name} directly")
        (lsa,) = fared(node).request(
            "show database", args={"type": "as-external", "id": "203.0.113.0"}
        )["as_scope"]
        assert lsa["body"]["forwarding_address"] == FIREWALL

        frr.netns.ip("route", "add", prefix, "via", FIREWALL, "dev", PORT)
        vtysh(
            frr, "configure terminal", "router ospf", "redistribute kernel metric 20 metric-type 2"
        )
        seconds = seconds_until(lambda: external_ids(node) == {frr.router_id}, 20.0, "FRR's alone")
        tell(f"left to the higher router id after {seconds:.2f} s")
        assert via(lan, "B", prefix) == {FIREWALL}

        node.netns.ip("route", "del", prefix, "via", FIREWALL, "dev", PORT)
        wait_for(lambda: via(lan, "F", prefix) == {FIREWALL}, 20.0, "fared uses FRR's, directly")
        node.netns.ip("route", "add", prefix, "via", FIREWALL, "dev", PORT)

        vtysh(frr, "configure terminal", "router ospf", "no redistribute kernel")
        wait_for(lambda: external_ids(node) == {node.router_id}, 20.0, "fared's again")
        assert complaints(lan) == {}
        assert rejected(lan) == {}
    finally:
        recordings.stop()
    if None not in map(shutil.which, ("tcpdump", "tshark")):
        assert recordings.judge("F").flawed == []
