"""Next hops at equal cost are chosen by path delay where configured; networkx is the oracle."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fared.paths.rib.settings import SolverSettings
from fared.paths.rib.solver import RouteSolver
from fared.paths.ted.database import Ted
from fared.paths.weights.longest import LongestPair, longest_of
from tests.ted.fabrics import AREA, Fabric

MILLISECOND = 1000
RULES = st.builds(
    SolverSettings,
    delay_margin=st.sampled_from([None, 0.0, 0.002, 0.005]),
    delay_bound=st.sampled_from([None, 0.0, 0.004, 0.012]),
    unknown_delay=st.sampled_from([0.0, 0.0, 0.003]),
)


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """Up to seven routers, links of few metrics; delays differ by direction, some are unknown."""
    count = draw(st.integers(3, 7))
    fabric = Fabric()
    names = [f"r{number}" for number in range(count)]
    fabric.node(*names)
    pairs = [(a, b) for a in range(count) for b in range(a)]
    for a, b in draw(st.lists(st.sampled_from(pairs), min_size=count, unique=True)):
        metrics = st.sampled_from([10, 10, 10, 20])
        fabric.connect(names[a], names[b], metric=draw(metrics))
        for link in fabric.links[-2:]:
            link.delay = draw(st.sampled_from([None, 0, 1, 2, 5, 9]))
            link.delay = None if link.delay is None else link.delay * MILLISECOND
    return fabric


def expected(fabric: Fabric, root: str, target: str, rule: SolverSettings) -> set[str]:
    """The next hops by the rule: every shortest path is walked, whichever routers are on it."""
    graph = nx.DiGraph()
    unknown = rule.unknown_delay * 1e6
    for link in fabric.links:
        delay = unknown if link.delay is None else link.delay
        graph.add_edge(link.tail, link.head, metric=link.metric, delay=delay)
    if root not in graph or target not in graph or not nx.has_path(graph, root, target):
        return set()
    longest: dict[str, float] = {}
    for path in nx.all_shortest_paths(graph, root, target, "metric"):
        delay = sum(graph.edges[edge]["delay"] for edge in pairwise(path))
        longest[path[1]] = max(longest.get(path[1], 0.0), delay)
    return {hop for hop, delay in longest.items() if delay <= limit(longest.values(), rule)}


def limit(delays, rule: SolverSettings) -> float:
    """The longest delay that is used, microseconds."""
    lowest, found = min(delays), np.inf
    if rule.delay_bound is not None and lowest <= rule.delay_bound * 1e6:
        found = rule.delay_bound * 1e6
    if rule.delay_margin is not None:
        found = min(found, lowest + rule.delay_margin * 1e6)
    return found


def next_hops(fabric: Fabric, solver: RouteSolver, target: str) -> set[str]:
    route = solver.routes.get(fabric.prefix(target))
    return set() if route is None else {fabric.name(hop.neighbor) for hop in route.nexthops.hops}


@settings(max_examples=60, deadline=None)
@given(fabrics(), st.lists(RULES, min_size=7, max_size=7))
def test_any_routers_with_any_rules_use_what_the_rule_says_and_form_no_loop(fabric, rules):
    """Each router has a rule of its own, as while one after the other is configured."""
    used = {target: nx.DiGraph() for target in fabric.names}
    for root, rule in zip(fabric.names, rules, strict=False):
        solver = fabric.solver(root, rule)
        solver.solve()
        for target in fabric.names:
            if target != root:
                found = next_hops(fabric, solver, target)
                assert found == expected(fabric, root, target, rule)
                used[target].add_edges_from((root, hop) for hop in found)
    assert all(nx.is_directed_acyclic_graph(graph) for graph in used.values())


@settings(max_examples=40, deadline=None)
@given(fabrics())
def test_the_longest_path_of_a_fabric(fabric):
    ted = Ted()
    for name in fabric.names:
        ted.put(fabric.block(name))
    graph, delays, found = ted.graph(), ted.delays(), LongestPair()
    if delays is None:
        return
    for _ in longest_of(graph, delays, np.arange(len(graph.nodes)), found):
        pass
    whole = nx.DiGraph()
    for link in fabric.links:
        whole.add_edge(link.tail, link.head, metric=link.metric, delay=link.delay or 0)
    longest = 0
    for tail in whole:
        for head in whole:
            if tail != head and nx.has_path(whole, tail, head):
                for path in nx.all_shortest_paths(whole, tail, head, "metric"):
                    delay = sum(whole.edges[edge]["delay"] for edge in pairwise(path))
                    longest = max(longest, delay)
    assert found.delay == longest


def two_ways(near: int | None = 8, far: int | None = 20, parallel: int = 1) -> Fabric:
    """Site 1 has leaf a and borders b1, b2, site 2 borders c1, c2 and leaf d: b1-c1 is nearer."""
    fabric = Fabric()
    for border in ("b1", "b2"):
        fabric.connect("a", border)
    for one, other, delay in (("b1", "c1", near), ("b2", "c2", far)):
        for _ in range(parallel):
            fabric.connect(one, other, capacity=100.0)
        for ends in ((one, other), (other, one)):
            fabric.slow(*ends, None if delay is None else delay * MILLISECOND)
    for border in ("c1", "c2"):
        fabric.connect(border, "d")
    fabric.connect("d", "e")
    return fabric


def used(fabric: Fabric, target: str, **rule: float) -> list[str]:
    solver = fabric.solver("a", SolverSettings(**rule))
    solver.solve()
    return sorted(next_hops(fabric, solver, target))


def test_without_a_rule_delay_changes_nothing():
    assert used(two_ways(), "d") == ["b1", "b2"]


def test_with_a_margin_only_paths_near_the_lowest_delay_are_used():
    assert used(two_ways(), "d", delay_margin=0.0) == ["b1"]
    assert used(two_ways(), "d", delay_margin=0.011) == ["b1"]
    assert used(two_ways(), "d", delay_margin=0.012) == ["b1", "b2"]


def test_a_bound_excludes_paths_while_others_remain():
    assert used(two_ways(), "d", delay_bound=0.01) == ["b1"]
    assert used(two_ways(near=15), "d", delay_bound=0.01) == ["b1", "b2"], "all are above it"
    assert used(two_ways(near=15), "d", delay_bound=0.01, delay_margin=0.0) == ["b1"]


def test_a_bound_counts_the_whole_way_also_where_all_paths_cross_one_router():
    """d and e share the row of weights; e is farther, and only paths to it are above the bound."""
    fabric = two_ways(near=8, far=10)
    fabric.slow("d", "e", 5 * MILLISECOND)
    assert used(fabric, "d", delay_bound=0.014) == ["b1", "b2"]
    assert used(fabric, "e", delay_bound=0.014) == ["b1"]


def test_a_link_without_a_delay_counts_as_configured():
    """By default for nothing: links within a site are short, and nobody configures their delay."""
    assert used(two_ways(far=None), "d", delay_margin=0.0) == ["b2"]
    assert used(two_ways(far=None), "d", delay_margin=0.0, unknown_delay=0.1) == ["b1"]


def test_of_parallel_links_the_slower_one_is_not_used_and_leaves_the_capacity_of_the_other():
    fabric = two_ways(parallel=2)
    fabric.slow("b1", "c1", 30 * MILLISECOND, nth=1)
    solver = fabric.solver("b1", SolverSettings(delay_margin=0.0))
    solver.solve()
    (hop,) = solver.routes[fabric.prefix("d")].nexthops.hops
    assert hop.interface == next(k for k in fabric.links if k.delay == 8000).head + "-5"
    assert hop.capacity == pytest.approx(12.5e9)
    assert used(fabric, "d", delay_margin=0.0) == ["b2"], "b1 may take the longer one of its links"


def test_a_changed_delay_changes_routes_only_where_they_follow_it():
    fabric = two_ways()
    for rule, changes in ((SolverSettings(), False), (SolverSettings(delay_margin=0.0), True)):
        solver = fabric.solver("a", rule)
        solver.solve()
        fabric.slow("b1", "c1", 50 * MILLISECOND)
        solver.put_block(AREA, fabric.id("b1"), fabric.block("b1"))
        update = solver.solve()
        assert not update.spf_ran
        assert bool(update.changed) == changes
        fabric.slow("b1", "c1", 8 * MILLISECOND)


def test_what_is_not_used_is_explained():
    fabric = two_ways()
    solver = fabric.solver("a", SolverSettings(delay_margin=0.0))
    solver.solve()
    found = solver.explain(fabric.prefix("d"))
    assert [
        (fabric.name(each.link.neighbor), each.delay, each.above, each.used)
        for each in found.delays
    ] == [("b1", 8000.0, 0.0, True), ("b2", 20_000.0, 12_000.0, False)]
