"""Views of a router on a LAN: paths, explanations and the designated router."""

import pytest

from fared.core.ids import parse_dotted
from fared.extensions.sim.fabric import DEFAULT_CAPACITY, Fabric, FabricBuilder
from fared.extensions.sim.network import Network
from fared.management.documents.views import explain, graph, path, protocol
from fared.protocols.igp import events as igp
from fared.router import events
from tests.api.seen import seen_from

MEMBERS = ("R1", "R2", "R3", "R4")


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """R1 to R4 on a LAN, R4 as DR; R5 is connected to R1, which has half a LAN link, and to R2."""
    builder = FabricBuilder(Network(seed=2))
    for name in (*MEMBERS, "R5"):
        builder.router(name)
        builder.hosts(name)
    builder.lan(*MEMBERS)
    builder.link("R1", "R5")
    builder.link("R2", "R5")
    network = builder.fabric.network
    network.start_all()
    network.run_until_quiet(120, quiet=6.0)
    network.set_capacity("R1", "R3", DEFAULT_CAPACITY / 2)
    network.run_for(2.0)
    return builder.fabric


def test_a_path_crosses_the_lan_by_the_link_of_the_router_that_sends(fabric):
    found = path.path(seen_from(fabric, "R5"), "R5", "R3")
    edges = {(e.from_hostname, e.to_hostname): e for e in found.edges}
    assert set(edges) == {("R5", "R1"), ("R5", "R2"), ("R1", "R3"), ("R2", "R3")}
    assert edges["R1", "R3"].capacity == DEFAULT_CAPACITY / 2
    assert edges["R1", "R3"].share == pytest.approx(1 / 3, abs=1e-5)


def test_explain_names_the_link_into_the_lan_that_limits(fabric):
    document = explain.explain(seen_from(fabric, "R5"), str(fabric.leaf_prefixes["R3"]))
    weights = {hop.interface: hop.weight for hop in document.nexthops}
    assert weights == {"R1": 1, "R2": 2}
    limits = {hop.interface: hop.limiting_link for hop in document.nexthops}
    assert limits["R1"].capacity == DEFAULT_CAPACITY / 2
    assert (limits["R1"].from_hostname, limits["R1"].to) == ("R1", "net:10.192.1.4")


def test_interfaces_show_the_designated_router(fabric):
    rows = protocol.interfaces(seen_from(fabric, "R1")).interfaces
    lan = next(row for row in rows if row.network_type == "broadcast")
    assert (lan.designated_router, lan.backup_designated_router) == (
        "10.192.1.4",
        "10.192.1.3",
    )
    assert lan.designated_router_hostname == "R4"
    assert lan.backup_designated_router_hostname == "R3"
    own = protocol.interfaces(seen_from(fabric, "R4")).interfaces[-1]
    assert (own.state, own.designated_router_hostname) == ("DR", "R4")
    assert (lan.state, lan.priority, lan.full, lan.neighbors) == ("DR Other", 1, 2, 3)


def test_the_network_is_a_node_of_the_topology(fabric):
    (area,) = graph.topology(seen_from(fabric, "R1")).areas
    (network,) = [node for node in area.nodes if node.network]
    assert network.id == "net:10.192.1.4"
    links = [link for link in area.links if link.from_ == network.id]
    assert len(links) == 4
    assert all(link.two_way and link.capacity is None for link in links)


def test_the_detail_of_a_neighbor_on_a_lan_names_the_designated_router(fabric):
    context = seen_from(fabric, "R1")
    (neighbor,) = protocol.neighbors(context, "R4").neighbors
    assert (neighbor.network_type, neighbor.designated_router) == ("broadcast", "10.192.1.4")
    found = protocol.interfaces(context, neighbor.interface)
    (detail,) = found.detail
    assert {each.hostname: each.cost for each in detail.neighbors} == dict.fromkeys(MEMBERS[1:])


def test_one_neighbor_of_a_lan_is_cleared_and_the_others_stay(fabric):
    """R4 is the designated router: it and R1 are adjacent."""
    context = seen_from(fabric, "R1")
    before = {row.hostname: row.flaps for row in protocol.neighbors(context).neighbors}
    (row,) = protocol.neighbors(context, "R4").neighbors
    ifindex = next(link.ifindex for link in context.links.values() if link.name == row.interface)
    cleared = igp.NeighborCleared(ifindex, parse_dotted(row.router_id))
    fabric.network.input("R1", events.To("ospf", cleared))
    fabric.network.run_until_quiet(60.0, quiet=6.0)
    after = protocol.neighbors(seen_from(fabric, "R1")).neighbors
    flaps = {row.hostname: row.flaps - before[row.hostname] for row in after}
    assert flaps == dict.fromkeys(before, 0) | {"R4": 1}
    assert next(row.state for row in after if row.hostname == "R4") == "Full"
