"""Neighbors by address, internal neighbors, parallel families, and BFD."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.bfd import BfdChanged, BfdSettings, BfdStatus, BfdWanted
from fared.core.streams import FROM_LINK, Listen
from fared.extensions.sim.fabric import FabricBuilder, clos3
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import BgpBuilder, OspfBuilder
from fared.management.documents.views.bgp_sessions import problem_of
from fared.protocols.bgp.packet.attributes import LocalPref
from fared.protocols.igp.events import LinkChanged, LinkRemoved
from fared.protocols.igp.refusals import NeighborProblem
from fared.router.events import To
from tests.bgp.fabrics import (
    GBPS,
    NEIGHBOR,
    apply_neighbor,
    emitted,
    engine,
    in_one_as,
    neighbor,
    numbered,
    ratio,
    shares,
    slow,
    speakers,
    started,
    weights,
)

EVEN = ratio({"S1": 1, "S2": 1})


def test_numbered_neighbors_are_found_in_the_networks_of_links():
    fabric = started(numbered(clos3(2, 2, builder=speakers())))
    assert shares(fabric, "L1", "L2") == EVEN
    assert weights(fabric, "L1", "bgp", fabric.leaf_prefixes6["L2"]) == {"S1": 1, "S2": 1}
    slow(fabric, "S1", "L2", 100)
    fabric.network.run_for(0.1)
    assert shares(fabric, "L1", "L2") == ratio({"S1": 1, "S2": 4})
    assert weights(fabric, "L1", "bgp", fabric.leaf_prefixes6["L2"]) == {"S1": 1, "S2": 4}


@pytest.mark.rfc("RFC 5082")
def test_ttl_security_and_keys_are_part_of_who_may_connect():
    fabric = started(numbered(clos3(1, 2, builder=speakers()), ttl_security=True))
    found = engine(fabric, "S1").instance.neighbors.values()
    transports = [one.session.settings.transport for one in found]
    assert [one.ttl for one in transports] == [FROM_LINK, FROM_LINK]
    wanted = emitted(fabric, "S1")
    fabric.network.set_link("S1", "L1", up=False)
    (listen,) = [one for one in wanted if isinstance(one, Listen)]
    assert [one.transport.remote for one in listen.listeners] == [transports[1].remote]


@pytest.mark.rfc("RFC 4271 §5.1.5")
def test_internal_neighbors_keep_local_pref_and_pass_nothing_on_to_each_other():
    """L1 and both spines are one AS, L2 another: L1 gets what the spines have of L2."""
    fabric = started(in_one_as(clos3(2, 2, builder=speakers()), "S1", "S2", "L1"))
    assert shares(fabric, "L1", "L2") == EVEN
    assert shares(fabric, "L2", "L1") == EVEN
    rib = engine(fabric, "L1").instance.ribs[4]
    for one in rib.paths(fabric.leaf_prefixes["L2"]):
        assert one.peer.internal
        assert one.path.attributes.find(LocalPref) == LocalPref(100)
    fabric.network.set_link("S1", "L2", up=False)
    fabric.network.run_for(0.2)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    assert shares(fabric, "S1", "L2") == {}, "S2's path by L1 would be a second internal hop"


def test_an_external_path_is_preferred_to_ospf_and_an_internal_one_is_not():
    """Preferences are 20, 110 and 200; the capacity of both is the same."""
    builder = FabricBuilder(
        Network(), protocols=[OspfBuilder(), BgpBuilder(NEIGHBOR)], start_deadline=2.0
    )
    fabric = started(in_one_as(clos3(2, 2, builder=builder), "S1", "S2", "L1"))
    prefix, table = fabric.leaf_prefixes["L2"], fabric.network.nodes["L1"].running.table
    assert weights(fabric, "L1", "bgp", prefix) == {"S1": 1, "S2": 1}
    assert table.source(prefix) == "ospf"
    assert fabric.network.nodes["S1"].running.table.source(prefix) == "bgp"


def test_bfd_ends_a_session_at_once_and_the_routes_by_it():
    fabric = started(clos3(2, 2, builder=speakers()))
    wanted = emitted(fabric, "L1")
    apply_neighbor(fabric, "L1", ["S1"], bfd=BfdSettings())
    (session,) = [one for one in wanted if isinstance(one, BfdWanted)]
    assert session.settings is not None

    def tell(status: BfdStatus, reason: str = "") -> None:
        changed = BfdChanged(session.ifindex, session.remote, status, reason)
        fabric.network.input("L1", To("bgp", changed))

    tell(BfdStatus.DOWN)
    assert shares(fabric, "L1", "L2") == EVEN, "it has not been up"
    tell(BfdStatus.UP)
    tell(BfdStatus.DOWN, "Control Detection Time Expired")
    fabric.network.run_for(0.02)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    fabric.network.run_for(3.0)
    assert shares(fabric, "L1", "L2") == EVEN
    apply_neighbor(fabric, "L1", ["S1"], bfd=None)
    last = [one for one in wanted if isinstance(one, BfdWanted)][-1]
    assert last.settings is None


def test_a_neighbor_of_a_link_that_is_down_stays_and_is_the_same_afterwards():
    fabric = started(clos3(2, 2, builder=speakers()))
    one = neighbor(fabric, "L1", "S1")
    instance = engine(fabric, "L1").instance
    number = one.number
    fabric.network.set_link("S1", "L1", up=False)
    fabric.network.run_for(0.1)
    assert neighbor(fabric, "L1", "S1") is one
    assert (one.session, one.flaps) == (None, 1)
    assert problem_of(one, instance) == NeighborProblem("link-down", "the link is down")
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    fabric.network.set_link("S1", "L1", up=True)
    fabric.network.run_for(3.0)
    assert neighbor(fabric, "L1", "S1") is one
    assert one.agreed is not None
    assert shares(fabric, "L1", "L2") == EVEN
    port = fabric.network.find_port("L1", "S1")
    fabric.network.input("L1", LinkRemoved(port.ifindex))
    assert number not in instance.neighbors
    renewed = replace(port.link(), ifindex=99)
    fabric.network.input("L1", To("bgp", LinkChanged(renewed, port.settings["bgp"])))
    assert (instance.neighbors[number].ifindex, instance.neighbors[number].name) == (99, port.name)


def test_a_capacity_that_is_not_known_limits_nothing():
    fabric = clos3(2, 2, builder=speakers())
    for spine in ("S1", "S2"):
        fabric.network.set_capacity("L1", spine, None)
        fabric.network.set_capacity(spine, "L1", None)
    started(fabric)
    assert shares(fabric, "L1", "L2") == EVEN
    carried = engine(fabric, "L1").instance.ribs[4].carried(fabric.leaf_prefixes["L2"])
    assert carried == pytest.approx(800 * GBPS)
