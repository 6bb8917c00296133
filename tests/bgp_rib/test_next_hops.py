"""Next hops of paths: neighbors on a LAN may name others there, as route servers do."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fared.core.ids import Prefix
from fared.paths.ted.model import LocalLink
from fared.protocols.bgp.packet.messages import RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.rib.adj_out import ExportSettings
from fared.protocols.bgp.rib.paths import BgpPeer
from tests.bgp_rib.routers import (
    GBPS,
    LEAF_AS,
    NET,
    OWN_AS,
    Router,
    attributes,
    link,
    nets,
    peer,
)

LAN = 77
A, B = 0x0A080065, 0x0A080066
"""Addresses of others on the LAN."""
OFF = 0x0B000001
ONE, TWO, THREE = nets(3, 0x0A020000)


class Lan(Router):
    """A router on a LAN of 100G: next hops in 10.8.0.0/16 are there."""

    gbps = 100.0

    def on(self, address: int) -> LocalLink:
        found = link(peer(1), self.gbps)
        return replace(found, ifindex=LAN, interface="lan", gateway=address)

    def resolve(self, hop: BgpNextHop) -> LocalLink | None:
        return self.on(hop.address) if hop.address >> 16 == 0x0A08 else None

    def join(self, *some: BgpPeer) -> None:
        for one in some:
            export = ExportSettings(OWN_AS, BgpNextHop(4, 1))
            own, announces = self.on(one.address), self._announces
            self.rib.add(one, own, export, announces, resolve=self.resolve)

    def relink(self, *some: BgpPeer, gbps: float) -> None:
        self.gbps = gbps
        for one in some:
            self.rib.set_link(one.number, self.on(one.address), resolve=self.resolve)

    def by(self, one: BgpPeer, hop: int, *prefixes: Prefix, **options: Any) -> None:
        """A neighbor announces a path with this next hop."""
        group = RouteGroup(BgpNextHop(4, hop), prefixes or (NET,))
        what = attributes(one.remote_as, LEAF_AS, **options)
        self.rib.update(one.number, Update(routes=(group,), attributes=what))

    def hops(self, prefix: Prefix = NET) -> dict[int, int]:
        route = self.solver.routes.get(prefix)
        return {one.gateway: one.weight for one in route.nexthops.hops} if route else {}

    def total(self, prefix: Prefix = NET) -> float:
        carried = self.rib.carried(prefix)
        assert carried is not None
        return carried / GBPS


SERVER, OTHER = peer(1), peer(2)


@pytest.fixture
def router() -> Lan:
    found = Lan()
    found.join(SERVER, OTHER)
    return found


@pytest.mark.rfc("RFC 4271 §5.1.3")
def test_each_path_of_a_route_server_leads_to_its_own_next_hop(router):
    router.by(SERVER, A, ONE, gbps=10)
    router.by(SERVER, B, TWO, gbps=400)
    router.by(SERVER, SERVER.address, THREE)
    router.solve()
    assert router.hops(ONE).keys() == {A}
    assert router.hops(TWO).keys() == {B}
    assert router.hops(THREE).keys() == {SERVER.address}
    assert [router.total(one) for one in (ONE, TWO, THREE)] == [10, 100, 100]


def test_a_next_hop_weighs_as_the_lesser_of_the_link_and_of_its_path(router):
    router.by(SERVER, A, gbps=20)
    router.by(OTHER, B, gbps=60)
    router.solve()
    assert router.hops() == {A: 1, B: 3}
    assert router.total() == pytest.approx(80)
    router.by(SERVER, A, gbps=400)
    router.by(OTHER, B, gbps=400)
    router.solve()
    assert router.hops() == {A: 1, B: 1}
    assert router.total() == pytest.approx(100)


def test_what_two_route_servers_tell_of_one_next_hop_counts_once(router):
    router.by(SERVER, A, gbps=20)
    router.by(OTHER, A, gbps=20)
    router.solve()
    assert router.hops() == {A: 1}
    assert router.total() == 20


def test_a_neighbor_and_a_route_server_that_names_it_are_one_next_hop(router):
    router.by(SERVER, OTHER.address, gbps=20)
    router.by(OTHER, OTHER.address, gbps=20)
    router.solve()
    assert router.hops() == {OTHER.address: 1}
    assert router.total() == 20
    router.rib.lose(OTHER.number)
    router.solve()
    assert router.hops() == {OTHER.address: 1}, "the route server still names it"
    router.join(OTHER)
    router.by(OTHER, OTHER.address, gbps=20)
    router.by(SERVER, A, gbps=60)
    router.solve()
    assert router.hops() == {OTHER.address: 1, A: 3}


@pytest.mark.rfc("RFC 4271 §9.1.2")
def test_a_path_whose_next_hop_is_not_on_the_link_is_not_used_however_good(router):
    router.rib.update(
        SERVER.number,
        Update(
            routes=(RouteGroup(BgpNextHop(4, OFF), (NET,)),),
            attributes=attributes(SERVER.remote_as),
        ),
    )
    router.solve()
    assert router.hops() == {}
    router.by(OTHER, OTHER.address)
    router.solve()
    assert router.hops() == {OTHER.address: 1}
    usable = {one.peer.number: router.rib.usable(one) for one in router.rib.paths(NET)}
    assert usable == {SERVER.number: False, OTHER.number: True}


def test_another_capacity_of_the_link_counts_for_all_next_hops(router):
    router.by(SERVER, A, gbps=400)
    router.solve()
    assert router.total() == 100
    router.relink(SERVER, OTHER, gbps=40)
    router.solve()
    assert router.total() == 40
    assert router.solver.path_capacity(NET) == 40 * GBPS


def test_next_hops_that_no_path_has_are_forgotten(router):
    for at in range(200):
        router.by(SERVER, A + at, ONE)
        router.solve()
    assert router.hops(ONE).keys() == {A + 199}
    assert len(router.rib._exits._found[SERVER.number]) == 200
    router.rib.sweep()
    router.solve()
    assert len(router.rib._exits._found[SERVER.number]) == 1
    assert len(router.rib.graph._links) == 3, "those of both neighbors, and the last one"
    assert router.hops(ONE).keys() == {A + 199}
    router.by(SERVER, A, ONE)
    router.solve()
    assert router.hops(ONE).keys() == {A}


def test_a_neighbor_that_is_lost_leaves_nothing(router):
    router.by(SERVER, A, ONE)
    router.by(OTHER, B, TWO)
    router.solve()
    router.rib.lose(SERVER.number)
    router.rib.lose(OTHER.number)
    router.solve()
    assert router.hops(ONE) == router.hops(TWO) == {}
    assert not router.rib.graph._links
    assert not router.rib._exits._users
