"""FRR's ``area filter-list`` and our ``filter`` of an area let the same summaries pass.

fared (S) and FRR (F) are the two border routers between the same two areas, side by side, with the
same lists: each originates the summaries of the same prefixes into each area.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import yaml

from fared.extensions.lab.fabric import Fabric
from tests.peers.agreement import read_by_fared
from tests.peers.conftest import Peers, Running
from tests.peers.peers import fared, vtysh
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow, pytest.mark.soak]

TOPOLOGY = """
name: filters
topology:
  nodes:
    S: {kind: fared}
    F: {kind: frr}
    C: {kind: frr}
    L: {kind: frr}
  links:
    - {endpoints: ["S:C", "C:S"]}
    - {endpoints: ["F:C", "C:F"]}
    - {endpoints: ["S:L", "L:S"], vars: {area: 1}}
    - {endpoints: ["F:L", "L:F"], vars: {area: 1}}
"""
LOOPBACKS = {
    "L": ("10.77.1.1/32", "10.77.1.2/32", "10.77.2.1/32", "10.78.1.1/32"),
    "C": ("10.88.1.1/32", "10.88.2.1/32", "10.89.1.1/32"),
}
RANGE = "10.77.0.0/16"
OURS = {RANGE, *LOOPBACKS["L"], *LOOPBACKS["C"]}
LISTS = {
    "leaving": ("deny 10.77.1.0/24 ge 32", "deny 10.78.0.0/16 le 32", "permit 0.0.0.0/0 le 32"),
    "entering": ("permit 10.88.0.0/16 ge 32", "deny 10.89.0.0/16 le 32", "permit 0.0.0.0/0 le 31"),
}
SOON = 20.0


def whole(fabric: Fabric, seconds: float) -> float:
    """Wait until both border routers summarize their areas; return when."""

    def same() -> bool:
        found = summaries(fabric).values()
        return len(found) == 2 and all(len(s) > 1 and s == f for s, f in found)

    wait_for(same, seconds, "two border routers")
    return time.monotonic()


@pytest.fixture(scope="module")
def peers(running: Running) -> Iterator[Peers]:
    with running(TOPOLOGY, whole) as up:
        for name, addresses in LOOPBACKS.items():
            up.fabric.node(name).netns.batch("ip", [f"addr add {a} dev lo" for a in addresses])
        yield up


def summaries(fabric: Fabric) -> dict[str, list[set[str]]]:
    """By area, the prefixes of the type 3 LSAs of S and F, in the databases of S."""
    borders = [str(fabric.plan.node(name).router_id) for name in ("S", "F")]
    return {
        area: [
            {part.target for part in routers.get(border, ()) if part.word == "xnetwork"}
            for border in borders
        ]
        for area, routers in read_by_fared(fabric.node("S")).items()
    }


def await_same(fabric: Fabric, into_0: set[str], into_1: set[str]) -> None:
    """Wait until both border routers summarize the same, and of ours these prefixes."""
    wanted = {"0.0.0.0": into_0, "0.0.0.1": into_1}

    def same() -> bool:
        found = summaries(fabric)
        return all(s == f for s, f in found.values()) and wanted == {
            area: s & OURS for area, (s, _) in found.items()
        }

    wait_for(same, SOON, f"{wanted} of both, not {summaries(fabric)}")


def configure(fabric: Fabric, *, summarized: bool = False) -> None:
    """Give both the filters, and the range if it is to summarize area 1."""
    node, frr = fabric.node("S"), fabric.node("F")
    file = node.directory / "fared.yaml"
    document = yaml.safe_load(file.read_text())
    area = document["ospf"]["areas"]["0.0.0.1"]
    document["filters"] = {name: list(items) for name, items in LISTS.items()}
    area["filter"] = {"in": "entering", "out": "leaving"}
    area["ranges"] = {RANGE: {}} if summarized else {}
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    assert fared(node).request("reload")["applied"]
    lists = [f"ip prefix-list {name} {item}" for name, items in LISTS.items() for item in items]
    ranges = [f"area 1 range {RANGE}"] if summarized else []
    vtysh(
        frr,
        "configure terminal",
        *lists,
        "router ospf",
        "area 1 filter-list prefix entering in",
        "area 1 filter-list prefix leaving out",
        *ranges,
    )


def test_the_border_routers_summarize_the_same_prefixes_with_the_same_lists(peers: Peers):
    """Also of a range: its components are filtered, and it is not."""
    fabric = peers.fabric
    await_same(fabric, set(LOOPBACKS["L"]), set(LOOPBACKS["C"]))
    configure(fabric)
    await_same(fabric, {"10.77.2.1/32"}, {"10.88.1.1/32", "10.88.2.1/32"})
    configure(fabric, summarized=True)
    await_same(fabric, {RANGE}, {"10.88.1.1/32", "10.88.2.1/32"})
