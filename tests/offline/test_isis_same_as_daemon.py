"""The tool computes from a saved IS-IS database the routes of the routers."""

from __future__ import annotations

import pytest

from fared.extensions.sim.fabric import Fabric, FabricBuilder, clos3
from fared.extensions.sim.levels import COMMON, clos3_isis, clos5_levels
from fared.extensions.sim.network import Network
from fared.extensions.sim.protocols import IsisBuilder
from tests.offline.isis_fabrics import (
    FAMILIES,
    live,
    offline,
    offline_all,
    saved,
    started,
    system,
)


@pytest.fixture(scope="module")
def figure_one() -> Fabric:
    return started(clos3_isis(4, 8))


@pytest.fixture(scope="module")
def figure_two() -> Fabric:
    return started(clos5_levels(2, 2, 2, 2))


@pytest.mark.parametrize("af", FAMILIES)
def test_every_router_of_a_level_as_root(figure_one, af):
    found = offline_all(saved(figure_one, "L1"), af)
    wanted = {
        system(figure_one, name): live(figure_one, name, af, addresses=False)
        for name in figure_one.router_ids
    }
    assert found == wanted


def test_next_hops_are_found_where_no_link_is_advertised():
    """``advertise-passive-only``: from addresses in the entries of neighbors."""
    builder = FabricBuilder(
        Network(seed=3), protocols=[IsisBuilder(COMMON)], prefix_suppression=True
    )
    fabric = started(clos3(2, 2, builder=builder))
    for af in FAMILIES:
        found = offline(saved(fabric, "L1"), af)
        assert found == live(fabric, "L1", af)
        assert len(found) == 6


@pytest.mark.parametrize("af", FAMILIES)
@pytest.mark.parametrize("name", ["p1.L1", "p2.L2", "p1.S1", "p2.S2", "SS1.1", "SS2.2"])
def test_a_routers_own_document_gives_its_own_next_hops(figure_two, name, af):
    assert offline(saved(figure_two, name), af) == live(figure_two, name, af)
