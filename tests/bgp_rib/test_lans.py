"""The link to a LAN counts once, however many neighbors are there."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.paths.rib.settings import SolverSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.rib.adj_out import ExportSettings
from fared.protocols.bgp.rib.decision import DecisionSettings
from fared.protocols.bgp.rib.paths import BgpPeer
from tests.bgp_rib.routers import GBPS, NET, OWN_AS, Router, link, peer

LAN = 77


def add(router: Router, one: BgpPeer, gbps: float | None, told: float | None) -> None:
    """A neighbor on the LAN announces a path."""
    export = ExportSettings(OWN_AS, BgpNextHop(4, 1))
    on = replace(link(one, gbps), ifindex=LAN, interface="lan")
    router.rib.add(one, on, export, lambda old, new: True)
    router.path(one, gbps=told)


def lan(*told: float | None, gbps: float | None = 100, beside: float | None = None) -> Router:
    """Neighbors on a LAN, and one more on a link of 100G of its own."""
    router = Router()
    for at, one in enumerate(told, 1):
        add(router, peer(at), gbps, one)
    if beside is not None:
        router.add(peer(9), 100)
        router.path(peer(9), gbps=beside)
    router.solve()
    return router


def total(router: Router) -> float | None:
    (chosen,) = router.rib.chosen.values()
    return None if chosen.total is None else chosen.total / GBPS


@pytest.mark.parametrize(
    ("told", "weights", "carries"),
    [
        ((None, None), [1, 1], 100),
        ((100, 100), [1, 1], 100),
        ((100, 50), [2, 1], 100),
        ((400, 50), [2, 1], 100),
        ((30, 60), [1, 2], 90),
        ((100, 0), [1], 100),
    ],
)
def test_neighbors_on_a_lan_carry_no_more_together_than_its_link(told, weights, carries):
    found = lan(*told)
    hops = found.solver.routes[NET].nexthops.hops
    assert [hop.weight for hop in hops if hop.weight] == weights
    assert total(found) == pytest.approx(carries)
    assert found.solver.path_capacity(NET) == pytest.approx(carries * GBPS)


def test_beside_another_link_they_weigh_as_the_lan():
    found = lan(100, 100, beside=100)
    assert sorted(found.weights()) == [1, 1, 2]
    assert total(found) == pytest.approx(200)
    assert found.rib.limiting_links(NET) == {LAN}


def test_what_is_advertised_is_bounded_too():
    found = lan(100, 100)
    found.add(peer(9), 400)
    found.settle()
    told = found.told(peer(9))[NET]
    assert told.link_bandwidth == pytest.approx(100 * GBPS)


def test_a_lan_of_unknown_capacity_limits_nothing():
    assert total(lan(100, 50, gbps=None)) == pytest.approx(150)
    assert lan(None, None, gbps=None).weights() == [1, 1]


def test_two_sessions_with_one_router_over_a_lan_have_its_link_once():
    """Both end at one router, which a third on the LAN does not."""
    router = Router()
    same = {"remote_as": 65100, "identifier": 0x0A090001}
    add(router, peer(1, **same), 100, None)
    add(router, peer(2, **same), 100, None)
    router.add(peer(9), 100)
    router.path(peer(9))
    router.solve()
    assert sorted(router.weights()) == [1, 1, 2]
    assert total(router) == pytest.approx(200)
    assert router.rib.telling.capacity(1) == 100 * GBPS


def test_one_that_leaves_the_lan_leaves_the_whole_link_to_the_other():
    found = lan(100, 100, beside=100)
    found.rib.lose(2)
    found.solve()
    assert found.weights() == [1, 1]
    assert total(found) == pytest.approx(200)
    assert found.rib.limiting_links(NET) == set()


def test_what_load_leaves_of_the_lan_counts_once_too():
    decision, mode = DecisionSettings(follows_load=True), WeightMode.AVAILABLE
    router = Router(decision, SolverSettings(mode=mode))
    for at in (1, 2):
        add(router, peer(at), 100, 100)
        router.rib.set_available(at, 40 * GBPS)
    router.add(peer(9), 100)
    router.path(peer(9), gbps=100)
    router.rib.set_available(9, 40 * GBPS)
    router.solve()
    (chosen,) = router.rib.chosen.values()
    assert chosen.total == pytest.approx(200 * GBPS)
    assert chosen.available == pytest.approx(80 * GBPS)
    assert sorted(router.weights()) == [1, 1, 2]
