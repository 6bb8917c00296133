"""Routes kept up to date, however news is batched, equal those computed from nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.rib.solver import RouteSolver
from fared.ted import splice
from tests.ted.fabrics import AREA, Fabric, five_stage, three_stage

_MAKERS = {
    "three stages": (lambda: three_stage(3, 4), ("L1", "S1")),
    "parallel links": (lambda: three_stage(2, 3, parallel=2), ("L1", "S1")),
    "five stages": (lambda: five_stage(2, 2, 2, 2), ("p1.L1", "p1.S1", "SS1.1")),
}
_NEWS = st.tuples(
    st.sampled_from(["slow", "unknown", "cut", "uncut", "stub", "dear"]), st.integers(0, 10**6)
)


def tell(fabric: Fabric, whole: Fabric, solver: RouteSolver, what: str, draw: int) -> None:
    """One piece of news, told by the routers that it is about."""
    link = whole.links[draw % len(whole.links)]
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
    for name in (link.tail, link.head):
        solver.put_block(AREA, fabric.id(name), fabric.block(name))


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
