"""The routes of a solver are those of a dictionary, whatever number their prefixes have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import NodeId, Prefix
from fared.paths.rib.model import Route
from fared.paths.rib.prefixes import PrefixTable
from fared.paths.rib.solved import FamilyRoutes, SolvedRoutes
from fared.paths.ted.model import PathType, PrefixReachability

PREFIXES = [Prefix(4, (10 << 24) + (n << 8), 24) for n in range(6)]
ROUTES = [Route(metric, PathType.INTRA_AREA, 0, None, (NodeId(1),)) for metric in range(3)]
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["advertise", "set", "put", "pop", "drop", "replace"]),
        st.sampled_from(PREFIXES),
        st.sampled_from([*ROUTES, *map(replace, ROUTES)]),
    ),
    max_size=40,
)


def table_of(*prefixes: Prefix) -> PrefixTable:
    table = PrefixTable()
    advertise(table, *prefixes)
    return table


def advertise(table: PrefixTable, *prefixes: Prefix) -> None:
    table.put(0, NodeId(1), {prefix: PrefixReachability(prefix, 1) for prefix in prefixes})


@given(_STEPS)
def test_routes_of_prefixes_with_and_without_a_number_are_those_of_a_dictionary(steps):
    """A range that no router advertises has a route first, and its prefix a number later.

    What is other after a change is reported: other objects, or other values where all are replaced.
    """
    table, expected = PrefixTable(), {}
    routes = SolvedRoutes(table)
    for what, prefix, route in steps:
        number, before = table.number(prefix), expected.copy()
        if what == "advertise":
            advertise(table, prefix)
        elif what == "set":
            routes[prefix] = expected[prefix] = route
        elif what == "pop":
            assert routes.pop(prefix, None) is expected.pop(prefix, None)
        elif what == "replace":
            table = table_of(prefix, *table.prefixes[::-2])
            wanted = {at: replace(expected.get(at, route)) for at in table.prefixes}
            wanted[prefix] = route
            changed = routes.replace(table, ([*map(table.number, wanted)], [*wanted.values()]))
            equal = {at: before[at] for at, new in wanted.items() if before.get(at) == new}
            expected = wanted | equal
            gone = dict.fromkeys(before.keys() - wanted.keys())
            assert changed == {at: wanted[at] for at in wanted if at not in equal} | gone
        elif number >= 0 and what == "put":
            expected[prefix] = route
            same = before.get(prefix) is route
            assert routes.put(([number], [route])) == ({} if same else {prefix: route})
        elif number >= 0:
            assert routes.drop(number) == (expected.pop(prefix, None) is not None)
        assert all(routes.get(at) is expected.get(at) for at in PREFIXES)
        assert (dict(routes), dict(routes.items()), len(routes)) == (
            expected,
            expected,
            len(expected),
        )
        assert list(routes.values()) == [route for _, route in routes.items()]


def test_a_prefix_that_gets_a_number_may_keep_its_route():
    table = PrefixTable()
    routes = SolvedRoutes(table)
    routes[PREFIXES[0]] = ROUTES[0]
    advertise(table, PREFIXES[0])
    assert routes.put(([0], [ROUTES[0]])) == {}
    assert list(routes.items()) == [(PREFIXES[0], ROUTES[0])]


def test_the_routes_of_two_families_are_those_of_both():
    four, six = Prefix(4, 10 << 24, 24), Prefix(6, 0xFD << 120, 64)
    solved = {family: SolvedRoutes(table_of(at)) for family, at in ((4, four), (6, six))}
    routes = FamilyRoutes(solved)
    assert (dict(routes), len(routes), routes.get(six)) == ({}, 0, None)
    solved[6][six] = ROUTES[1]
    solved[4][four] = ROUTES[0]
    assert list(routes.items()) == [(four, ROUTES[0]), (six, ROUTES[1])]
    assert (len(routes), list(routes), list(routes.values())) == (2, [four, six], ROUTES[:2])
    assert [routes[six], routes.get(four), routes.get(Prefix(7, 0, 0))] == [*ROUTES[1::-1], None]
    assert six in routes
    assert Prefix(6, 0, 0) not in routes
    with pytest.raises(KeyError):
        routes[Prefix(4, 0, 0)]
