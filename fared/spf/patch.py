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


class Advance(msgspec.Struct, frozen=True, eq=False):
    """A step from one plan of a root to the next: ``delta`` leads from ``before`` to ``plan``."""

    before: SpfPlan | None
    plan: SpfPlan
    delta: PlanDelta


def advance(
    old: SpfPlan | None, root: int, since: GraphDelta, known: Advance | None = None
) -> Advance:
    """Return the step to the plan of ``root`` on ``since.graph``; ``old`` is on the former graph.

    ``known`` is the step of another solver to this plan.
    """
    # Capacity and load are written into the same graph, and the plan depends on the topology only.
    if old is not None and since.kind < ChangeKind.TOPOLOGY:
        return Advance(old, old, _SAME)
    if old is not None and known is not None and known.before is old:
        return known
    cut = None
    if old is not None and since.cut is not None:
        cut = cut_plan(old, since.graph, since.cut)
    if cut is not None:
        return Advance(old, *cut)
    plan = build_plan(since.graph, root) if known is None else known.plan
    return Advance(old, plan, PlanDelta(rebuilt=True, moved=old is None or _nodes_moved(old, plan)))


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
    fed, ``behind`` the pairs of later steps, by depth, that these slots fed.
    """

    depth: int
    place: int
    first: int
    last: int
    low: int
    high: int
    behind: dict[int, NDArray[np.int64]]


def _on_path(plan: SpfPlan, edge: int) -> bool:
    graph = plan.graph
    tail, head = graph.tail(edge), int(graph.dst[edge])
    near = int(plan.distance[tail])
    crossed = near != UNREACHABLE and (tail == plan.root or bool(graph.transit[tail]))
    return crossed and near + graph.uniform_metric == int(plan.distance[head])


def _goes(plan: SpfPlan, edge: int, depth: int) -> _Gone | None:
    """Return what an edge takes along; None if the plan cannot be cut there.

    It cannot if only lost slots feed another, or if pairs share slots and one of these is not fed
    any more.
    """
    step, level = plan.steps[depth], plan.levels[depth]
    fed = (step.edge == edge).nonzero()[0]
    if not len(fed):
        return None
    first, last = int(fed[0]), int(fed[-1]) + 1
    place = first if step.edge is level else int((level == edge).nonzero()[0][0])
    # Shared slots stay while other pairs feed them; no slot is lost.
    if step.target is not None:
        there = _still_fed(step.target, step.target[first:last])
        return _Gone(depth, place, first, last, step.low, step.low, {}) if there else None
    low, high = step.low + first, step.low + last
    behind = _behind(plan, depth, low, high)
    return None if behind is None else _Gone(depth, place, first, last, low, high, behind)


def _behind(plan: SpfPlan, depth: int, low: int, high: int) -> dict[int, NDArray[np.int64]] | None:
    """Return the pairs that the slots ``low`` to ``high - 1`` feed in steps behind ``depth``.

    None if a slot there is fed by nothing else, and would go as well.
    """
    found = {}
    for number, later in enumerate(plan.steps[depth + 1 :], depth + 1):
        fed = (low <= later.source) & (later.source < high)
        if not anywhere(fed):
            continue
        if later.target is None or not _still_fed(later.target, later.target[fed]):
            return None
        found[number] = fed.nonzero()[0]
    return found


def _still_fed(target: NDArray[np.int64], gone: NDArray[np.int64]) -> bool:
    """Whether other pairs also feed all slots that the pairs with the targets ``gone`` feed."""
    count = np.bincount(target)
    own, times = np.unique(gone, return_counts=True)
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
        moved = _moved(step, edge, gone, here=at is not None)
        fed = None if gone is None else gone.behind.get(depth)
        steps.append(moved if fed is None else _without_pairs(moved, fed))
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


def _without_pairs(step: SweepStep, pairs: NDArray[np.int64]) -> SweepStep:
    """Return a step without some of its pairs; others feed their slots, too."""
    assert step.target is not None
    return replace(
        step,
        source=np.delete(step.source, pairs),
        edge=np.delete(step.edge, pairs),
        target=np.delete(step.target, pairs),
    )


def _shifted(edges: NDArray[np.int64], cut: Sequence[int]) -> NDArray[np.int64]:
    """Return edge numbers after the removal of the edges ``cut`` (ascending)."""
    if len(edges) <= _FEW_EDGES:
        return edges - np.array(cut, np.int64).searchsorted(edges)
    shift = np.zeros(len(edges), np.int8)
    for edge in cut:
        shift += (edges > edge).view(np.int8)
    return edges - shift
