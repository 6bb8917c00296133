"""fared spines over leaves of FRR and BIRD, which announce hundreds of prefixes between them.

One fabric for the whole module; each test finds it whole and leaves it so.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from ipaddress import IPv4Address

import pytest

from fared.extensions.lab import traffic
from fared.extensions.lab.fabric import Fabric, RunningNode
from tests.peers.conftest import Peers, Running
from tests.peers.peers import (
    await_all_paths,
    await_equal_databases,
    await_whole,
    database,
    fared,
    full_neighbors,
    gateways,
    links_routed,
    reconfigured,
    tell,
    vtysh,
    vtysh_json,
    wanted_gateways,
    wanted_neighbors,
)
from tests.peers.recordings import FRR_BEGAN_ANEW, WIRESHARK, complaints, rejected
from tests.waiting import seconds_until, wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

TOPOLOGY = """
name: leaves
topology:
  defaults: {labels: {fared-lab.rate: 100M}}
  nodes:
    F1: {kind: frr}
    F2: {kind: frr}
    B1: {kind: bird}
    B2: {kind: bird}
    S1: {kind: fared}
    S2: {kind: fared}
    h1: {}
    h2: {}
    h3: {}
    h4: {}
  links:
    - endpoints: ["S1:F1", "F1:S1"]
    - endpoints: ["S1:F2", "F2:S1"]
    - endpoints: ["S1:B1", "B1:S1"]
    - endpoints: ["S1:B2", "B2:S1"]
    - endpoints: ["S2:F1", "F1:S2"]
    - endpoints: ["S2:F2", "F2:S2"]
    - endpoints: ["S2:B1", "B1:S2"]
    - endpoints: ["S2:B2", "B2:S2"]
    - endpoints: ["F1:h1", "h1:F1"]
    - endpoints: ["F2:h2", "h2:F2"]
    - endpoints: ["B1:h3", "h3:B1"]
    - endpoints: ["B2:h4", "h4:B2"]
"""
LEAVES = ("F1", "F2", "B1", "B2")
STUBS = 250
EXTERNALS = 300
MESSAGES = {"Hello", "DB Description", "LS Request", "LS Update", "LS Acknowledge"}


@pytest.fixture(scope="module")
def peers(running: Running) -> Iterator[Peers]:
    with running(TOPOLOGY) as up:
        yield up


def prefix_of(fabric: Fabric, leaf: str) -> str:
    return str(fabric.plan.node(leaf).host_prefixes[0])


def test_every_leaf_is_fully_adjacent_with_both_spines(fabric: Fabric):
    for plan in fabric.plan.routers:
        node, wanted = fabric.node(plan.name), wanted_neighbors(fabric, plan.name)
        wait_for(lambda n=node, w=wanted: full_neighbors(n) == w, 20.0, f"{plan.name}: {wanted}")


def test_frr_and_bird_behind_fared_hold_the_same_lsas(fabric: Fabric):
    """Everything they know of each other went through fared."""
    held = await_equal_databases(fabric)
    assert {lsa.advertising_router for lsa in held} == {
        str(plan.router_id) for plan in fabric.plan.routers
    }
    assert database(fabric.node("F1")) == database(fabric.node("B1")) == held


@pytest.mark.parametrize("leaf", ["F1", "B1"])
def test_leaves_reach_all_others_over_both_spines(fabric: Fabric, leaf: str):
    for other in LEAVES:
        if other == leaf:
            continue
        prefix, wanted = prefix_of(fabric, other), wanted_gateways(fabric, leaf, other)
        assert len(wanted) == 2
        assert gateways(fabric.view(leaf).hops(prefix)) == wanted
        if leaf == "F1":
            (route,) = vtysh_json(fabric.node(leaf), f"show ip route {prefix}")[prefix]
            assert {(h["interfaceName"], h["ip"]) for h in route["nexthops"]} == wanted
        else:
            shown = fabric.node(leaf).cli(f"show route {prefix}")
            assert {(i, g) for g, i in re.findall(r"via (\S+) on (\S+)", shown)} == wanted


def test_flows_from_bird_to_frr_pass_both_fared_spines(fabric: Fabric):
    for source, target in (("h3", "h2"), ("h2", "h3")):
        report = traffic.measure(fabric, source, target, flows=3000)
        assert report.delivered == 3000
        assert {uplink.interface for uplink in report.uplinks} == {"S1", "S2"}
        assert report.worst_error < 0.05


def test_a_link_to_a_fared_spine_fails_and_heals(fabric: Fabric):
    """Leaves of both makes leave the spine for the leaf it lost, and return."""
    prefix = prefix_of(fabric, "F1")

    def left() -> bool:
        views = (fabric.view(leaf) for leaf in ("F2", "B1", "B2"))
        return all({hop.interface for hop in view.hops(prefix)} == {"S2"} for view in views)

    fabric.fail("S1", "F1")
    try:
        failed = seconds_until(left, 10.0, f"the other leaves leave S1 for {prefix}")
    finally:
        begun = time.monotonic()
        fabric.heal("S1", "F1")
    healed = await_all_paths(fabric) - begun
    tell(f"S1-F1: left after {failed:.2f} s, all paths are back after {healed:.2f} s")


def many(first: str, count: int) -> list[str]:
    base = int(IPv4Address(first))
    return [f"{IPv4Address(base + number)}/32" for number in range(count)]


@pytest.fixture
def crowded(fabric: Fabric) -> Iterator[Fabric]:
    """F1 announces 250 loopbacks in its router LSA and 300 externals, B1 100 externals.

    F1's router LSA then takes more than two full packets, and a database description of
    everything needs six.
    """
    f1, b1 = fabric.node("F1"), fabric.node("B1")
    stubs, externals = many("10.200.0.0", STUBS), many("10.201.0.0", EXTERNALS)
    bird = b1.directory / "bird.conf"
    plain = bird.read_text()
    statics = "\n".join(f"  route {prefix} blackhole;" for prefix in many("10.202.0.0", 100))
    bird.write_text(
        plain.replace("export none", 'export where proto = "many"')
        + f"protocol static many {{\n  ipv4;\n{statics}\n}}\n"
    )
    f1.netns.batch("ip", [f"addr add {prefix} dev lo" for prefix in stubs])
    f1.netns.batch("ip", [f"route add blackhole {prefix}" for prefix in externals])
    vtysh(f1, "configure terminal", "router ospf", "redistribute kernel")
    b1.cli("configure")
    try:
        yield fabric
    finally:
        bird.write_text(plain)
        b1.cli("configure")
        vtysh(f1, "configure terminal", "router ospf", "no redistribute kernel")
        f1.netns.batch("ip", [f"route del blackhole {prefix}" for prefix in externals])
        f1.netns.batch("ip", [f"addr del {prefix} dev lo" for prefix in stubs])


def counts(node: RunningNode) -> tuple[int, int]:
    """How many router LSAs and externals a router holds."""
    held = database(node)
    return sum(lsa.ls_type == 1 for lsa in held), sum(lsa.ls_type == 5 for lsa in held)


def test_databases_of_hundreds_of_lsas_are_exchanged_completely(crowded: Fabric):
    """Flooded first; then a spine is killed and started, and must be told everything again."""
    fabric = crowded
    wanted = (len(fabric.plan.routers), EXTERNALS + 100)
    wait_for(lambda: counts(fabric.node("F1")) == wanted, 30.0, "FRR originates")
    held = await_equal_databases(fabric)
    assert len(held) > 420

    begun = time.monotonic()
    fabric.stop_node("S1", kill=True)
    fabric.start_node("S1")
    full = wanted_neighbors(fabric, "S1")
    wait_for(lambda: full_neighbors(fabric.node("S1")) == full, 40.0, "S1 is fully adjacent")
    seconds = time.monotonic() - begun
    await_equal_databases(fabric)
    await_all_paths(fabric)
    assert counts(fabric.node("S1")) == wanted
    stub = many("10.200.0.0", STUBS)[-1]
    assert gateways(fabric.view("S1").hops(stub)) == wanted_gateways(fabric, "S1", "F1")
    tell(f"{len(held)} LSAs, 4 neighbors: full {seconds:.2f} s after the start of the process")


SUPPRESSION = {
    "fared": ("ospf:\n", "  prefix-suppression: true\n"),
    "bird": ("area 0.0.0.0 {\n", "    stubnet 10.128.0.0/16 { hidden; summary; };\n"),
}
"""FRR 8.4 has none."""


def test_prefix_suppression_is_switched_on_and_off_beside_frr_and_bird(fabric: Fabric):
    """All are reached as before; of links remain those that an end of FRR advertises."""
    remain = {"F1": 2, "F2": 2, "B1": 4, "B2": 4, "S1": 2, "S2": 2}
    with reconfigured(fabric, SUPPRESSION):
        for name, count in remain.items():
            wait_for(lambda n=name, c=count: links_routed(fabric, n) == c, 15.0, f"{name}: {count}")
        await_whole(fabric)
        for spine in ("S1", "S2"):
            rows = fared(fabric.node(spine)).request("show interfaces")["interfaces"]
            assert {row["interface"] for row in rows if row["prefix_suppression"]} == set(LEAVES)
            assert {row["flaps"] for row in rows if row["interface"] != "F1"} == {0}
        for name, other in itertools.permutations(remain, 2):
            loopback = f"{fabric.plan.node(other).router_id}/32"
            hops = fabric.view(name).hops(loopback)
            assert gateways(hops) == wanted_gateways(fabric, name, other)
    wait_for(lambda: links_routed(fabric, "F1") == 6, 15.0, "all links are advertised again")


def test_no_implementation_logs_a_complaint(story: Peers):
    """The logs of FRR and BIRD hold no complaint, and fared refused nothing of theirs."""
    assert complaints(story.fabric, FRR_BEGAN_ANEW) == {}
    assert rejected(story.fabric) == {}


@WIRESHARK
def test_wireshark_finds_no_flaw_in_anything_fared_sent(story: Peers):
    """That includes F1's router LSA, passed on in IP fragments."""
    await_whole(story.fabric)
    story.recordings.stop()
    assert story.recordings.names() == ["S1", "S2"]
    for name in story.recordings.names():
        verdict = story.recordings.judge(name)
        assert verdict.flawed == []
        assert set(verdict.kinds) == MESSAGES
        assert verdict.fragments > 0
