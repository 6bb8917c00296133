"""What a run reports as changed are the prefixes whose route is another object, and no others.

Others follow the routes of the solver instead of copying them.
"""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import Prefix, ipv4_prefix, parse_prefix
from fared.paths.rib import prefixes
from fared.paths.rib.model import DISCARD, Route, RouteDelta
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver, WeightMode
from fared.paths.ted.events import AreaRange
from fared.paths.ted.model import PathType, PrefixReachability
from tests.rib.test_incremental import _MAKERS, _NEWS, _SHARED, tell
from tests.ted.fabrics import AREA, three_stage

RANGES = (
    (AREA, parse_prefix("10.99.0.0/16")),
    (AREA, _SHARED[1]),
    (AREA, parse_prefix("10.16.0.0/12")),
    (AREA + 1, parse_prefix("10.16.0.0/12")),
)
_OTHERS = st.tuples(
    st.sampled_from(["ranges", "settings", "renumber", "again", "external"]), st.integers(0, 10**6)
)


def solve(solver: RouteSolver) -> RouteDelta:
    """Run the solver; what it reports must be the difference between its routes."""
    routes, before = solver.routes, dict(solver.routes.items())
    changed = solver.solve().changed
    assert routes is solver.routes
    different: RouteDelta = {
        prefix: route for prefix, route in routes.items() if before.get(prefix) is not route
    }
    different.update({prefix: None for prefix in before if prefix not in routes})
    assert changed == different
    assert all(routes.get(prefix) is route for prefix, route in changed.items())
    return changed


@settings(max_examples=150)
@given(
    st.sampled_from(sorted(_MAKERS)),
    st.integers(0, 2),
    st.lists(st.lists(st.one_of(_NEWS, _OTHERS), min_size=1, max_size=4), max_size=8),
)
def test_after_any_changes_those_that_differ_are_reported(name, place, batches):
    """Routers, ranges, settings and numbers of prefixes change, in any order."""
    make, roots = _MAKERS[name]
    fabric, whole, root = make(), make(), roots[place % len(roots)]
    solver = fabric.solver(root)
    solve(solver)
    for batch in batches:
        spare = prefixes._COMPACT_ABOVE
        for what, draw in batch:
            match what:
                case "ranges":
                    solver.set_ranges(
                        tuple(AreaRange(*at) for n, at in enumerate(RANGES) if draw >> n & 1)
                    )
                case "settings":
                    few = SolverSettings(max_paths=1 + draw % 3, mode=list(WeightMode)[draw % 2])
                    solver.apply_settings(few)
                case "renumber":
                    spare = -(10**6)
                case "again":
                    refreshed = fabric.block(whole.links[draw % len(whole.links)].tail)
                    solver.put_block(AREA, refreshed.node, refreshed)
                case "external":
                    item = PrefixReachability(RANGES[draw % 3][1], 20, PathType.EXTERNAL_2)
                    changes = {"external": item if draw % 2 else None}
                    solver.put_prefixes(AREA, fabric.id(fabric.names[draw % 4]), changes)
                case _:
                    tell(fabric, whole, solver, what, draw)
        solver.set_local_links(AREA, fabric.local_links(root))
        with mock.patch.object(prefixes, "_COMPACT_ABOVE", spare):
            solve(solver)


def test_a_route_that_is_made_again_and_equals_the_former_one_stays():
    fabric = three_stage(2, 3)
    solver = fabric.solver("L1")
    solve(solver)
    before = dict(solver.routes.items())
    solver.apply_settings(SolverSettings(max_paths=7))
    assert solve(solver) == {}
    solver.apply_settings(SolverSettings(max_paths=1))
    assert solve(solver).keys() == {fabric.prefix("L2"), fabric.prefix("L3")}
    assert solver.routes[fabric.prefix("S1")] is before[fabric.prefix("S1")]


def covered(kind: PathType) -> tuple[RouteSolver, Prefix, Route]:
    """A border router with a discard route, in place of what another announces of the range."""
    wide, inside = ipv4_prefix(0xC0000000, 16), ipv4_prefix(0xC0000200, 24)
    fabric = three_stage(2, 2)
    fabric.anycast(inside, "L2")
    solver = fabric.solver("S1")
    solver.set_ranges((AreaRange(AREA, wide),))
    announced = PrefixReachability(wide, 20, kind)
    solver.put_prefixes(AREA, fabric.id("L1"), {"wide": announced})
    solve(solver)
    return solver, wide, solver.routes[wide]


@pytest.mark.parametrize("metric", [30, None])
@pytest.mark.parametrize("renumbered", [False, True])
def test_a_discard_route_stays_when_what_it_covers_changes(metric, renumbered):
    solver, wide, discard = covered(PathType.EXTERNAL_2)
    assert discard.nexthops is DISCARD
    (area, node), source, item = next(solver._selector.table.advertised(wide))
    solver.put_prefixes(area, node, {source: None if metric is None else replace(item, metric=30)})
    with mock.patch.object(prefixes, "_COMPACT_ABOVE", -99 if renumbered else 99):
        assert solve(solver) == {}
    assert solver.routes[wide] is discard
    solver.set_ranges(())
    assert solve(solver).keys() == {wide}
    found = solver.routes.get(wide)
    assert (None if found is None else found.metric) == metric


def test_a_discard_route_over_what_another_area_announces_ends_its_advertisement():
    """No router advertises the range anew: only its component is."""
    fabric, wide = three_stage(2, 2), ipv4_prefix(0xC0000000, 16)
    solver = fabric.solver("S1")
    solver.set_ranges((AreaRange(AREA, wide),))
    announced = PrefixReachability(wide, 20, PathType.INTER_AREA)
    solver.put_prefixes(AREA, fabric.id("L1"), {"wide": announced})
    solve(solver)
    assert solver.take_advertisements()[0][wide] is not None
    component = PrefixReachability(ipv4_prefix(0xC0000200, 24), 1)
    solver.put_prefixes(AREA, fabric.id("L2"), {"component": component})
    assert solve(solver).keys() == {wide, component.prefix}
    assert solver.take_advertisements()[0][wide] is None


def test_a_range_ends_with_its_last_component_though_all_are_renumbered():
    fabric, wide = three_stage(2, 2), ipv4_prefix(0xC0000000, 16)
    component = fabric.anycast(ipv4_prefix(0xC0000200, 24), "L2")
    solver = fabric.solver("S1")
    solver.set_ranges((AreaRange(AREA, wide),))
    solve(solver)
    fabric.prefixes["L2"].pop()
    solver.put_block(AREA, fabric.id("L2"), fabric.block("L2"))
    with mock.patch.object(prefixes, "_COMPACT_ABOVE", -99):
        assert solve(solver) == {component: None, wide: None}


def test_a_prefix_without_a_next_hop_is_never_reported():
    fabric = three_stage(2, 2)
    solver = fabric.solver("L1")
    solver.set_local_links(AREA, ())
    assert solve(solver).keys() == {fabric.prefix("L1")}
    fabric.anycast(_SHARED[0], "L2")
    solver.put_block(AREA, fabric.id("L2"), fabric.block("L2"))
    assert solve(solver) == {}


class Border:
    """A router that advertises a prefix in two areas: its route is the same, whatever ends there.

    The prefix belongs to a range of area 0.
    """

    def __init__(self) -> None:
        self.fabric = three_stage(2, 2)
        self.own = self.fabric.anycast(ipv4_prefix(0xC0000201, 32), "S1")
        self.solver = self.fabric.solver("S1")
        self.wide = ipv4_prefix(0xC0000000, 16)
        self.tell(1)
        self.solver.set_ranges((AreaRange(0, self.wide),))
        solve(self.solver)

    def tell(self, area: int) -> None:
        """Advertise it in an area."""
        self.solver.put_block(area, self.fabric.id("S1"), self.fabric.block("S1"))

    def leave(self, area: int) -> RouteDelta:
        """Advertise it there no more."""
        block = self.fabric.block("S1")
        kept = tuple(item for item in block.prefixes if item.prefix != self.own)
        self.solver.put_block(area, block.node, replace(block, prefixes=kept))
        return solve(self.solver)


def test_the_areas_of_a_connected_prefix_are_advertised_though_its_route_stays():
    border = Border()
    assert border.solver.take_advertisements()[0][border.own].areas == (0, 1)
    route = border.solver.routes[border.own]
    border.leave(0)
    assert border.solver.routes[border.own] is route
    assert border.solver.take_advertisements()[0][border.own].areas == (1,)


def test_a_range_ends_with_its_last_component_in_the_area_though_the_route_stays():
    border = Border()
    route = border.solver.routes[border.own]
    assert border.solver.routes[border.wide].nexthops is DISCARD
    assert border.leave(0) == {border.wide: None}
    assert border.solver.routes[border.own] is route
