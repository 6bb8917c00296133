"""fared at both levels between FRR's isisd of every level: neighbors, databases, routes,
capacity."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from fared.extensions.lab.fabric import Fabric
from tests.peers.conftest import Peers, Running
from tests.peers.isis_mixed import (
    HELLOS,
    LEVEL_1,
    LEVEL_2,
    await_as_it_should_be,
    fail_and_heal,
    judge_every_link,
)
from tests.peers.isis_peers import (
    LEVELS,
    adjacencies,
    await_equal_databases,
    hostnames,
    link_levels,
)
from tests.peers.peers import tell, vtysh
from tests.peers.recordings import ISIS
from tests.peers.routes import await_shares
from tests.waiting import seconds_until

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

TOPOLOGY = """
name: levels
topology:
  defaults:
    labels:
      fared-lab.protocol: isis
      fared-lab.isis-level: level-1-2
      fared-lab.isis-area: "49.0001"
      fared-lab.rate: 100M
  nodes:
    X: {kind: fared}
    A: {kind: frr, labels: {fared-lab.isis-level: level-1}}
    B: {kind: frr, labels: {fared-lab.isis-level: level-2, fared-lab.isis-area: "49.0002"}}
    C: {kind: frr}
    D: {kind: frr, labels: {fared-lab.isis-area: "49.0003"}}
    Z: {kind: fared, labels: {fared-lab.isis-level: level-2, fared-lab.isis-area: "49.0002"}}
    ha: {kind: linux}
    hc: {kind: linux}
    hz: {kind: linux}
  links:
    - endpoints: ["X:A", "A:X"]
    - endpoints: ["X:B", "B:X"]
    - endpoints: ["X:C", "C:X"]
    - endpoints: ["X:D", "D:X"]
    - endpoints: ["Z:B", "B:Z"]
    - endpoints: ["Z:D", "D:Z"]
    - endpoints: ["A:ha", "ha:A"]
    - endpoints: ["C:hc", "hc:C"]
    - endpoints: ["Z:hz", "hz:Z"]
"""
RATE = 100e6 / 8
AVAILABLE = re.compile(r"Extended Reachability: (\S+) |Unidir\. Available Bandwidth: (\S+) ")


@pytest.fixture(scope="module")
def peers(running: Running) -> Iterator[Peers]:
    with running(TOPOLOGY, await_as_it_should_be, ISIS) as up:
        yield up


def test_neighbors_are_adjacent_at_all_levels_that_both_support(fabric: Fabric):
    """Level 1 with the same area only; level 2 with anybody; both where both can, by both ends."""
    plan, names = fabric.plan, hostnames(fabric.plan)
    levels = {p.peer: link_levels(plan, p) for p in plan.node("X").fabric_ports}
    assert levels == {"A": {1}, "B": {2}, "C": {1, 2}, "D": {2}}
    wanted = {peer: (names[peer], frozenset(found)) for peer, found in levels.items()}
    assert adjacencies(fabric.node("X"), names) == wanted
    for peer, spoken in levels.items():
        system, usable = adjacencies(fabric.node(peer), names)["X"]
        assert system == names["X"]
        assert usable >= spoken  # FRR shows the circuit's levels


def test_databases_are_equal_level_by_level(fabric: Fabric):
    """LSP ids, sequence numbers, checksums; X is in both levels, each other where it belongs."""
    found = await_equal_databases(fabric)
    names = {system: name for name, system in hostnames(fabric.plan).items()}
    members = {level: {names[lsp.lsp_id[:14]] for lsp in found[level]} for level in LEVELS}
    assert members == {1: {"X", "A", "C", "D"}, 2: {"X", "B", "C", "D", "Z"}}


@pytest.mark.parametrize(("seed", "failures"), [(1, 2)])
def test_routes_of_both_families_are_right_while_links_fail_and_heal(
    fabric: Fabric, seed: int, failures: int
):
    """Level 1 prefixes in level 2 and back, next hops and metrics, at every step."""
    fail_and_heal(fabric, seed, failures)
    await_as_it_should_be(fabric, 20.0)


def available(fabric: Fabric, at: str, of: str) -> dict[str, float]:
    """The available bandwidth that FRR reads in another router's LSPs, by neighbor, bytes/s."""
    found: dict[str, float] = {}
    neighbor = ""
    names = {system: name for name, system in hostnames(fabric.plan).items()}
    text = vtysh(fabric.node(at), f"show isis database detail {of}.00-00")
    for system, value in AVAILABLE.findall(text):
        if system:
            neighbor = names[system[:14]]
        else:
            found[neighbor] = float(value)
    return found


def test_frr_shows_the_available_bandwidth_of_fared_and_its_changes(fabric: Fabric):
    """``show isis database detail`` at the far ends of both levels follows the shaper."""

    def shown(at: str, wanted: dict[str, float], seconds: float) -> float:
        close = pytest.approx(wanted, rel=0.01)
        what = f"{at} reads {wanted}"
        return seconds_until(lambda: available(fabric, at, "X") == close, seconds, what)

    shown("A", {"A": RATE, "C": RATE}, 40.0)
    whole = dict.fromkeys("BCD", RATE)
    shown("B", whole, 40.0)
    fabric.shape("X", "D", RATE / 4)
    took = shown("B", {**whole, "D": RATE / 4}, 40.0)
    tell(f"FRR knew of a link at a quarter after {took:.2f} s")
    fabric.shape("X", "D", RATE)
    shown("B", whole, 30.0)


def test_the_link_params_of_frr_are_weighed(fabric: Fabric):
    """B says its link to Z has a quarter left: X sends it one flow in five, in both families."""
    leaf = fabric.plan.node("Z")
    prefixes = [str(p) for p in (*leaf.host_prefixes, *leaf.host_prefixes6)]
    for rate, share in ((RATE / 4, 1), (RATE, 4)):
        configure = ("configure terminal", "interface Z", "link-params", f"ava-bw {rate:g}")
        vtysh(fabric.node("B"), *configure)
        await_shares(fabric.view("X"), prefixes, {"B": share, "D": 4})


def test_a_router_of_frr_at_the_maximum_metric_is_reached_and_not_crossed(fabric: Fabric):
    """RFC 5305 §3, as ``advertise-high-metrics`` of newer FRR has it: B keeps traffic off
    itself."""
    b, leaf = fabric.plan.node("B"), fabric.plan.node("Z")
    own = [f"{b.loopback}/32", f"{b.loopback6}/128"]
    through = [str(p) for p in (*leaf.host_prefixes, *leaf.host_prefixes6)]
    for command, way in (("isis metric 16777215", {"D": 4}), ("no isis metric", {"B": 4, "D": 4})):
        for port in b.fabric_ports:
            vtysh(fabric.node("B"), "configure terminal", f"interface {port.name}", command)
        await_shares(fabric.view("X"), through, way)
        await_shares(fabric.view("X"), own, {"B": 1})
    await_as_it_should_be(fabric, 20.0)


def test_neither_frr_nor_wireshark_finds_a_flaw_in_any_packet(story: Peers):
    """Neither FRR nor Wireshark."""
    judge_every_link(story, HELLOS | LEVEL_1 | LEVEL_2)
