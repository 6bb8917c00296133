"""Views of routers that run IS-IS, alone or beside OSPF, in a simulated fabric."""

import json
from itertools import chain

import pytest

from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric
from fared.extensions.sim.levels import clos3_isis, clos5_levels
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import OspfBuilder
from fared.management.api.encode import encode
from fared.management.documents.counters import counters
from fared.management.documents.errors import CommandError
from fared.management.documents.load import load
from fared.management.documents.lsdb import IsisLsdbAdjacency
from fared.management.documents.registry import all_documents, narrowed
from fared.management.documents.views import explain, graph, kernel, path, protocol, routes
from fared.management.documents.views.protocol import lsdb
from fared.management.documents.views.status import status
from fared.management.documents.views.validate import validate
from fared.protocols.isis.circuit import AdjacencyState
from fared.protocols.isis.pdu.codec import decode_pdu
from tests.api.answers import run_view
from tests.api.seen import scraped, seen_from

L1_ID, S1_ID = "0000.0aff.0003", "0000.0aff.0001"
NEEDED = {"prefix": "10.0.2.0/24", "source": "L1", "destination": "L2"}


def settled(fabric: Fabric, slow: tuple[str, str]) -> Fabric:
    """Run until the fabric has converged, before and after one link is set to a quarter."""
    network = fabric.network
    network.start_all()
    network.run_until_quiet(60)
    network.set_capacity(*slow, DEFAULT_CAPACITY / 4)
    network.run_until_quiet(60)
    return fabric


@pytest.fixture(scope="module")
def isis() -> Fabric:
    """Two spines and three leaves over IS-IS, S1 -> L2 at a quarter."""
    return settled(clos3_isis(2, 3, network=Network(seed=1)), ("S1", "L2"))


@pytest.fixture(scope="module")
def both() -> Fabric:
    """The same fabric over OSPF and IS-IS at once."""
    return settled(clos3_isis(2, 3, network=Network(seed=1), beside=[OspfBuilder()]), ("S1", "L2"))


@pytest.fixture(scope="module")
def levels() -> Fabric:
    """Two PoDs, each a level-1 area, and the planes between them; p2.S1 -> p2.L1 at a quarter."""
    return settled(clos5_levels(2, 2, 2, 1, network=Network(seed=1)), ("p2.S1", "p2.L1"))


@pytest.mark.parametrize(
    "entry", [e for e in all_documents() if not e.proto], ids=lambda entry: entry.name
)
def test_every_document_is_available_with_any_protocols(isis, both, entry):
    """It is JSON with all keys of its schema; if both run, also for each protocol."""
    for fabric, proto in ((isis, None), (isis, "isis"), (both, None), (both, "ospf")):
        document = run_view(seen_from(fabric, "L1"), entry.command, {**NEEDED, "proto": proto})
        assert json.loads(encode(document))["format"] == entry.format


def test_a_protocol_that_does_not_run_is_refused(isis):
    with pytest.raises(CommandError, match="does not run OSPF") as refusal:
        run_view(seen_from(isis, "L1"), "show neighbors", {"proto": "ospf"})
    assert refusal.value.code == "unsupported"
    with pytest.raises(CommandError, match="'rip' is not a protocol"):
        run_view(seen_from(isis, "L1"), "show neighbors", {"proto": "rip"})


@pytest.mark.parametrize("name", narrowed())
def test_documents_of_one_protocol_have_the_rows_of_that_protocol(both, name):
    """Together the two have all rows, but for those that belong to no protocol."""
    context = seen_from(both, "L1")
    parts = [run_view(context, f"show {name}", {"proto": proto}) for proto in ("ospf", "isis")]
    for key, value in run_view(context, f"show {name}", {}).items():
        if isinstance(value, list) and name not in ("fabric", "lsdb", "routes", "weights"):
            mine = [entry for entry in value if entry.get("proto", "") is not None]
            assert list(map(len, (value, mine)))[1] == sum(len(part[key]) for part in parts), key


def test_status_tells_level_adjacencies_and_bits(isis, levels):
    leaf = status(seen_from(isis, "L1"))
    assert (leaf.ready, leaf.router_id, leaf.ospf) == (True, L1_ID, None)
    (level,) = leaf.isis.levels
    assert (level.level, level.neighbors, level.up, level.lsps) == ("level-2", 2, 2, 5)
    assert leaf.routes.protocols == {"isis": leaf.routes.total}
    assert set(leaf.routes.families) == {"ipv4", "ipv6"}
    spine = status(seen_from(levels, "p1.S1")).isis
    assert [level.level for level in spine.levels] == ["level-1", "level-2"]
    assert (spine.attached, spine.overloaded, spine.areas) == (True, False, ["49.0001"])


def test_adjacencies_show_neighbors_and_their_states(isis):
    first = protocol.neighbors(seen_from(isis, "L1")).neighbors[0]
    assert (first.proto, first.system_id, first.hostname) == ("isis", S1_ID, "S1")
    assert (first.state, first.levels, first.areas) == ("Up", [2], ["49.0000"])
    assert (first.snpa, first.holding_time) == ("02:00:00:00:00:02", 4)
    assert first.addresses == ["10.128.0.1", "fe80::200:0:2"]
    assert 0 < first.dead_in <= 4


def test_neighbors_of_both_protocols_stand_in_one_list(both):
    rows = protocol.neighbors(seen_from(both, "L1")).neighbors
    assert [(row.proto, row.hostname) for row in rows] == [
        ("ospf", "S1"),
        ("ospf", "S2"),
        ("isis", "S1"),
        ("isis", "S2"),
    ]


def test_circuits_tell_levels_and_load(isis):
    context = seen_from(isis, "L1")
    context.runtime.utilized = {3: 100.0}
    rows = {row.interface: row for row in protocol.interfaces(context).interfaces}
    assert (rows["lo"].state, rows["host"].passive) == ("Loopback", True)
    up = rows["S1"]
    assert (up.state, up.area, up.full, up.cost) == ("Point-to-point", "level-2", 1, 10)
    assert up.available == DEFAULT_CAPACITY - 100


def test_measured_loads_are_shown_with_their_ages(isis):
    context = seen_from(isis, "L1")
    assert load(context).interfaces == []
    for age in (3.0, 2.0, 1.0):
        context.runtime.load_history.add(context.now - age, {3: age * 100, 999: 1.0})
    (row,) = load(context).interfaces
    assert (row.ages, row.loads) == ([3.0, 2.0, 1.0], [300, 200, 100])
    assert row.bandwidth == DEFAULT_CAPACITY
    assert load(context, row.interface).interfaces == [row]
    with pytest.raises(CommandError, match="no load of S99"):
        load(context, "S99")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), 5),
        (("lsp",), 5),
        (("level-2",), 5),
        (("L2",), 1),
        (("L2.00-00",), 1),
        ((S1_ID,), 1),
        ((f"{S1_ID}.00-00",), 1),
        (("lsp", "S1"), 1),
    ],
)
def test_lsps_are_found_by_type_id_and_hostname(isis, words, found):
    (level,) = protocol.database(seen_from(isis, "L1"), *words).levels
    assert len(level.lsps) == found
    assert all(lsp.lifetime > 1000 for lsp in level.lsps)


def test_one_lsp_is_shown_decoded(isis):
    (level,) = protocol.database(seen_from(isis, "L1"), "S1").levels
    (lsp,) = level.lsps
    tlvs = lsp.body["tlvs"]
    assert tlvs["hostname"] == "S1"
    slow = next(link for link in tlvs["ext_is_reach"] if link["neighbor"] == "0000.0aff.0004.00")
    assert slow["sub"]["residual_bandwidth"] == pytest.approx(DEFAULT_CAPACITY / 4)
    with pytest.raises(CommandError, match="no LSP matches pseudonode"):
        protocol.database(seen_from(isis, "L1"), "pseudonode")


def test_the_database_file_holds_every_lsp_as_on_the_wire(isis, both):
    document = lsdb(seen_from(isis, "L1"))
    assert (document.proto, document.system_id, document.levels) == ("isis", L1_ID, [2])
    lsps = [decode_pdu(bytes.fromhex(lsp.hex)) for lsp in document.lsps]
    shown = protocol.database(seen_from(isis, "L1")).levels[0].lsps
    assert [lsp.remaining_lifetime for lsp in lsps] == [lsp.lifetime for lsp in shown]
    toward = next(i for i in document.interfaces if i.name == "S1")
    assert toward.adjacencies == [
        IsisLsdbAdjacency(neighbor=S1_ID, level=2, ipv4="10.128.0.1", ipv6="fe80::200:0:2")
    ]
    context = seen_from(both, "L1")
    assert lsdb(context).proto == "ospf"
    assert lsdb(context.narrowed("isis")).proto == "isis"


def test_topology_lists_what_families_share_once(isis, both):
    (level,) = graph.topology(seen_from(isis, "L1")).areas
    assert (level.proto, level.area, len(level.links)) == ("isis", "level-2", 12)
    assert all(link.families == ["ipv4", "ipv6"] and link.two_way for link in level.links)
    areas = graph.topology(seen_from(both, "L1")).areas
    assert [(area.proto, area.area) for area in areas] == [
        ("ospf", "0.0.0.0"),
        ("isis", "level-2"),
    ]


def test_spf_has_the_tree_of_each_level(levels):
    nodes = graph.spf(seen_from(levels, "p1.S1")).nodes
    assert {node.area for node in nodes} == {"level-1", "level-2"}
    far = next(node for node in nodes if node.hostname == "p2.S1")
    assert (far.metric, far.first_hops) == (20, [S1_ID])
    assert far.families == ["ipv4", "ipv6"]


def test_routes_are_of_both_families_unless_one_is_asked_for(isis):
    context = seen_from(isis, "L1")
    document = routes.routes(context)
    assert document.af == "both"
    assert {route.protocol for route in document.routes} == {"isis"}
    assert {(r.type, r.area, r.preference) for r in document.routes} == {
        ("level-2", "level-2", 115)
    }
    only = routes.routes(context, af="ipv6")
    assert only.af == "ipv6"
    assert all(":" in route.prefix for route in only.routes)
    (route,) = routes.routes(context, str(isis.leaf_prefixes6["L2"])).routes
    assert [(hop.hostname, hop.weight) for hop in route.nexthops] == [("S1", 1), ("S2", 4)]
    with pytest.raises(CommandError, match="not a family"):
        routes.routes(context, af="ipx")


def test_the_table_has_the_preferred_protocol_and_each_its_own(both):
    context = seen_from(both, "L1")
    (best,) = routes.routes(context, NEEDED["prefix"]).routes
    (other,) = routes.routes(context.narrowed("isis"), NEEDED["prefix"]).routes
    assert (best.protocol, best.preference) == ("ospf", 110)
    assert (other.protocol, other.preference, other.area) == ("isis", 115, "level-2")
    assert routes.routes(context).af == "both"
    assert routes.routes(context.narrowed("ospf")).af == "ipv4"


def test_explain_uses_the_solver_that_computed_the_route(isis, both):
    for prefix in (NEEDED["prefix"], str(isis.leaf_prefixes6["L2"])):
        document = explain.explain(seen_from(isis, "L1"), prefix)
        assert (document.protocol, document.type) == ("isis", "level-2")
        limit = document.nexthops[0].limiting_link
        assert (limit.from_hostname, limit.to_hostname) == ("S1", "L2")
    context = seen_from(both, "L1")
    used = explain.explain(context, NEEDED["prefix"])
    assert used.protocol == "ospf"
    assert "IS-IS (preference 115) has a route too" in used.summary
    unused = explain.explain(context.narrowed("isis"), NEEDED["prefix"])
    assert used.last_change
    assert unused.last_change is None
    assert "It is not used: OSPF has 10.0.2.0/24 too and is preferred" in unused.summary
    assert explain.explain(context, str(both.leaf_prefixes6["L2"])).protocol == "isis"


def test_explain_across_levels_names_the_router_behind_which_the_limit_lies(levels):
    document = explain.explain(seen_from(levels, "p1.L1"), str(levels.leaf_prefixes["p2.L1"]))
    first, second = document.nexthops
    assert (document.type, document.area) == ("level-1", "level-1")
    assert "the path capacity that p1.S1 advertises (100G)" in first.reason
    assert (first.weight, second.weight) == (1, 4)


@pytest.mark.parametrize("af", [None, "ipv6"])
def test_path_follows_every_split_in_both_families(isis, af):
    document = path.path(seen_from(isis, "L1"), "L1", "L2", af)
    assert (document.protocol, document.af) == ("isis", af or "ipv4")
    shares = {(e.from_hostname, e.to_hostname): e.share for e in document.edges}
    assert shares == {("L1", "S1"): 0.2, ("L1", "S2"): 0.8, ("S1", "L2"): 0.2, ("S2", "L2"): 0.8}
    assert document.capacity == pytest.approx(DEFAULT_CAPACITY * 5 / 4)


def test_path_prefers_the_preferred_protocol_and_takes_ids_of_either(both):
    context = seen_from(both, "L1")
    assert path.path(context, "L1", "L2").protocol == "ospf"
    assert path.path(context.narrowed("isis"), "L1", "L2").protocol == "isis"
    assert path.path(context, L1_ID, "0000.0aff.0004").protocol == "isis"
    assert path.path(context, "L1", str(both.leaf_prefixes6["L2"])).protocol == "isis"
    with pytest.raises(CommandError, match="no router 'nobody'"):
        path.path(context, "nobody", "L2")
    with pytest.raises(CommandError, match="no router 'nobody' in the database, and it is no"):
        path.path(context, "L1", "nobody")


def test_path_goes_on_through_routers_of_both_levels_as_far_as_can_be_seen(levels):
    """A leaf knows its own level; a spine of the PoD knows both."""
    prefix = str(levels.leaf_prefixes["p2.L1"])
    ends = [
        (edge.from_hostname, edge.to_hostname)
        for edge in path.path(seen_from(levels, "p1.L1"), "p1.L1", prefix).edges
    ]
    assert ends == [("p1.L1", "p1.S1"), ("p1.L1", "p1.S2")]
    seen = path.path(seen_from(levels, "p1.S1"), "p1.L1", prefix).edges
    further = [(e.from_hostname, e.to_hostname, e.share) for e in seen]
    assert ("p1.S1", "SS1.1", 0.2) in further
    assert ("SS1.1", "p2.S1", 0.2) in further


def test_the_kernel_holds_both_families_and_validate_agrees(isis, both, levels):
    for fabric, name in ((isis, "L1"), (both, "L1"), (levels, "p1.S1")):
        context = seen_from(fabric, name)
        document = kernel.fib(context)
        assert {":" in route.prefix for route in document.routes} == {False, True}
        assert all(hop.interface and hop.address for hop in document.nexthops)
        found = validate(context)
        assert found.ok, found
    names = [check.name for check in validate(seen_from(both, "L1")).checks]
    assert names[:2] == ["neighbors are full", "adjacencies are up"]


def test_validate_sees_an_adjacency_that_is_not_up(isis, monkeypatch):
    context = seen_from(isis, "L1")
    adjacency = context.isis.instance.ordered_circuits()[2].adjacency
    monkeypatch.setattr(adjacency, "state", AdjacencyState.INITIALIZING)
    monkeypatch.setattr(adjacency, "since", context.now)
    found = validate(context)
    assert not found.ok
    assert found.checks[0].detail == "1 neighbor is forming an adjacency"
    assert found.checks[1].detail == "1 of 2 have one: S1: the adjacency is forming"


def test_timers_and_counters_show_their_protocol(both):
    context = seen_from(both, "L1")
    timers = protocol.timers(context).timers
    assert {timer.proto for timer in timers} == {"ospf", "isis", None}
    assert [t.due_in for t in timers] == sorted(t.due_in for t in timers)
    holding = {t.subject for t in timers if t.timer == "holding"}
    assert holding == {"S1 on S1", "S2 on S2"}
    counts = {(c.proto, c.group): c.value for c in counters(context).counters}
    assert {("ospf", "packets"), ("isis", "pdus"), (None, "computations")} <= set(counts)
    assert {row.proto for row in counters(context.narrowed("isis")).counters} == {"isis"}


def test_metrics_are_labelled_by_protocol_and_level(both, levels):
    values = scraped(seen_from(both, "L1"))
    assert values["neighbors"] == {("ospf", "0.0.0.0", "Full"): 2, ("isis", "level-2", "Up"): 2}
    assert values["lsdb_entries"]["isis", "level-2", "lsp"] == 5
    assert values["packets"]["isis", "received", "p2p-hello"] > 1
    assert values["neighbor_transitions"]["isis", "Down", "Up"] == 1
    total = len(routes.routes(seen_from(both, "L1")).routes)
    assert sum(values["routes"].values()) == total
    assert values["routes"]["isis",] > 0
    assert values["spf_runs"]["isis", "topology"] > 0
    assert values["link_capacity_bytes_per_second"]["S1",] == DEFAULT_CAPACITY
    spine = scraped(seen_from(levels, "p1.S1"))
    assert spine["neighbors"] == {("isis", "level-1", "Up"): 2, ("isis", "level-2", "Up"): 1}
    other = scraped(seen_from(levels, "p1.L1"))
    (level_1,) = (key for key in spine["lsdb_checksum"] if key[1] == "level-1")
    assert spine["lsdb_checksum"][level_1] == other["lsdb_checksum"][level_1]
    names = set(chain.from_iterable(key[:1] for key in spine["packets"]))
    assert names == {"isis"}
