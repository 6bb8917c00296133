"""Routes updated in place, for any batching of changes, equal those computed from scratch."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import NodeId, ipv4_prefix, parse_prefix
from fared.paths.rib import routes, selector, set_builder
from fared.paths.rib.few import take_few
from fared.paths.rib.join import join_areas
from fared.paths.rib.selection import choose
from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver, WeightMode
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.model import PathType, PrefixReachability
from tests.ted.fabrics import AREA, Fabric, Link, five_stage, three_stage

_MAKERS = {
    "three stages": (lambda: three_stage(3, 4), ("L1", "S1")),
    "parallel links": (lambda: three_stage(2, 3, parallel=2), ("L1", "S1")),
    "five stages": (lambda: five_stage(2, 2, 2, 2), ("p1.L1", "p1.S1", "SS1.1")),
}
_ANNOUNCED = ("told", "told", "untold")
_NEWS = st.tuples(
    st.sampled_from(
        ["slow", "load", "unknown", "cut", "uncut", "stub", "dear", "far", *_ANNOUNCED]
    ),
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
    values: dict[str, tuple[str, float | None]] = {
        "slow": ("capacity", float((25, 50, 100, 123, 400)[draw % 5])),
        "load": ("available", (None, 5.0, 40.0, 99.0)[draw % 4]),
        "unknown": ("capacity", None),
        "dear": ("metric", (10, 20)[draw % 2]),
        "far": ("delay", (None, 0, 5_000, 20_000, 20_000)[draw % 5]),
    }
    if what in values:
        for k in fabric.links:
            if k.local_id == link.local_id:
                setattr(k, *values[what])
    elif what == "cut":
        fabric.cut(link.tail, link.head)
    elif what == "uncut":
        ends = {link.tail, link.head}
        fabric.cut(link.tail, link.head)
        fabric.links += [k for k in whole.links if {k.tail, k.head} == ends]
    else:
        fabric.stubs ^= {link.tail}


def announce(announced: list[PrefixReachability], draw: int, *, told: bool) -> None:
    """Have a router tell of a shared prefix, with what lies behind it or without, or no more."""
    prefix = _SHARED[draw % len(_SHARED)]
    announced[:] = [item for item in announced if item.prefix != prefix]
    if told:
        capacity, tag = (None, 1e9, 2e9, 7e9)[draw % 4], (0, 7, 8)[draw // 4 % 3]
        announced.append(PrefixReachability(prefix, 10, capacity=capacity, tag=tag))
        announced.sort(key=lambda item: item.prefix)


def by_capacity(solver: RouteSolver) -> dict:
    """The next hops of all routes by capacity, load ignored; in available mode."""
    if solver.settings.mode is not WeightMode.AVAILABLE:
        return {}
    routes = {p: r for p, r in solver.routes.items() if r.nexthops is not None}
    return {prefix: solver.capacity_nexthops(prefix, route) for prefix, route in routes.items()}


@settings(max_examples=80)
@given(
    st.sampled_from(sorted(_MAKERS)),
    st.integers(0, 2),
    st.sampled_from([WeightMode.CAPACITY, WeightMode.AVAILABLE]),
    st.sampled_from([(None, None), (0.0, None), (None, 0.01), (0.005, 0.021)]),
    st.lists(st.lists(_NEWS, min_size=1, max_size=6), max_size=6),
)
def test_any_changes_in_any_batches_end_with_the_routes_of_a_new_solver(
    name, place, mode, delays, batches
):
    """Routes, the baseline that load is measured against, and what a border router advertises."""
    make, roots = _MAKERS[name]
    fabric, whole, root = make(), make(), roots[place % len(roots)]
    margin, bound = delays
    chosen = SolverSettings(mode=mode, delay_margin=margin, delay_bound=bound)
    solver = fabric.solver(root, chosen)
    solver.solve()
    advertised = solver.take_advertisements()[0]
    for batch in batches:
        for what, draw in batch:
            tell(fabric, whole, solver, what, draw)
        solver.set_local_links(AREA, fabric.local_links(root))
        baseline = by_capacity(solver)
        tags = {prefix: solver.tags(prefix) for prefix in _SHARED}
        update = solver.solve()
        retagged = {prefix for prefix in _SHARED if solver.tags(prefix) != tags[prefix]}
        assert retagged <= {*update.retagged, *update.changed}
        fresh = fabric.solver(root, solver.settings)
        fresh.solve()
        assert dict(solver.routes) == dict(fresh.routes)
        for prefix, route in fresh.routes.items():
            assert solver.egress(prefix, route) == fresh.egress(prefix, route)
        assert by_capacity(solver) == by_capacity(fresh)
        others, now = update.capacities_changed, by_capacity(solver)
        for prefix in baseline.keys() - update.changed.keys():
            places = [
                (area, node) for area, node, _ in solver.egress(prefix, solver.routes[prefix])
            ]
            if others is None or (len(places) == 1 and places[0] not in others):
                assert now[prefix] is baseline[prefix]
        if len(batch) % 2:  # else it falls behind
            advertised |= solver.take_advertisements()[0]
            known = {prefix: item for prefix, item in advertised.items() if item is not None}
            assert known == fresh.take_advertisements()[0]


@pytest.fixture
def looked_at(monkeypatch) -> list[int | None]:
    """How many prefixes were selected each time; None: all."""
    found: list[int | None] = []

    def counted(table, reach, numbers=None):
        found.append(None if numbers is None else len(numbers))
        return choose(table, reach, numbers)

    def few_counted(selection, table, reach, numbers):
        found.append(len(numbers))
        return take_few(selection, table, reach, numbers)

    monkeypatch.setattr(selector, "choose", counted)
    monkeypatch.setattr(selector, "take_few", few_counted)
    return found


def test_only_prefixes_that_changed_are_selected_again(looked_at):
    fabric = three_stage(2, 3)
    for leaf, capacity in (("L2", 4e9), ("L3", 4e9)):
        fabric.prefixes[leaf] += [PrefixReachability(p, 10, capacity=capacity) for p in _SHARED]
    solver = fabric.solver("L1")
    solver.solve()
    looked_at.clear()
    fabric.prefixes["L2"][-1] = replace(fabric.prefixes["L2"][-1], capacity=1e9)
    solver.put_block(AREA, fabric.id("L2"), fabric.block("L2"))
    update = solver.solve()
    assert list(update.changed) == [_SHARED[-1]]
    assert looked_at == [1]
    fresh = fabric.solver("L1")
    fresh.solve()
    assert dict(solver.routes) == dict(fresh.routes)
    assert solver.solve().changed == {}


@pytest.fixture
def joined(monkeypatch) -> list[int]:
    """The number of egress nodes of each set that was joined."""
    found: list[int] = []

    def counted(areas, egress, settings):
        found.append(sum(map(len, egress.values())))
        return join_areas(areas, egress, settings)

    monkeypatch.setattr(routes, "join_areas", counted)
    return found


def test_after_a_change_only_the_sets_behind_it_are_joined_again(joined):
    fabric = three_stage(3, 4)
    for leaf, prefix, capacity in (("L2", 0, 4e9), ("L3", 1, 4e9), ("L2", 2, 1e9), ("L3", 2, 1e9)):
        fabric.prefixes[leaf].append(PrefixReachability(_SHARED[prefix], 10, capacity=capacity))
    solver = fabric.solver("L1")
    solver.solve()
    assert sorted(joined) == [1, 1, 2]
    joined.clear()
    fabric.cut("L2", "S1")
    for name in ("L2", "S1"):
        solver.put_block(AREA, fabric.id(name), fabric.block(name))
    update = solver.solve()
    assert sorted(joined) == [1, 2]
    assert {_SHARED[0], _SHARED[2]} <= update.changed.keys()
    assert _SHARED[1] not in update.changed
    fresh = fabric.solver("L1")
    fresh.solve()
    assert dict(solver.routes) == dict(fresh.routes)


@pytest.mark.parametrize("slower", [False, True])
def test_a_link_lost_elsewhere_leaves_what_is_joined_unless_capacities_differ(joined, slower):
    fabric = three_stage(2, 4)
    for leaf in ("L2", "L3"):
        fabric.prefixes[leaf].append(PrefixReachability(_SHARED[0], 10, capacity=4e9))
    solver = fabric.solver("L1")
    solver.solve()
    assert joined == [2]
    fabric.cut("L4", "S1")
    if slower:
        link = next(k for k in fabric.links if (k.tail, k.head) == ("S2", "L3"))
        link.capacity /= 2
    for name in ("L4", "S1", "S2"):
        solver.put_block(AREA, fabric.id(name), fabric.block(name))
    assert solver.solve().spf_ran
    assert joined == ([2, 2] if slower else [2])
    fresh = fabric.solver("L1")
    fresh.solve()
    assert dict(solver.routes) == dict(fresh.routes)


def test_a_capacity_behind_a_single_node_needs_no_other_weights(monkeypatch):
    """It limits all paths alike: the set toward the node has the weights already."""
    fabric = three_stage(2, 3)
    solver = fabric.solver("L1")
    solver.solve()
    monkeypatch.delattr(set_builder, "quantise_rows")
    fabric.prefixes["L2"].append(PrefixReachability(_SHARED[0], 10, capacity=1.0))
    solver.put_block(AREA, fabric.id("L2"), fabric.block("L2"))
    solver.solve()
    hops = solver.routes[_SHARED[0]].nexthops
    alone = solver.routes[fabric.prefixes["L2"][0].prefix].nexthops
    assert hops.key == alone.key
    assert {hop.capacity for hop in hops.hops} == {1.0}
    assert {hop.capacity for hop in alone.hops} != {1.0}


def test_a_lone_capacity_told_along_with_a_prefix_and_taken_back_leaves_nothing():
    fabric = three_stage(2, 3)
    fabric.prefixes["L2"].append(PrefixReachability(_SHARED[0], 10, capacity=1e9))
    solver = fabric.solver("L1")
    solver.solve()
    route = solver.routes[_SHARED[0]]
    assert solver.egress(_SHARED[0], route) == ((AREA, fabric.id("L2"), 1e9),)
    fabric.prefixes["L2"][-1] = replace(fabric.prefixes["L2"][-1], capacity=None)
    solver.put_block(AREA, fabric.id("L2"), fabric.block("L2"))
    assert list(solver.solve().changed) == [_SHARED[0]]
    assert solver.egress(_SHARED[0], solver.routes[_SHARED[0]]) == ((AREA, fabric.id("L2"), inf),)
    assert (
        solver.routes[_SHARED[0]].nexthops
        == solver.routes[fabric.prefixes["L2"][0].prefix].nexthops
    )


_EXTERNALS = [parse_prefix(f"10.77.{n}.0/24") for n in range(3)]
_GATEWAY = 0x0A4D0001
_BEYOND = st.tuples(
    st.sampled_from(
        ["external", "forwarded", "gateway", "gateway", "inter-area", "withdraw", "cut"]
    ),
    st.integers(0, 10**6),
)


def advertise(beyond: dict, fabric: Fabric, what: str, draw: int) -> tuple[str, dict]:
    """A change of what a router advertises beyond its links; kept in ``beyond``, too."""
    name = fabric.names[draw % len(fabric.names)]
    source, mine = draw % 5, beyond.setdefault(name, {})
    prefix = _EXTERNALS[draw % 3]
    item: PrefixReachability | None = None
    if what in ("external", "forwarded"):
        kind = (PathType.EXTERNAL_1, PathType.EXTERNAL_2)[draw % 2]
        forward = _GATEWAY if what == "forwarded" else 0
        item = PrefixReachability(prefix, 5 + draw % 2, kind, forward=forward)
    elif what == "inter-area":
        capacity = (None, 1e9, 2e9)[draw % 3]
        item = PrefixReachability(prefix, 5 + draw % 2, PathType.INTER_AREA, capacity)
    elif what == "gateway":  # the network of the forwarding address
        item = PrefixReachability(ipv4_prefix(_GATEWAY, 16 + draw % 2 * 8), draw % 3)
    mine[source] = item
    return name, {source: item}


@settings(max_examples=150)
@given(
    st.sampled_from(sorted(_MAKERS)),
    st.integers(0, 2),
    st.lists(st.lists(_BEYOND, min_size=1, max_size=6), max_size=8),
)
def test_prefixes_beyond_an_area_may_come_and_go_in_any_order(name, place, batches):
    """Externals with and without forwarding address, whose way may come, go and move."""
    make, roots = _MAKERS[name]
    fabric, whole, root = make(), make(), roots[place % len(roots)]
    solver = fabric.solver(root)
    beyond: dict = {}
    for batch in batches:
        for what, draw in batch:
            if what == "cut":
                tell(fabric, whole, solver, ("cut", "uncut")[draw % 2], draw)
                continue
            at, changes = advertise(beyond, fabric, what, draw)
            solver.put_prefixes(AREA, fabric.id(at), changes)
        solver.set_local_links(AREA, fabric.local_links(root))
        changed = solver.solve().changed
        fresh = fabric.solver(root)
        for at, mine in beyond.items():
            fresh.put_prefixes(AREA, fabric.id(at), mine)
        fresh.solve()
        assert dict(solver.routes) == dict(fresh.routes)
        assert all(solver.routes.get(prefix) == route for prefix, route in changed.items())
        for prefix, route in fresh.routes.items():
            assert solver.egress(prefix, route) == fresh.egress(prefix, route)


@pytest.mark.parametrize("known", [100, 3000])
def test_one_more_external_looks_at_one_prefix_whatever_is_known(known, looked_at):
    fabric = three_stage(2, 3)
    solver = fabric.solver("L1")
    many = [ipv4_prefix((20 << 24) + (n << 8), 24) for n in range(known + 1)]
    externals = {p: PrefixReachability(p, 20, PathType.EXTERNAL_2) for p in many}
    last = many.pop()
    solver.put_prefixes(AREA, fabric.id("L2"), {p: externals[p] for p in many})
    solver.solve()
    looked_at.clear()
    assert solver.put_prefixes(AREA, fabric.id("L2"), {last: externals[last]}) is ChangeKind.PREFIX
    assert list(solver.solve().changed) == [last]
    assert looked_at == [1]


def test_an_external_follows_its_forwarding_address():
    """The network of the address moves from one leaf to another, goes, and comes back."""
    fabric = three_stage(2, 4)
    solver = fabric.solver("L1")
    spine, (l2, l3) = fabric.id("S1"), (fabric.id("L2"), fabric.id("L3"))
    network = PrefixReachability(ipv4_prefix(_GATEWAY, 24), 1)
    prefix = _EXTERNALS[0]
    outside = PrefixReachability(prefix, 5, PathType.EXTERNAL_2, forward=_GATEWAY)
    solver.put_prefixes(AREA, spine, {"external": outside})
    solver.put_prefixes(AREA, l2, {"network": network})
    solver.solve()
    assert solver.routes[prefix].destinations == (l2,)
    solver.put_prefixes(AREA, l2, {"network": None})
    solver.put_prefixes(AREA, l3, {"network": network})
    assert solver.solve().changed[prefix] == solver.routes[prefix]
    assert solver.routes[prefix].destinations == (l3,)
    solver.put_prefixes(AREA, l3, {"network": None})
    assert solver.solve().changed[prefix] is None
    solver.put_prefixes(AREA, l2, {"network": network})
    assert solver.solve().changed[prefix].destinations == (l2,)
    fabric.cut("S1", "L1")  # the advertising router is still reached over the other spine
    fabric.cut("S2", "L2")
    fabric.cut("S1", "L2")
    for name in ("S1", "S2", "L1", "L2"):
        solver.put_block(AREA, fabric.id(name), fabric.block(name))
    solver.set_local_links(AREA, fabric.local_links("L1"))
    assert solver.solve().changed[prefix] is None


def test_an_unknown_node_may_withdraw_what_it_has_not_advertised():
    """A prefix that a forged LSA advertised for less than the pause before a computation."""
    fabric = three_stage(2, 3)
    solver = fabric.solver("L1")
    solver.solve()
    solver.put_prefixes(AREA, NodeId(4711), {"gone": None})
    next(link for link in fabric.links if (link.tail, link.head) == ("S1", "L2")).capacity = 25.0
    solver.put_block(AREA, fabric.id("S1"), fabric.block("S1"))
    assert solver.solve().changed


def test_a_capacity_that_load_hides_changes_the_baseline_alone():
    """Routes by load do not change; the change of the baseline is reported."""
    fabric = three_stage(2, 3)
    link = next(k for k in fabric.links if (k.tail, k.head) == ("S1", "L2"))
    link.available = 10.0
    solver = fabric.solver("L1", SolverSettings(mode=WeightMode.AVAILABLE))
    assert solver.solve().capacities_changed
    seen = []
    for link.available, link.capacity in ((10.0, 100.0), (20.0, 100.0)):
        solver.put_block(AREA, fabric.id("S1"), fabric.block("S1"))
        update = solver.solve()
        seen.append((bool(update.changed), update.capacities_changed))
    assert seen == [(False, ((AREA, fabric.id("L2")),)), (True, None)]
