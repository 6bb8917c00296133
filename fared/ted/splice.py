"""A graph from the one before it: a few links came, went or cost something else.

A change of topology is mostly one link or one router's links. Then arrays are cut and pasted
at a few places instead of being made again.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from fared.ted.graph import Graph, Loss, common, run_starts, same_metric

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from fared.core.ids import NodeId
    from fared.ted.rows import Rows

_T = TypeVar("_T", bound=np.generic)
_FEW_PAIRS = 256
_FEW_CUTS = 8
_SMALL_GRAPH = 1_000
"""Up to so many edges making it anew is as quick."""


@dataclass(slots=True)
class _News:
    """What changed, nodes by index: pairs of ends (lower first), cost by edge, who is crossed."""

    gone: set[tuple[int, int]] = field(default_factory=set)
    come: set[tuple[int, int]] = field(default_factory=set)
    costs: dict[int, int] = field(default_factory=dict)
    transit: dict[int, bool] = field(default_factory=dict)


class _Edge(NamedTuple):
    """A new edge, and the old one that it comes before."""

    before: int
    tail: int
    head: int
    metric: int
    capacity: float
    available: float


def respliced(
    graph: Graph, changed: Collection[NodeId], routers: Mapping[NodeId, Rows]
) -> Graph | None:
    """The graph once the ``changed`` routers have the links that ``routers`` says they have.

    The routers are those of the graph, all capacities are known. The graph stays the same
    object if its edges do, which is so when only one end has told of a link so far. The
    capacities of changed routers are the caller's to write. None if so much is different that
    building anew is better.
    """
    news = _News()
    for node in changed:
        index, rows = graph.index(node), routers[node]
        if index is None or bool(graph.network[index]) != rows.block.network:
            return None
        if bool(graph.transit[index]) != rows.block.transit:
            news.transit[index] = rows.block.transit
        _compare(graph, index, routers, news)
        if len(news.gone) + len(news.come) > _FEW_PAIRS:
            return None
    if news.transit:
        transit = graph.transit.copy()
        transit[list(news.transit)] = list(news.transit.values())
        graph = replace(graph, transit=transit, loss=None)
    if news.costs:
        metric = graph.metric.copy()
        metric[list(news.costs)] = list(news.costs.values())
        graph = replace(graph, metric=metric, uniform=common(metric), loss=None)
    if not news.gone and not news.come:
        return graph
    return _pasted(graph, routers, news) if len(graph.dst) > _SMALL_GRAPH else None


def _compare(graph: Graph, index: int, routers: Mapping[NodeId, Rows], news: _News) -> None:
    """Find what is different at one router."""
    names = graph.nodes
    rows = routers[names[index]]
    low, high = int(graph.indptr[index]), int(graph.indptr[index + 1])
    before, listed = graph.dst[low:high], graph.indexes(rows.neighbors)
    first = run_starts(listed)
    first = first[(listed[first] >= 0) & (listed[first] != index)]
    after, least = listed[first], rows.metrics[first]
    if rows.block.network:
        least = np.zeros_like(least)
    if len(before) == len(after) and (before == after).all():
        place = np.arange(len(after))
    else:
        place, kept = _found(after, before)
        for head in before[~_found(before, after)[1]].tolist():
            news.gone.add((min(index, head), max(index, head)))
        for head in after[~kept].tolist():
            if (routers[names[head]].neighbors == names[index]).any():
                news.come.add((min(index, head), max(index, head)))
        place, least = place[kept], least[kept]
    other = (graph.metric[low + place] != least).nonzero()[0]
    if len(other):
        news.costs.update(zip((low + place[other]).tolist(), least[other].tolist(), strict=True))


def _found(
    values: NDArray[np.int64], among: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each of ``values`` is in ``among``, both ascending, and whether it is there."""
    if not len(among):
        return np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    place = np.minimum(among.searchsorted(values), len(among) - 1)
    return place, among[place] == values


def _new_edge(graph: Graph, tail: int, head: int, routers: Mapping[NodeId, Rows]) -> _Edge:
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


def _pasted(graph: Graph, routers: Mapping[NodeId, Rows], news: _News) -> Graph:
    """Cut out the edges that are gone and paste in those that came."""
    cut = sorted(
        edge
        for pair in news.gone
        for edge in (graph.edge(*pair), graph.edge(*reversed(pair)))
        if edge is not None
    )
    ends = sorted(end for a, b in news.come for end in ((a, b), (b, a)))
    new = [_new_edge(graph, *end, routers) for end in ends]
    places = np.array([edge.before for edge in new], np.int64)
    added = places - np.searchsorted(cut, places) + np.arange(len(new))
    number = dict(zip(ends, added.tolist(), strict=True))
    change = np.zeros(len(graph.indptr), np.int64)
    np.subtract.at(change, [graph.tail(edge) + 1 for edge in cut], 1)
    np.add.at(change, [edge.tail + 1 for edge in new], 1)

    def paste(values: NDArray[_T], fresh: Sequence[float]) -> NDArray[_T]:
        return _paste(values, cut, places.tolist(), np.array(fresh, values.dtype))

    uniform, size = graph.uniform, len(graph.dst) + len(new) - len(cut)
    if uniform and size and all(edge.metric == uniform for edge in new):
        metric = same_metric(uniform, size)
    else:
        metric = paste(graph.metric, [edge.metric for edge in new])
        uniform = common(metric)
    capacity = paste(graph.capacity, [edge.capacity for edge in new])
    available = capacity
    if graph.available is not graph.capacity:
        available = paste(graph.available, [edge.available for edge in new])
    return replace(
        graph,
        indptr=graph.indptr + change.cumsum(),
        dst=paste(graph.dst, [edge.head for edge in new]),
        metric=metric,
        reverse=_paste(
            _renumbered(graph.reverse, cut, places),
            cut,
            places.tolist(),
            np.array([number[edge.head, edge.tail] for edge in new], np.int64),
        ),
        capacity=capacity,
        available=available,
        uniform=uniform,
        loss=None if new else Loss(weakref.ref(graph), tuple(cut)),
    )


def _renumbered(
    edges: NDArray[np.int64], cut: Sequence[int], places: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Edge numbers as they are afterwards."""
    if len(cut) + len(places) > _FEW_CUTS:
        shift = np.zeros(len(edges) + 1, np.int64)
        np.add.at(shift, places, 1)
        np.subtract.at(shift, np.array(cut, np.int64) + 1, 1)
        renumbered: NDArray[np.int64] = (np.arange(len(edges)) + shift[:-1].cumsum())[edges]
        return renumbered
    shift = np.zeros(len(edges), np.int8)
    for place in cut:
        shift -= (edges > place).view(np.int8)
    for place in places.tolist():
        shift += (edges >= place).view(np.int8)
    return edges + shift


def _paste(
    values: NDArray[_T], cut: Sequence[int], places: Sequence[int], fresh: NDArray[_T]
) -> NDArray[_T]:
    """Leave out the values at ``cut`` and put fresh ones before those at ``places``."""
    parts, done = [], 0
    stops = [(place, 0, at) for at, place in enumerate(places)] + [(c, 1, 0) for c in cut]
    for place, skip, at in sorted(stops):
        parts.append(values[done:place])
        if not skip:
            parts.append(fresh[at : at + 1])
        done = place + skip
    return np.concatenate((*parts, values[done:]))
