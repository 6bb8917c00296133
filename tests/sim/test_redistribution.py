"""Redistribution: origination, path selection (RFC 2328 §16.4), and withdrawal.

The small fabric: leaves L1 to L3 under spines S1 and S2, one area, every link costs 10.
"""

import pytest
from msgspec.structs import replace

from fared.core.filters import within
from fared.core.ids import AreaId, Prefix, ipv4_prefix, parse_prefix
from fared.core.routes import LocalRoute, RouteSource
from fared.extensions.sim import invariants
from fared.extensions.sim.fabric import Fabric, FabricBuilder, clos3
from fared.extensions.sim.network import Network
from fared.paths.ted.model import PathType
from fared.protocols.igp import events as igp
from fared.protocols.ospf.origination.external import DRAINED_METRIC, External
from fared.protocols.ospf.packet.bodies import RouterLsa
from fared.protocols.ospf.packet.body import decode_body
from fared.protocols.ospf.packet.lsa import LsaKey, LsType
from fared.protocols.ospf.settings import RedistributeSettings, Redistribution
from fared.router.events import RouterSettingsApplied, To
from tests.sim.externals import (
    OUTSIDE,
    SOMEWHERE,
    announce,
    configure,
    externals,
    hops,
    route,
    started,
    static,
)

BOTH = {"S1", "S2"}
E1, E2 = PathType.EXTERNAL_1, PathType.EXTERNAL_2


def leaves() -> Fabric:
    return clos3(2, 3, network=Network(seed=5))


def flags(fabric: Fabric, name: str, seen_by: str) -> int:
    """The flags of a router LSA."""
    router, instances = fabric.router_ids[name], fabric.network.nodes[seen_by].running.instances
    lsdb = instances["ospf"].engine.instance.areas[AreaId(0)].lsdb
    body = decode_body(lsdb.entries[LsaKey(LsType.ROUTER, router, router)].lsa)
    assert isinstance(body, RouterLsa)
    return body.flags


@pytest.mark.parametrize(
    ("first", "second", "chosen", "kind", "metric"),
    [
        ((200, False), (1, True), {"L1"}, E1, 220),  # type 1 before type 2, whatever they cost
        ((5, False), (6, False), {"L1"}, E1, 25),  # the sum counts
        ((5, True), (6, True), {"L1"}, E2, 5),  # the metric counts
        ((7, False), (7, False), {"L1", "L2"}, E1, 27),
        ((7, True), (7, True), {"L1", "L2"}, E2, 7),
    ],
)
def test_of_two_boundary_routers_the_better_one_is_chosen(first, second, chosen, kind, metric):
    """L1 and L2 announce the same prefix; equal ones share the load."""
    fabric = leaves()
    for name, (cost, type_2) in (("L1", first), ("L2", second)):
        announce(fabric, name, metric=cost, type_2=type_2)
    started(fabric)
    found = route(fabric, "L3")
    assert (found.path_type, found.metric) == (kind, metric)
    assert hops(fabric, "L3") == BOTH
    assert hops(fabric, "S1") == chosen


def test_equal_type_2_metrics_are_decided_by_the_distance_to_the_boundary_router():
    fabric = leaves()
    announce(fabric, "S1")
    announce(fabric, "L2")
    started(fabric)
    assert hops(fabric, "L1") == {"S1"}
    assert hops(fabric, "S2") == {"L2"}


@pytest.mark.rfc("RFC 2328 §11")
def test_internal_routes_are_preferred_to_externals():
    fabric = leaves()
    inside = fabric.leaf_prefixes["L3"]
    announce(fabric, "L1", inside, metric=0, type_2=False)
    started(fabric)
    assert ("L1", inside) in externals(fabric, "L2")
    assert route(fabric, "L2", inside).path_type is PathType.INTRA_AREA
    assert hops(fabric, "S1", inside) == {"L3"}
    assert hops(fabric, "L1", inside) == BOTH  # the metric in the kernel says which L1 itself uses


@pytest.mark.parametrize(("mine", "others"), [((20, True), (1, False)), ((1, False), (20, True))])
def test_a_boundary_router_keeps_its_own_route_whatever_others_advertise(mine, others):
    """Two of them that preferred each other's would send the packets back and forth."""
    fabric = leaves()
    announce(fabric, "L1", metric=mine[0], type_2=mine[1])
    announce(fabric, "L2", metric=others[0], type_2=others[1])
    started(fabric)
    for name in ("L1", "L2"):
        assert not hops(fabric, name)
        assert route(fabric, name).nexthops is None
    fabric.network.set_local_route("L1", OUTSIDE, None)
    fabric.network.run_until_quiet(60)
    assert hops(fabric, "L1") == BOTH


def test_after_a_withdrawal_traffic_follows_the_other_boundary_router():
    fabric = leaves()
    announce(fabric, "L1", metric=1)
    announce(fabric, "L2", metric=2)
    started(fabric)
    assert hops(fabric, "S1") == {"L1"}
    fabric.network.set_local_route("L1", OUTSIDE, None)
    fabric.network.run_for(0.5)
    assert hops(fabric, "S1") == {"L2"}
    assert hops(fabric, "L1") == BOTH
    fabric.network.set_local_route("L1", OUTSIDE, SOMEWHERE)
    fabric.network.run_for(0.5)
    assert hops(fabric, "S1") == {"L1"}


def test_externals_of_a_drained_boundary_router_are_used_last():
    """What leaves the AS over it passes through it: RFC 6987 in its spirit."""
    fabric = leaves()
    announce(fabric, "L1", metric=1)
    announce(fabric, "L2", metric=2)
    started(fabric)
    node = fabric.network.nodes["L1"]
    drained = node.settings.with_protocol("ospf", stub_router=True)
    fabric.network.input("L1", RouterSettingsApplied(drained))
    fabric.network.run_until_quiet(60)
    assert hops(fabric, "S1") == {"L2"}
    fabric.network.set_local_route("L2", OUTSIDE, None)
    fabric.network.run_until_quiet(60)
    assert hops(fabric, "S1") == {"L1"}
    assert route(fabric, "S1").metric == DRAINED_METRIC
    fabric.network.input("L1", RouterSettingsApplied(node.settings))
    fabric.network.run_until_quiet(60)
    assert route(fabric, "S1").metric == 1


def test_restart_of_a_boundary_router_interrupts_no_route():
    """Killed and started within the dead interval, it goes on where its LSAs were."""
    fabric = leaves()
    announce(fabric, "L1")
    started(fabric)
    fabric.network.kill("L1")
    fabric.network.run_for(0.5)
    fabric.network.start("L1")
    for _ in range(40):
        fabric.network.run_for(0.1)
        assert ("L1", OUTSIDE) in externals(fabric, "L3")
    fabric.network.run_until_quiet(60)
    assert hops(fabric, "L3") == BOTH
    assert invariants.same_databases(fabric) == []


@pytest.mark.rfc("RFC 2328 §13.4")
def test_a_restarted_boundary_router_flushes_lsas_of_routes_that_no_longer_exist():
    """Its neighbors still hold the LSA and show it to the new process (§13.4)."""
    fabric = leaves()
    announce(fabric, "L1")
    started(fabric)
    fabric.network.kill("L1")
    fabric.network.set_local_route("L1", OUTSIDE, None)
    fabric.network.run_for(0.5)
    fabric.network.start("L1")
    fabric.network.run_until_quiet(60)
    for name in fabric.network.nodes:
        assert not externals(fabric, name)
        assert not hops(fabric, name)


def test_a_boundary_router_that_stops_flushes_all_externals():
    fabric = leaves()
    announce(fabric, "L1")
    started(fabric)
    fabric.network.input("L1", igp.ShutdownRequested())
    fabric.network.run_for(0.3)
    assert not externals(fabric, "L3")
    assert not hops(fabric, "S1")


def test_redistribution_settings_change_without_a_restart():
    """Another metric and type in place; without redistribution LSAs and E bit go."""
    fabric = started(leaves())
    fabric.network.set_local_route("L1", OUTSIDE, SOMEWHERE)
    fabric.network.run_for(1.0)
    assert not externals(fabric, "L3")
    assert flags(fabric, "L1", seen_by="L3") == 0
    configure(fabric, "L1", static(20, type_2=False, tag=77))
    fabric.network.run_until_quiet(60)
    assert externals(fabric, "L3")["L1", OUTSIDE].external_route_tag == 77
    assert route(fabric, "L3").path_type is E1
    assert flags(fabric, "L1", seen_by="L3") == 2
    configure(fabric, "L1", static(9))
    fabric.network.run_until_quiet(60)
    assert (route(fabric, "L3").path_type, route(fabric, "L3").metric) == (E2, 9)
    configure(fabric, "L1", RedistributeSettings())
    fabric.network.run_until_quiet(60)
    assert not externals(fabric, "L3")
    assert flags(fabric, "L1", seen_by="L3") == 0


def told(fabric: Fabric) -> set[str]:
    return {str(prefix) for _, prefix in externals(fabric, "L3")}


def test_connected_networks_are_redistributed_unless_ospf_runs_on_them():
    """On an interface of its own OSPF decides what is announced, also while it is passive."""
    fabric = leaves()
    configure(fabric, "L1", RedistributeSettings(connected=Redistribution()))
    for port in fabric.network.nodes["L1"].ports.values():
        prefix = ipv4_prefix(port.address, port.prefix_length)
        own = LocalRoute(((port.ifindex, 0),))
        fabric.network.set_local_route("L1", prefix, own, RouteSource.CONNECTED)
    for text in ("198.51.100.0/24", "127.0.0.0/8", "169.254.1.0/24", "203.0.113.7/32"):
        elsewhere = LocalRoute(((98, 0),))
        fabric.network.set_local_route("L1", parse_prefix(text), elsewhere, RouteSource.CONNECTED)
    fabric.network.set_local_route("L1", OUTSIDE, SOMEWHERE)  # static, and that is not asked for
    started(fabric)
    assert told(fabric) == {"198.51.100.0/24", "203.0.113.7/32"}
    # OSPF is taken off the interface to the hosts: now its network comes from outside
    port = next(p for p in fabric.network.nodes["L1"].ports.values() if p.name == "host")
    fabric.network.input("L1", To("ospf", igp.LinkChanged(port.link(), None)))
    fabric.network.run_until_quiet(60)
    assert str(fabric.leaf_prefixes["L1"]) in told(fabric)
    assert route(fabric, "L3", fabric.leaf_prefixes["L1"]).path_type is E2
    fabric.network.input("L1", To("ospf", igp.LinkChanged(port.link(), port.settings["ospf"])))
    fabric.network.run_until_quiet(60)
    assert str(fabric.leaf_prefixes["L1"]) not in told(fabric)
    assert route(fabric, "L3", fabric.leaf_prefixes["L1"]).path_type is PathType.INTRA_AREA


def test_a_static_route_to_an_own_network_is_not_redistributed():
    fabric = leaves()
    announce(fabric, "L1", fabric.leaf_prefixes["L1"])
    started(fabric)
    assert not externals(fabric, "L3")


def test_only_routes_inside_the_listed_prefixes_are_redistributed():
    fabric = leaves()
    configure(fabric, "L1", static(filters=(within((parse_prefix("198.51.0.0/16"),)),)))
    for text in ("198.51.100.0/24", "198.51.0.0/16", "198.0.0.0/8", "203.0.113.0/24"):
        fabric.network.set_local_route("L1", parse_prefix(text), SOMEWHERE)
    started(fabric)
    assert told(fabric) == {"198.51.100.0/24", "198.51.0.0/16"}


def test_a_default_route_has_a_setting_of_its_own():
    """As in FRR, where ``redistribute static`` leaves it out."""
    fabric = leaves()
    default = Prefix(4, 0, 0)
    announce(fabric, "L1", default)
    started(fabric)
    assert not externals(fabric, "L3")
    wanted = RedistributeSettings(default=Redistribution(10, type_2=False))
    configure(fabric, "L1", wanted)
    fabric.network.run_until_quiet(60)
    assert route(fabric, "L3", default).metric == 30
    fabric.network.set_local_route("L1", default, None)
    fabric.network.run_until_quiet(60)
    assert not externals(fabric, "L3")
    configure(fabric, "L1", replace(wanted, default_always=True))
    fabric.network.run_until_quiet(60)
    assert hops(fabric, "L3", default) == BOTH


@pytest.mark.rfc("RFC 2328 §E")
def test_prefixes_of_different_length_with_one_network_address_are_all_advertised():
    """RFC 2328 appendix E: each has a link state id of its own, also when they come one by one."""
    fabric = leaves()
    configure(fabric, "L1", static())
    started(fabric)
    prefixes = [parse_prefix(f"198.51.0.0/{length}") for length in (16, 24, 20, 32, 31)]
    for prefix in prefixes:
        fabric.network.set_local_route("L1", prefix, SOMEWHERE)
        fabric.network.run_for(0.3)
    fabric.network.run_until_quiet(60)
    assert {hops(fabric, "L3", prefix) == BOTH for prefix in prefixes} == {True}
    fabric.network.set_local_route("L1", prefixes[3], None)
    fabric.network.run_until_quiet(60)
    assert told(fabric) == {str(p) for p in prefixes if p.length != 32}
    assert invariants.same_databases(fabric) == []


def test_a_route_that_flaps_costs_a_bounded_number_of_lsas():
    """A loss is told at once, a return waits for the back-off of its LSA."""
    fabric = leaves()
    announce(fabric, "L1")
    started(fabric)
    engine = fabric.network.nodes["L1"].running.instances["ospf"].engine
    before = dict(engine.counters.lsdb)
    for _ in range(100):
        fabric.network.set_local_route("L1", OUTSIDE, None)
        fabric.network.run_for(0.05)
        fabric.network.set_local_route("L1", OUTSIDE, SOMEWHERE)
        fabric.network.run_for(0.05)
    spent = dict(engine.counters.lsdb)["originated"] - dict(before)["originated"]
    assert spent < 20
    fabric.network.run_until_quiet(60)
    assert hops(fabric, "L3") == BOTH


def test_two_thousand_routes_are_advertised_and_withdrawn():
    fabric = clos3(1, 2, network=Network(seed=6))
    configure(fabric, "L1", static())
    started(fabric)
    keys = [(RouteSource.STATIC, ipv4_prefix(0xC6120000 + n, 32)) for n in range(2000)]
    fabric.network.input("L1", igp.ExternalRoutes(dict.fromkeys(keys, SOMEWHERE)))
    fabric.network.run_until_quiet(60)
    assert all(hops(fabric, "L2", prefix) == {"S1"} for _, prefix in keys)
    fabric.network.input("L1", igp.ExternalRoutes(dict.fromkeys(keys)))
    fabric.network.run_until_quiet(60)
    assert not externals(fabric, "L2")
    assert not hops(fabric, "L2", keys[0][1])


# A LAN with A, B and C on it, and a firewall at .9 that does not speak OSPF. D is behind C.

FIREWALL = 0x0AC00109


def lan(**options) -> Fabric:
    builder = FabricBuilder(Network(seed=7), **options)
    for name in ("A", "B", "C", "D"):
        builder.router(name)
    builder.lan("A", "B", "C")
    builder.link("C", "D")
    return builder.fabric


def elected(fabric: Fabric) -> Fabric:
    """Started, and the LAN has its designated router: nobody elects for one dead interval."""
    fabric.network.start_all()
    fabric.network.run_until_quiet(60, quiet=6)
    return fabric


def behind_the_firewall(fabric: Fabric, name: str) -> None:
    (port,) = (p for p in fabric.network.nodes[name].ports.values() if p.name == "lan1")
    configure(fabric, name, static(5))
    fabric.network.set_local_route(name, OUTSIDE, LocalRoute(((port.ifindex, FIREWALL),)))


@pytest.mark.rfc("RFC 2328 §12.4.4.1")
def test_a_next_hop_on_a_lan_is_advertised_as_forwarding_address():
    """The forwarding address (§12.4.4.1): C need not go through A."""
    fabric = lan()
    behind_the_firewall(fabric, "A")
    elected(fabric)
    assert externals(fabric, "D")["A", OUTSIDE].forwarding_address == FIREWALL
    assert hops(fabric, "D") == {"C"}
    assert not hops(fabric, "A")


@pytest.mark.rfc("RFC 6860 §5.1")
def test_an_address_on_a_suppressed_network_is_no_forwarding_address():
    """RFC 6860 §5.1: nobody has a route to it."""
    fabric = lan(prefix_suppression=True)
    behind_the_firewall(fabric, "A")
    elected(fabric)
    assert externals(fabric, "D")["A", OUTSIDE].forwarding_address == 0
    assert hops(fabric, "D") == {"C"}


def test_several_next_hops_or_one_outside_ospf_give_no_forwarding_address():
    fabric = lan()
    configure(fabric, "A", static(5))
    (port,) = (p for p in fabric.network.nodes["A"].ports.values() if p.name == "lan1")
    several = LocalRoute(((port.ifindex, FIREWALL), (98, 1)))
    fabric.network.set_local_route("A", OUTSIDE, several)
    configure(fabric, "C", static(5))
    (link,) = (p for p in fabric.network.nodes["C"].ports.values() if p.name == "D")
    other = parse_prefix("198.51.100.0/24")
    fabric.network.set_local_route("C", other, LocalRoute(((link.ifindex, link.peer.address),)))
    elected(fabric)
    found = externals(fabric, "D")
    assert [found[key].forwarding_address for key in (("A", OUTSIDE), ("C", other))] == [0, 0]
    assert hops(fabric, "D") == {"C"}


@pytest.mark.rfc("RFC 2328 §12.4.4")
def test_of_two_equal_externals_the_higher_router_id_advertises():
    """§12.4.4: one LSA is enough, unless whoever originates it cannot be reached."""
    fabric = lan()
    for name in ("A", "B"):
        behind_the_firewall(fabric, name)
    elected(fabric)
    assert set(externals(fabric, "D")) == {("B", OUTSIDE)}
    configure(fabric, "B", static(6))  # no longer the same
    fabric.network.run_until_quiet(60, quiet=6)
    assert set(externals(fabric, "D")) == {("A", OUTSIDE), ("B", OUTSIDE)}
    configure(fabric, "B", static(5))
    fabric.network.run_until_quiet(60, quiet=6)
    assert set(externals(fabric, "D")) == {("B", OUTSIDE)}
    fabric.network.kill("B")
    fabric.network.run_until_quiet(60, quiet=6)
    assert ("A", OUTSIDE) in externals(fabric, "D")


def test_a_router_that_redistributes_nothing_reads_its_interfaces_for_that_once_it_does(
    monkeypatch,
):
    """A lost link costs nothing for redistribution; routes from before are advertised later."""
    read, reads = External._read_interfaces, []
    monkeypatch.setattr(External, "_read_interfaces", lambda self: reads.append(self) or read(self))
    fabric = started(leaves())
    fabric.network.set_local_route("L1", OUTSIDE, SOMEWHERE)
    fabric.network.set_link("L1", "S1", up=False)
    fabric.network.run_until_quiet(60)
    assert not reads
    configure(fabric, "L1", static())
    fabric.network.run_until_quiet(60)
    assert reads
    assert ("L1", OUTSIDE) in externals(fabric, "L3")
