"""Routes kept up to date, however news is batched, equal those computed from nothing."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.core.ids import parse_prefix
from fared.rib.solver import RouteSolver
from fared.ted import splice
from fared.ted.model import PrefixAttachment
from tests.ted.fabrics import AREA, Fabric, Link, five_stage, three_stage

_MAKERS = {
    "three stages": (lambda: three_stage(3, 4), ("L1", "S1")),
    "parallel links": (lambda: three_stage(2, 3, parallel=2), ("L1", "S1")),
    "five stages": (lambda: five_stage(2, 2, 2, 2), ("p1.L1", "p1.S1", "SS1.1")),
}
_ANNOUNCED = ("told", "told", "untold")
_NEWS = st.tuples(
    st.sampled_from(["slow", "unknown", "cut", "uncut", "stub", "dear", *_ANNOUNCED]),
    st.integers(0, 10**6),
)
_SHARED = [parse_prefix(f"10.99.{n}.0/24") for n in range(3)]
"""Announced by several routers, with capacities that lie behind these."""


def tell(fabric: Fabric, whole: Fabric, solver: RouteSolver, what: str, draw: int) -> None:
    """One piece of news, told by the routers that it is about."""
    link = whole.links[draw % len(whole.links)]
    if what in _ANNOUNCED:
        announce(fabric.prefixes[link.tail], draw, told=what == "told")
    else:
        change(fabric, whole, link, what, draw)
    for name in (link.tail, link.head):
        solver.put_block(AREA, fabric.id(name), fabric.block(name))


def change(fabric: Fabric, whole: Fabric, link: Link, what: str, draw: int) -> None:
    """Change a link, or whether its router lets traffic pass."""
    here = [k for k in fabric.links if k.local_id == link.local_id]
    if what == "slow":
        for k in here:
            k.capacity = float((25, 50, 100, 123, 400)[draw % 5])
    elif what == "unknown":
        for k in here:
            k.capacity = None
    elif what == "dear":
        for k in here:
            k.metric = (10, 20)[draw % 2]
    elif what == "cut":
        fabric.cut(link.tail, link.head)
    elif what == "uncut":
        ends = {link.tail, link.head}
        fabric.cut(link.tail, link.head)
        fabric.links += [k for k in whole.links if {k.tail, k.head} == ends]
    else:
        fabric.stubs ^= {link.tail}


def announce(announced: list[PrefixAttachment], draw: int, *, told: bool) -> None:
    """Have a router tell of a shared prefix, with what lies behind it or without, or no more."""
    prefix = _SHARED[draw % len(_SHARED)]
    announced[:] = [item for item in announced if item.prefix != prefix]
    if told:
        announced.append(PrefixAttachment(prefix, 10, capacity=(None, 1e9, 2e9, 7e9)[draw % 4]))
        announced.sort(key=lambda item: item.prefix)


@pytest.fixture(params=["patched", "anew"])
def _way(request, monkeypatch):
    """Small graphs are made anew; here they take the way of large ones, too."""
    if request.param == "patched":
        monkeypatch.setattr(splice, "_SMALL_GRAPH", 0)


@pytest.mark.usefixtures("_way")
@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(sorted(_MAKERS)),
    st.integers(0, 2),
    st.lists(st.lists(_NEWS, min_size=1, max_size=6), max_size=6),
)
def test_any_news_in_any_batches_ends_where_a_fresh_start_does(name, place, batches):
    make, roots = _MAKERS[name]
    fabric, whole, root = make(), make(), roots[place % len(roots)]
    solver = fabric.solver(root)
    solver.solve()
    for batch in batches:
        for what, draw in batch:
            tell(fabric, whole, solver, what, draw)
        solver.set_local_links(AREA, fabric.local_links(root))
        solver.solve()
        fresh = fabric.solver(root)
        fresh.solve()
        assert dict(solver.routes) == dict(fresh.routes)
        for route in fresh.routes.values():
            assert solver.ends(route) == fresh.ends(route)


def test_a_capacity_told_along_with_a_prefix_touches_that_prefix_alone():
    """Where nothing else has changed, not even who announces what is looked at again."""
    fabric = three_stage(2, 3)
    for leaf, capacity in (("L2", 4e9), ("L3", 4e9)):
        fabric.prefixes[leaf] += [PrefixAttachment(p, 10, capacity=capacity) for p in _SHARED]
    solver = fabric.solver("L1")
    solver.solve()
    before = solver._selection
    assert before is not None
    fabric.prefixes["L2"][-1] = replace(fabric.prefixes["L2"][-1], capacity=1e9)
    solver.put_block(AREA, fabric.id("L2"), fabric.block("L2"))
    update = solver.solve()
    assert list(update.changed) == [_SHARED[-1]]
    assert solver._selection is not before
    assert solver._selection.key is before.key
    fresh = fabric.solver("L1")
    fresh.solve()
    assert dict(solver.routes) == dict(fresh.routes)
    assert solver.solve().changed == {}


def test_a_lone_capacity_told_along_with_a_prefix_and_taken_back_leaves_nothing():
    fabric = three_stage(2, 3)
    fabric.prefixes["L2"].append(PrefixAttachment(_SHARED[0], 10, capacity=1e9))
    solver = fabric.solver("L1")
    solver.solve()
    route = solver.routes[_SHARED[0]]
    assert solver.ends(route) == ((AREA, fabric.id("L2"), 1e9),)
    fabric.prefixes["L2"][-1] = replace(fabric.prefixes["L2"][-1], capacity=None)
    solver.put_block(AREA, fabric.id("L2"), fabric.block("L2"))
    assert list(solver.solve().changed) == [_SHARED[0]]
    assert solver.ends(solver.routes[_SHARED[0]]) == ((AREA, fabric.id("L2"), inf),)
    assert (
        solver.routes[_SHARED[0]].nexthops
        == solver.routes[fabric.prefixes["L2"][0].prefix].nexthops
    )
