"""Metrics of links and neighbors that should be there, and of what has not happened yet."""

import pytest
from msgspec.structs import replace

from fared.config import load_text
from fared.core.ids import isis_node
from fared.core.lost_neighbors import LostNeighbor
from fared.extensions.sim.fabric import Fabric, FabricBuilder
from fared.extensions.sim.levels import clos3_isis, clos5_levels
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import OspfBuilder
from fared.management.documents.views.expected import DAY
from tests.api.seen import scraped, seen_from

S1, S2 = ("10.255.0.1", "0000.0aff.0001"), ("10.255.0.2", "0000.0aff.0002")
"""Router id and system id."""
NAMED = """
router-id: 10.255.1.1
ospf:
  areas:
    0.0.0.0:
      interfaces: {'*': {}, eth9: {}, eth10: {passive: true}}
isis: {net: 49.0001.0102.5500.0101.00, interfaces: {'S?': {}, S2: {passive: true}}}
"""


def settled(fabric: Fabric) -> Fabric:
    fabric.network.start_all()
    fabric.network.run_until_quiet(60)
    return fabric


@pytest.fixture
def both() -> Fabric:
    """Two spines and two leaves over OSPF and IS-IS at once."""
    return settled(clos3_isis(2, 2, network=Network(seed=1), beside=[OspfBuilder()]))


def lost(context, proto: str, name: str, node: int, ago: float) -> None:
    """The daemon has seen an adjacency end."""
    seen = LostNeighbor(node, context.wall - ago, "dead")
    context.runtime.lost_neighbors.add((proto, name), seen)


def test_each_link_and_neighbor_has_one_series_and_the_router_a_name(both):
    values = scraped(seen_from(both, "L1"))
    assert values["link_up"] == {("S1",): 1, ("S2",): 1}
    assert values["neighbor_up"] == {
        ("S1", S1[0], "ospf"): 1,
        ("S2", S2[0], "ospf"): 1,
        ("S1", S1[1], "isis"): 1,
        ("S2", S2[1], "isis"): 1,
    }
    info = scraped(seen_from(both, "S1"))["router_info"]
    assert info == {("ospf", S1[0], "S1"): 1, ("isis", S1[1], "S1"): 1}


def test_a_link_that_is_down_is_0_and_so_is_the_neighbor_that_was_there(both):
    both.network.set_link("L1", "S2", up=False)
    both.network.run_for(10)
    context = seen_from(both, "L1")
    assert scraped(context)["link_up"] == {("S1",): 1, ("S2",): 0}
    assert scraped(context)["neighbor_up"]["S2", "", "ospf"] == 0  # a daemon that has just started
    lost(context, "ospf", "S2", 0x0AFF0002, 400 * DAY)
    lost(context, "isis", "S2", isis_node(0x0AFF0002), 1.0)
    assert scraped(context)["neighbor_up"] == {
        ("S1", S1[0], "ospf"): 1,
        ("S2", S2[0], "ospf"): 0,
        ("S1", S1[1], "isis"): 1,
        ("S2", S2[1], "isis"): 0,
    }


def test_another_neighbor_on_a_point_to_point_link_takes_the_place_of_the_lost_one(both):
    context = seen_from(both, "L1")
    lost(context, "ospf", "S2", 0x0AFF0909, 1.0)
    assert ("S2", "10.255.9.9", "ospf") not in scraped(context)["neighbor_up"]


def test_an_interface_that_the_configuration_names_is_expected_and_a_passive_one_is_not(both):
    context = replace(seen_from(both, "L1"), config=load_text(NAMED))
    values = scraped(context)
    assert values["link_up"] == {("S1",): 1, ("S2",): 1, ("eth9",): 0}
    assert values["neighbor_up"]["eth9", "", "ospf"] == 0
    # One that a glob selects is expected for a day after the kernel has lost it.
    lost(context, "isis", "S3", isis_node(0x0AFF0003), 1.0)
    lost(context, "isis", "S4", isis_node(0x0AFF0004), DAY + 1)
    lost(context, "isis", "eth7", isis_node(0x0AFF0005), 1.0)
    values = scraped(context)
    assert values["link_up"] == {("S1",): 1, ("S2",): 1, ("eth9",): 0, ("S3",): 0}
    assert values["neighbor_up"]["S3", "0000.0aff.0003", "isis"] == 0


def test_a_router_that_has_left_a_lan_is_expected_for_a_day():
    """Two of its routers are neither DR nor BDR, and 2-Way with each other: that is final."""
    builder = FabricBuilder(Network(seed=2))
    for name in ("R1", "R2", "R3", "R4"):
        builder.router(name)
    builder.lan("R1", "R2", "R3", "R4")
    context = seen_from(settled(builder.fabric), "R1")
    others = {("lan1", f"10.255.0.{number}", "ospf"): 1 for number in (2, 3, 4)}
    assert scraped(context)["neighbor_up"] == others
    lost(context, "ospf", "lan1", 0x0AFF0808, DAY + 1)
    lost(context, "ospf", "lan1", 0x0AFF0909, DAY - 1)
    assert scraped(context)["neighbor_up"] == {**others, ("lan1", "10.255.9.9", "ospf"): 0}


def test_counters_begin_at_0_before_the_first_event(both):
    values = scraped(seen_from(both, "L1"))
    assert values["packet_errors"]["ospf", "hello-interval-mismatch"] == 0
    assert values["packet_errors"]["isis", "area-mismatch"] == 0
    assert values["neighbor_transitions"]["ospf", "Full", "Down"] == 0
    assert values["neighbor_transitions"]["isis", "Up", "Down"] == 0
    assert values["packets"]["isis", "received", "l1-lan-hello"] == 0
    assert values["fib_operations"]["PutRoute", "error"] == 0
    assert values["fib_resyncs"] == dict.fromkeys(
        [("periodic",), ("foreign-change",), ("refused",), ("overflow",)], 0
    )
    assert ("isis", "hello-interval-mismatch") not in values["packet_errors"]


def parts(fabric: Fabric, area: str) -> dict[str, set[float]]:
    """The checksums of the routers with each ``lowest`` in an area or level."""
    found: dict[str, set[float]] = {}
    for name in fabric.network.nodes:
        for (_, at, lowest), checksum in scraped(seen_from(fabric, name))["lsdb_checksum"].items():
            if at == area:
                found.setdefault(lowest, set()).add(checksum)
    return found


@pytest.fixture
def levels() -> Fabric:
    """Two PoDs, each a level-1 area, and two planes between them: level 2."""
    return settled(clos5_levels(2, 2, 2, 1, network=Network(seed=1)))


@pytest.mark.parametrize("level", ["level-1", "level-2"])
def test_databases_of_routers_that_reach_one_another_are_compared_and_no_others(levels, level):
    """PoDs have different databases of level 1, planes different ones of level 2."""
    found = parts(levels, level)
    assert len(found) == 2
    assert all(len(checksums) == 1 for checksums in found.values())


def test_a_database_that_lacks_a_router_is_compared_with_the_others(both):
    """Also the one of the lowest id: the routers that are reached list it."""
    before = scraped(seen_from(both, "L2"))["lsdb_checksum"]
    assert {(proto, lowest) for proto, _, lowest in before} == {("ospf", S1[0]), ("isis", S1[1])}
    solver = both.network.nodes["L2"].running.instances["ospf"].solver
    solver.put_block(0, 0x0AFF0001, None)
    solver.solve()
    after = scraped(seen_from(both, "L2"))["lsdb_checksum"]
    assert set(after) == set(before)
