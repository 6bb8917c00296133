"""Views of IS-IS on a LAN: the DIS, the pseudonode, and paths across it."""

import pytest

from fared.core.ids import isis_node, parse_system_id
from fared.extensions.sim.fabric import LANS, Fabric, FabricBuilder
from fared.extensions.sim.levels import COMMON
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import IsisBuilder
from fared.management.documents.views import graph, path, protocol
from fared.management.documents.views.validate import validate
from fared.protocols.igp import events as igp
from fared.protocols.isis.ids import LevelSet
from fared.protocols.isis.settings import CircuitKind, CircuitSettings
from fared.router import events
from tests.api.seen import scraped, seen_from

NAMES = ("R1", "R2", "R3")
LAN = CircuitSettings(
    CircuitKind.BROADCAST, LevelSet.TWO, hello_interval=1.0, hello_multiplier=4, csnp_interval=1.0
)


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """R1 to R3 on a LAN in level 2; R3 has the highest SNPA and is designated."""
    builder = FabricBuilder(Network(seed=3), protocols=[IsisBuilder(COMMON)])
    for name in NAMES:
        builder.router(name)
        builder.hosts(name)
    network = builder.fabric.network
    ports = [
        network.add_port(name, LANS + number, 24, {"isis": LAN}, interface="lan1", capacity=1e9)
        for number, name in enumerate(NAMES, start=1)
    ]
    network.join(ports)
    network.start_all()
    network.run_until_quiet(120, quiet=6.0)
    return builder.fabric


def test_interfaces_show_the_dis(fabric):
    lan = protocol.interfaces(seen_from(fabric, "R1")).interfaces[-1]
    assert (lan.network_type, lan.state, lan.full) == ("broadcast", "LAN", 2)
    (level,) = lan.lans
    assert (level.level, level.hostname, level.is_dis) == (2, "R3", False)
    own = protocol.interfaces(seen_from(fabric, "R3")).interfaces[-1]
    assert (own.state, own.lans[0].dis) == ("DIS", level.dis)


def test_the_pseudonode_is_an_lsp_and_a_node_of_its_own(fabric):
    context = seen_from(fabric, "R1")
    (level,) = protocol.database(context, "pseudonode").levels
    (lsp,) = level.lsps
    assert (lsp.type, lsp.hostname) == ("pseudonode", "R3")
    (area,) = graph.topology(context).areas
    (network,) = [node for node in area.nodes if node.network]
    assert lsp.lsp_id == f"{network.id}-00"
    around = [link for link in area.links if link.from_ == network.id]
    assert len(around) == len(NAMES)
    assert all(link.two_way and link.capacity is None for link in around)
    entries = scraped(context)["lsdb_entries"]
    assert entries["isis", "level-2", "pseudonode"] == 1


@pytest.mark.parametrize("af", ["ipv4", "ipv6"])
def test_a_path_crosses_the_lan_straight_to_the_other_router(fabric, af):
    document = path.path(seen_from(fabric, "R1"), "R1", "R2", af)
    edges = [(e.from_hostname, e.to_hostname, e.share) for e in document.edges]
    assert edges == [("R1", "R2", 1.0)]
    assert document.capacity == pytest.approx(1e9)


def test_validate_finds_no_problem_on_a_lan(fabric):
    assert validate(seen_from(fabric, "R2")).ok


def test_the_details_of_a_lan_name_the_dis(fabric):
    context = seen_from(fabric, "R1")
    (neighbor,) = protocol.neighbors(context, "R2").neighbors
    assert neighbor.network_type == "broadcast"
    (lan,) = protocol.interfaces(context, "R2").interfaces[0].lans
    assert (neighbor.dis, lan.hostname) == (lan.dis, "R3")


def test_one_neighbor_of_a_lan_is_cleared_and_the_others_stay(fabric):
    context = seen_from(fabric, "R1")
    (row,) = protocol.neighbors(context, "R2").neighbors
    ifindex = next(link.ifindex for link in context.links.values() if link.name == row.interface)
    cleared = igp.NeighborCleared(ifindex, isis_node(parse_system_id(row.system_id)))
    fabric.network.input("R1", events.To("isis", cleared))
    assert protocol.neighbors(seen_from(fabric, "R1")).neighbors[0].hostname == "R3"
    fabric.network.run_until_quiet(60.0, quiet=6.0)
    after = protocol.neighbors(seen_from(fabric, "R1")).neighbors
    assert {row.hostname: (row.state, row.flaps) for row in after} == {
        "R2": ("Up", 1),
        "R3": ("Up", 0),
    }
