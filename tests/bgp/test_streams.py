"""Neighbors that do not read, tables full of work, links that flap, keys that differ."""

from __future__ import annotations

import pytest

from fared.core.ids import ipv4_prefix
from fared.core.streams import ReadStream, StreamKey
from fared.extensions.sim.fabric import Fabric, clos3
from fared.extensions.sim.streams import BUFFER
from fared.protocols.bgp import announcing
from fared.protocols.bgp.packet.attributes import LargeCommunities
from fared.protocols.bgp.packet.communities import LargeCommunity
from fared.protocols.bgp.session.connection import MOST_WAITING
from fared.protocols.bgp.session.fsm import BgpState
from fared.protocols.igp.events import LoadsMeasured
from tests.bgp.fabrics import (
    GBPS,
    apply,
    apply_neighbor,
    engine,
    neighbor,
    ratio,
    shares,
    slow,
    speakers,
    started,
    weights,
)

EVEN = ratio({"S1": 1, "S2": 1})
KEY = StreamKey(b"secret")
SOME = tuple(ipv4_prefix(0x0B000000 + (at << 8), 24) for at in range(400))


def two_by_two(**common) -> Fabric:
    return started(clos3(2, 2, builder=speakers(**common)))


def ends(fabric: Fabric, name: str, toward: str):
    """The end of the connection at a router, with the bytes that it has sent and nobody read."""
    number = neighbor(fabric, name, toward).number
    found = fabric.network.streams.ends.items()
    return next(end for (place, stream), end in found if (place[0], stream.peer) == (name, number))


def test_a_neighbor_that_never_reads_holds_up_nobody_and_is_given_up():
    """Its routes are not buffered without bound: what it has not read is decided later."""
    fabric = two_by_two(networks=())
    stuck = ends(fabric, "S1", "L1")
    ends(fabric, "L1", "S1").reads = False
    for round_ in range(12):
        apply(fabric, "L2", networks=SOME if round_ % 2 else ())
        fabric.network.run_for(0.3)
        apply(fabric, "L2", networks=SOME)
        slow(fabric, "L2", "S1", 100 + round_)
        fabric.network.run_for(0.3)
        assert stuck.waiting <= BUFFER + MOST_WAITING + 65536
    assert weights(fabric, "L1", "bgp", SOME[7]) is not None
    assert neighbor(fabric, "S1", "L2").agreed is not None


def test_sessions_are_not_read_while_decisions_wait(monkeypatch):
    monkeypatch.setattr(announcing, "_MUCH", 100)
    monkeypatch.setattr(announcing, "_WORK", 5)
    fabric = two_by_two()
    told = []
    perform = fabric.network.streams.perform

    def noting(place, output):
        if isinstance(output, ReadStream) and place[0] == "S1":
            told.append(output.wanted)
        perform(place, output)

    monkeypatch.setattr(fabric.network.streams, "perform", noting)
    apply(fabric, "L1", networks=SOME)
    fabric.network.run_for(1.0)
    assert told[0] is False
    assert told.count(True) == told.count(False)
    assert weights(fabric, "L2", "bgp", SOME[-1]) == {"S1": 1, "S2": 1}


def test_a_link_that_flaps_ends_as_it_is():
    fabric = two_by_two()
    network = fabric.network
    for at in range(21):
        network.set_link("S1", "L1", up=at % 2 == 1)
        network.run_for(0.04)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    found = engine(fabric, "L1").instance.neighbors.values()
    assert [(one.name, one.agreed is not None) for one in found] == [("S1", False), ("S2", True)]
    network.set_link("S1", "L1", up=True)
    network.run_for(2.0)
    assert shares(fabric, "L1", "L2") == shares(fabric, "L2", "L1") == EVEN


def test_a_router_that_is_silent_is_lost_after_the_hold_time():
    """Its process stands still: its kernel answers, and its links are up."""
    fabric = two_by_two()
    fabric.network.nodes["S1"].router = None
    fabric.network.run_for(6.0)
    assert shares(fabric, "L1", "L2") == EVEN
    fabric.network.run_for(5.0)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    reason = neighbor(fabric, "L1", "S1").session.reason
    assert reason == "nothing was heard of it for 9 s"


@pytest.mark.rfc("RFC 2385")
def test_sessions_need_the_same_key_at_both_ends():
    fabric = two_by_two()
    apply_neighbor(fabric, "L1", ["S1"], key=KEY)
    fabric.network.run_for(12.0)
    assert neighbor(fabric, "L1", "S1").session.state < BgpState.OPEN_SENT
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    apply_neighbor(fabric, "S1", ["L1"], key=KEY)
    fabric.network.run_for(10.0)
    assert shares(fabric, "L1", "L2") == EVEN


@pytest.mark.rfc("RFC 2385")
def test_a_session_stays_if_both_ends_change_the_key_within_the_hold_time():
    fabric = two_by_two()
    sessions = [neighbor(fabric, "L1", "S1").session, neighbor(fabric, "S1", "L1").session]
    since = [one.since for one in sessions]
    for key in (KEY, StreamKey(b"another"), None):
        apply_neighbor(fabric, "L1", ["S1"], key=key)
        fabric.network.run_for(5.0)
        apply_neighbor(fabric, "S1", ["L1"], key=key)
        fabric.network.run_for(20.0)
    assert [one.since for one in sessions] == since
    assert [one.state for one in sessions] == [BgpState.ESTABLISHED] * 2
    assert sessions[0].settings.transport.key is None


def test_a_disabled_neighbor_is_told_why():
    fabric = two_by_two()
    apply_neighbor(fabric, "L1", ["S1"], enabled=False, description="new optics")
    fabric.network.run_for(0.1)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    assert neighbor(fabric, "L1", "S1").session is None
    assert neighbor(fabric, "S1", "L1").session.reason == (
        'it closed the session: cease, hard reset: cease, administrative shutdown: "new optics"'
    )
    apply_neighbor(fabric, "L1", ["S1"], enabled=True)
    fabric.network.run_for(3.0)
    assert shares(fabric, "L1", "L2") == EVEN


def test_small_changes_of_bandwidth_wait_and_losses_do_not():
    fabric = two_by_two()
    updates = neighbor(fabric, "L1", "S1").received
    slow(fabric, "S1", "L2", 396)
    fabric.network.run_for(5.0)
    assert neighbor(fabric, "L1", "S1").received == updates
    slow(fabric, "S1", "L2", 380)
    fabric.network.run_for(0.1)
    assert neighbor(fabric, "L1", "S1").received == updates + 2
    slow(fabric, "S1", "L2", 378)
    fabric.network.run_for(0.5)
    assert neighbor(fabric, "L1", "S1").received == updates + 2
    fabric.network.run_for(15.0)
    (told,) = {
        one.path.bandwidth
        for one in engine(fabric, "L1").instance.ribs[4].paths(fabric.leaf_prefixes["L2"])
        if one.peer.number == neighbor(fabric, "L1", "S1").number
    }
    assert told == pytest.approx(378 * GBPS)


def test_a_route_with_too_many_attributes_for_a_message_is_not_told_and_that_is_said():
    fabric = two_by_two()
    prefix = fabric.leaf_prefixes["L2"]
    rib = engine(fabric, "S1").instance.ribs[4]
    (path,) = [one for one in rib.paths(prefix) if one.peer.number > 0]
    many = LargeCommunities(tuple([LargeCommunity(1, 2, at) for at in range(5457)]))
    attributes = path.path.attributes.replaced(many)
    rib.table.announce(path.peer.number, [prefix], attributes, path.path.next_hop)
    engine(fabric, "S1").instance.wake()
    fabric.network.input("S1", LoadsMeasured({}))
    fabric.network.run_for(0.2)
    assert shares(fabric, "L1", "L2") == ratio({"S2": 1})
    said = [one.fields for one in fabric.network.nodes["S1"].logs if "large" in one.event]
    assert said == [{"neighbor": "L1", "prefix": str(prefix), "count": 1}]
