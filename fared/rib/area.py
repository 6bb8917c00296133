"""Routes toward the nodes of one area: graph, plan, path capacities and next-hop sets.

Keeps what the last computation found, so that a change of capacities sweeps the present plan
and touches only the rows that came out different.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fared.rib.members import ABSENT, Members, SetBuilder, build_members, pack
from fared.spf.patch import Patch, cut_plan
from fared.spf.plan import UNREACHABLE, Plan, build_plan
from fared.ted.database import Ted
from fared.ted.graph import run_lengths, runs
from fared.weights.path_capacity import (
    Contraction,
    Flow,
    Row,
    WeightMode,
    contract,
    link_capacities,
    merged_flow,
    node_row,
    propagate,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from fared.core.ids import NodeId
    from fared.rib.model import NextHopSet
    from fared.rib.settings import SolverSettings
    from fared.ted.graph import Graph
    from fared.ted.model import LocalLink

_FORGET_ABOVE = 4
_FEW_NODES = 16


@dataclass(frozen=True, slots=True, eq=False)
class AreaChange:
    """What an update did; ``nodes`` (N,) marks those whose next-hop set is another object.

    ``moved``: some node may be at another distance, or at another place in the graph.
    """

    spf_ran: bool
    nodes: NDArray[np.bool_]
    moved: bool

    @property
    def any(self) -> bool:
        """Whether anything may look different from outside."""
        return self.spf_ran or bool(self.nodes.any())


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """All that is known of one area at one time.

    ``capacity`` (E,) in the mode of the settings; ``flow`` per slot before and ``packed`` (S,)
    after the root's own links, of which ``limit`` (S,) is what they can carry, NaN unknown;
    ``sets`` (N,) of NextHopSet or None, valid at the nodes that stand for a row.
    """

    plan: Plan
    capacity: NDArray[np.float64]
    flow: Flow
    members: Members
    packed: NDArray[np.float64]
    sets: NDArray[np.object_]
    limit: NDArray[np.float64]


class AreaSolver:
    """Computes one area for one root."""

    def __init__(self, root: NodeId) -> None:
        self.root = root
        self.ted = Ted()
        self.links: tuple[LocalLink, ...] = ()
        self.loads = 0
        """Changes of the database that were only of load: nothing where weights follow none."""
        self.solution: Solution | None = None
        self.stopwatch: Callable[[], float] = float
        """Measures what the shortest paths take, for people; by default it stands still."""
        self.spf_seconds = 0.0
        """What they have taken so far: the graph, and the paths in it."""
        self._builder: SetBuilder | None = None
        self._solved_by: SetBuilder | None = None
        self._contractions: dict[tuple[int, ...], Contraction] = {}
        self._merged: tuple[Solution, NDArray[np.float64]] | None = None
        self._seen: tuple[int, int] = (-1, -1)
        self._seen_links: tuple[LocalLink, ...] = ()
        self._seen_local: tuple[object, ...] = ()
        self._seen_rows: tuple[object, ...] = (None, None, None)

    def forget(self) -> None:
        """Compute everything anew next time (the settings are others now)."""
        self.solution = None
        self._builder = None
        self._seen_local = ()

    def update(self, settings: SolverSettings, known: Plan | None = None) -> AreaChange | None:
        """Bring the solution up to date; None if nothing changed since the last time.

        ``known``: the plan of this root for the present graph, if another solver has it.
        """
        started = self.stopwatch()
        graph = self.ted.graph()
        ignored = 0 if settings.mode is WeightMode.AVAILABLE else self.loads
        seen = (self.ted.generation, self.ted.capacity_generation - ignored)
        old = self.solution
        if old is not None and seen == self._seen and self.links == self._seen_links:
            return None
        self._seen, self._seen_links = seen, self.links
        root = graph.index(self.root)
        if root is None:
            return self._lost(old)
        spf_ran = old is None or old.plan.graph is not graph
        patch = None
        if known is not None:
            plan = known
        elif old is not None and not spf_ran:
            plan = old.plan
        else:
            patch = _patched(old, graph)
            plan = build_plan(graph, root) if patch is None else patch.plan
        self.spf_seconds += self.stopwatch() - started
        capacity = link_capacities(graph, settings.mode, settings.floor)
        members, builder = self._members(plan, capacity, settings)
        if old is not None and patch is not None and builder is self._solved_by:
            nodes = self._resolve(old, patch, capacity, members)
        else:
            nodes = self._solve(plan, capacity, members, builder)
        return AreaChange(spf_ran, nodes, spf_ran and (old is None or _moved(old.plan, plan)))

    def _lost(self, old: Solution | None) -> AreaChange | None:
        """This router is not (or no longer) described in the area: nothing is reachable."""
        self.solution = None
        self._seen_local = ()
        return None if old is None else AreaChange(True, np.zeros(0, bool), moved=True)

    def _members(
        self, plan: Plan, capacity: NDArray[np.float64], settings: SolverSettings
    ) -> tuple[Members, SetBuilder]:
        rows = self.ted.links(self.root)
        assert rows is not None
        builder, old = self._builder, self.solution
        names = plan.graph.nodes
        toward = (names[plan.hops].tobytes(), names[plan.graph.dst[plan.via]].tobytes())
        same = (rows, rows.capacities, rows.availables)
        if (
            builder is not None
            and old is not None
            and not rows.doubtful
            and all(a is b for a, b in zip(same, self._seen_rows, strict=True))
            and self._seen_local == (self.links, toward)
        ):
            return old.members, builder
        self._seen_rows, self._seen_local = same, (self.links, toward)
        members = build_members(plan, rows, self.links, capacity, settings)
        if (
            builder is None
            or builder.members.identity() != members.identity()
            or len(builder) > _FORGET_ABOVE * (len(plan.distance) + 1)
        ):
            builder = self._builder = SetBuilder(members, settings)
        return members, builder

    def _solve(
        self,
        plan: Plan,
        capacity: NDArray[np.float64],
        members: Members,
        builder: SetBuilder,
    ) -> NDArray[np.bool_]:
        """Sweep, find the rows that differ, renew their sets; return the nodes touched (N,)."""
        old = self.solution
        flow = propagate(plan, capacity)
        if old is None or old.plan is not plan or self._solved_by is not builder:
            limit = members.local[plan.slot_hop]
            packed = _packed(flow, limit)
            nodes = ((plan.row_of == np.arange(len(plan.row_of))) & (plan.slot_count > 0)).nonzero()
            sets = np.full(len(plan.row_of), None, object)
            sets[nodes] = builder.build(_matrix(plan, nodes[0], packed, members.usable))
            self._keep(Solution(plan, capacity, flow, members, packed, sets, limit), builder)
            return self._changed(old)
        limit = old.limit if members is old.members else members.local[plan.slot_hop]
        packed = _packed(flow, limit)
        changed = np.zeros(len(plan.row_of), bool)
        slots = (packed != old.packed).nonzero()[0]
        sets = old.sets
        self._keep(Solution(plan, capacity, flow, members, packed, sets, limit), builder)
        if not len(slots):
            return changed
        changed[plan.slot_node[slots]] = True
        nodes = changed.nonzero()[0]
        nodes = nodes[plan.row_of[nodes] == nodes]
        before = sets[nodes]
        sets[nodes] = builder.build(_matrix(plan, nodes, packed, members.usable))
        changed[:] = False
        changed[nodes] = _renewed(before, sets[nodes])
        return changed[plan.row_of]

    def _resolve(
        self, old: Solution, patch: Patch, capacity: NDArray[np.float64], members: Members
    ) -> NDArray[np.bool_]:
        """The same for a plan of which only a part is gone: the other rows keep their sets."""
        plan = patch.plan
        flow = propagate(plan, capacity)
        same = members is old.members
        limit = patch.without(old.limit) if same else members.local[plan.slot_hop]
        packed = _packed(flow, limit)
        changed = np.zeros(len(plan.row_of), bool)
        changed[plan.slot_node[patch.unlike(old.packed, packed)]] = True
        if patch.node >= 0:
            changed[patch.node] = True
        nodes = changed.nonzero()[0]
        nodes = nodes[(plan.row_of[nodes] == nodes) & (plan.slot_count[nodes] > 0)]
        sets, builder = old.sets.copy(), self._solved_by
        assert builder is not None
        sets[nodes] = builder.build(_matrix(plan, nodes, packed, members.usable))
        self._keep(Solution(plan, capacity, flow, members, packed, sets, limit), builder)
        changed[:] = False
        changed[nodes] = True
        nodes = (changed[plan.row_of] | (plan.row_of != old.plan.row_of)).nonzero()[0]
        changed[:] = False
        changed[nodes] = _renewed(old.sets[old.plan.row_of[nodes]], sets[plan.row_of[nodes]])
        return changed

    def _keep(self, solution: Solution, builder: SetBuilder) -> None:
        self.solution, self._solved_by = solution, builder
        self._contractions = {}

    def _changed(self, old: Solution | None) -> NDArray[np.bool_]:
        """Compare with the sets of another plan, by node id."""
        new = self.solution
        assert new is not None
        nodes = new.plan.graph.nodes
        if old is None:
            return np.ones(len(nodes), bool)
        at = old.plan.graph.indexes(nodes)
        before, after = old.sets[old.plan.row_of[at]], new.sets[new.plan.row_of]
        return _renewed(before, after) | (at < 0)

    def set_of(self, node: int) -> NextHopSet | None:
        """The next-hop set toward one node, by index."""
        solution = self.solution
        assert solution is not None
        found: NextHopSet | None = solution.sets[solution.plan.row_of[node]]
        return found

    def contracted(self, nodes: tuple[int, ...], announced: tuple[float, ...]) -> Row:
        """Values toward several nodes at once, clipped by the root's own links."""
        solution = self.solution
        assert solution is not None
        contraction = self._contractions.get(nodes)
        if contraction is None:
            contraction = contract(solution.plan, solution.flow, solution.capacity, nodes)
            self._contractions[nodes] = contraction
        return clipped(contraction.announced(announced), solution.members)

    def row(self, node: int) -> Row:
        """Values toward the node that stands for this one, clipped by the root's own links."""
        solution = self.solution
        assert solution is not None
        plan = solution.plan
        return clipped(node_row(plan, solution.flow, int(plan.row_of[node])), solution.members)

    def build(self, row: Row, limit: float) -> NextHopSet | None:
        """The next-hop set of a row that no single node stands for."""
        assert self._builder is not None
        found: NextHopSet | None = self._builder.build(pack(row), limit)[0]
        return found

    def merged(self) -> NDArray[np.float64]:
        """What the root can carry to every node over all paths together (N,), bytes/s."""
        solution = self.solution
        assert solution is not None
        if self._merged is None or self._merged[0] is not solution:
            self._merged = solution, merged_flow(solution.plan, solution.capacity)
        return self._merged[1]

    def reached(self) -> int:
        """How many nodes the root reaches, without itself."""
        if self.solution is None:
            return 0
        return int(np.count_nonzero(self.solution.plan.distance != UNREACHABLE)) - 1


def clipped(row: Row, members: Members) -> Row:
    """Bound a row by what the root's own links can carry; drop hops without a link."""
    nowhere = np.isnan(members.local)
    present = row.present & members.usable
    bound = np.minimum(row.bound, np.where(nowhere, np.inf, members.local))
    return Row(np.where(present, bound, 0.0), (row.unknown | nowhere) & present, present)


def _patched(old: Solution | None, graph: Graph) -> Patch | None:
    """The former plan, where all that is new is that links are gone and few paths with them."""
    loss = graph.loss
    if old is None or loss is None or loss.before() is not old.plan.graph:
        return None
    return cut_plan(old.plan, graph, loss.cut)


def _moved(old: Plan, new: Plan) -> bool:
    """Whether nodes are at other distances or places, or can be attached to other networks."""
    if old.graph.nodes is not new.graph.nodes or new.graph.network.any():
        return True
    return old.distance is not new.distance and not np.array_equal(old.distance, new.distance)


def _renewed(before: NDArray[np.object_], after: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Where two arrays hold different objects."""
    return np.array(list(map(operator.is_not, before.tolist(), after.tolist())), bool)


def _packed(flow: Flow, limit: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each slot carries, the root's own links included, as of ``pack`` (S,)."""
    packed = np.minimum(flow.bound, limit)
    if flow.unknown is None and not np.isnan(packed.min(initial=np.inf)):
        return packed
    unknown = np.isnan(limit)
    packed = np.where(unknown, flow.bound, packed)
    if flow.unknown is not None:
        unknown |= flow.unknown
    return np.where(unknown, -2.0 - packed, packed)


def _matrix(
    plan: Plan,
    nodes: NDArray[np.int64],
    packed: NDArray[np.float64],
    usable: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Packed rows of some nodes over all first hops (K, H)."""
    width = len(plan.hops)
    shaped = np.full((len(nodes), width), ABSENT)
    if len(nodes) <= _FEW_NODES:
        for row, node in enumerate(nodes.tolist()):
            mine = plan.slots(node)
            shaped[row, plan.slot_hop[mine]] = packed[mine]
    else:
        counts, first = plan.slot_count[nodes], plan.slot_start[nodes]
        full = (counts == width).nonzero()[0]  # these rows lie in the slots as they are
        if len(full):
            begin = first[full]
            low, high = int(begin[0]), int(begin[-1]) + width
            if high - low == len(full) * width and (run_lengths(begin, high) == width).all():
                shaped[full] = packed[low:high].reshape(-1, width)
            else:
                shaped[full] = packed[begin[:, None] + np.arange(width)]
        rest = (counts != width).nonzero()[0]
        counts = counts[rest]
        slots = runs(first[rest], counts)
        shaped[rest.repeat(counts), plan.slot_hop[slots]] = packed[slots]
    if not usable.all():
        shaped[:, ~usable] = ABSENT
    return shaped
