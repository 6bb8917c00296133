"""Any updates in any order: the graph updated in place equals one built from scratch."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fared.core.ids import NodeId
from fared.paths.ted.assemble import opposites
from fared.paths.ted.change import ChangeKind, GraphDelta
from fared.paths.ted.database import Ted
from fared.paths.ted.graph import Graph, same_metric
from fared.paths.ted.graph_update import without_edges
from fared.paths.ted.model import NodeBlock
from fared.paths.ted.opposite import Opposite
from fared.paths.ted.rows import snap
from tests.ted.fabrics import Link, three_stage

_NODES = 6
_COLUMNS = ("neighbors", "metrics", "local_ids", "remote_ids", "capacities", "availables")
_ARRAYS = ("nodes", "indptr", "src", "dst", "metric", "reverse", "transit", "network")


@dataclass
class Router:
    """The links of a router: (neighbor, metric, local id, capacity, available, delay) for each."""

    links: list[tuple[int, int, int, float, float, float]] = field(default_factory=list)
    transit: bool = True
    network: bool = False

    def block(self, node: int) -> NodeBlock:
        columns = list(zip(*self.links, strict=True)) or [()] * 6
        ints = [np.array(column, np.int64) for column in columns[:3]]
        return NodeBlock(
            node=NodeId(node),
            neighbors=ints[0],
            metrics=ints[1],
            capacities=np.array(columns[3], np.float64),
            availables=np.array(columns[4], np.float64),
            local_ids=ints[2],
            remote_ids=np.zeros(len(self.links), np.int64),
            transit=self.transit,
            network=self.network,
            delays=known_delays(np.array(columns[5], np.float64)),
        )


def known_delays(delays: np.ndarray) -> np.ndarray | None:
    return None if np.isnan(delays).all() else delays


DELAYS = st.sampled_from([np.nan, np.nan, np.nan, 0.0, 350.0, 20_000.0])


def rates(known: bool):
    sure = st.sampled_from([1e9, 2.5e9, 12.5e9, 50e9])
    return sure if known else st.one_of(sure, st.just(np.nan))


def routers(known: bool):
    link = st.tuples(
        st.integers(1, _NODES + 1),
        st.sampled_from([10, 10, 10, 20]),
        st.integers(1, 3),
        rates(known),
        st.one_of(st.just(np.nan), st.just(np.nan), st.just(0.5e9)),
        DELAYS,
    )
    return st.builds(
        Router,
        links=st.lists(link, max_size=8),
        transit=st.sampled_from([True, True, True, False]),
        network=st.sampled_from([False] * 5 + [True]),
    )


@dataclass
class Bandwidths:
    """Other values for some of the links that a router has.

    They are (which, capacity, available, id, delay).
    """

    links: list[tuple[int, float, float, int, float]]

    def put(self, block: NodeBlock) -> NodeBlock:
        columns = {
            name: getattr(block, name).copy() for name in ("capacities", "availables", "remote_ids")
        }
        columns["delays"] = block.each_delay().copy()
        rows = [which % len(block.neighbors) for which, *_ in self.links]
        for row, (_, *values) in zip(rows, self.links, strict=True):
            for column, value in zip(columns.values(), values, strict=True):
                column[row] = value
        return replace(block, **columns | {"delays": known_delays(columns["delays"])})


@dataclass
class Lost:
    """One of the links that a router has is gone."""

    which: int

    def left(self, block: NodeBlock) -> NodeBlock:
        row = self.which % len(block.neighbors)
        delays = known_delays(np.delete(block.each_delay(), row))
        left = {name: np.delete(getattr(block, name), row) for name in _COLUMNS}
        return replace(block, **left, delays=delays)


def bandwidths(known: bool):
    spare = st.sampled_from([np.nan, 0.0, 0.5e9, 0.7e9])
    link = st.tuples(st.integers(0, 7), rates(known), spare, st.integers(0, 3), DELAYS)
    return st.builds(Bandwidths, st.lists(link, min_size=1, max_size=4))


def histories(known: bool):
    """What routers say, whole or as a difference, or None, and when a graph is wanted."""
    lost = st.builds(Lost, st.integers(0, 7))
    said = st.one_of(st.none(), routers(known), bandwidths(known), lost, lost)
    return st.lists(st.tuples(st.integers(1, _NODES), said, st.booleans()), max_size=25)


def link_to(far: int, capacity: float) -> tuple[int, int, int, float, float, float]:
    return far, 10, far, capacity, np.nan, np.nan


def full_mesh() -> dict[int, Router]:
    return {
        node: Router([link_to(far, 50e9) for far in range(1, _NODES + 1) if far != node])
        for node in range(1, _NODES + 1)
    }


def same_graph(ours: Graph, theirs: Graph) -> None:
    for name in (*_ARRAYS, "capacity", "available"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)
    assert ours.uniform_metric == theirs.uniform_metric


def from_nothing(ted: Ted) -> Graph:
    return made_anew(ted).graph()


def made_anew(ted: Ted) -> Ted:
    other = Ted()
    for block in ted.blocks.values():
        other.put(block)
    return other


def same_delays(ted: Ted) -> None:
    """Delays of edges are those of a new database, and of each edge the longest of its links."""
    graph, delays = ted.graph(), ted.delays()
    np.testing.assert_array_equal(delays, made_anew(ted).delays())
    if delays is None:
        assert all(block.delays is None for block in ted.blocks.values())
        return
    for tail, head, metric, found in zip(graph.src, graph.dst, graph.metric, delays, strict=True):
        block = ted.blocks[NodeId(graph.nodes[tail])]
        here = (block.neighbors == graph.nodes[head]) & (block.metrics == metric)
        known = [delay for delay in block.each_delay()[here].tolist() if not np.isnan(delay)]
        expected = 0.0 if block.network else max(known, default=np.nan)
        np.testing.assert_equal(found, expected)


def as_it_was(graph: Graph) -> Graph:
    """A copy: capacities are written in place."""
    return replace(graph, capacity=graph.capacity.copy(), available=graph.available.copy())


def true_of(before: Graph, delta: GraphDelta) -> None:
    """What the database says of the way from a version of the graph to the present one is so."""
    now, kind = delta.graph, delta.kind
    if kind < ChangeKind.TOPOLOGY:
        for name in _ARRAYS:
            np.testing.assert_array_equal(getattr(before, name), getattr(now, name), name)
    if kind < ChangeKind.CAPACITY:
        np.testing.assert_array_equal(before.capacity, now.capacity)
    if kind < ChangeKind.LOAD:
        np.testing.assert_array_equal(before.available, now.available)
    if delta.cut is not None:
        assert kind is ChangeKind.TOPOLOGY
        for name in ("nodes", "transit", "network"):
            np.testing.assert_array_equal(getattr(before, name), getattr(now, name), name)
        for name in ("src", "dst", "metric"):
            left = np.delete(getattr(before, name), delta.cut)
            np.testing.assert_array_equal(left, getattr(now, name), name)
    if delta.cut_alone:
        assert delta.cut is not None
        for name in ("capacity", "available"):
            left = np.delete(getattr(before, name), delta.cut)
            np.testing.assert_array_equal(left, getattr(now, name), name)


def test_a_lost_link_is_the_only_difference_unless_a_bandwidth_changed_too():
    fabric, ted = three_stage(3, 4), Ted()
    for name in fabric.names:
        ted.put(fabric.block(name))
    version = ted.since(0).version
    fabric.cut("S1", "L1")
    ted.put(fabric.block("S1"))
    assert ted.since(version).cut_alone
    ted.put(fabric.block("L1"))
    delta = ted.since(version)
    assert delta.cut is not None
    assert not delta.cut_alone  # of two versions together, nothing is said
    fabric.cut("S1", "L2")
    fabric.limit("S2", "L2", 100.0)
    for name in ("S1", "S2"):
        ted.put(fabric.block(name))
    delta = ted.since(delta.version)
    assert delta.cut is not None
    assert not delta.cut_alone


def play(history: list[tuple[int, Router | Bandwidths | Lost | None, bool]]) -> None:
    """Solvers that asked after any of the steps before get a delta that is true of theirs."""
    ted = Ted()
    for node, router in full_mesh().items():
        ted.put(router.block(node))
    first = ted.since(0)
    known = {first.version: (as_it_was(first.graph), ted.delays())}
    for node, router, asked in history:
        present = ted.block(NodeId(node))
        if router is None:
            ted.remove(NodeId(node))
        elif isinstance(router, Bandwidths | Lost):
            if present is None or present.network or not len(present.neighbors):
                continue
            if isinstance(router, Lost):
                ted.put(router.left(present))
            else:
                ted.put(router.put(present))
        else:
            ted.put(router.block(node))
        if asked:
            same_graph(ted.graph(), from_nothing(ted))
            same_delays(ted)
            for version, (graph, delays) in known.items():
                true_of(graph, ted.since(version))
                if ted.since(version).kind < ChangeKind.DELAY:
                    np.testing.assert_array_equal(delays, ted.delays())
            now = ted.since(0)
            known[now.version] = as_it_was(now.graph), ted.delays()
            assert ted.since(now.version).kind is ChangeKind.NONE
    same_graph(ted.graph(), from_nothing(ted))
    same_delays(ted)


@settings(max_examples=150)
@given(histories(known=True))
def test_any_history_of_routers_with_known_capacities(history):
    play(history)


@settings(max_examples=80)
@given(histories(known=False))
def test_any_history_of_routers_with_unknown_capacities(history):
    play(history)


@pytest.mark.parametrize("pairs", [1, 3, 12], ids=["a link", "some links", "most links"])
def test_links_that_go_and_come_back_leave_the_rest_as_it_was(pairs):
    """First one end advertises it, which changes nothing yet, then the other."""
    whole = full_mesh()
    ted = Ted()
    for node, router in whole.items():
        ted.put(router.block(node))
    before = ted.graph()
    ends = [(a, b) for a in whole for b in whole if a < b][:pairs]
    for told in (ends, [(b, a) for a, b in ends]):
        for node, far in told:
            whole[node].links = [link for link in whole[node].links if link[0] != far]
            ted.put(whole[node].block(node))
        same_graph(ted.graph(), from_nothing(ted))
    assert len(ted.graph().src) == len(before.src) - 2 * pairs
    for node, router in full_mesh().items():
        ted.put(router.block(node))
    same_graph(ted.graph(), before)


@pytest.mark.parametrize("pairs", [1, 4, 5])
def test_links_lost_from_a_large_graph_leave_the_graph_of_the_others(pairs):
    """Beyond a few edges and cuts other steps are the quickest."""
    count = 30
    mesh = {a: [link_to(b, 1e9) for b in range(count) if b != a] for a in range(count)}
    ted = Ted()
    for node, links in mesh.items():
        ted.put(Router(links).block(node))
    before = ted.graph()
    version, last = ted.since(0).version, count - 1
    lost = [(0, 1), (0, last), (1, 2), (12, 13), (last - 1, last)][:pairs]
    ends = {frozenset(pair) for pair in lost}
    for node in {node for pair in lost for node in pair}:
        kept = [link for link in mesh[node] if frozenset((node, link[0])) not in ends]
        ted.put(Router(kept).block(node))
    graph = ted.graph()
    assert len(before.dst) - len(graph.dst) == 2 * pairs
    assert len(ted.since(version).cut) == 2 * pairs  # the graph was not built again
    same_graph(graph, from_nothing(ted))


@pytest.mark.parametrize("size", [5, 40])
@pytest.mark.parametrize("seed", range(4))
def test_opposite_edges_are_right_however_many_losses_later_they_are_wanted(size, seed):
    """Also where lost links come back, alone or with others."""
    fabric, ted, random = three_stage(5, size), Ted(), np.random.default_rng(seed)
    for name in fabric.names:
        ted.put(fabric.block(name))
    graph = ted.graph()
    lost: list[list[Link]] = []
    for _ in range(60):
        if len(lost) > 12 or (lost and random.random() < 0.4):
            changed = lost.pop(int(random.integers(len(lost))))
            fabric.links += changed
        else:
            one = fabric.links[int(random.integers(len(fabric.links)))]
            changed = [k for k in fabric.links if {k.tail, k.head} == {one.tail, one.head}]
            fabric.cut(one.tail, one.head)
            lost.append(changed)
        for link in changed:
            ted.put(fabric.block(link.tail))
        if random.random() < 0.8:
            graph = ted.graph()
        if random.random() < 0.3:
            src = np.arange(len(graph.nodes)).repeat(np.diff(graph.indptr))
            expected = opposites(src, graph.dst, len(graph.nodes))
            np.testing.assert_array_equal(graph.reverse, expected)


def test_a_lost_link_waits_for_opposite_edges_no_more_than_one_that_comes_back():
    fabric, ted = three_stage(5, 9), Ted()
    for name in fabric.names:
        ted.put(fabric.block(name))
    before, whole = ted.graph(), list(fabric.links)
    fabric.cut("S2", "L3")
    ted.put(fabric.block("S2"))
    left = ted.graph()
    assert "edges" not in left.opposite.__dict__
    fabric.links = whole
    ted.put(fabric.block("L3"))
    ted.put(fabric.block("S2"))
    assert "edges" not in left.opposite.__dict__
    np.testing.assert_array_equal(ted.graph().reverse, before.reverse)


def test_a_lost_link_takes_one_array_more_than_those_of_the_new_graph():
    size = 400
    src = np.arange(size).repeat(size - 1)
    dst = np.concatenate([np.delete(np.arange(size), node) for node in range(size)])
    rates = np.full(len(dst), 1e9)
    graph = Graph(
        nodes=np.arange(size),
        indptr=np.arange(size + 1) * (size - 1),
        dst=dst,
        metric=same_metric(10, len(dst)),
        opposite=Opposite(opposites(src, dst, size)),
        capacity=rates,
        available=rates,
        transit=np.ones(size, bool),
        network=np.zeros(size, bool),
        uniform_metric=10,
    )
    cut = [graph.edge(0, 7), graph.edge(7, 0)]
    tracemalloc.start()
    try:
        left = without_edges(graph, cut)
        assert len(left.reverse) == len(left.dst)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4.5 * dst.nbytes  # dst, reverse, capacity, and numbers before edges are cut
    assert left.reverse[left.reverse].tolist() == list(range(len(left.dst)))
    np.testing.assert_array_equal(left.dst[left.reverse], left.src)


@settings(max_examples=60)
@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda e: e[0] != e[1])))
def test_the_opposite_of_every_edge_is_found(edges):
    ordered = sorted(edges)
    src, dst = (np.array([edge[at] for edge in ordered], np.int64) for at in (0, 1))
    place = {edge: at for at, edge in enumerate(ordered)}
    expected = [place.get((b, a), -1) for a, b in ordered]
    assert opposites(src, dst, 10).tolist() == expected


def test_a_router_that_flaps_for_long_needs_no_more_memory():
    """Its links keep their rows; rows that are no longer used are freed from time to time."""
    ted, whole = Ted(), full_mesh()
    for node, router in whole.items():
        ted.put(router.block(node))
    for turn in range(400):
        mine = whole[1 + turn % 3]
        mine.links = (mine.links * 4)[: 2 + turn % 19]
        ted.put(mine.block(1 + turn % 3))
    assert ted._store._end < 3000
    same_graph(ted.graph(), from_nothing(ted))


def test_ids_of_removed_routers_are_freed():
    ted = Ted()
    for node in range(1, 4000):
        ted.put(Router([(node + 5000, 10, 1, 1e9, np.nan, np.nan)]).block(1))
        ted.put(Router([(1, 10, 1, 1e9, np.nan, np.nan)]).block(2))
        if node % 500 == 0:
            ted.remove(NodeId(2))
            ted.put(Router([(1, 10, 1, 1e9, np.nan, np.nan)]).block(2))
            ted.graph()
    assert len(ted._store._numbers) < 2000
    same_graph(ted.graph(), from_nothing(ted))


@settings(max_examples=100)
@given(st.lists(st.floats(1e-3, 1e13), min_size=65, max_size=80))
def test_many_values_are_snapped_like_single_ones(values):
    many = snap(np.array(values))
    assert many.tolist() == [snap(np.array([value]))[0] for value in values]
