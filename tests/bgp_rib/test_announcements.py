"""Adj-RIBs-Out: what neighbors are told, when, and in which portions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.protocols.bgp.packet.attributes import (
    AsPath,
    Communities,
    ExtendedCommunities,
    LocalPref,
    Med,
    UnknownAttribute,
)
from fared.protocols.bgp.packet.communities import GRACEFUL_SHUTDOWN, LinkBandwidth
from fared.protocols.bgp.packet.messages import Update
from fared.protocols.bgp.rib.paths import REDISTRIBUTED
from tests.bgp_rib.routers import GBPS, LEAF_AS, NET, OWN_AS, Router, attributes, link, nets, peer

ONE, TWO, THREE = peer(1), peer(2), peer(3)


def router(*peers, gbps: float = 400) -> Router:
    found = Router()
    for one in peers:
        found.add(one, gbps)
    return found


def gbps(what) -> float:
    return what.link_bandwidth / GBPS


def test_a_route_goes_to_others_with_own_as_and_own_bandwidth():
    mine = router(ONE, TWO, THREE)
    extended = ExtendedCommunities((b"\0\2abcdef", b"\x40\2abcdef"))
    unknown = [UnknownAttribute(99, 0xE0, b"a"), UnknownAttribute(98, 0x80, b"b")]
    more = [Med(5), extended, *unknown]
    mine.announce(ONE, [NET], attributes(ONE.remote_as, LEAF_AS, gbps=100, more=more))
    mine.solve()
    assert mine.told(ONE) == {}
    told = mine.told(TWO)[NET]
    assert told.find(AsPath).path[0].numbers == (OWN_AS, ONE.remote_as, LEAF_AS)
    assert (told.find(Med), told.find(LocalPref)) == (None, None)
    own = LinkBandwidth(OWN_AS, 100 * GBPS)
    assert told.find(ExtendedCommunities).communities == (b"\0\2abcdef", own.raw)
    assert [one.type for one in told.items if isinstance(one, UnknownAttribute)] == [99]
    assert mine.told(TWO) == {}


def test_the_bandwidth_told_is_the_sum_of_paths_and_at_most_the_link():
    mine = router(ONE, TWO)
    mine.add(THREE, 150)
    four = peer(4)
    mine.add(four, 800)
    mine.path(ONE, gbps=100)
    mine.path(TWO, gbps=300)
    mine.solve()
    assert gbps(mine.told(THREE)[NET]) == pytest.approx(150)
    assert gbps(mine.told(four)[NET]) == pytest.approx(400)
    assert mine.told(TWO) == {}


def test_own_prefixes_are_told_to_all_with_the_bandwidth_of_links():
    mine = router(ONE, TWO)
    mine.rib.originate([NET])
    mine.solve()
    for one in (ONE, TWO):
        told = mine.told(one)[NET]
        assert told.find(AsPath).path[0].numbers == (OWN_AS,)
        assert gbps(told) == pytest.approx(400)


def test_a_route_moves_to_another_neighbor_and_is_withdrawn_where_it_came_from():
    mine = router(ONE, TWO)
    mine.path(ONE)
    mine.solve()
    assert set(mine.told(TWO)) == {NET}
    mine.rib.update(1, Update(withdrawn=(NET,)))
    mine.path(TWO)
    mine.solve()
    assert mine.told(TWO) == {NET: None}
    assert mine.told(ONE)[NET].find(AsPath).path[0].numbers[1] == TWO.remote_as


@pytest.mark.rfc("RFC 4271 §9.2")
def test_an_internal_neighbor_gets_local_pref_and_nothing_of_another_one():
    inner = [peer(at, internal=True, remote_as=OWN_AS) for at in (3, 4)]
    mine = router(ONE, *inner)
    mine.path(ONE)
    mine.announce(inner[0], nets(1, 0x0B000000), attributes(LEAF_AS, more=[LocalPref(7)]))
    mine.solve()
    told = mine.told(inner[1])
    assert set(told) == {NET}
    assert told[NET].find(LocalPref).preference == 100
    assert told[NET].find(AsPath).path[0].numbers == (ONE.remote_as, LEAF_AS)
    assert set(mine.told(ONE)) == set(nets(1, 0x0B000000))


@pytest.mark.rfc("RFC 1997")
@pytest.mark.parametrize("community", [0xFFFFFF01, 0xFFFFFF02])
def test_no_export_and_no_advertise_are_kept_here(community):
    mine = router(ONE, TWO)
    mine.path(ONE, more=[Communities((community,))])
    mine.solve()
    assert mine.told(TWO) == {}


def test_a_bandwidth_alone_waits_for_the_threshold_and_a_loss_does_not():
    mine = router(ONE, TWO)
    some = nets(3)
    mine.announces = lambda old, new: abs(new - old) > 0.03 * old
    mine.path(ONE, *some, gbps=100)
    mine.solve()
    assert set(mine.told(TWO)) == set(some)
    mine.path(ONE, *some, gbps=98)
    mine.solve()
    assert mine.told(TWO) == {}
    out = mine.rib.outs[2]
    assert (out.waiting, out.due) == (3, False)
    mine.announces = lambda old, new: True
    out.mark_waiting()
    assert [gbps(what) for what in mine.told(TWO).values()] == [pytest.approx(98)] * 3
    mine.announces = lambda old, new: False
    mine.path(ONE, some[0], gbps=0)
    mine.rib.update(1, Update(withdrawn=(some[1],)))
    mine.announce(ONE, [some[2]], attributes(ONE.remote_as, 9, 9, gbps=98))
    mine.solve()
    told = mine.told(TWO)
    assert (told[some[0]].link_bandwidth, told[some[1]]) == (0, None)
    assert len(told[some[2]].find(AsPath).path[0].numbers) == 4


def test_the_link_to_a_neighbor_limits_what_it_is_told():
    mine = router(ONE, TWO)
    mine.path(ONE)
    mine.solve()
    mine.told(TWO)
    mine.rib.set_link(2, link(TWO, 40))
    mine.solve()
    assert gbps(mine.told(TWO)[NET]) == pytest.approx(40)


def test_a_portion_has_so_many_prefixes_and_withdrawals_come_first():
    mine = router(ONE, TWO)
    some = nets(30)
    for at in range(3):
        mine.path(ONE, *some[at * 10 : at * 10 + 10], gbps=100 + at)
    mine.solve()
    out, table = mine.rib.outs[2], mine.rib.table
    first = out.take(table, 15)
    assert [len(one.routes[0].prefixes) for one in first] == [10, 5]
    mine.rib.update(1, Update(withdrawn=some[:3]))
    mine.settle(limit=1)
    (lost, *_) = out.take(table, 4)
    assert set(lost.withdrawn) == set(some[:3])
    assert set(mine.told(TWO)) == set(some[16:])


def test_a_prefix_that_was_lost_before_it_was_told_is_never_mentioned():
    mine = router(ONE, TWO)
    mine.path(ONE)
    mine.solve()
    mine.rib.update(1, Update(withdrawn=(NET,)))
    mine.solve()
    assert mine.told(TWO) == {}


@pytest.mark.rfc("RFC 2918 §4")
def test_a_refresh_tells_everything_again_and_what_was_lost():
    mine = router(ONE, TWO)
    some = nets(3)
    mine.path(ONE, *some)
    mine.solve()
    mine.told(TWO)
    mine.rib.update(1, Update(withdrawn=some[:1]))
    mine.solve()
    mine.rib.outs[2].refresh(mine.rib.table)
    told = mine.told(TWO)
    assert (set(told), told[some[0]]) == (set(some), None)


def test_routes_that_no_neighbor_knows_any_more_are_forgotten():
    mine = router(ONE, TWO)
    for at in range(300):
        mine.path(ONE, gbps=1 + at / 10)
        mine.settle()
        assert gbps(mine.told(TWO)[NET]) == pytest.approx(1 + at / 10)
    assert len(mine.rib.outs[2]._routes) < 100


@pytest.mark.rfc("RFC 4271 §5.1.4")
def test_the_med_of_this_router_is_told_and_that_of_a_neighbor_is_not():
    mine = router(ONE, TWO)
    mine.rib.originate([NET], attributes(more=[Med(50)]), REDISTRIBUTED)
    mine.announce(ONE, nets(1, 0x0B000000), attributes(ONE.remote_as, more=[Med(60)]))
    mine.solve()
    told = mine.told(TWO)
    assert told[NET].find(Med) == Med(50)
    assert told[nets(1, 0x0B000000)[0]].find(Med) is None


@pytest.mark.rfc("RFC 8326 §4")
def test_a_drained_router_tells_internal_neighbors_the_least_local_pref():
    inner = peer(3, internal=True, remote_as=OWN_AS)
    mine = router(ONE, inner)
    mine.path(ONE)
    mine.solve()
    assert mine.told(inner)[NET].find(LocalPref) == LocalPref(100)
    out = mine.rib.outs[inner.number]
    out.change(replace(out.settings, drained=True), mine.rib.table)
    told = mine.told(inner)[NET]
    assert told.find(LocalPref) == LocalPref(0)
    assert told.find(Communities) == Communities((GRACEFUL_SHUTDOWN,))
