"""What fared redistributes into IS-IS arrives at FRR's isisd, and what FRR redistributes at fared.

S1 has networks and static routes of which IS-IS knows nothing; S2 is behind F1.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fared.extensions.lab.fabric import Fabric, RunningNode
from fared.protocols.isis.pdu.tlvs import IpReach, IpReachability, of_type
from tests.peers.conftest import Peers, Running
from tests.peers.isis_mixed import await_as_it_should_be
from tests.peers.isis_peers import await_equal_databases, lsps, system_id
from tests.peers.isis_recordings import FRR_LOST_LINK, judge, refused
from tests.peers.peers import fared, vtysh
from tests.peers.recordings import ISIS, WIRESHARK, complaints
from tests.peers.redistribution import installed, redistribute
from tests.waiting import wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

TOPOLOGY = """
name: isredist
topology:
  defaults:
    labels:
      fared-lab.protocol: isis
      fared-lab.isis-level: level-2
      fared-lab.isis-area: "49.0001"
  nodes:
    S1: {kind: fared}
    F1: {kind: frr}
    S2: {kind: fared}
    h2: {}
  links:
    - endpoints: ["S1:F1", "F1:S1"]
    - endpoints: ["S2:F1", "F1:S2"]
    - endpoints: ["S2:h2", "h2:S2"]
"""
CONNECTED = ("198.51.100.0/24", "2001:db8:51::/64")
STATIC = ("203.0.113.0/24", "2001:db8:cafe::/48")
GATEWAYS = ("198.51.100.2", "2001:db8:51::2")
DEFAULTS = ("0.0.0.0/0", "::/0")
THEIRS = ("192.0.2.0/24", "2001:db8:beef::/48")
EXTERNAL = 0x80
SOON = 20.0


@pytest.fixture(scope="module")
def peers(running: Running) -> Iterator[Peers]:
    with running(TOPOLOGY, await_as_it_should_be, ISIS) as up:
        lines = ["link add x0 type veth peer name x1", "addr add 198.51.100.1/24 dev x0"]
        lines += ["addr add 2001:db8:51::1/64 dev x0 nodad", "link set x0 up", "link set x1 up"]
        up.fabric.node("S1").netns.batch("ip", lines)
        yield up


@pytest.fixture
def sources(peers: Peers) -> Iterator[Fabric]:
    """S1 redistributes what it has, static routes with a tag."""
    fabric = peers.fabric
    node = fabric.node("S1")
    lines = [f"route add {p} via {via}" for p, via in zip(STATIC, GATEWAYS, strict=True)]
    node.netns.batch("ip", lines)
    redistribute(node, {"static": {"metric": 30, "tag": 77}, "connected": {"metric": 40}}, "isis")
    try:
        yield fabric
    finally:
        redistribute(node, {}, "isis")
        for family in ("-4", "-6"):
            node.netns.ip(family, "route", "flush", "proto", "boot")
        for prefix in (*STATIC, *CONNECTED):
            for name in ("F1", "S2"):
                await_hops(fabric, name, prefix, set())


def await_hops(fabric: Fabric, name: str, prefix: str, wanted: set[str]) -> None:
    wait_for(lambda: installed(fabric, name, prefix) == wanted, SOON, f"{name} {prefix} {wanted}")


def entry(node: RunningNode, level: int, of: RunningNode, prefix: str) -> IpReach:
    """What a router's LSPs say of a prefix, as a fared node holds them."""
    (found,) = (
        reach
        for name, lsp in lsps(node).get(level, {}).items()
        if name.startswith(system_id(of.plan))
        for tlv in of_type(lsp.tlvs, IpReachability)
        for reach in tlv.prefixes
        if str(reach.prefix) == prefix
    )
    return found


def test_frr_installs_what_fared_redistributes_and_another_fared_behind_it(sources: Fabric):
    """Both families, with the metric; in S2's database external and tagged."""
    for prefix in (*STATIC, *CONNECTED):
        await_hops(sources, "F1", prefix, {"S1"})
        await_hops(sources, "S2", prefix, {"F1"})
    frr, s1, s2 = (sources.node(name) for name in ("F1", "S1", "S2"))
    shown = vtysh(frr, "show isis database detail S1.00-00")
    for prefix in (*STATIC, *CONNECTED):
        assert prefix in shown
    for prefix, metric in ((STATIC[0], 50), (STATIC[1], 50), (CONNECTED[0], 60)):
        (route,) = fared(s2).request("show routes", args={"prefix": prefix})["routes"]
        assert (route["type"], route["metric"]) == ("level-2", metric)
    for prefix in STATIC:
        found = entry(s2, 2, s1, prefix)
        assert (found.metric, found.flags, found.tags, found.down) == (30, EXTERNAL, (77,), False)
    await_equal_databases(sources)


def test_a_route_deleted_from_the_kernel_is_withdrawn_everywhere(sources: Fabric):
    netns = sources.node("S1").netns
    for prefix in STATIC:
        await_hops(sources, "S2", prefix, {"F1"})
        netns.ip("route", "del", prefix)
        for name in ("F1", "S2"):
            await_hops(sources, name, prefix, set())
    netns.ip("link", "set", "x1", "down")
    for prefix in CONNECTED:
        await_hops(sources, "S2", prefix, set())
    netns.ip("link", "set", "x1", "up")
    for prefix in CONNECTED:
        await_hops(sources, "S2", prefix, {"F1"})


def test_default_routes_are_advertised_if_configured(sources: Fabric):
    node = sources.node("S1")
    redistribute(node, {"default": {"always": True}}, "isis")
    for prefix in DEFAULTS:
        await_hops(sources, "F1", prefix, {"S1"})
    redistribute(node, {"static": {}}, "isis")
    for prefix in DEFAULTS:
        await_hops(sources, "F1", prefix, set())


def test_fared_installs_what_frr_redistributes_and_keeps_its_own(sources: Fabric):
    """FRR announces it with metric 0; S1, that has a static route of its own, stays with that."""
    frr, mine = sources.node("F1"), sources.node("S1")
    mine.netns.ip("route", "add", THEIRS[0], "via", GATEWAYS[0], "metric", "4000")
    for prefix in THEIRS:
        frr.netns.ip("route", "add", "blackhole", prefix)
    commands = [f"redistribute {family} kernel level-2" for family in ("ipv4", "ipv6")]
    vtysh(frr, "configure terminal", "router isis fabric", *commands)
    try:
        for prefix in THEIRS:
            await_hops(sources, "S2", prefix, {"F1"})
        await_hops(sources, "S1", THEIRS[1], {"F1"})
        kept = f"{THEIRS[0]} via {GATEWAYS[0]} dev x0 metric 4000"
        wait_for(lambda: kernel(mine, THEIRS[0]) == [kept], SOON, "only its own route")
        mine.netns.ip("route", "del", THEIRS[0])
        await_hops(sources, "S1", THEIRS[0], {"F1"})
    finally:
        undo = [f"no {command}" for command in commands]
        vtysh(frr, "configure terminal", "router isis fabric", *undo)
        for prefix in THEIRS:
            frr.netns.ip("route", "del", "blackhole", prefix)


def kernel(node: RunningNode, prefix: str) -> list[str]:
    """The routes to a prefix as ``ip`` writes them."""
    lines = node.netns.ip("route", "show", prefix).splitlines()
    return [line.strip() for line in lines]


def test_no_implementation_logs_a_complaint(story: Peers):
    assert complaints(story.fabric, FRR_LOST_LINK) == {}
    assert refused(story.fabric) == {}


@WIRESHARK
def test_wireshark_finds_no_flaw_in_anything_fared_sent(story: Peers):
    story.recordings.stop()
    verdict = judge(story.recordings.merged("S1", "S2"))
    assert (verdict.flawed, verdict.bad_lsps) == ([], [])
