"""Derive the new graph from the old one when a few links are added, removed or change their metric.

Most topology changes are one link, or the links of one router. Then a few edges are removed from
the arrays or inserted at their places, and the graph is not built again.

A fast path beside ``assemble``: tests/ted/test_changes.py proves them equal; row ``graph of a lost
link``.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from fared.paths.ted.graph import Graph, common, run_starts, same_metric
from fared.paths.ted.opposite import edit, parts_left

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fared.core.ids import NodeId
    from fared.paths.ted.rows import LinkRows

_T = TypeVar("_T", bound=np.generic)
_FEW_PAIRS = 256


class _Delta(msgspec.Struct):
    """The changes: pairs of node indexes (lower first), metric by edge, transit by node index."""

    removed: set[tuple[int, int]] = msgspec.field(default_factory=set)
    added: set[tuple[int, int]] = msgspec.field(default_factory=set)
    costs: dict[int, int] = msgspec.field(default_factory=dict)
    transit: dict[int, bool] = msgspec.field(default_factory=dict)


class _Edge(msgspec.Struct, frozen=True):
    """A new edge, and the number of the old edge before which it is inserted."""

    before: int
    tail: int
    head: int
    metric: int
    capacity: float
    available: float


def updated_graph(
    graph: Graph, changed: Mapping[NodeId, NodeId | None], routers: Mapping[NodeId, LinkRows]
) -> tuple[Graph | None, tuple[int, ...] | None]:
    """Return the graph with the links of the ``changed`` routers as in ``routers``, and lost edges.

    ``changed`` has the neighbor of each to which it only lost its link (``lost_row``), else None.
    Requires that the graph has the same routers and that all capacities are known. The graph is the
    same object if no edge changed, for example while only one end advertises a new link; it is None
    if it must be rebuilt, or if that is cheaper. The caller writes the capacities of changed
    routers. The second value are the edges of ``graph`` that were cut, None where there are other
    differences.
    """
    delta = _Delta()
    for node, lost in changed.items():
        index, rows = graph.index(node), routers[node]
        # A new node renumbers all others; a network has other costs and capacities.
        if index is None or bool(graph.network[index]) != rows.block.network:
            return None, None
        if bool(graph.transit[index]) != rows.block.transit:
            delta.transit[index] = rows.block.transit
        far = None if lost is None else graph.index(lost)
        if far is None:
            _compare(graph, index, routers, delta)
        else:
            _lose(graph, index, far, delta)
        if len(delta.removed) + len(delta.added) > _FEW_PAIRS:
            return None, None
    if delta.transit:
        transit = graph.transit.copy()
        transit[list(delta.transit)] = list(delta.transit.values())
        graph = replace(graph, transit=transit)
    if delta.costs:
        metric = graph.metric.copy()
        metric[list(delta.costs)] = list(delta.costs.values())
        graph = replace(graph, metric=metric, uniform_metric=common(metric))
    # Only metrics and transit differ: the edges keep their numbers.
    if not delta.removed and not delta.added:
        return graph, None
    cut = _cut(graph, delta)
    if not delta.added:
        simple = not (delta.costs or delta.transit)
        return without_edges(graph, cut), tuple(cut) if simple else None
    return _applied(graph, routers, delta, cut), None


def _cut(graph: Graph, delta: _Delta) -> list[int]:
    """Return the edges to be removed, ascending."""
    ends = ((graph.edge(a, b), graph.edge(b, a)) for a, b in delta.removed)
    return sorted(edge for pair in ends for edge in pair if edge is not None)


def _lose(graph: Graph, index: int, far: int, delta: _Delta) -> None:
    """Add to ``delta`` that a router has lost its only link to another, and nothing else."""
    if graph.edge(index, far) is not None:
        delta.removed.add((min(index, far), max(index, far)))


def _compare(graph: Graph, index: int, routers: Mapping[NodeId, LinkRows], delta: _Delta) -> None:
    """Add the differences at one router to ``delta``."""
    names = graph.nodes
    rows = routers[names[index]]
    low, high = int(graph.indptr[index]), int(graph.indptr[index + 1])
    before, listed = graph.dst[low:high], graph.indexes(rows.neighbors)
    first = run_starts(listed)
    first = first[(listed[first] >= 0) & (listed[first] != index)]
    after, least = listed[first], rows.metrics[first]
    if rows.block.network:  # RFC 2328 §A.4.3: the distance from a network to its routers is 0
        least = np.zeros_like(least)
    if len(before) == len(after) and (before == after).all():
        place = np.arange(len(after))
    else:
        place, kept = _found(after, before)
        for head in before[~_found(before, after)[1]].tolist():
            delta.removed.add((min(index, head), max(index, head)))
        # RFC 2328 §16.1 (2)(b): an edge only once the other end lists this one
        for head in after[~kept].tolist():
            if (routers[names[head]].neighbors == names[index]).any():
                delta.added.add((min(index, head), max(index, head)))
        place, least = place[kept], least[kept]
    other = (graph.metric[low + place] != least).nonzero()[0]
    if len(other):
        delta.costs.update(zip((low + place[other]).tolist(), least[other].tolist(), strict=True))


def _found(
    values: NDArray[np.int64], among: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the place of each of ``values`` in ``among`` (both ascending), and if it is there."""
    if not len(among):
        return np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    place = np.minimum(among.searchsorted(values), len(among) - 1)
    return place, among[place] == values


def _new_edge(graph: Graph, tail: int, head: int, routers: Mapping[NodeId, LinkRows]) -> _Edge:
    low, high = int(graph.indptr[tail]), int(graph.indptr[tail + 1])
    before = low + int(graph.dst[low:high].searchsorted(head))
    if graph.network[tail]:
        return _Edge(before, tail, head, 0, np.inf, np.inf)
    rows = routers[graph.nodes[tail]]
    there = rows.neighbors == graph.nodes[head]
    metric = int(rows.metrics[there][0])
    used = there & (rows.metrics == metric)
    capacity, available = (sum(v[used].tolist()) for v in (rows.capacities, rows.left()))
    return _Edge(before, tail, head, metric, capacity, available)


def _applied(
    graph: Graph, routers: Mapping[NodeId, LinkRows], delta: _Delta, cut: Sequence[int]
) -> Graph:
    """Apply the delta: remove and insert edges, and renumber the others."""
    ends = sorted(end for a, b in delta.added for end in ((a, b), (b, a)))
    new = [_new_edge(graph, *end, routers) for end in ends]
    places = [edge.before for edge in new]
    added = (place - bisect_left(cut, place) + at for at, place in enumerate(places))
    number = dict(zip(ends, added, strict=True))
    change = np.zeros(len(graph.indptr), np.int64)
    np.subtract.at(change, [graph.tail(edge) + 1 for edge in cut], 1)
    np.add.at(change, [edge.tail + 1 for edge in new], 1)

    def edited(values: NDArray[_T], fresh: Sequence[float]) -> NDArray[_T]:
        return edit(values, cut, places, np.array(fresh, values.dtype))

    uniform_metric, size = graph.uniform_metric, len(graph.dst) + len(new) - len(cut)
    if uniform_metric and size and all(edge.metric == uniform_metric for edge in new):
        metric = same_metric(uniform_metric, size)
    else:
        metric = edited(graph.metric, [edge.metric for edge in new])
        uniform_metric = common(metric)
    capacity = edited(graph.capacity, [edge.capacity for edge in new])
    available = capacity
    if graph.available is not graph.capacity:
        available = edited(graph.available, [edge.available for edge in new])
    return replace(
        graph,
        indptr=graph.indptr + change.cumsum(),
        dst=edited(graph.dst, [edge.head for edge in new]),
        metric=metric,
        opposite=graph.opposite.edited(
            cut, places, np.array([number[edge.head, edge.tail] for edge in new], np.int64)
        ),
        capacity=capacity,
        available=available,
        uniform_metric=uniform_metric,
    )


def without_edges(graph: Graph, cut: Sequence[int]) -> Graph:
    """Return the graph without these edges: a lost link is urgent, and needs few steps."""
    kept = parts_left(cut, len(graph.dst))

    def left(values: NDArray[_T]) -> NDArray[_T]:
        return np.concatenate([values[part] for part in kept])

    size = len(graph.dst) - len(cut)
    uniform_metric = graph.uniform_metric if size else 0
    metric = graph.metric[:size] if uniform_metric else left(graph.metric)
    capacity = left(graph.capacity)
    return replace(
        graph,
        indptr=graph.indptr - np.array(cut, np.int64).searchsorted(graph.indptr),
        dst=left(graph.dst),
        metric=metric,
        opposite=graph.opposite.without(cut),
        capacity=capacity,
        available=capacity if graph.without_load else left(graph.available),
        uniform_metric=uniform_metric or common(metric),
    )
