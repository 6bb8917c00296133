"""What people ask for by name: one neighbor, one interface, with all that is known of it."""

from collections import Counter

import pytest

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, clos3
from fared.extensions.sim.levels import clos3_isis
from fared.management.documents.context import ViewContext
from fared.management.documents.errors import CommandError
from fared.management.documents.views import protocol
from fared.protocols.igp.counters import PacketCounters, ProtocolCounters
from tests.api.answers import run_view
from tests.api.seen import seen_from

HELLO = {"ospf": "hello", "isis": "p2p-hello"}


@pytest.fixture(scope="module", params=[clos3, clos3_isis], ids=["ospf", "isis"])
def fabric(request):
    """L1 has two uplinks; the one of L3 to S2 is without carrier."""
    fabric = request.param(2, 3)
    fabric.network.start_all()
    fabric.network.run_until_quiet(60.0)
    fabric.network.set_link("L3", "S2", up=False)
    fabric.network.run_until_quiet(120.0)
    return fabric


@pytest.fixture
def context(fabric) -> ViewContext:
    return seen_from(fabric, "L1")


def test_a_neighbor_is_found_by_name_id_address_and_interface(context):
    known = protocol.neighbors(context).neighbors[0]
    for name in (known.hostname, known.router_id, known.address, known.interface):
        found = protocol.neighbors(context, name)
        assert [row.interface for row in found.neighbors] == [known.interface]
        assert found.detail
    assert "detail" not in run_view(context, "show neighbors", {})


def test_the_detail_of_a_neighbor_has_timers_mtu_and_addresses_of_both_ends(context):
    (found,) = protocol.neighbors(context, "S1").neighbors
    assert (found.hello_interval, found.dead_interval) == (1.0, 4.0)
    assert (found.mtu, found.own_mtu) == (1500, 1500)
    assert found.own_address.startswith("10.128.0.0")
    assert found.address == "10.128.0.1"


def test_a_link_without_a_neighbor_is_found_by_its_interface(fabric):
    found = protocol.neighbors(seen_from(fabric, "L3"), "S2")
    assert (found.neighbors, [m.interface for m in found.missing]) == ([], ["S2"])


def test_a_neighbor_that_nobody_knows_is_refused_with_those_that_are_known(context):
    with pytest.raises(CommandError, match="no neighbor S9; known: S1, S2") as refusal:
        protocol.neighbors(context, "S9")
    assert refusal.value.code == "not-found"


def test_an_interface_is_found_by_its_name_and_by_the_router_at_its_other_end(context):
    known = protocol.interfaces(context).interfaces
    assert [row.interface for row in known] == ["lo", "host", "S1", "S2"]
    (router,) = (row.router_id for row in protocol.neighbors(context, "S1").neighbors)
    for name in ("S1", router):
        found = protocol.interfaces(context, name)
        assert [row.interface for row in found.interfaces] == ["S1"]
    with pytest.raises(CommandError, match="no interface S9; known: lo, host, S1, S2"):
        protocol.interfaces(context, "S9")


def test_the_detail_of_an_interface_has_the_cost_and_the_capacity_of_the_other_end(fabric):
    fabric.network.set_capacity("S1", "L1", DEFAULT_CAPACITY / 4)
    fabric.network.run_until_quiet(60.0)
    found = protocol.interfaces(seen_from(fabric, "L1"), "S1")
    (row,), (detail,) = found.interfaces, found.detail
    (neighbor,) = detail.neighbors
    assert (row.cost, neighbor.cost) == (10, 10)
    assert row.bandwidth == DEFAULT_CAPACITY
    assert neighbor.capacity == pytest.approx(DEFAULT_CAPACITY / 4)
    assert 0 < row.hello_in <= row.hello_interval


def test_rejected_packets_are_counted_by_interface_and_reason(context):
    (instance,) = context.instances
    engine, kind = instance.engine, HELLO[instance.name]
    own = {"ospf": "interfaces", "isis": "circuits"}[instance.name]
    (to_s1,) = (at for at in getattr(engine.instance, own).values() if at.name == "S1")
    engine._process.reject("auth-digest", 0, interface=to_s1, kind=kind)
    (detail,) = protocol.interfaces(context, "S1").detail
    assert [(row.reason, row.packets) for row in detail.rejected] == [("auth-digest", 1)]
    assert {row.type: row.rejected for row in detail.packets if row.rejected} == {kind: 1}
    (other,) = protocol.interfaces(context, "S2").detail
    assert other.rejected == []


def test_packets_are_counted_by_interface_and_what_one_end_sends_the_other_receives(fabric):
    ours, theirs = seen_from(fabric, "L1"), seen_from(fabric, "S1")
    for context in (ours, theirs):  # another test rejects a packet that has not been sent
        context.instances[0].engine.counters.clear_interfaces()
    before = dict(ours.instances[0].engine.counters.packets)
    fabric.network.run_for(10.0)
    fabric.network.set_capacity("S1", "L1", DEFAULT_CAPACITY / 2)
    fabric.network.run_until_quiet(60.0)
    (near,) = protocol.interfaces(ours, "S1").detail
    (far,) = protocol.interfaces(theirs, "L1").detail
    counts = {row.type: (row.sent, row.received) for row in near.packets}
    assert counts == {row.type: (row.received, row.sent) for row in far.packets}
    assert counts[HELLO[near.proto]] > (8, 8)
    assert len(counts) >= 3  # an LSA or LSP has come, and is acknowledged
    after = ours.instances[0].engine.counters.packets
    rows = [row for name in ("S1", "S2") for row in protocol.interfaces(ours, name).detail]
    for kind, sent in Counter({row.type: row.sent for row in near.packets}).items():
        both = sum(each.sent for row in rows for each in row.packets if each.type == kind)
        assert after["sent", kind] - before.get(("sent", kind), 0) == both >= sent


def test_an_interface_takes_its_counters_with_it_and_totals_stay():
    counters = ProtocolCounters({1: PacketCounters(), 2: PacketCounters()})
    counters.interfaces[1].sent["hello"] += 3
    counters.interfaces[2].sent["hello"] += 4
    counters.interfaces[2].rejected["hello", "ttl"] += 1
    counters.forget(1)
    assert (list(counters.interfaces), counters.packets) == ([2], {("sent", "hello"): 7})
    counters.clear_interfaces()
    assert counters == ProtocolCounters({2: PacketCounters()}, Counter({("sent", "hello"): 7}))
    counters.interfaces[2].received["hello"] += 1
    assert counters.packets == {("sent", "hello"): 7, ("received", "hello"): 1}


def prefixes(context, **args):
    return [row["prefix"] for row in run_view(context, "show routes", args)["routes"]]


def test_routes_are_selected_by_prefix_next_hop_and_type(context, fabric):
    leaf = str(fabric.leaf_prefixes["L2"])
    assert leaf in prefixes(context, prefix="10.0.0.0/8", longer=True)
    assert prefixes(context, prefix=leaf, longer=True) == [leaf]
    (neighbor,) = protocol.neighbors(context, "S2").neighbors
    by_name = prefixes(context, via="S2", af="ipv4")
    assert leaf in by_name
    for name in (neighbor.router_id, "10.128.0.3"):
        assert prefixes(context, via=name, af="ipv4") == by_name
    everything = prefixes(context)
    connected = prefixes(context, type="connected")
    assert set(connected) < set(everything)
    assert not set(connected) & set(prefixes(context, via="S2"))


def test_routes_are_selected_by_age(context, fabric):
    """A route without a recorded change has been there since the start."""
    assert prefixes(context, newer="10m", via="S1") == prefixes(context, via="S1")
    assert prefixes(context, older="10m", via="S1") == []
    fabric.network.run_for(600.0)
    now = seen_from(fabric, "L1")
    assert prefixes(now, newer="5m", via="S1") == []
    rows = run_view(now, "show routes", {"via": "S1"})["routes"]
    assert all(now.wall - row["changed_at"] > 600.0 for row in rows)
    assert all(row["installed"] for row in rows)


def test_the_summary_counts_routes_by_type(context):
    counts = run_view(context, "show routes", {"summary": True})["summary"]
    assert sum(row["routes"] for row in counts) == len(prefixes(context))
    assert {row["type"]: row["installed"] for row in counts}["connected"] == 0
    assert all(row["routes"] == row["installed"] for row in counts if row["type"] != "connected")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"via": "S9"}, "no next hop S9; known: S1, S2"),
        ({"type": "rip"}, "'rip' is not a type: intra-area"),
        ({"older": "soon"}, "older must be a duration such as 90s or 5m"),
        ({"longer": True}, "longer needs a prefix"),
        ({"prefix": "11.0.0.0/8", "longer": True}, "no route within 11.0.0.0/8"),
    ],
)
def test_filters_that_select_nothing_known_are_refused(context, args, message):
    with pytest.raises(CommandError, match=message):
        run_view(context, "show routes", args)


def test_the_fib_shows_one_route_with_its_objects(context, fabric):
    leaf = str(fabric.leaf_prefixes["L2"])
    found = run_view(context, "show fib", {"prefix": leaf.replace("0/24", "77")})
    (route,), (group,) = found["routes"], found["groups"]
    assert (route["prefix"], route["nexthop_id"]) == (leaf, group["id"])
    assert group["routes"] > 1
    assert {hop["id"] for hop in found["nexthops"]} == {m["nexthop_id"] for m in group["members"]}
    with pytest.raises(CommandError, match=r"no route to 11\.0\.0\.0/8 is in the kernel"):
        run_view(context, "show fib", {"prefix": "11.0.0.0/8"})


def test_the_topology_of_one_router_has_both_directions_of_its_links_only(context):
    (area,) = run_view(context, "show topology", {"node": "S1"})["areas"]
    names = {node["id"]: node["hostname"] for node in area["nodes"]}
    ends = [(names[link["from"]], names[link["to"]]) for link in area["links"]]
    leaves = ["L1", "L2", "L3"]
    assert sorted(ends) == sorted(
        [(leaf, "S1") for leaf in leaves] + [("S1", leaf) for leaf in leaves]
    )
    assert {row["prefix"] for row in area["prefixes"]} >= {"10.255.0.1/32", "10.128.0.0/31"}
    everything = run_view(context, "show topology", {})
    assert "nodes" not in everything
    assert "prefixes" not in everything["areas"][0]


def test_the_paths_to_one_router_are_listed_from_this_one_on(context):
    found = run_view(context, "show spf", {"node": "L2"})
    paths = found["paths"][0]
    assert [[node["hostname"] for node in path] for path in paths["paths"]] == [
        ["L1", "S1", "L2"],
        ["L1", "S2", "L2"],
    ]
    assert (paths["number"], paths["metric"]) == (2, 20)
    assert [node["hostname"] for node in paths["parents"]] == ["S1", "S2"]
    assert [node["hostname"] for node in paths["first_hops"]] == ["S1", "S2"]
    assert {node["hostname"] for node in found["nodes"]} == {"L2"}


def test_a_lost_link_leaves_one_path(context):
    """S2 has no link to L3."""
    (paths,) = run_view(context, "show spf", {"node": "L3"})["paths"]
    assert [[node["hostname"] for node in path] for path in paths["paths"]] == [["L1", "S1", "L3"]]


@pytest.mark.parametrize("command", ["show topology", "show spf"])
def test_a_router_that_nobody_knows_is_refused_with_those_that_are_known(context, command):
    with pytest.raises(CommandError, match="no router S9; known: L1, L2, L3, S1, S2"):
        run_view(context, command, {"node": "S9"})


def test_of_many_paths_some_are_listed_and_all_are_counted():
    """Over 20 spines."""
    fabric = clos3(20, 2)
    fabric.network.start_all()
    fabric.network.run_until_quiet(60.0)
    (paths,) = run_view(seen_from(fabric, "L1"), "show spf", {"node": "L2"})["paths"]
    assert (len(paths["paths"]), paths["number"]) == (16, 20)
