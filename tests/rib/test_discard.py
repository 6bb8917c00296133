"""Discard routes: an active area range ends what has no longer match (RFC 2328 §11.1)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fared.core.filters import Filter, FilterItem
from fared.core.ids import ipv4_prefix
from fared.paths.rib.model import DISCARD
from fared.paths.rib.settings import SolverSettings
from fared.paths.ted.events import AreaRange
from fared.paths.ted.model import PathType
from tests.ted.fabrics import AREA, Fabric, three_stage

pytestmark = pytest.mark.rfc("RFC 2328 §11.1")

RANGE = ipv4_prefix(0xC0000000, 16)
NARROW = ipv4_prefix(0xC0000200, 23)
NET, OTHER = ipv4_prefix(0xC0000200, 24), ipv4_prefix(0xC0000300, 24)


@pytest.fixture
def fabric() -> Fabric:
    fabric = three_stage(2, 2)
    fabric.anycast(NET, "L2")
    return fabric


def put(solver, fabric: Fabric, *names: str) -> None:
    for name in names:
        solver.put_block(AREA, fabric.id(name), fabric.block(name))


def withdraw(fabric: Fabric, name: str, *prefixes) -> None:
    kept = [item for item in fabric.prefixes[name] if item.prefix not in prefixes]
    fabric.prefixes[name] = kept


def test_a_range_with_a_component_discards_and_one_without_does_not(fabric):
    solver = fabric.solver("S1")
    solver.set_ranges((AreaRange(AREA, RANGE), AreaRange(AREA, ipv4_prefix(0xC0A80000, 16))))
    update = solver.solve()
    route = solver.routes[RANGE]
    assert route.discard
    assert (route.path_type, route.area, route.destinations) == (
        PathType.INTER_AREA,
        AREA,
        (fabric.id("S1"),),
    )
    assert route.nexthops.hops[0].hop_key == (0, 4, 0, False)
    assert update.changed[RANGE] == route
    assert len([r for r in solver.routes.values() if r.discard]) == 1
    assert solver.solve().changed == {}


def test_the_route_comes_and_goes_with_the_components(fabric):
    solver = fabric.solver("S1")
    solver.set_ranges((AreaRange(AREA, RANGE),))
    solver.solve()
    fabric.anycast(OTHER, "L1")
    put(solver, fabric, "L1")
    assert set(solver.solve().changed) == {OTHER}
    withdraw(fabric, "L2", NET)
    put(solver, fabric, "L2")
    assert set(solver.solve().changed) == {NET}
    withdraw(fabric, "L1", OTHER)
    put(solver, fabric, "L1")
    assert solver.solve().changed == {OTHER: None, RANGE: None}
    fabric.anycast(NET, "L2")
    put(solver, fabric, "L2")
    assert set(solver.solve().changed) == {NET, RANGE}


def test_ranges_may_change_at_any_time(fabric):
    solver = fabric.solver("S1")
    solver.solve()
    solver.set_ranges((AreaRange(AREA, RANGE),))
    assert set(solver.solve().changed) == {RANGE}
    solver.set_ranges(())
    assert solver.solve().changed == {RANGE: None}
    assert RANGE not in solver.routes
    assert solver.solve().changed == {}


def test_a_component_counts_for_the_longest_range_it_is_in(fabric):
    solver = fabric.solver("S1")
    solver.set_ranges((AreaRange(AREA, RANGE), AreaRange(AREA, NARROW)))
    solver.solve()
    assert [p for p, route in solver.routes.items() if route.discard] == [NARROW]


def test_a_range_of_another_area_has_no_components_here(fabric):
    solver = fabric.solver("S1")
    solver.set_ranges((AreaRange(AREA + 1, RANGE),))
    solver.solve()
    assert RANGE not in solver.routes


def test_a_component_that_is_the_whole_range_is_a_route_and_no_discard(fabric):
    fabric.anycast(RANGE, "L1")
    solver = fabric.solver("S1")
    solver.set_ranges((AreaRange(AREA, RANGE),))
    solver.solve()
    assert solver.routes[RANGE].path_type is PathType.INTRA_AREA
    withdraw(fabric, "L1", RANGE)
    put(solver, fabric, "L1")
    solver.solve()
    assert solver.routes[RANGE].discard


def test_a_component_that_filters_keep_in_the_area_is_none(fabric):
    """All that leaves it, or all that enters every other area, is denied: nothing is advertised."""
    fabric.anycast(NET, "L1")
    solver = fabric.solver("S1")
    everything, nothing = Filter("all", (FilterItem(True),)), Filter("none", (FilterItem(False),))
    for out, into, active in (
        (nothing, (None,), False),
        (everything, (nothing, nothing), False),
        (None, (nothing, everything), True),
    ):
        solver.set_ranges((AreaRange(AREA, RANGE, out, into),))
        solver.solve()
        assert (RANGE in solver.routes) is active


@pytest.mark.rfc("RFC 2328 §16.2 (3)")
@pytest.mark.parametrize("kind", [PathType.INTER_AREA, PathType.EXTERNAL_1, PathType.EXTERNAL_2])
def test_what_others_announce_of_an_active_range_is_not_believed(fabric, kind):
    """RFC 2328 §16.2 (3). When the range is given up, or has no component, it counts again."""
    fabric.anycast(RANGE, "L1")
    fabric.prefixes["L1"][-1] = replace(fabric.prefixes["L1"][-1], path_type=kind)
    solver = fabric.solver("S1")
    solver.set_ranges((AreaRange(AREA, RANGE),))
    solver.solve()
    assert solver.routes[RANGE].discard
    fabric.limit("S1", "L1", 100)
    put(solver, fabric, "S1")
    solver.apply_settings(SolverSettings(max_paths=1))
    solver.solve()
    assert solver.routes[RANGE].discard
    withdraw(fabric, "L2", NET)
    put(solver, fabric, "L2")
    assert solver.solve().changed[RANGE] == solver.routes[RANGE]
    assert solver.routes[RANGE].path_type is kind


def test_border_routers_do_not_tell_each_other_of_discards(fabric):
    solver = fabric.solver("S1")
    solver.set_ranges((AreaRange(AREA, RANGE),))
    solver.solve()
    prefixes, _ = solver.take_advertisements()
    assert NET in prefixes
    assert RANGE not in prefixes
    assert solver.path_capacity(RANGE) is None
    assert solver.explain(RANGE).hops == ()
    assert solver.routes[RANGE].nexthops is DISCARD
