"""Groups as a graph of three layers: the unchanged route solver weighs BGP paths."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from fared.protocols.bgp.packet.communities import LinkBandwidth
from fared.protocols.bgp.packet.messages import RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.rib.paths import with_bandwidth
from tests.bgp_rib.routers import GBPS, LEAF_AS, NET, Router, attributes, feed, link, nets, peer


def four_spines(*, own: tuple[float, ...] = (400,) * 4, told: tuple[float | None, ...]) -> Router:
    router = Router()
    for at, (mine, theirs) in enumerate(zip(own, told, strict=True), 1):
        router.add(peer(at), mine)
        router.path(peer(at), gbps=theirs)
    router.solve()
    return router


def total(router: Router) -> float:
    (chosen,) = router.rib.chosen.values()
    return chosen.total / GBPS


def test_a_spine_that_announces_a_quarter_gets_a_quarter():
    router = four_spines(told=(400, 100, 400, 400))
    assert router.weights() == [4, 1, 4, 4]
    assert total(router) == pytest.approx(1300)


def test_an_own_uplink_of_a_quarter_counts_the_same():
    router = four_spines(own=(100, 400, 400, 400), told=(400,) * 4)
    assert router.weights() == [1, 4, 4, 4]
    assert total(router) == pytest.approx(1300)


def test_parallel_links_to_one_spine_share_what_it_announces():
    router = Router()
    for one in (peer(1), peer(2, remote_as=65100, identifier=0x0A090001), peer(3)):
        router.add(one)
        router.path(one, gbps=400 if one.number == 3 else 100)
    router.solve()
    assert router.weights() == [1, 1, 8]
    assert total(router) == pytest.approx(500)


def test_a_session_without_the_route_gets_no_share_of_it():
    router = Router()
    one, two = peer(1), peer(2, remote_as=65100, identifier=0x0A090001)
    for each in (one, two):
        router.add(each)
    router.path(one, NET)
    router.path(one, *nets(1, 0x0A020000))
    router.path(two, *nets(1, 0x0A020000))
    router.solve()
    assert len(router.weights()) == 1
    assert len(router.weights(nets(1, 0x0A020000)[0])) == 2
    assert len({hop.interface for hop in router.solver.routes[NET].nexthops.hops}) == 1


def test_a_spine_that_announces_zero_gets_nothing():
    router = four_spines(told=(0, 400, 400, 400))
    assert [hop.interface for hop in router.solver.routes[NET].nexthops.hops] == [
        "swp2",
        "swp3",
        "swp4",
    ]
    assert total(router) == pytest.approx(1200)


@pytest.mark.rfc("RFC 10005 §3.2")
def test_all_zero_is_balanced_equally():
    router = four_spines(own=(400, 100, 400, 400), told=(0, 0, 0, 0))
    assert router.weights() == [1, 1, 1, 1]
    assert total(router) == 0


@pytest.mark.rfc("RFC 10005 §4")
@pytest.mark.parametrize(
    ("missing", "weights", "carries"), [("link", [4, 1, 2], 700), ("ecmp", [1, 1, 1], None)]
)
def test_a_path_without_bandwidth_counts_as_its_link_or_makes_all_equal(missing, weights, carries):
    router = Router()
    for at, (own, told) in enumerate([(400, 800), (100, 100), (200, None)], 1):
        router.add(peer(at, missing=missing), own)
        router.path(peer(at), gbps=told)
    router.solve()
    assert router.weights() == weights
    (chosen,) = router.rib.chosen.values()
    assert chosen.total == (carries and pytest.approx(carries * GBPS))


@pytest.mark.rfc("RFC 10005 §4")
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_a_bandwidth_that_is_not_valid_counts_as_none(value):
    router = Router()
    for at, raw in enumerate([value, 100 * GBPS], 1):
        router.add(peer(at))
        router.path(peer(at), raw=raw)
    router.solve()
    assert router.weights() == [4, 1]


@pytest.mark.rfc("RFC 10005 §4")
@pytest.mark.parametrize(("values", "counts"), [((300, 100), [1, 4]), ((300, 0), [1])])
def test_of_several_bandwidths_the_lowest_counts(values, counts):
    router = Router()
    communities = [LinkBandwidth(at, one * GBPS, at == 1) for at, one in enumerate(values)]
    plain = attributes(peer(1).remote_as, LEAF_AS)
    for at in (1, 2):
        router.add(peer(at))
    router.announce(peer(1), [NET], with_bandwidth(plain, *communities))
    router.path(peer(2), gbps=400)
    router.solve()
    assert router.weights() == counts


def test_without_any_known_capacity_all_weigh_the_same():
    router = Router()
    for at in (1, 2, 3):
        router.add(peer(at), None)
        router.path(peer(at))
    router.solve()
    assert router.weights() == [1, 1, 1]


def test_only_what_changed_is_described_again():
    router = Router()
    for at in (1, 2):
        router.add(peer(at))
        for group in range(8):
            some = nets(4, 0x0A010000 + (group << 12))
            router.path(peer(at), *some, gbps=100 + group)
    router.solve()
    groups = set(router.rib.chosen)
    router.path(peer(1), *nets(4), gbps=50)
    outputs = router.settle()
    assert [one.node for one in outputs] == [peer(1).identifier]
    assert set(router.rib.chosen) == groups
    router.path(peer(1), nets(1)[0], gbps=25)
    moved = router.settle()
    assert [len(one.changes) for one in moved if getattr(one, "changes", None)] == [1, 1]


def test_a_lost_neighbor_leaves_the_others():
    router = four_spines(told=(400,) * 4)
    router.rib.lose(2)
    router.solve()
    assert router.weights() == [1, 1, 1]
    for at in (1, 3, 4):
        router.rib.lose(at)
    router.solve()
    assert NET not in router.solver.routes
    router.add(peer(2))
    router.path(peer(2))
    router.solve()
    assert router.weights() == [1]


def test_a_link_that_degrades_changes_the_weights():
    router = four_spines(told=(400,) * 4)
    router.rib.set_link(3, link(peer(3), 100))
    router.solve()
    assert router.weights() == [4, 4, 1, 4]
    assert total(router) == pytest.approx(1300)


def test_own_prefixes_need_no_route_of_bgp():
    router = four_spines(told=(400,) * 4)
    router.rib.originate([NET])
    router.solve()
    assert NET not in router.solver.routes
    router.rib.withdraw([NET])
    router.solve()
    assert router.weights() == [1, 1, 1, 1]


@pytest.mark.rfc("RFC 4271 §9.1.2")
def test_a_loop_withdraws_the_route():
    router = four_spines(told=(400,) * 4)
    router.announce(peer(1), [NET], attributes(65100, 65001, LEAF_AS))
    router.solve()
    assert len(router.weights()) == 3


@pytest.mark.rfc("RFC 4271 §6.3")
def test_a_path_that_begins_with_another_as_is_used_unless_that_is_enforced():
    """With ``enforce-first-as`` it does not come this far: the decoder withdraws it."""
    router = Router()
    router.add(peer(1))
    router.announce(peer(1), [NET], attributes(65300, LEAF_AS))
    router.solve()
    assert router.weights() == [1]


@pytest.mark.rfc("RFC 4271 §4.3")
def test_a_prefix_both_withdrawn_and_announced_in_a_message_is_announced():
    router = four_spines(told=(400,) * 4)
    group = RouteGroup(BgpNextHop(4, peer(1).address), (NET,))
    better = attributes(peer(1).remote_as)
    router.rib.update(1, Update(withdrawn=(NET,), routes=(group,), attributes=better))
    router.solve()
    assert len(router.weights()) == 1


def test_bandwidth_of_a_neighbor_is_ignored_if_it_is_to_be():
    router = Router()
    for at in (1, 2):
        router.add(peer(at, receive=at == 2))
        router.path(replace(peer(at)), gbps=100)
    router.solve()
    assert router.weights() == [4, 1]


def test_packets_leave_a_lost_neighbor_before_its_paths_are_looked_at():
    router = four_spines(told=(400,) * 4)
    router.rib.lose(2)
    feed(router.solver, router.rib.graph.take("lost", 0.0))
    router.solver.solve()
    assert not router.rib.settled
    assert router.weights() == [1, 1, 1]


def test_prefixes_keep_their_routes_while_it_is_decided_in_portions():
    """A portion of prefixes may split a group."""
    router, prefixes = Router(), nets(40)
    peers = [peer(number) for number in (1, 2, 3)]
    for one in peers:
        router.add(one)
        for at in range(10):
            router.announce(one, prefixes[4 * at :][:4], attributes(one.remote_as, 66000 + at))
    router.solve()
    router.rib.lose(peers[0].number)
    while not router.rib.settled:
        router.rib.settle(6)
        feed(router.solver, router.rib.graph.take("test", 0.0))
        router.solver.solve()
        assert set(router.solver.routes) == set(prefixes)
    assert router.weights(prefixes[3]) == [1, 1]
