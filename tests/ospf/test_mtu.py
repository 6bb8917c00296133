"""The MTUs of both ends of a link while an adjacency stands (RFC 2328 §10.6, §A.1)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.ids import Prefix
from fared.core.routes import LocalRoute, RouteSource
from fared.protocols.igp.events import ExternalRoutes, LogRecord, SendPacket
from fared.protocols.ospf.adjacency.problems import mtu_mismatch
from fared.protocols.ospf.packet.lsa import LsType
from fared.protocols.ospf.packet.packets import DatabaseDescription, DdFlags
from fared.protocols.ospf.settings import RedistributeSettings, Redistribution
from tests.ospf.harness import FAST, Network, pair
from tests.ospf.scripted import Scripted, dd, make_lsa, request, update

STATICS = 402
SMALL, LARGE = 1500, 9000


def two(**ends) -> Network:
    """Two routers that redistribute static routes."""
    net = Network()
    for number in (1, 2):
        net.add(number, redistribute=RedistributeSettings(static=Redistribution()))
    net.join(1, 2, **ends)
    net.run(10)
    return net


def set_mtu(net: Network, number: int, mtu: int) -> None:
    link, settings = net.nodes[number].links[2]
    net.link(number, replace(link, mtu=mtu), settings)


def redistribute(net: Network, number: int) -> None:
    prefixes = [Prefix(4, 0xC6120000 + (n << 8), 24) for n in range(STATICS)]
    routes = {(RouteSource.STATIC, prefix): LocalRoute() for prefix in prefixes}
    net.input(number, ExternalRoutes(routes))


def externals(net: Network, number: int) -> int:
    return net.nodes[number].engine.instance.as_scope.kinds[LsType.AS_EXTERNAL << 8]


def mismatches(net: Network) -> list[tuple[int, int] | None]:
    return [mtu_mismatch(neighbor) for number in (1, 2) for neighbor in net.neighbors(number)]


def events(net: Network, number: int) -> list[str]:
    return [record.event for record in net.nodes[number].said(LogRecord)]


@pytest.mark.rfc("RFC 2328 §10.6")
@pytest.mark.parametrize("number", [1, 2])
def test_an_adjacency_outlives_a_raised_mtu_and_all_lsas_arrive(number):
    """In packets that fit the smaller MTU: other routers would find half of the database."""
    net = two()
    set_mtu(net, number, LARGE)
    redistribute(net, number)
    net.run(20)
    assert (net.states(number), externals(net, 3 - number)) == (["Full"], STATICS)
    assert (SMALL, LARGE) in mismatches(net)
    assert "ospf-mtu-differs" in events(net, number)


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
@pytest.mark.parametrize("mtus", [(SMALL, LARGE), (LARGE, SMALL)])
def test_both_ends_may_change_their_mtu_one_after_the_other_without_losing_the_adjacency(
    order, mtus
):
    before, after = mtus
    net = two(mtu=before, b_mtu=before)
    net.run(FAST.router_dead_interval)
    for number in order:
        set_mtu(net, number, after)
        net.run(10)
        assert net.states(1) == net.states(2) == ["Full"]
    assert mismatches(net) == [None, None]
    redistribute(net, 1)
    net.run(1)
    assert externals(net, 2) == STATICS


@pytest.mark.rfc("RFC 2328 §10.6")
def test_a_neighbor_with_a_larger_mtu_that_does_not_take_ours_begins_the_exchange_anew():
    """Full packets of it would be lost; by RFC 2328 §10.6 its descriptions are refused."""
    peer = Scripted(mtu=LARGE)
    peer.to_exstart()
    peer.send(dd(DdFlags.I | DdFlags.M | DdFlags.MS, 1000, mtu=LARGE))
    peer.send(dd(DdFlags.MS, 1001, mtu=LARGE))
    peer.handle(peer.changed(mtu=SMALL))
    peer.at(3.5)
    assert peer.state == "ExStart"
    peer.send(dd(DdFlags.I | DdFlags.M | DdFlags.MS, 2000, mtu=LARGE))
    assert (peer.state, mtu_mismatch(peer.neighbor)) == ("ExStart", (LARGE, SMALL))


def test_a_master_of_another_make_is_told_a_raised_mtu_in_a_duplicate_that_it_discards():
    peer = Scripted()
    peer.to_full()
    (last,) = peer.got(DatabaseDescription)[-1:]
    peer.handle(peer.changed(mtu=LARGE))
    peer.at(3.5)
    said = peer.got(DatabaseDescription)
    assert said == [replace(last, interface_mtu=LARGE)] * len(said) != []
    assert peer.state == "Full"


@pytest.mark.parametrize("number", [1, 2])
def test_with_mtu_ignore_databases_of_many_packets_are_exchanged_over_unequal_mtus(number):
    """The router with the larger MTU sends what the other receives."""
    net = Network()
    for each in (1, 2):
        net.add(each, redistribute=RedistributeSettings(static=Redistribution()))
        redistribute(net, each)
    mtus = {"mtu": LARGE, "b_mtu": SMALL} if number == 1 else {"mtu": SMALL, "b_mtu": LARGE}
    net.join(1, 2, replace(FAST, mtu_ignore=True), **mtus)
    net.run(20)
    assert net.states(1) == net.states(2) == ["Full"]
    assert externals(net, 1) == externals(net, 2) == 2 * STATICS
    assert mismatches(net) == [None, None]


def test_an_adjacency_that_ignores_unequal_mtus_ends_when_it_may_no_longer():
    net = pair(settings=replace(FAST, mtu_ignore=True), mtu=SMALL, b_mtu=LARGE)
    net.until(net.all_full)
    net.change(1, 2, mtu_ignore=False)
    net.run(10)
    assert (net.states(1), mismatches(net)) == (["ExStart"], [(LARGE, SMALL), (SMALL, LARGE)])


def test_lsas_retransmitted_in_vain_are_sent_in_small_packets():
    """A neighbor whose MTU fell, and does not say so, or a link that lost part of its MTU."""
    net = two(mtu=LARGE)
    net.nodes[2].links[2] = (replace(net.nodes[2].links[2][0], mtu=SMALL), FAST)
    redistribute(net, 1)
    net.run(10)
    assert externals(net, 2) == STATICS
    assert net.states(1) == ["Full"]
    assert events(net, 1).count("ospf-packets-made-small") == 1


@pytest.mark.rfc("RFC 2328 §A.1")
def test_an_lsa_larger_than_the_neighbors_mtu_is_sent_in_fragments_of_it():
    """By itself, IP would fragment at the MTU of our end of the link alone (appendix A.1)."""
    peer = Scripted(mtu=LARGE)
    peer.to_full()
    wide = make_lsa(7, ls_type=10, body=bytes(4000))
    peer.send(update(wide))
    peer.outputs.clear()
    peer.send(request(wide.header.key))
    assert [o.mtu for o in peer.outputs if isinstance(o, SendPacket)] == [SMALL]
