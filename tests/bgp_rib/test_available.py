"""What load leaves of paths: told to neighbors of ours, and what they tell."""

from __future__ import annotations

import pytest

from fared.paths.rib.settings import SolverSettings
from fared.paths.weights.path_capacity import WeightMode
from fared.protocols.bgp.packet.attributes import ExtendedCommunities
from fared.protocols.bgp.packet.communities import AvailableBandwidth, available_bandwidth
from fared.protocols.bgp.rib.decision import DecisionSettings
from fared.protocols.bgp.rib.paths import with_bandwidth
from tests.bgp_rib.routers import GBPS, LEAF_AS, NET, Router, attributes, limits, peer

ONE, TWO, ABOVE = peer(1), peer(2), peer(9, own_minimum=True)
OTHER = peer(8)


def router(follows_load: bool = True) -> Router:
    mine = Router(
        DecisionSettings(follows_load=follows_load), SolverSettings(mode=WeightMode.AVAILABLE)
    )
    for one in (ONE, TWO, ABOVE, OTHER):
        mine.add(one, 100)
    return mine


def says(mine: Router, one, gbps: float, free: float | None = None, *named) -> None:
    what = attributes(one.remote_as, LEAF_AS, gbps=gbps, more=limits(*named))
    if free is not None:
        found = what.find(ExtendedCommunities)
        community = AvailableBandwidth(free * GBPS).raw
        what = what.replaced(ExtendedCommunities((*found.communities, community)))
    mine.announce(one, [NET], what)


def told(mine: Router, one=ABOVE) -> tuple[float | None, float | None]:
    mine.solve()
    what = mine.told(one)[NET]
    found = what.find(ExtendedCommunities)
    left = available_bandwidth(found.communities)
    return what.link_bandwidth / GBPS, None if left is None else left / GBPS


def test_what_is_left_is_the_sum_of_minima_beside_the_bandwidth():
    mine = router()
    says(mine, ONE, 80, 50)
    says(mine, TWO, 40)
    assert told(mine) == (pytest.approx(120), pytest.approx(90))
    mine.rib.set_available(2, 10 * GBPS)
    assert told(mine) == (pytest.approx(120), pytest.approx(60))
    mine.rib.set_available(2, None)
    says(mine, ONE, 80)
    assert told(mine) == (pytest.approx(120), None)


def test_others_are_told_bandwidths_alone():
    mine = router()
    says(mine, ONE, 80, 50)
    assert told(mine, OTHER) == (pytest.approx(80), None)
    capacities = router(follows_load=False)
    says(capacities, ONE, 80, 50)
    assert told(capacities) == (pytest.approx(80), None)


def test_weights_follow_what_neighbors_say_is_left():
    mine = router()
    says(mine, ONE, 80, 20)
    says(mine, TWO, 40)
    mine.solve()
    assert mine.weights() == [1, 2]
    says(mine, ONE, 80, 60)
    mine.solve()
    assert mine.weights() == [3, 2]


def test_of_a_shared_limit_the_same_part_is_left_as_of_what_leads_there():
    mine = router()
    for one in (ONE, TWO):
        says(mine, one, 25, 10, (1, 25, 100))
    assert told(mine) == (pytest.approx(25), pytest.approx(10))
    mine.solve()
    assert mine.weights() == [1, 1]


def test_a_path_that_is_told_with_another_value_left_is_the_same_kind():
    mine = router()
    says(mine, ONE, 80, 20)
    mine.solve()
    (first,) = mine.rib.paths(NET)
    says(mine, ONE, 80, 30)
    mine.solve()
    (second,) = mine.rib.paths(NET)
    assert (first.path.kind, second.path.available) == (second.path.kind, pytest.approx(30 * GBPS))
    assert with_bandwidth(second.path.attributes) == second.path.attributes
