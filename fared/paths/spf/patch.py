"""Derive the next plan from the present one: ``advance`` maps a ``GraphDelta`` to a ``PlanDelta``.

After the usual loss in a Clos fabric every node keeps its distance: the DAG lacks one edge, and the
head of that edge the slots that it fed. Then the plan is cut at that edge instead of being rebuilt,
at a cost that the links of the two ends determine: its steps stay as they are (``Laid``). Any other
change of the topology calls ``build_plan``.

``cut_plan`` is a fast path beside ``build_plan``: tests/spf/test_patch.py proves them equal; row
``plan of a lost link``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace

from fared.paths.spf.laid import among
from fared.paths.spf.plan import SpfPlan, build_plan
from fared.paths.spf.search import UNREACHABLE
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.graph import anywhere, runs
from fared.paths.ted.opposite import renumbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fared.paths.ted.change import GraphDelta
    from fared.paths.ted.graph import Graph

_MOST_CUT = 100
"""The most edges to cut from a plan before it is built again, without them."""
_WITNESSES = 4
"""How many nodes are asked for all nodes behind at once, before these are looked at one by one."""


class PlanDelta(msgspec.Struct, frozen=True):
    """How a plan differs from the one before it.

    ``spf_ran``: the graph is another object. ``rebuilt``: no former slot is kept. If False,
    ``node`` lost the former slots ``low`` to ``high - 1`` (-1, and no slots, where no path
    changed); later slots moved up, in the same order. ``tail``: from where no path leads to
    ``node`` any more. ``moved``: a node may be at another distance, at another index, or attached
    to other networks.
    """

    spf_ran: bool = True
    rebuilt: bool = False
    moved: bool = False
    node: int = -1
    tail: int = -1
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
    if len(cut) + len(old.laid.lost_edges) > _MOST_CUT or unlike:
        return None
    lost = [edge for edge in cut if _on_path(old, edge)]
    # The loss of an edge shortens no path, and no path crossed these.
    if not lost:
        left = replace(
            old, graph=graph, via=renumbered(old.via, cut, ()), laid=old.laid.without(cut, ())
        )
        return left, PlanDelta()
    return _without(old, graph, cut, lost[0]) if len(lost) == 1 else None


def _without(
    old: SpfPlan, graph: Graph, cut: Sequence[int], edge: int
) -> tuple[SpfPlan, PlanDelta] | None:
    """Return the plan without this one edge of its DAG."""
    tail, node = old.graph.tail(edge), int(old.graph.dst[edge])
    others = _tails(old, graph, node)
    # Another predecessor at the same distance keeps the distance of the node, and so of all nodes
    # behind it. An edge of the root would take a first hop along.
    gone = _slots_fed_only_by(old, tail, node, others) if tail != old.root and len(others) else None
    if gone is None or not _fed_otherwise(old, graph, node, old.slot_hop[gone].tolist()):
        return None
    low, high = gone.start, gone.stop
    row_of, count = old.row_of, old.slot_count.copy()
    # The only predecessor left: share its row, as ``build_plan`` would.
    if len(others) == 1 and count[others[0]]:
        row_of = np.where(row_of == node, row_of[others[0]], row_of)
    count[node] -= high - low
    left = replace(
        old,
        graph=graph,
        via=renumbered(old.via, cut, ()),
        slot_node=_cut(old.slot_node, low, high),
        slot_hop=_cut(old.slot_hop, low, high),
        slot_start=old.slot_start - (high - low) * (old.slot_start > low),
        slot_count=count,
        row_of=row_of,
        laid=old.laid.without(cut, range(low, high)),
    )
    return left, PlanDelta(node=node, tail=tail, low=low, high=high)


def _on_path(plan: SpfPlan, edge: int) -> bool:
    graph = plan.graph
    tail, head = graph.tail(edge), int(graph.dst[edge])
    near = int(plan.distance[tail])
    crossed = near != UNREACHABLE and (tail == plan.root or bool(graph.transit[tail]))
    return crossed and near + graph.uniform_metric == int(plan.distance[head])


def _slots_fed_only_by(
    plan: SpfPlan, tail: int, node: int, others: NDArray[np.int64]
) -> slice | None:
    """Return the slots of a node that ``tail`` feeds and none of the other predecessors does.

    None if they are not consecutive.
    """
    hops, mine = plan.slot_hop, plan.slots(node)
    lost = hops[plan.slots(tail)]
    # a direct neighbor feeds the slots that begin with itself, and no other one does
    if plan.distance[tail] != plan.graph.uniform_metric:
        fed = np.zeros(len(plan.hops), bool)
        fed[hops[runs(plan.slot_start[others], plan.slot_count[others])]] = True
        lost = lost[~fed[lost]]
    if not len(lost):
        return slice(mine.start, mine.start)
    places = mine.start + hops[mine].searchsorted(lost)
    low, high = int(places[0]), int(places[-1]) + 1
    return slice(low, high) if high - low == len(lost) else None


def _fed_otherwise(plan: SpfPlan, graph: Graph, node: int, hops: Sequence[int]) -> bool:
    """Whether all nodes behind a node can do without paths through it that begin with ``hops``."""
    last = plan.distance[node] == len(plan.laid.steps) * graph.uniform_metric
    if last or not hops or not graph.transit[node]:
        return True
    heads = _behind(plan, graph, node)
    return not len(heads) or all(_each_fed(plan, graph, node, hop, heads) for hop in hops)


def _each_fed(plan: SpfPlan, graph: Graph, node: int, hop: int, heads: NDArray[np.int64]) -> bool:
    """Whether paths that begin with a hop lead to each of ``heads`` through other nodes, too."""
    nodes = plan.slot_node[plan.slot_hop == hop]
    nodes = nodes[(plan.distance[nodes] == plan.distance[node]) & graph.transit[nodes]]
    at = int(nodes.searchsorted(node))
    # In a Clos fabric any other node leads to the same nodes, the next ones most probably.
    for other in (*nodes[at + 1 :][:_WITNESSES].tolist(), *nodes[:at][-_WITNESSES:].tolist()):
        heads = heads[~among(heads, _behind(plan, graph, other))]
        if not len(heads):
            return True
    through = np.zeros(len(graph.nodes), bool)
    through[nodes] = True
    through[node] = False
    return all(bool(through[_tails(plan, graph, head)].any()) for head in heads.tolist())


def _behind(plan: SpfPlan, graph: Graph, node: int) -> NDArray[np.int64]:
    """Return the neighbors to which shortest paths lead through a node in ``graph``."""
    ends = graph.dst[int(graph.indptr[node]) : int(graph.indptr[node + 1])]
    heads: NDArray[np.int64] = ends[
        plan.distance[ends] == plan.distance[node] + graph.uniform_metric
    ]
    return heads


def _tails(plan: SpfPlan, graph: Graph, node: int) -> NDArray[np.int64]:
    """Return the predecessors of a node on shortest paths in ``graph``."""
    ends = graph.dst[int(graph.indptr[node]) : int(graph.indptr[node + 1])]
    near = plan.distance[ends] == plan.distance[node] - graph.uniform_metric
    tails: NDArray[np.int64] = ends[near & (graph.transit[ends] | (ends == plan.root))]
    return tails


def _cut(values: NDArray[np.int64], low: int, high: int) -> NDArray[np.int64]:
    if low == high:
        return values
    return np.concatenate((values[:low], values[high:]))
