"""What the planner desires is what the table says, without a copy of its own."""

import pytest

from fared.paths.fib.desired import DesiredRoutes
from fared.paths.fib.planner import FibPlanner
from fared.paths.rib.model import NextHopSet, Route
from fared.paths.ted.model import PathType
from tests.fib.helpers import hops, prefix, route

NOWHERE = Route(0, PathType.INTRA_AREA, 0, None, (1,))
"""A connected route, which is not for the kernel."""


def test_routes_with_next_hops_are_desired_and_connected_ones_are_not():
    one, empty = hops({1: 1}), NextHopSet(())
    table = {prefix(1): route(1, one), prefix(2): NOWHERE, prefix(3): route(3, empty)}
    desired = DesiredRoutes(lambda: table)
    desired.begin()
    assert dict(desired) == {prefix(1): one}
    assert len(desired) == 1
    assert [prefix(number) in desired for number in range(4)] == [False, True, False, False]
    with pytest.raises(KeyError):
        desired[prefix(2)]


def test_nothing_is_desired_before_the_first_update_and_after_the_withdrawal():
    """While adopted routes are kept, the table may be half full: a lost link plans nothing."""
    table = {prefix(1): route(1, hops({1: 1, 2: 1}))}
    planner = FibPlanner(lambda: table)
    assert (dict(planner.desired), planner.link_restored(1, 0.0)) == ({}, [])
    assert planner.update(table, 0.0)
    assert set(planner.desired) == {prefix(1)}
    planner.withdraw()
    assert (dict(planner.desired), planner.link_restored(1, 0.0)) == ({}, [])


def test_the_routes_of_another_table_are_followed_where_the_owner_replaces_it():
    tables = [{prefix(1): route(1, hops({1: 1}))}]
    planner = FibPlanner(lambda: tables[-1])
    planner.update(tables[-1], 0.0)
    tables.append({prefix(2): route(2, hops({2: 1}))})
    planner.update({prefix(1): None, **tables[-1]}, 1.0)
    assert set(planner.installed.routes) == set(planner.desired) == {prefix(2)}
