"""fared leaves under spines of three makes: FRR, BIRD and fared itself.

One fabric for the whole module; each test finds it whole and leaves it so.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Iterator

import pytest

from fared.extensions.lab import traffic
from fared.extensions.lab.fabric import Fabric
from tests.peers.conftest import Peers, Running
from tests.peers.peers import (
    OPAQUE_AREA,
    await_all_paths,
    await_equal_databases,
    await_hops,
    await_whole,
    database,
    fared,
    full_neighbors,
    gateways,
    reconfigured,
    tell,
    vtysh,
    vtysh_json,
    wanted_gateways,
    wanted_neighbors,
)
from tests.peers.recordings import WIRESHARK, complaints, rejected
from tests.waiting import await_rest, wait_for

pytestmark = [pytest.mark.netns, pytest.mark.peers, pytest.mark.slow]

TOPOLOGY = """
name: spines
topology:
  defaults: {labels: {fared-lab.rate: 100M}}
  nodes:
    L1: {kind: fared}
    L2: {kind: fared}
    S1: {kind: frr}
    S2: {kind: bird}
    S3: {kind: fared}
    h1: {}
    h2: {}
  links:
    - endpoints: ["S1:L1", "L1:S1"]
    - endpoints: ["S1:L2", "L2:S1"]
    - endpoints: ["S2:L1", "L1:S2"]
    - endpoints: ["S2:L2", "L2:S2"]
    - endpoints: ["S3:L1", "L1:S3"]
    - endpoints: ["S3:L2", "L2:S3"]
    - endpoints: ["L1:h1", "h1:L1"]
    - endpoints: ["L2:h2", "h2:L2"]
"""
NEAR, FAR = "10.0.1.0/24", "10.0.2.0/24"
SPINES = {"S1", "S2", "S3"}
MIN_LS_ARRIVAL = 1.5
"""More than the second of RFC 2328 §13, which BIRD counts in whole ones."""
RATE = 100e6 / 8
MESSAGES = {"Hello", "DB Description", "LS Request", "LS Update", "LS Acknowledge"}


@pytest.fixture(scope="module")
def peers(running: Running) -> Iterator[Peers]:
    with running(TOPOLOGY) as up:
        yield up


def test_both_ends_of_every_link_report_a_full_adjacency(fabric: Fabric):
    for plan in fabric.plan.routers:
        node, wanted = fabric.node(plan.name), wanted_neighbors(fabric, plan.name)
        wait_for(lambda n=node, w=wanted: full_neighbors(n) == w, 20.0, f"{plan.name}: {wanted}")


def test_all_routers_hold_the_same_lsas_to_the_last_checksum(fabric: Fabric):
    """5 router LSAs; TE and router information LSAs of all but BIRD, which only passes them on."""
    held = await_equal_databases(fabric)
    assert database(fabric.node("S1")) == database(fabric.node("S2")) == held
    by_router = {
        str(plan.router_id): sum(
            lsa.ls_type == OPAQUE_AREA and lsa.advertising_router == str(plan.router_id)
            for lsa in held
        )
        for plan in fabric.plan.routers
    }
    # fared: router information, TE router address, one TE link a link; FRR: one TE link a link
    assert list(by_router.values()) == [5, 5, 2, 0, 4]
    assert sum(lsa.ls_type == 1 for lsa in held) == 5


def test_fared_knows_the_te_links_of_frr_by_name(fabric: Fabric):
    """FRR puts its router address and a link into one LSA: an LSA about a link all the same."""
    await_equal_databases(fabric)
    frr = str(fabric.plan.node("S1").router_id)
    (area,) = fared(fabric.node("L1")).request("show database")["areas"]
    words = [lsa["type"] for lsa in area["lsas"] if lsa["adv_router"] == frr]
    assert sorted(words) == ["router", "te-link", "te-link"]


def test_fared_routes_over_spines_of_every_make_alike(fabric: Fabric):
    """The leaf's kernel has all three gateways with equal weights; flows follow and arrive."""
    # FRR may still have to take back what another test made it say of its links.
    wait_for(lambda: weights(fabric, "L1", FAR) == dict.fromkeys(SPINES, 1), 20.0, "equal weights")
    wait_for(lambda: weights(fabric, "L2", NEAR) == dict.fromkeys(SPINES, 1), 20.0, "equal weights")
    assert gateways(fabric.view("L1").hops(FAR)) == wanted_gateways(fabric, "L1", "L2")
    for spine in SPINES:
        loopback = f"{fabric.plan.node(spine).router_id}/32"
        assert gateways(fabric.view("L1").hops(loopback)) == wanted_gateways(fabric, "L1", spine)

    there = traffic.measure(fabric, "h1", "h2", flows=3000)
    back = traffic.measure(fabric, "h2", "h1", flows=3000)
    assert there.delivered == back.delivered == 3000
    assert max(there.worst_error, back.worst_error) < 0.05  # above five standard deviations


def await_other_spine(fabric: Fabric, spine: str) -> None:
    """Wait until a spine reaches S3 over both leaves: no path to a host is one between spines.

    An LSA that a peer had no time for comes again after five seconds.
    """
    await_hops(fabric, spine, "10.255.0.5/32", {"L1", "L2"}, 10.0)


def test_frr_routes_to_prefixes_of_fared(fabric: Fabric):
    for leaf, prefix in (("L1", NEAR), ("L2", FAR)):
        wanted = wanted_gateways(fabric, "S1", leaf)
        (route,) = vtysh_json(fabric.node("S1"), f"show ip route {prefix}")[prefix]
        assert (route["protocol"], route["metric"], route["installed"]) == ("ospf", 20, True)
        assert {(hop["interfaceName"], hop["ip"]) for hop in route["nexthops"]} == wanted
        assert gateways(fabric.view("S1").hops(prefix)) == wanted
    await_other_spine(fabric, "S1")
    (route,) = vtysh_json(fabric.node("S1"), "show ip route 10.255.0.5/32")["10.255.0.5/32"]
    found = {(hop["interfaceName"], hop["ip"]) for hop in route["nexthops"]}
    assert found == wanted_gateways(fabric, "S1", "S3")


def test_bird_routes_to_prefixes_of_fared(fabric: Fabric):
    for leaf, prefix in (("L1", NEAR), ("L2", FAR)):
        wanted = wanted_gateways(fabric, "S2", leaf)
        shown = fabric.node("S2").cli(f"show route {prefix}")
        assert set(re.findall(r"via (\S+) on (\S+)", shown)) == {(g, i) for i, g in wanted}
        assert "(150/20)" in shown
        assert gateways(fabric.view("S2").hops(prefix)) == wanted
    await_other_spine(fabric, "S2")
    shown = fabric.node("S2").cli("show route 10.255.0.5/32")
    found = {(i, g) for g, i in re.findall(r"via (\S+) on (\S+)", shown)}
    assert found == wanted_gateways(fabric, "S2", "S3")


def test_dynamic_flooding_of_fared_changes_nothing_for_frr_and_bird(fabric: Fabric):
    """The flooding topology connects the three fareds; FRR and BIRD are sent everything."""
    frr, bird = fabric.node("S1"), fabric.node("S2")
    with reconfigured(fabric, {"fared": ("ospf:\n", "  flooding: {reduction: dynamic}\n")}):
        for name in ("L1", "L2", "S3"):
            wait_for(lambda n=name: topology_size(fabric, n) == 3, 15.0, f"{name}: a topology")
        await_equal_databases(fabric)
        for change in (fabric.fail, fabric.heal):
            change("L1", "S3")
            await_equal_databases(fabric)
            assert database(frr) == database(bird) == database(fabric.node("S3"))
    await_whole(fabric)
    assert topology_size(fabric, "L1") is None
    await_equal_databases(fabric)


def topology_size(fabric: Fabric, name: str) -> int | None:
    """The number of routers in the flooding topology of a fared; None: it has none."""
    found = fared(fabric.node(name)).request("show status")["ospf"]["flooding"]["topologies"]
    return found[0]["routers"] if found else None


def frr_te_links(fabric: Fabric, leaf: str) -> dict[str, dict[str, float]]:
    """The TE links of a router as FRR shows its LSAs: local address to bandwidths, bytes/s."""
    shown = vtysh(fabric.node("S1"), "show ip ospf database opaque-area")
    found = {}
    for lsa in shown.split("LS age:")[1:]:
        local = re.search(r"#0: (\S+)", lsa)
        if f"Advertising Router: {fabric.plan.node(leaf).router_id}" in lsa and local:
            found[local[1]] = {
                what: float(value)
                for what, value in re.findall(
                    r"^\s*(\S[\w ]+ Bandwidth): (\S+) \(", lsa, re.MULTILINE
                )
            }
    return found


def four_bytes(value: float) -> float:
    """The nearest value an IEEE single holds, which is what travels."""
    return float(struct.unpack("!f", struct.pack("!f", value))[0])


def test_frr_shows_what_fareds_links_can_carry(fabric: Fabric):
    """Bytes/s in FRR's words: the rate of the shaper, in the LSA and in its TE database."""
    links = frr_te_links(fabric, "L1")
    ports = fabric.plan.node("L1").fabric_ports
    assert set(links) == {str(port.address.ip) for port in ports}
    for bandwidths in links.values():
        assert bandwidths["Maximum Bandwidth"] == RATE
        assert bandwidths["Maximum Reservable Bandwidth"] == RATE
        assert bandwidths["Unidirectional Residual Bandwidth"] == RATE
        assert bandwidths["Unidirectional Available Bandwidth"] == pytest.approx(RATE, rel=0.02)

    edges = vtysh(fabric.node("S1"), "show ip ospf mpls-te database verbose").split("  Edge (")
    edge = next(
        e for e in edges if re.search(r"Local IPv4 address: 10\.128\.0\.9$", e, re.MULTILINE)
    )
    available = re.search(r"Available Bandwidth: (\S+) \(Bytes/s\)", edge)
    assert available is not None
    assert float(available[1]) == pytest.approx(RATE, rel=0.02)


def test_frr_learns_of_a_link_of_fared_that_slows_down(fabric: Fabric):
    """A quarter of the rate at L1's uplink to S3: known to FRR, two hops away, at once."""
    local = str(fabric.plan.ports_between("L1", "S3")[0].address.ip)

    def shown() -> float:
        return frr_te_links(fabric, "L1")[local]["Unidirectional Residual Bandwidth"]

    try:
        fabric.shape("L1", "S3", RATE / 4)
        wait_for(lambda: shown() == four_bytes(RATE / 4), 20.0, f"a quarter, {shown()}")
    finally:
        fabric.shape("L1", "S3", RATE)
    wait_for(lambda: shown() == RATE, 10.0, f"the whole rate again, {shown()}")


def weights(fabric: Fabric, leaf: str, prefix: str) -> dict[str, int]:
    return {hop.interface: hop.weight for hop in fabric.view(leaf).hops(prefix)}


def set_link_params(fabric: Fabric, leaf: str, maximum: float, available: float | None) -> None:
    """Set what FRR says about S1's link to a leaf, bytes/s.

    FRR wants the maximum above every other bandwidth, removed ones included: those go down first.
    """
    lines = ["max-rsv-bw 1", *(f"unrsv-bw {priority} 1" for priority in range(8))]
    lines += [f"ava-bw {RATE / 8:g}", f"max-bw {maximum:g}"]
    lines.append("no ava-bw" if available is None else f"ava-bw {available:g}")
    vtysh(fabric.node("S1"), "configure terminal", f"interface {leaf}", "link-params", *lines)


def test_fared_weighs_the_link_params_of_frr(fabric: Fabric):
    """FRR says its links carry a quarter: each leaf sends a quarter as much that way.

    For S1's link to L2 it is the available bandwidth that says so, to L1 the maximum alone.
    """
    begun = time.monotonic()
    set_link_params(fabric, "L2", RATE, RATE / 4)
    set_link_params(fabric, "L1", RATE / 4, None)
    try:
        for leaf, prefix in (("L1", FAR), ("L2", NEAR)):
            wait_for(
                lambda a=leaf, b=prefix: weights(fabric, a, b) == {"S1": 1, "S2": 4, "S3": 4},
                30.0,
                f"{leaf}: 1 to 4",
            )
        tell(f"weights follow {time.monotonic() - begun:.2f} s after FRR's operator")
        report = traffic.measure(fabric, "h1", "h2", flows=3000)
        assert report.delivered == 3000
        assert report.worst_error < 0.05
    finally:
        set_link_params(fabric, "L2", RATE, RATE)
        set_link_params(fabric, "L1", RATE, RATE)


def of_router(fabric: Fabric, viewer: str, name: str) -> dict[tuple[int, str], int]:
    """Sequence numbers of the LSAs of one router, as another one holds them."""
    origin = str(fabric.plan.node(name).router_id)
    return {
        (lsa.ls_type, lsa.link_state_id): lsa.sequence_number
        for lsa in database(fabric.node(viewer))
        if lsa.advertising_router == origin
    }


def router_lsa(fabric: Fabric, name: str) -> int:
    """The sequence number of a router's own router LSA, as L1 holds it."""
    return of_router(fabric, "L1", name)[1, str(fabric.plan.node(name).router_id)]


def await_news(fabric: Fabric, name: str, before: int) -> None:
    """Wait until a router has said that it lost a neighbor, so that what follows is news to it.

    BIRD 2.0.12 originates once in five seconds. If a link is back before it has said that it was
    gone, it finds its LSA unchanged and computes no routes over the link: "Cannot find next hop".
    """
    wait_for(lambda: router_lsa(fabric, name) > before, 20.0, f"{name} originates its router LSA")


def await_min_ls_arrival(fabric: Fabric, name: str) -> None:
    """Wait until a router has originated nothing for longer than MinLSArrival.

    Until a second has passed, all others discard its next instance (RFC 2328 §13 (5)(a)), and one
    that leaves does not stay to retransmit it.
    """
    what = f"{name} originates nothing"
    await_rest(lambda: of_router(fabric, "S2", name), MIN_LS_ARRIVAL, 10.0, what)


def test_stub_routers_of_every_make_are_avoided_and_are_the_last_resort(fabric: Fabric):
    """RFC 6987; RFC 2328 §16.1: MaxLinkMetric is a cost like any other."""
    links = [("S1", "L1"), ("S2", "L1")]
    fabric.node("S3").cli("drain")
    await_hops(fabric, "L1", FAR, {"S1", "S2"}, 10.0)
    for link in links:
        fabric.fail(*link)
    for name, way in (("L1", "S3"), ("S1", "L2"), ("S2", "L2")):
        await_hops(fabric, name, FAR if name == "L1" else NEAR, {way}, 10.0)
    assert traffic.measure(fabric, "h1", "h2", flows=1000).delivered == 1000
    for link in links:
        fabric.heal(*link)
    ospf = ("configure terminal", "router ospf")
    vtysh(fabric.node("S1"), *ospf, "max-metric router-lsa administrative")
    with reconfigured(fabric, {"bird": ("  tick 1;\n", "  stub router yes;\n")}):
        await_hops(fabric, "L1", FAR, SPINES, 20.0)
        fabric.node("S3").cli("undrain")
        await_hops(fabric, "L1", FAR, {"S3"}, 20.0)
        vtysh(fabric.node("S1"), *ospf, "no max-metric router-lsa administrative")
    await_whole(fabric)


@pytest.mark.parametrize("spine", ["S1", "S2"])
def test_a_link_fails_and_heals(fabric: Fabric, spine: str):
    """Both leaves leave the link at once and come back when it is there again."""
    before = router_lsa(fabric, spine)
    begun = time.monotonic()
    fabric.fail(spine, "L2")
    try:
        far = await_hops(fabric, "L1", FAR, SPINES - {spine}, 30.0)
        near = await_hops(fabric, "L2", NEAR, SPINES - {spine}, 30.0)
        failed = max(far, near) - begun
        wait_for(
            lambda: spine not in full_neighbors(fabric.node("L2")), 20.0, "the neighbor is gone"
        )
        await_news(fabric, spine, before)
        await_equal_databases(fabric)
    finally:
        begun = time.monotonic()
        fabric.heal(spine, "L2")
    healed = await_all_paths(fabric) - begun
    kind = fabric.plan.node(spine).node.kind
    tell(f"{kind}: routes left the link after {failed:.3f} s, all are back after {healed:.2f} s")
    assert full_neighbors(fabric.node("L2")) == wanted_neighbors(fabric, "L2")


def test_a_stopped_fared_flushes_its_lsas_at_once(fabric: Fabric):
    """On SIGTERM the peers lose neighbor, LSAs and routes at once, not after a dead interval."""
    await_min_ls_arrival(fabric, "L2")
    before = router_lsa(fabric, "S2")
    begun = time.monotonic()
    fabric.stop_node("L2")
    try:
        for spine in ("S1", "S2"):
            node, view = fabric.node(spine), fabric.view(spine)
            wait_for(lambda n=node: "L2" not in full_neighbors(n), 3.5, f"{spine} hears of it")
            wait_for(lambda n=spine: not of_router(fabric, n, "L2"), 3.5, f"{spine} flushes")
            wait_for(lambda v=view: not v.hops(FAR), 3.5, f"{spine} drops {FAR}")
        wait_for(lambda: not fabric.view("L1").hops(FAR), 3.5, f"L1 drops {FAR}")
        gone = time.monotonic() - begun
        assert gone < 3.5
        await_news(fabric, "S2", before)
        begun = time.monotonic()
    finally:
        fabric.start_node("L2")
    back = await_whole(fabric) - begun
    tell(f"SIGTERM: all forgot it within {gone:.2f} s; started again, all is back in {back:.2f} s")


def test_a_killed_fared_supersedes_its_former_lsas_after_the_restart(fabric: Fabric):
    """After SIGKILL the peers still hold its LSAs; the new process goes on where those stand."""
    before = of_router(fabric, "S1", "L2")
    begun = time.monotonic()
    fabric.stop_node("L2", kill=True)
    fabric.start_node("L2")
    back = await_whole(fabric) - begun
    # TE LSAs of links that were flushed while their adjacency was down come a throttle later
    wait_for(lambda: of_router(fabric, "S1", "L2").keys() == before.keys(), 20.0, "all its LSAs")
    await_equal_databases(fabric)
    after = of_router(fabric, "S1", "L2")
    router_id = str(fabric.plan.node("L2").router_id)
    assert after[1, router_id] > before[1, router_id]
    assert all(after[key] >= before[key] for key in before)
    for spine in SPINES:
        assert of_router(fabric, spine, "L2") == after
    tell(f"SIGKILL: started again, all is back in {back:.2f} s")


def test_peers_drop_a_killed_fared_after_the_dead_interval(fabric: Fabric):
    """Nobody is told; 4 s without hellos and the routes are gone, on return they come back."""
    await_equal_databases(fabric)
    begun = time.monotonic()
    fabric.stop_node("S3", kill=True)
    try:
        gone = await_hops(fabric, "L1", FAR, SPINES - {"S3"}, 8.0) - begun
        assert gone > 2.5
    finally:
        fabric.start_node("S3")
    await_whole(fabric)
    tell(f"killed: given up after {gone:.2f} s")


def test_no_implementation_logs_a_complaint(story: Peers):
    """The logs of FRR and BIRD hold no complaint, and fared refused nothing of theirs."""
    found = complaints(story.fabric)
    assert found == {}, found
    assert rejected(story.fabric) == {}


@WIRESHARK
def test_wireshark_finds_no_flaw_in_anything_fared_sent(story: Peers):
    story.recordings.stop()
    assert story.recordings.names() == ["L1", "L2", "S3"]
    for name in story.recordings.names():
        verdict = story.recordings.judge(name)
        assert verdict.flawed == []
        assert set(verdict.kinds) == MESSAGES
