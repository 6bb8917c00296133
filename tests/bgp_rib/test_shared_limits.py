"""Neighbors whose paths all pass through one router carry no more together than it does."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.protocols.bgp.packet.attributes import PathAttributes, SharedLimits
from fared.protocols.bgp.packet.communities import SharedLimit
from fared.protocols.bgp.rib.shared import SharedPart, shared_parts
from tests.bgp_rib.routers import GBPS, NET, OWN_AS, ROOT, Router, attributes, limits, peer


def router(*told: tuple[float, tuple[tuple[int, float], ...]], last: int = 9) -> Router:
    """Neighbors that announce a bandwidth and name routers; one more that passes routes on."""
    found = Router()
    for at, (gbps, named) in enumerate(told, 1):
        found.add(peer(at))
        found.path(peer(at), gbps=gbps, more=limits(*named))
    found.add(peer(last))
    found.announce(peer(last), NET_BEYOND, attributes(peer(last).remote_as, 1))
    found.solve()
    return found


NET_BEYOND = (replace(NET, network=NET.network + (1 << 16)),)


def said(attributes: PathAttributes | None) -> list[tuple[int, float, float]]:
    """Identifier, bandwidth and reach of each router that is named, Gbit/s."""
    assert attributes is not None
    return [
        (one.identifier, pytest.approx(one.bandwidth / GBPS), pytest.approx(one.reach / GBPS))
        for one in attributes.shared_limits
    ]


def test_two_superspines_above_one_slow_downlink_carry_it_once():
    found = router((25, ((9, 25, 100),)), (25, ((9, 25, 400),)))
    # by what each carries to the spine, whose limit is the same for both
    assert found.weights() == [1, 4]
    assert found.solver.path_capacity(NET) == 25 * GBPS
    own, beyond = said(found.told(peer(9))[NET])
    assert own == (int(ROOT), 25, float("inf"))
    assert beyond == (0x0A0A0009, 25, 500)


def test_what_carries_less_than_the_router_behind_it_is_no_shared_limit():
    found = router((25, ((9, 100, 25),)), (50, ((9, 100, 50),)))
    assert found.weights() == [1, 2]
    assert found.solver.path_capacity(NET) == 75 * GBPS


def test_one_of_two_planes_shares_a_limit():
    found = router((25, ((9, 25, 100),)), (25, ((9, 25, 100),)), (100, ((8, 100, 100),)))
    assert found.weights() == [1, 1, 4]
    assert found.solver.path_capacity(NET) == 125 * GBPS
    # no router is behind all of them
    assert [one[0] for one in said(found.told(peer(9))[NET])] == [int(ROOT)]


def test_a_neighbor_that_says_nothing_counts_for_itself():
    found = router((25, ()), (25, ()))
    assert found.solver.path_capacity(NET) == 50 * GBPS


def test_only_who_passes_routes_on_is_told():
    found = Router()
    leaf, spine = peer(1), peer(2)
    for one in (leaf, spine):
        found.add(one)
    found.path(spine, gbps=100)
    found.announce(leaf, NET_BEYOND, attributes(leaf.remote_as))
    found.solve()
    assert said(found.told(leaf)[NET]) == []
    found.announce(leaf, NET_BEYOND, attributes(leaf.remote_as, 1))
    found.solve()
    assert said(found.told(leaf)[NET]) == [(int(ROOT), 100, float("inf"))]


def test_own_networks_are_not_limited():
    found = router()
    found.rib.originate([NET])
    found.solve()
    assert said(found.told(peer(9))[NET]) == []


def test_internal_neighbors_are_not_told():
    found = Router()
    one, inside = peer(1), peer(2, remote_as=OWN_AS, internal=True)
    found.add(one)
    found.add(inside)
    found.path(one, gbps=100)
    found.announce(inside, NET_BEYOND, attributes(1, 2))
    found.solve()
    assert said(found.told(inside)[NET]) == []


def test_they_are_ignored_with_the_bandwidth():
    found = Router()
    for at in (1, 2):
        found.add(peer(at, receive=False), 100)
        found.path(peer(at), gbps=25, more=limits((9, 25)))
    found.solve()
    assert found.solver.path_capacity(NET) == 200 * GBPS


@pytest.mark.parametrize(("bandwidth", "waits"), [(24.5, True), (20, False)])
def test_a_small_change_of_a_limit_waits_as_one_of_the_bandwidth(bandwidth, waits):
    found = router((10, ((9, 25, 10),)))
    found.told(peer(9))
    found.announces = lambda old, new: abs(old - new) > old * 0.03
    found.path(peer(1), gbps=10, more=limits((9, bandwidth, 10)))
    found.solve()
    assert (found.told(peer(9)) == {}) is waits


def chain(*named: tuple[int, float]) -> tuple[SharedLimit, ...]:
    return tuple([SharedLimit(1, name, most, 99.0) for name, most in named])


def test_limits_inside_each_other_all_count_and_of_others_the_smaller_one():
    one, two, three = (1,), (2,), (3,)
    parts = dict.fromkeys((one, two, three), 10.0)
    nested = {one: chain((7, 12), (8, 15)), two: chain((7, 12), (8, 15)), three: chain((8, 15))}
    assert shared_parts(parts, nested) == (SharedPart((one, two, three), 15, 8, (99.0,) * 3),)
    nested[three] = chain((8, 30))
    nested[one] = nested[two] = chain((7, 12), (8, 30))
    assert shared_parts(parts, nested) == (SharedPart((one, two), 12, 7, (99.0,) * 2),)
    crossing = {one: chain((7, 12)), two: chain((7, 12), (8, 12)), three: chain((8, 12))}
    assert shared_parts(parts, crossing) == (SharedPart((one, two), 12, 7, (99.0,) * 2),)


def test_no_route_has_limits_twice():
    found = router((25, ((9, 25, 100),)))
    told = found.told(peer(9))[NET]
    assert [type(one) for one in told.items].count(SharedLimits) == 1
