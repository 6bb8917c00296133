"""Derive the next plan from the present one: ``advance`` maps a ``GraphDelta`` to a ``PlanDelta``.

After the usual loss in a Clos fabric every node keeps its distance: the DAG lacks one edge, and the
head of that edge the slots that it fed. Then the plan is cut at that edge instead of being rebuilt.
Any other change of the topology calls ``build_plan``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from fared.spf.plan import SpfPlan, SweepStep, build_plan
from fared.spf.search import UNREACHABLE
from fared.ted.change import ChangeKind
from fared.ted.graph import anywhere

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fared.ted.change import GraphDelta
    from fared.ted.graph import Graph

_T = TypeVar("_T", bound=np.generic)
_MOST_CUT = 100
"""The most edges to cut: ``_shifted`` counts them in eight bits."""
_FEW_EDGES = 512
"""Edges that are looked up one by one: so few take fewer steps, which count with cold caches."""


class PlanDelta(msgspec.Struct, frozen=True):
    """How a plan differs from the one before it.

    ``spf_ran``: the graph is another object. ``rebuilt``: no former slot is kept. If False,
    ``node`` lost the former slots ``low`` to ``high - 1`` (-1, and no slots, where no path
    changed); later slots moved up, in the same order. ``moved``: a node may be at another distance,
    at another index, or attached to other networks.
    """

    spf_ran: bool = True
    rebuilt: bool = False
    moved: bool = False
    node: int = -1
    low: int = 0
    high: int = 0

    def changed(self, old: NDArray[np.float64], new: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the slots whose value differs from that of the former slot."""
        if self.low == self.high:
            found: NDArray[np.int64] = (old != new).nonzero()[0]
            return found
        different = np.empty(len(new), bool)
        np.not_equal(old[: self.low], new[: self.low], out=different[: self.low])
        np.not_equal(old[self.high :], new[self.low :], out=different[self.low :])
        return different.nonzero()[0]


_SAME = PlanDelta(spf_ran=False)


def advance(
    old: SpfPlan | None, root: int, delta: GraphDelta, known: SpfPlan | None = None
) -> tuple[SpfPlan, PlanDelta]:
    """Return the plan of ``root`` on ``delta.graph``; ``old`` is the plan on the former graph.

    ``known`` is this plan, if another solver has already computed it from scratch.
    """
    # Capacity and load are written into the same graph, and the plan depends on the topology only.
    if old is not None and delta.kind < ChangeKind.TOPOLOGY:
        return old, _SAME
    cut = None
    if old is not None and delta.cut is not None:
        cut = cut_plan(old, delta.graph, delta.cut)
    if cut is not None:
        return cut
    plan = known or build_plan(delta.graph, root)
    return plan, PlanDelta(rebuilt=True, moved=old is None or _nodes_moved(old, plan))


def _nodes_moved(old: SpfPlan, new: SpfPlan) -> bool:
    return (
        bool(new.graph.network.any())
        or not np.array_equal(old.graph.nodes, new.graph.nodes)
        or not np.array_equal(old.distance, new.distance)
    )


def cut_plan(old: SpfPlan, graph: Graph, cut: Sequence[int]) -> tuple[SpfPlan, PlanDelta] | None:
    """Return the plan on ``graph``, which is ``old.graph`` without the edges ``cut`` (ascending).

    Both have the same nodes. None where a distance or first hop changes, more than one node
    loses slots, or metrics are not all equal.
    """
    before = old.graph
    unlike = (
        not graph.uniform_metric
        or graph.uniform_metric != before.uniform_metric
        or anywhere(before.network)
    )
    if len(cut) > _MOST_CUT or unlike:
        return None
    lost = [edge for edge in cut if _on_path(old, edge)]
    # The loss of an edge shortens no path, and no path crossed these.
    if not lost:
        return _renumbered(old, graph, cut), PlanDelta()
    return _without(old, graph, cut, lost[0]) if len(lost) == 1 else None


def _without(
    old: SpfPlan, graph: Graph, cut: Sequence[int], edge: int
) -> tuple[SpfPlan, PlanDelta] | None:
    """Return the plan without this one edge of its DAG."""
    tail, node = old.graph.tail(edge), int(old.graph.dst[edge])
    others = _tails(old, graph, node)
    depth = int(old.distance[node]) // graph.uniform_metric - 1
    # Another predecessor at the same distance keeps the distance of the node, and so of all nodes
    # behind it. An edge of the root would take a first hop along.
    gone = _goes(old, edge, depth) if tail != old.root and len(others) else None
    if gone is None:
        return None
    low, high = gone.low, gone.high
    row_of, count = old.row_of, old.slot_count.copy()
    # The only predecessor left: share its row, as ``build_plan`` would.
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
    return _renumbered(kept, graph, cut, gone), PlanDelta(node=node, low=low, high=high)


class _Gone(msgspec.Struct, frozen=True):
    """What a lost edge takes along: the edge at ``place`` of the level at ``depth``.

    ``first`` to ``last`` are its pairs in the step, ``low`` to ``high`` the slots that only these
    fed.
    """

    depth: int
    place: int
    first: int
    last: int
    low: int
    high: int


def _on_path(plan: SpfPlan, edge: int) -> bool:
    graph = plan.graph
    tail, head = graph.tail(edge), int(graph.dst[edge])
    near = int(plan.distance[tail])
    crossed = near != UNREACHABLE and (tail == plan.root or bool(graph.transit[tail]))
    return crossed and near + graph.uniform_metric == int(plan.distance[head])


def _goes(plan: SpfPlan, edge: int, depth: int) -> _Gone | None:
    """Return what an edge takes along; None if the plan cannot be cut there.

    It cannot if a lost slot feeds others, or if pairs share slots and one of these is not fed any
    more.
    """
    step, level = plan.steps[depth], plan.levels[depth]
    fed = (step.edge == edge).nonzero()[0]
    if not len(fed):
        return None
    first, last = int(fed[0]), int(fed[-1]) + 1
    place = first if step.edge is level else int((level == edge).nonzero()[0][0])
    # Shared slots stay while other pairs feed them; no slot is lost.
    if step.target is not None:
        there = _still_fed(step.target, first, last)
        return _Gone(depth, place, first, last, step.low, step.low) if there else None
    low, high = step.low + first, step.low + last
    # Slots behind the lost ones would go as well.
    for later in plan.steps[depth + 1 :]:
        if anywhere((low <= later.source) & (later.source < high)):
            return None
    return _Gone(depth, place, first, last, low, high)


def _still_fed(target: NDArray[np.int64], first: int, last: int) -> bool:
    """Whether other pairs also feed all slots that these pairs feed."""
    count = np.bincount(target)
    own, times = np.unique(target[first:last], return_counts=True)
    return bool((count[own] > times).all())


def _tails(plan: SpfPlan, graph: Graph, node: int) -> NDArray[np.int64]:
    """Return the predecessors of a node on shortest paths in ``graph``."""
    ends = graph.dst[int(graph.indptr[node]) : int(graph.indptr[node + 1])]
    near = plan.distance[ends] == plan.distance[node] - graph.uniform_metric
    tails: NDArray[np.int64] = ends[near & (graph.transit[ends] | (ends == plan.root))]
    return tails


def _cut(values: NDArray[_T], low: int, high: int) -> NDArray[_T]:
    if low == high:
        return values
    return np.concatenate((values[:low], values[high:]))


def _renumbered(
    plan: SpfPlan,
    graph: Graph,
    cut: Sequence[int],
    gone: _Gone | None = None,
) -> SpfPlan:
    """Return the same paths with the present edge numbers, without the lost edge and slots."""
    steps, levels = [], []
    for depth, (step, level) in enumerate(zip(plan.steps, plan.levels, strict=True)):
        at = gone if gone is not None and depth == gone.depth else None
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


def _moved(
    step: SweepStep, edge: NDArray[np.int64], gone: _Gone | None, *, here: bool
) -> SweepStep:
    """Return a step without the lost slots; ``edge`` is already renumbered."""
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
    """Return edge numbers after the removal of the edges ``cut`` (ascending)."""
    if len(edges) <= _FEW_EDGES:
        return edges - np.array(cut, np.int64).searchsorted(edges)
    shift = np.zeros(len(edges), np.int8)
    for edge in cut:
        shift += (edges > edge).view(np.int8)
    return edges - shift
