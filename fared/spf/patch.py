"""A plan from the one before it: a link far away is gone and no distance is another.

The usual loss in a Clos fabric leaves every node at the distance it had: one edge of the DAG is
missing, with the slots of its head that it fed. Then the plan is cut where that edge was instead
of being made again. What this does not cover is left to ``build_plan``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fared.spf.plan import UNREACHABLE, Plan, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fared.ted.graph import Graph
_T = TypeVar("_T", bound=np.generic)
_MOST_CUT = 100
"""What an eight-bit count of them holds."""


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """A plan, and what it lacks of the one before.

    ``node`` lost the former slots ``low`` to ``high - 1``; -1 and no slots where no path is
    another. Slots after them have moved up, all else stands in the order in which it stood.
    """

    plan: Plan
    node: int
    low: int
    high: int

    def unlike(self, old: NDArray[np.float64], new: NDArray[np.float64]) -> NDArray[np.int64]:
        """The slots of which the value is another than that of the former slot."""
        different = np.empty(len(new), bool)
        np.not_equal(old[: self.low], new[: self.low], out=different[: self.low])
        np.not_equal(old[self.high :], new[self.low :], out=different[self.low :])
        return different.nonzero()[0]

    def without(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """What was known of each former slot, of those that are left."""
        return _cut(values, self.low, self.high)


def cut_plan(old: Plan, graph: Graph, cut: Sequence[int]) -> Patch | None:
    """The plan on ``graph``, which is ``old.graph`` without the edges ``cut`` (ascending).

    Both have the same nodes. None where another distance, first hop or more than one node is
    concerned, or metrics differ.
    """
    before = old.graph
    unlike = not graph.uniform or graph.uniform != before.uniform or bool(before.network.any())
    if len(cut) > _MOST_CUT or unlike:
        return None
    lost = [edge for edge in cut if _on_path(old, edge)]
    if not lost:
        return Patch(_renumbered(old, graph, cut), -1, 0, 0)
    return _without(old, graph, cut, lost[0]) if len(lost) == 1 else None


def _without(old: Plan, graph: Graph, cut: Sequence[int], edge: int) -> Patch | None:
    """The plan without this one edge of its DAG."""
    tail, node = old.graph.tail(edge), int(old.graph.dst[edge])
    others = _tails(old, graph, node)
    depth = int(old.distance[node]) // graph.uniform - 1
    gone = _goes(old, edge, depth) if tail != old.root and len(others) else None
    if gone is None:
        return None
    low, high = gone.low, gone.high
    row_of, count = old.row_of, old.slot_count.copy()
    if len(others) == 1 and count[others[0]]:
        row_of = np.where(row_of == node, row_of[others[0]], row_of)
    count[node] -= high - low
    kept = replace(
        old,
        slot_node=_cut(old.slot_node, low, high),
        slot_hop=_cut(old.slot_hop, low, high),
        slot_start=old.slot_start - (high - low) * (old.slot_start > low),
        slot_count=count,
        row_of=row_of,
    )
    return Patch(_renumbered(kept, graph, cut, gone), node, low, high)


@dataclass(frozen=True, slots=True)
class _Gone:
    """Of the level at ``depth``: the edge at ``place``, pairs ``first`` to ``last`` of its step.

    ``low`` to ``high`` are the slots that these fed.
    """

    depth: int
    place: int
    first: int
    last: int
    low: int
    high: int


def _on_path(plan: Plan, edge: int) -> bool:
    graph = plan.graph
    tail, head = graph.tail(edge), int(graph.dst[edge])
    near = int(plan.distance[tail])
    crossed = near != UNREACHABLE and (tail == plan.root or bool(graph.transit[tail]))
    return crossed and near + graph.uniform == int(plan.distance[head])


def _goes(plan: Plan, edge: int, depth: int) -> _Gone | None:
    """What goes with an edge; None where slots go that others are fed by."""
    step, level = plan.steps[depth], plan.levels[depth]
    fed = (step.edge == edge).nonzero()[0]
    if not len(fed):
        return None
    first, last = int(fed[0]), int(fed[-1]) + 1
    place = first if step.edge is level else int((level == edge).nonzero()[0][0])
    if step.target is not None:
        there = _still_fed(step.target, first, last)
        return _Gone(depth, place, first, last, step.low, step.low) if there else None
    low, high = step.low + first, step.low + last
    if any(((low <= s.source) & (s.source < high)).any() for s in plan.steps[depth + 1 :]):
        return None
    return _Gone(depth, place, first, last, low, high)


def _still_fed(target: NDArray[np.int64], first: int, last: int) -> bool:
    """Whether all slots that these pairs feed are fed by others, too."""
    count = np.bincount(target)
    own, times = np.unique(target[first:last], return_counts=True)
    return bool((count[own] > times).all())


def _tails(plan: Plan, graph: Graph, node: int) -> NDArray[np.int64]:
    """Who precedes a node on shortest paths in ``graph``."""
    ends = graph.dst[int(graph.indptr[node]) : int(graph.indptr[node + 1])]
    near = plan.distance[ends] == plan.distance[node] - graph.uniform
    tails: NDArray[np.int64] = ends[near & (graph.transit[ends] | (ends == plan.root))]
    return tails


def _cut(values: NDArray[_T], low: int, high: int) -> NDArray[_T]:
    if low == high:
        return values
    return np.concatenate((values[:low], values[high:]))


def _renumbered(
    plan: Plan,
    graph: Graph,
    cut: Sequence[int],
    gone: _Gone | None = None,
) -> Plan:
    """The same paths by the numbers that edges have now, without what is gone."""
    steps, levels = [], []
    for depth, (step, level) in enumerate(zip(plan.steps, plan.levels, strict=True)):
        at = gone if gone is not None and depth == gone.depth else None
        whole = _all_into(plan.graph, graph, level)
        if whole is None:
            whole = _shifted(level, cut)
            if at is not None:
                whole = _cut(whole, at.place, at.place + 1)
        edge = whole
        if step.edge is not level:
            edge = _shifted(step.edge, cut)
            if at is not None:
                edge = _cut(edge, at.first, at.last)
        levels.append(whole)
        steps.append(_moved(step, edge, gone, here=at is not None))
    return replace(
        plan,
        graph=graph,
        via=_shifted(plan.via, cut),
        steps=tuple(steps),
        levels=tuple(levels),
    )


def _all_into(before: Graph, graph: Graph, edges: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """All edges into certain nodes, read from ``graph`` as they were read from ``before``.

    None unless ``edges`` is exactly the part of ``before.reverse`` that belongs to a run of nodes.
    """
    if edges.base is not before.reverse or not len(edges):
        return None
    first, last = int(before.dst[edges[0]]), int(before.dst[edges[-1]]) + 1
    low, high = int(before.indptr[first]), int(before.indptr[last])
    if high - low != len(edges) or before.reverse[low] != edges[0]:
        return None
    return graph.reverse[int(graph.indptr[first]) : int(graph.indptr[last])]


def _moved(step: Step, edge: NDArray[np.int64], gone: _Gone | None, *, here: bool) -> Step:
    """A step with the slots that are left; ``edge`` is up to date."""
    size = 0 if gone is None else gone.high - gone.low
    if gone is not None and here:
        source, target = _cut(step.source, gone.first, gone.last), step.target
        if target is not None:
            target = _cut(target, gone.first, gone.last)
        return replace(step, high=step.high - size, source=source, edge=edge, target=target)
    if gone is None or not size or step.high <= gone.low:
        return replace(step, edge=edge)
    return replace(
        step,
        low=step.low - size,
        high=step.high - size,
        source=step.source - size * (step.source >= gone.high),
        edge=edge,
        seeds=step.seeds - size * (step.seeds >= gone.high),
    )


def _shifted(edges: NDArray[np.int64], cut: Sequence[int]) -> NDArray[np.int64]:
    """Edge numbers once those of ``cut`` are not counted any more."""
    shift = np.zeros(len(edges), np.int8)
    for edge in cut:
        shift += (edges > edge).view(np.int8)
    return edges - shift
