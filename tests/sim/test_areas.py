"""The seed's Figure 2 in OSPF areas: PoDs are areas 1.., planes are pieces of area 0.

Rates are Gb/s; every link is 400. E numbers name the worked examples of path capacity.
"""

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import pytest
from msgspec.structs import replace

from fared.core.ids import AreaId, Prefix, RouterId, ipv4_prefix
from fared.extensions.sim import area_invariants, invariants
from fared.extensions.sim.areas import clos5_areas
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, GIGABIT, Fabric
from fared.extensions.sim.network import Network
from fared.paths.ted.model import PathType
from fared.protocols.igp.events import SendPacket
from fared.protocols.ospf.origination import summaries
from fared.protocols.ospf.origination.border import CAPACITY_DELAY, LINK_PREFIX_DELAY
from fared.protocols.ospf.origination.summary_ids import SummaryIds
from fared.protocols.ospf.packet.bodies import SummaryLsa
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.lsa import LsType
from fared.protocols.ospf.settings import (
    AreaSettings,
    InterfaceSettings,
    OspfSettings,
    RangeSettings,
)
from fared.router.events import ApplyFib, RouterSettingsApplied
from fared.router.router import Router
from fared.router.schedule import OTHER_END
from tests.sim.shared import mend

pytestmark = pytest.mark.slow

ANY = AreaId(0)
DEFAULT = Prefix(4, 0, 0)
ANYCAST = ipv4_prefix(0xC0000200, 24)


def started(supers: int = 4, **options) -> Fabric:
    fabric = clos5_areas(2, 2, 4, supers, network=Network(seed=3), **options)
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    return fabric


@pytest.fixture(scope="module")
def one_for_all() -> Fabric:
    return started(2)


@pytest.fixture
def shared(one_for_all: Fabric) -> Iterator[Fabric]:
    """Two super-spines a plane, shared; whatever a test did to its links is mended."""
    yield one_for_all
    mend(one_for_all)


@pytest.fixture(scope="module")
def large_one_for_all() -> Fabric:
    return started()


@pytest.fixture
def large(large_one_for_all: Fabric) -> Iterator[Fabric]:
    """Four super-spines a plane, shared in the same way."""
    yield large_one_for_all
    mend(large_one_for_all)


def limit(fabric: Fabric, a: str, b: str, rate: float) -> None:
    fabric.network.set_capacity(a, b, rate * GIGABIT)


def cut(fabric: Fabric, a: str, b: str) -> None:
    fabric.network.set_link(a, b, up=False)


def capacities(fabric: Fabric, name: str, toward: str) -> dict[str, int]:
    """Path capacity in Gb/s by next hop, as the router computed it."""
    solver = fabric.network.nodes[name].running.solver
    route = solver.routes[fabric.leaf_prefixes[toward]]
    hops = {fabric.name_of(hop.neighbor): hop.capacity for hop in route.nexthops.hops}
    return {hop: round(hops[hop] / GIGABIT) for hop in sorted(hops)}


def shares(fabric: Fabric, name: str, toward: str) -> dict[str, Fraction]:
    return invariants.forwarding(fabric, fabric.leaf_prefixes[toward])[name]


def told(fabric: Fabric, name: str, area: int) -> dict[int, int]:
    """Link state id to metric of all type 3 LSAs in a router's database of an area."""
    found = {}
    areas = fabric.network.nodes[name].running.instances["ospf"].engine.instance.areas
    for entry in areas[area].lsdb if area in areas else ():
        body = decode_body(entry.lsa)
        if entry.key.ls_type == LsType.SUMMARY_NETWORK and isinstance(body, SummaryLsa):
            found[entry.key.link_state_id] = body.metric
    return found


def e5(fabric: Fabric) -> None:
    limit(fabric, "p2.S1", "p2.L1", 100)


def e6(fabric: Fabric) -> None:
    for k in range(1, 5):
        limit(fabric, "p1.S1", f"SS1.{k}", 100)


def e7(fabric: Fabric) -> None:
    cut(fabric, "p1.S1", "SS1.1")
    cut(fabric, "p1.S1", "SS1.2")
    limit(fabric, "SS1.3", "p2.S1", 50)
    limit(fabric, "SS1.4", "p2.S1", 100)


def e8(fabric: Fabric) -> None:
    for k in range(1, 5):
        limit(fabric, f"SS1.{k}", "p2.S1", 50)
    limit(fabric, "p2.S1", "p2.L1", 150)


def e8b(fabric: Fabric) -> None:
    limit(fabric, "SS1.1", "p2.S1", 50)
    limit(fabric, "p2.S1", "p2.L1", 100)


def e12(fabric: Fabric) -> None:
    cut(fabric, "p2.S1", "p2.L1")


@pytest.mark.parametrize(
    ("change", "at_leaf", "at_spine"),
    [
        (e5, [100, 400, 400, 400], [400, 400, 400, 400]),
        (e6, [400, 400, 400, 400], [100, 100, 100, 100]),
        (e7, [150, 400, 400, 400], [0, 0, 50, 100]),
        (e8, [150, 400, 400, 400], [50, 50, 50, 50]),
        (e8b, [100, 400, 400, 400], [50, 400, 400, 400]),
        (e12, [0, 400, 400, 400], None),
    ],
)
def test_a_leaf_weighs_a_slow_link_of_another_pod_by_the_capacity_that_border_routers_advertise(
    large, change, at_leaf, at_spine
):
    """E5 to E8b and E12: the source leaf's weights are those of one flat area."""
    fabric = large
    change(fabric)
    fabric.network.run_until_quiet(60)
    expected = {f"p1.S{k}": value for k, value in enumerate(at_leaf, start=1) if value}
    total = sum(expected.values())
    found = shares(fabric, "p1.L1", "p2.L1")
    assert found == {hop: Fraction(value, total) for hop, value in expected.items()}
    assert capacities(fabric, "p1.L1", "p2.L1") == expected
    if at_spine is not None:
        hops = {f"SS1.{k}": value for k, value in enumerate(at_spine, start=1) if value}
        # What the far spine announced lies behind all its ways and is shown as their limit.
        behind = 100 if change in (e5, e8b) else 400
        shown = {hop: min(value, behind) for hop, value in hops.items()}
        assert capacities(fabric, "p1.S1", "p2.L1") == shown
        total = sum(hops.values())
        found = shares(fabric, "p1.S1", "p2.L1")
        assert found == {hop: Fraction(value, total) for hop, value in hops.items()}
    assert area_invariants.delivered(fabric) == []


def test_inside_a_pod_areas_do_not_change_weights_e13(shared):
    fabric = shared
    limit(fabric, "p1.S1", "p1.L2", 200)
    limit(fabric, "p1.L1", "p1.S2", 300)
    fabric.network.run_until_quiet(60)
    expected = {f"p1.S{k}": rate for k, rate in enumerate((200, 300, 400, 400), start=1)}
    assert capacities(fabric, "p1.L1", "p1.L2") == expected
    found = shares(fabric, "p1.L1", "p1.L2")
    assert found == {hop: Fraction(rate, 1300) for hop, rate in expected.items()}


def test_the_capacity_of_a_prefix_on_two_leaves_of_another_pod_counts_the_links_to_both_e14():
    """The source leaf's weights are again those of one flat area.

    p2.S1 sees both attachments in its own area and announces what it can carry to them
    together, 100 + 150. The other spines of that pod announce 800, more than the leaf's link.
    """
    fabric = clos5_areas(2, 2, 4, 4, network=Network(seed=3))
    passive = {"ospf": InterfaceSettings(AreaId(2), passive=True)}
    for leaf in ("p2.L1", "p2.L2"):
        fabric.network.add_port(
            leaf, ANYCAST.network + 1, ANYCAST.length, passive, interface="anycast"
        )
    fabric.leaf_prefixes["anycast"] = ANYCAST
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    limit(fabric, "p2.S1", "p2.L1", 100)
    limit(fabric, "p2.S1", "p2.L2", 150)
    fabric.network.run_until_quiet(60)
    expected = {f"p1.S{k}": rate for k, rate in enumerate((250, 400, 400, 400), start=1)}
    assert capacities(fabric, "p1.L1", "anycast") == expected
    found = shares(fabric, "p1.L1", "anycast")
    assert found == {hop: Fraction(rate, 1450) for hop, rate in expected.items()}
    assert set(shares(fabric, "p1.S1", "anycast").values()) == {Fraction(1, 4)}
    assert shares(fabric, "p2.S1", "anycast") == {"p2.L1": Fraction(2, 5), "p2.L2": Fraction(3, 5)}


@pytest.mark.rfc("RFC 3509 §2")
def test_every_leaf_is_reached_from_everywhere_though_area_0_is_in_four_pieces(shared):
    fabric = shared
    assert area_invariants.delivered(fabric) == []
    assert area_invariants.same_area_databases(fabric) == []
    route = fabric.network.nodes["p1.L1"].running.solver.routes[fabric.leaf_prefixes["p2.L2"]]
    assert route.path_type is PathType.INTER_AREA
    assert route.area == 1
    assert len(route.nexthops.hops) == 4


@pytest.mark.parametrize("seed", range(4))
def test_random_failures_leave_no_loop_and_no_hole_and_heal_without_a_trace(shared, seed):
    fabric = shared
    before = {name: node.kernel.dump() for name, node in fabric.network.nodes.items()}
    chance = random.Random(seed)
    broken = chance.sample(fabric.links, 4)
    for a, b in broken:
        cut(fabric, a, b)
    fabric.network.run_until_quiet(60)
    # A plane that fell apart leaves its own nodes without a way: the leaves have other planes.
    plane = tuple(name for name in fabric.network.nodes if "S" in name)
    assert area_invariants.delivered(fabric, without_route=plane) == []
    assert area_invariants.same_area_databases(fabric) == []
    for a, b in chance.sample(broken, len(broken)):
        fabric.network.set_link(a, b, up=True)
    fabric.network.run_until_quiet(60)
    assert area_invariants.same_area_databases(fabric) == []
    for name, node in fabric.network.nodes.items():
        assert node.kernel.dump().routes.keys() == before[name].routes.keys()
        for leaf in fabric.leaf_prefixes:
            if name != leaf:
                assert set(shares(fabric, name, leaf).values()) == {
                    Fraction(1, len(shares(fabric, name, leaf)))
                }


def test_a_spine_without_its_plane_routes_through_its_pod_and_attracts_no_traffic(shared):
    """The other end of that plane, still in a piece of area 0, must not look elsewhere."""
    fabric = shared
    for top in ("SS1.1", "SS1.2"):
        cut(fabric, "p1.S1", top)
    fabric.network.run_until_quiet(60)
    assert set(shares(fabric, "p1.L1", "p2.L1")) == {"p1.S2", "p1.S3", "p1.S4"}
    assert set(shares(fabric, "p1.S1", "p2.L1")) == {"p1.L1", "p1.L2"}
    cut_off = ("SS1.1", "SS1.2", "p2.S1")
    assert area_invariants.delivered(fabric, without_route=cut_off) == []


def test_a_link_lost_in_another_area_is_avoided_at_once_and_its_network_withdrawn_last():
    """Two failures in a row: the second must not wait for the back-off of the first."""
    fabric = started(2)
    network = fabric.network
    for spine in ("p2.S1", "p2.S2"):
        near = spine.replace("p2", "p1")
        subnet = network.find_port(spine, "p2.L1").link().ipv4()[0].address & ~1
        before = told(fabric, near, 0)[subnet]
        cut(fabric, spine, "p2.L1")
        network.run_for(0.04)
        assert near not in capacities(fabric, "p1.L1", "p2.L1")
        assert told(fabric, near, 0)[subnet] == before
        network.run_for(OTHER_END + 2 * LINK_PREFIX_DELAY)
        assert subnet not in told(fabric, near, 0)
    assert area_invariants.same_area_databases(fabric) == []


def test_a_lost_link_is_told_to_other_areas_while_floods_in_its_own_area_are_paced(shared):
    fabric = shared
    cut(fabric, "p1.S4", "p1.L2")
    fabric.network.run_for(0.8 * OspfSettings(RouterId(1)).flood_pacing)
    assert set(capacities(fabric, "p2.L1", "p1.L2")) == {"p2.S1", "p2.S2", "p2.S3"}


@pytest.mark.parametrize(("left", "held"), [(100, False), (300, True)])
def test_a_capacity_that_changes_alone_is_held_unless_it_is_halved(shared, left, held):
    """In another area; in its own all learn it from the link."""
    fabric = shared
    limit(fabric, "p1.S4", "p1.L2", left)
    fabric.network.run_for(0.03)
    assert capacities(fabric, "p2.L1", "p1.L2")["p2.S4"] == (400 if held else left)
    assert capacities(fabric, "p1.L1", "p1.L2")["p1.S4"] == left
    fabric.network.run_for(CAPACITY_DELAY)
    assert capacities(fabric, "p2.L1", "p1.L2")["p2.S4"] == left


def test_lesser_capacities_beside_a_lost_link_are_told_to_other_areas_after_it(shared):
    """Of border routers whose paths remain, the backbone hears when routes are repaired."""
    fabric = shared
    beside = [fabric.network.nodes[name].running for name in ("SS1.1", "SS2.1")]
    before = [router.activity for router in beside]
    cut(fabric, "p1.S4", "p1.L2")
    fabric.network.run_for(0.02)
    assert "p2.S4" not in capacities(fabric, "p2.L1", "p1.L2")
    assert [router.activity for router in beside] == before
    fabric.network.run_for(CAPACITY_DELAY)
    assert all(router.activity > was for router, was in zip(beside, before, strict=True))


def test_a_capacity_that_is_held_is_looked_at_in_its_time_however_many_turns_there_are(
    shared, monkeypatch
):
    """Of the end of a lost link, which has routes to tell of before."""
    looked, encode = Counter(), summaries.encode_extended_prefix
    border, take, turns = shared.network.nodes["p1.S4"].running, Router.take_outputs, []

    def noted(router):
        turns.append(router)
        return take(router)

    def counted(lsa):
        if turns and turns[-1] is border:
            looked[lsa.prefixes[0].prefix] += 1
        return encode(lsa)

    monkeypatch.setattr(Router, "take_outputs", noted)
    monkeypatch.setattr(summaries, "encode_extended_prefix", counted)
    cut(shared, "p1.S4", "p1.L2")
    shared.network.run_for(0.02)
    assert turns.count(border) > 1
    assert not looked
    shared.network.run_for(CAPACITY_DELAY)
    assert looked
    assert set(looked.values()) == {1}


def test_a_border_router_tells_other_areas_of_a_lost_link_before_it_plans_its_own_routes(
    shared, monkeypatch
):
    fabric, turns, take = shared, [], Router.take_outputs
    border = fabric.network.nodes["p1.S4"].running

    def noted(router):
        outputs = take(router)
        if router is border:
            packets = sum(isinstance(getattr(o, "event", None), SendPacket) for o in outputs)
            turns.append((packets, any(isinstance(o, ApplyFib) for o in outputs)))
        return outputs

    monkeypatch.setattr(Router, "take_outputs", noted)
    cut(fabric, "p1.S4", "p1.L2")
    # The router LSA to the other leaf, summaries to both super-spines, then the routes.
    assert turns[:3] == [(1, False), (2, False), (0, True)]


def test_the_network_of_a_lost_link_is_withdrawn_without_being_called_farther_before():
    """Border routers learn of its second end before they advertise what the first one changed."""
    fabric = started(2)
    subnet = fabric.network.find_port("p2.S1", "p2.L1").link().ipv4()[0].address & ~1
    spines = [f"p2.S{number}" for number in range(1, 5)]
    before = [told(fabric, spine, 0).get(subnet) for spine in spines]
    cut(fabric, "p2.S1", "p2.L1")
    seen = [set() for _ in spines]
    for _ in range(60):
        fabric.network.run_for(0.01)
        for spine, metrics in zip(spines, seen, strict=True):
            metrics.add(told(fabric, spine, 0).get(subnet))
    assert None not in before
    assert seen == [{metric, None} for metric in before]


def test_a_capacity_change_below_the_threshold_is_not_flooded_into_other_areas():
    fabric = started(2)
    far = fabric.network.nodes["p1.L1"].running.instances["ospf"].engine
    limit(fabric, "p2.S1", "p2.L1", 399)
    fabric.network.run_for(2.0)
    activity = far.activity()
    limit(fabric, "p2.S1", "p2.L1", 390)
    fabric.network.run_for(2.0)
    assert far.activity() == activity
    limit(fabric, "p2.S1", "p2.L1", 380)
    fabric.network.run_for(2.0)
    assert far.activity() > activity
    assert capacities(fabric, "p1.L1", "p2.L1")["p1.S1"] == 380


def test_a_capacity_change_in_another_area_makes_nobody_run_spf(shared):
    fabric = shared
    runs = [router.journal.counts["spf"] for router in fabric.network.routers()]
    e5(fabric)
    fabric.network.run_for(2.0)
    assert shares(fabric, "p1.L1", "p2.L1")["p1.S1"] == Fraction(1, 13)
    assert [router.journal.counts["spf"] for router in fabric.network.routers()] == runs


@pytest.mark.rfc("RFC 2328 §3.6")
def test_in_a_stub_area_leaves_know_the_other_pods_and_a_default_route():
    fabric = started(2, pod_area=AreaSettings(ANY, stub=True, default_cost=7))
    routes = fabric.network.nodes["p1.L1"].running.solver.routes
    assert routes[DEFAULT].metric == 17
    assert len(routes[DEFAULT].nexthops.hops) == 4
    assert fabric.leaf_prefixes["p2.L1"] in routes
    assert DEFAULT not in fabric.network.nodes["p1.S1"].running.solver.routes
    assert area_invariants.delivered(fabric) == []


@pytest.mark.rfc("RFC 2328 §12.4.3.1")
def test_in_a_totally_stubby_area_leaves_know_their_pod_and_a_default_route():
    fabric = started(2, pod_area=AreaSettings(ANY, stub=True, summary=False))
    routes = fabric.network.nodes["p1.L1"].running.solver.routes
    assert fabric.leaf_prefixes["p1.L2"] in routes
    assert fabric.leaf_prefixes["p2.L1"] not in routes
    assert told(fabric, "p1.L1", 1) == {0: 1}
    assert area_invariants.delivered(fabric) == []
    for top in ("SS1.1", "SS1.2"):
        cut(fabric, "p1.S1", top)
    fabric.network.run_until_quiet(60)
    assert set(invariants.forwarding(fabric, DEFAULT)["p1.L1"]) == {"p1.S2", "p1.S3", "p1.S4"}


@pytest.mark.rfc("RFC 2328 §12.4.3")
def test_a_range_stands_for_its_components_at_the_cost_of_the_farthest():
    hosts = RangeSettings(ipv4_prefix(0x0A000000, 16))
    hidden = RangeSettings(ipv4_prefix(0x0A800000, 9), advertise=False)
    fabric = started(2, pod_area=AreaSettings(ANY, ranges=(hosts, hidden)))
    seen = told(fabric, "SS1.1", 0)
    assert seen[hosts.prefix.network] == 20
    assert not [found for found in seen if found >> 23 == hidden.prefix.network >> 23]
    routes = fabric.network.nodes["SS1.1"].running.solver.routes
    assert hosts.prefix in routes
    assert fabric.leaf_prefixes["p1.L1"] not in routes


def ends(fabric: Fabric, name: str, address: int, passed: tuple[str, ...] = ()) -> set[str]:
    """Where packets to an address may end, each kernel forwarding by its longest match."""
    if name in passed:
        return {"loop"}
    node = fabric.network.nodes[name]
    subnets = [ipv4_prefix(port.address, port.prefix_length) for port in node.ports.values()]
    matches = [prefix for prefix in node.kernel.state.routes if prefix.contains(address)]
    if not matches or any(subnet.contains(address) for subnet in subnets):
        return {name}
    longest = max(matches, key=lambda prefix: prefix.length)
    found: set[str] = set()
    for way in invariants.forwarding(fabric, longest)[name]:
        over = ends(fabric, way, address, (*passed, name)) if way != "discard" else {"discard"}
        found |= over
    return found


def with_ranges(fabric: Fabric, pod: int, *ranges: Prefix) -> None:
    """Give the spines of a PoD area ranges, before or after their start."""
    for k in range(1, 5):
        node = fabric.network.nodes[f"p{pod}.S{k}"]
        areas = tuple(
            replace(area, ranges=tuple(map(RangeSettings, ranges))) if area.area == pod else area
            for area in node.settings.protocols["ospf"].areas
        )
        node.settings = node.settings.with_protocol("ospf", areas=areas)
        if node.router is not None:
            fabric.network.input(node.name, RouterSettingsApplied(node.settings))


@pytest.mark.rfc("RFC 2328 §11.1")
def test_the_discard_route_of_an_active_range_drops_packets_to_missing_components():
    """Both PoDs claim more than they have: without discards 10.0.0.1 would circle between them."""
    narrow, wide = ipv4_prefix(0x0A000000, 22), ipv4_prefix(0x0A000000, 16)
    missing, present = 0x0A000001, 0x0A000101
    fabric = clos5_areas(2, 2, 4, 2, network=Network(seed=3))
    with_ranges(fabric, 1, narrow)
    with_ranges(fabric, 2, wide)
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    assert ends(fabric, "p2.L1", missing) == {"discard"}
    assert ends(fabric, "p1.L1", missing) == {"discard"}
    assert ends(fabric, "p2.L1", present) == {"p1.L1"}
    spine = fabric.network.nodes["p1.S1"]
    assert spine.running.solver.routes[narrow].discard

    fabric.network.kill("p1.S1")
    before = spine.kernel.dump()
    fabric.network.run_for(1.0)
    fabric.network.start("p1.S1")
    fabric.network.run_until_quiet(60)
    assert spine.kernel.dump().routes == before.routes
    assert spine.running.planner.counters["delete-route"] == 0

    for leaf in ("p1.L1", "p1.L2"):
        cut(fabric, "p1.S1", leaf)
    fabric.network.run_until_quiet(60)
    assert narrow not in spine.kernel.dump().routes
    for leaf in ("p1.L1", "p1.L2"):
        fabric.network.set_link("p1.S1", leaf, up=True)
    fabric.network.run_until_quiet(60)
    assert invariants.forwarding(fabric, narrow)["p1.S1"] == {"discard": 1}
    with_ranges(fabric, 1)
    fabric.network.run_until_quiet(60)
    assert narrow not in spine.kernel.dump().routes


@pytest.mark.rfc("RFC 6987 §2")
def test_other_pods_also_avoid_a_drained_border_router():
    """Stub router (RFC 6987): the cost of its own links is in what it announces."""
    fabric = started(2)
    node = fabric.network.nodes["p1.S1"]
    drained = node.settings.with_protocol("ospf", stub_router=True)
    fabric.network.input("p1.S1", RouterSettingsApplied(drained))
    fabric.network.run_until_quiet(60)
    assert set(shares(fabric, "p1.L1", "p2.L1")) == {"p1.S2", "p1.S3", "p1.S4"}
    assert set(shares(fabric, "p2.L1", "p1.L1")) == {"p2.S2", "p2.S3", "p2.S4"}
    assert area_invariants.delivered(fabric) == []


def test_without_the_sub_tlv_a_leaf_falls_back_to_what_it_knows_and_explain_says_so():
    fabric = clos5_areas(2, 2, 4, 2, network=Network(seed=3))
    node = fabric.network.nodes["p1.S1"]
    node.settings = node.settings.with_protocol("ospf", path_capacity_code=None)
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    for k in (1, 2):
        limit(fabric, f"p2.S{k}", "p2.L1", 100)
    fabric.network.run_until_quiet(60)
    assert list(capacities(fabric, "p1.L1", "p2.L1").values()) == [400, 100, 400, 400]
    solver = fabric.network.nodes["p1.L1"].running.solver
    explained = solver.explain(fabric.leaf_prefixes["p2.L1"])
    assert [end.capacity is None for end in explained.advertised] == [True, False, False, False]


@pytest.mark.rfc("RFC 2328 §E")
def test_two_networks_of_one_address_get_summaries_of_their_own():
    """RFC 2328 appendix E: the longer or the later one takes host bits into its link state id."""
    ids = SummaryIds()
    wide, narrow, host = (ipv4_prefix(0x0A010000, length) for length in (16, 24, 32))
    found = [ids.assign(prefix)[0] for prefix in (wide, narrow, host)]
    assert found == [[0x0A010000], [0x0A0100FF], [0x0A010000, 0x0A01FFFF]]
    assert ids.prefix_of_id(0x0A010000) == host
    assert ids.prefix_of_id(0x0A01FFFF) == wide
    assert ids.release(host)[0] == [0x0A010000]
    assert ids.prefix_of_id(0x0A010000) is None


def test_explain_names_what_border_routers_announced(shared):
    fabric = shared
    e5(fabric)
    fabric.network.run_until_quiet(60)
    solver = fabric.network.nodes["p1.L1"].running.solver
    explained = solver.explain(fabric.leaf_prefixes["p2.L1"])
    announced = {
        fabric.name_of(end.node): round(end.capacity / GIGABIT) for end in explained.advertised
    }
    assert announced == {"p1.S1": 100, "p1.S2": 400, "p1.S3": 400, "p1.S4": 400}
    assert DEFAULT_CAPACITY == 400 * GIGABIT
