"""Routes toward the nodes of one area: graph, plan, path capacities and next-hop sets.

The solver has an ``AreaSolver`` for each area. A ``Solution`` records the version of the graph and
the local links that it was computed from. The next one starts from the differences since then
(``GraphDelta``, then ``PlanDelta``): a capacity change sweeps the present plan and makes only the
sets of rows that differ. ``AreaDelta`` lists the changes for the table of routes.
"""

from __future__ import annotations

import operator
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.paths.rib.by_delay import choose, chosen, of_nodes, path_delays
from fared.paths.rib.contracted import equal_without, still_contracted
from fared.paths.rib.members import Members, build_members
from fared.paths.rib.set_builder import ABSENT, SetBuilder, pack
from fared.paths.spf.patch import Advance, PlanDelta, advance
from fared.paths.spf.plan import SpfPlan
from fared.paths.spf.search import UNREACHABLE
from fared.paths.ted.change import ChangeKind
from fared.paths.ted.database import Ted
from fared.paths.ted.graph import run_lengths, runs
from fared.paths.weights.lost_link import after_loss
from fared.paths.weights.path_capacity import (
    CapacityRow,
    Contraction,
    SlotCapacities,
    WeightMode,
    aggregate_capacities,
    contract,
    link_capacities,
    node_row,
    propagate,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from numpy.typing import NDArray

    from fared.core.ids import NodeId
    from fared.paths.rib.model import NextHopSet
    from fared.paths.rib.settings import SolverSettings
    from fared.paths.ted.change import GraphDelta
    from fared.paths.ted.model import LocalLink
    from fared.paths.ted.rows import LinkRows
    from fared.paths.weights.path_delay import DelayRule

_FORGET_ABOVE = 4
_FEW_NODES = 16
"""Rows of so few nodes are filled one by one: of a lost link, mostly two."""


class AreaDelta(msgspec.Struct, frozen=True):
    """What an update changed; ``nodes`` (N,) marks the nodes with a new next-hop set object.

    ``spf_ran`` and ``moved`` are as in PlanDelta; ``links_changed``: the local links differ.
    ``contracted`` are the sets of nodes, by index, toward all of which the row is as before.
    ``step`` leads to the present plan, None if there is none.
    """

    spf_ran: bool
    nodes: NDArray[np.bool_]
    moved: bool
    links_changed: bool
    contracted: Collection[tuple[int, ...]] = ()
    step: Advance | None = None


class Solution(msgspec.Struct, eq=False, dict=True):
    """The results of one area for one version of its graph and these local links.

    ``rows`` are the links that the root advertises. ``capacity`` (E,) is in the mode of the
    settings. ``flow`` is the value of each slot before, and ``packed`` (S,) after the limit of the
    root's own links; ``limit`` (S,) is what these links can carry, NaN unknown. ``sets`` (N,) of
    NextHopSet or None, made by ``builder``, is valid at the nodes whose row is their own: of
    ``row_of`` (N,), which is that of the plan unless delays choose (``rule``). Then ``delay`` (S,)
    is that of paths, microseconds.
    """

    version: int
    links: tuple[LocalLink, ...]
    rows: LinkRows | None
    plan: SpfPlan
    capacity: NDArray[np.float64]
    flow: SlotCapacities
    members: Members
    builder: SetBuilder
    limit: NDArray[np.float64]
    packed: NDArray[np.float64]
    sets: NDArray[np.object_]
    row_of: NDArray[np.int64]
    rule: DelayRule
    delay: NDArray[np.float64] | None
    contractions: dict[tuple[int, ...], Contraction] = msgspec.field(default_factory=dict)

    @cached_property
    def aggregate_capacities(self) -> NDArray[np.float64]:
        """Aggregate capacity from the root to every node over all paths (N,), bytes/s."""
        return aggregate_capacities(self.plan, self.capacity)


class AreaSolver:
    """Computes one area for one root."""

    def __init__(self, root: NodeId) -> None:
        self.root = root
        self.ted = Ted(root)
        self.links: tuple[LocalLink, ...] = ()
        self.virtual_ends: frozenset[NodeId] = frozenset()
        """The ends of virtual links through the area."""
        self.solution: Solution | None = None
        self.stopwatch: Callable[[], float] = float
        """Clock for ``spf_seconds``; the default returns 0.0."""
        self.spf_seconds = 0.0
        """Time spent on graphs and shortest paths."""
        self._settings_changed = False

    def forget(self) -> None:
        """Compute everything at the next update: the settings changed."""
        self._settings_changed = True

    def update(self, settings: SolverSettings, known: Advance | None = None) -> AreaDelta | None:
        """Update the solution; return None if nothing changed since the last call.

        ``known``: the step of another solver to the plan of this root for the present graph.
        """
        started = self.stopwatch()
        old = None if self._settings_changed else self.solution
        since = self.ted.since(0 if old is None else old.version)
        load_counts, rule = settings.mode is WeightMode.AVAILABLE, settings.delay_rule
        ignored = ChangeKind.LOAD if rule else ChangeKind.DELAY
        if load_counts:
            ignored = ChangeKind.NONE
        rows = self.ted.links(self.root)
        links_changed = old is None or self.links != old.links or rows is not old.rows
        if old is not None and since.kind <= ignored and not links_changed:
            return None  # neither the graph, nor capacities of this mode, nor own links differ
        self._settings_changed = False
        root = since.graph.index(self.root)
        if root is None:  # the area does not describe the root: nothing is reachable
            gone, self.solution = self.solution is not None, None
            return AreaDelta(True, np.zeros(0, bool), True, links_changed) if gone else None
        step = advance(None if old is None else old.plan, root, since, known)
        plan, delta = step.plan, step.delta
        self.spf_seconds += self.stopwatch() - started
        new, touched = self._solve(old, plan, delta, since, settings)
        if (
            old is not None
            and old.contractions
            and new.builder is old.builder
            and not delta.rebuilt
            and not rule
        ):
            cut = since.cut if since.version == old.version + 1 else None
            same = since.cut_alone or cut is None or equal_without(old.capacity, new.capacity, cut)
            if cut is not None and same:
                new.contractions = still_contracted(old.contractions, plan, delta)
        self.solution, kept = new, tuple(new.contractions)
        return AreaDelta(delta.spf_ran, touched, delta.moved, links_changed, kept, step)

    def _solve(
        self,
        old: Solution | None,
        plan: SpfPlan,
        delta: PlanDelta,
        since: GraphDelta,
        settings: SolverSettings,
    ) -> tuple[Solution, NDArray[np.bool_]]:
        """Sweep the plan, make the sets of rows that differ, and mark the nodes (N,) using them."""
        capacity = link_capacities(since.graph, settings.mode, settings.floor)
        members, builder = self._members(old, plan, delta, capacity, settings)
        flow = None
        if since.cut_alone and old is not None:
            flow = after_loss(old.flow, plan, delta, capacity)
        flow = flow or propagate(plan, capacity)
        same_slots = old is not None and members is old.members and plan is old.plan
        limit = old.limit if old and same_slots else members.local[plan.slot_hop]
        packed, row_of, delay = _packed(flow, limit, members), plan.row_of, None
        if rule := settings.delay_rule:
            delay = path_delays(self.ted, plan, members, rule)
            found = choose(plan, packed, delay, rule, ABSENT)
            packed, row_of = found.packed, found.row_of
        # Slots correspond to the former ones, and one builder makes one object of equal rows: only
        # nodes with a different slot need a new set.
        kept = None if old is None or delta.rebuilt or builder is not old.builder else old
        if kept is None:
            nodes, sets = plan.slot_count.nonzero()[0], np.full(len(row_of), None, object)
        else:
            nodes, sets = _differing(kept, plan, delta, packed), kept.sets
        if len(nodes):  # a node that shares the row of another uses its set, too
            nodes, sets = nodes[row_of[nodes] == nodes], sets.copy()
            sets[nodes] = builder.build(_matrix(plan, nodes, packed, members))
            # Rows of former capacities may come back, but where capacities change all the time,
            # their sets would pile up.
            if len(builder) > _FORGET_ABOVE * (len(plan.distance) + 1):
                builder.keep(sets)
        new = Solution(
            version=since.version,
            links=self.links,
            rows=self.ted.links(self.root),
            plan=plan,
            capacity=capacity,
            flow=flow,
            members=members,
            builder=builder,
            limit=limit,
            packed=packed,
            sets=sets,
            row_of=row_of,
            rule=rule,
            delay=delay,
        )
        return new, _touched(old, new) if kept is None else _touched_in_place(kept, new, nodes)

    def _members(
        self,
        old: Solution | None,
        plan: SpfPlan,
        delta: PlanDelta,
        capacity: NDArray[np.float64],
        settings: SolverSettings,
    ) -> tuple[Members, SetBuilder]:
        """Return the root's links and their set builder, the same objects while nothing changes.

        Members depend on first hops and own links; where the capacity of a link is unknown, also on
        the one that the far end advertises.
        """
        rows = self.ted.links(self.root)
        assert rows is not None
        if (
            old is not None
            and not (delta.rebuilt and _hops_differ(old.plan, plan))
            and rows.version <= old.version
            and not rows.unknown
            and self.links == old.links
        ):
            old.builder.forget_former()
            return old.members, old.builder
        members = build_members(plan, rows, self.links, capacity, settings)
        if old is None or old.members.identity() != members.identity():
            # adapted weights belong to the members of their set
            stays = settings.mode is not WeightMode.AVAILABLE
            return members, SetBuilder(members, settings, old.builder if old and stays else None)
        old.builder.forget_former()
        return members, old.builder

    def index(self, node: NodeId) -> int | None:
        """Return the index of a node in the plan's graph, or None."""
        return None if self.solution is None else self.solution.plan.graph.index(node)

    def set_of(self, node: int) -> NextHopSet | None:
        """Return the next-hop set toward a node, given by index."""
        solution = self.solution
        assert solution is not None
        found: NextHopSet | None = solution.sets[solution.row_of.item(node)]
        return found

    def contracted(self, nodes: tuple[int, ...], advertised: tuple[float, ...]) -> CapacityRow:
        """Return the row toward several nodes, bounded by the root's own links.

        Like ``row``, without the first hops that are not used because of their delay.
        """
        solution = self.solution
        assert solution is not None
        contraction = solution.contractions.get(nodes)
        if contraction is None:
            contraction = contract(solution.plan, solution.flow, solution.capacity, nodes)
            solution.contractions[nodes] = contraction
        return self._chosen(contraction.advertised(advertised), nodes)

    def row(self, node: int) -> CapacityRow:
        """Return the row that a node's weights come from, bounded by the root's own links."""
        solution = self.solution
        assert solution is not None
        plan = solution.plan
        return self._chosen(node_row(plan, solution.flow, int(plan.row_of[node])), (node,))

    def _chosen(self, row: CapacityRow, nodes: tuple[int, ...]) -> CapacityRow:
        solution = self.solution
        assert solution is not None
        row = clipped(row, solution.members)
        if not solution.rule:
            return row
        return chosen(row, self.delays_of(nodes), solution.rule)

    def delays_of(self, nodes: tuple[int, ...]) -> NDArray[np.float64]:
        """Return the path delay of each first hop toward some nodes (H,), microseconds."""
        solution = self.solution
        assert solution is not None
        delay = solution.delay
        if delay is None:
            delay = path_delays(self.ted, solution.plan, solution.members, solution.rule)
        return of_nodes(solution.plan, delay, nodes)

    def build(self, row: CapacityRow, limit: float) -> NextHopSet | None:
        """Return the next-hop set of a row that is not that of a single node."""
        assert self.solution is not None
        found: NextHopSet | None = self.solution.builder.build(pack(row), limit)[0]
        return found

    def carries_transit(self) -> bool:
        """Whether it is a transit area: a reachable router has bit V (RFC 2328 §16.1 (2))."""
        if self.solution is None:
            return False
        distance, ends = self.solution.plan.distance, map(self.index, self.virtual_ends)
        return any(end is not None and distance.item(end) != UNREACHABLE for end in ends)

    def reached(self) -> int:
        """The number of nodes that the root reaches, not counting itself."""
        if self.solution is None:
            return 0
        return int(np.count_nonzero(self.solution.plan.distance != UNREACHABLE)) - 1


def clipped(row: CapacityRow, members: Members) -> CapacityRow:
    """Bound a row by the capacity of the root's own links; drop hops without a link."""
    nowhere = np.isnan(members.local)
    present = row.present & members.usable
    bound = np.minimum(row.bound, np.where(nowhere, np.inf, members.local))
    return CapacityRow(np.where(present, bound, 0.0), (row.unknown | nowhere) & present, present)


def _differing(
    old: Solution, plan: SpfPlan, delta: PlanDelta, packed: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return the nodes whose slots have other values, or are fewer, than in the former plan."""
    slots = delta.changed(old.packed, packed)
    if not len(slots) and delta.node < 0:
        return slots
    differs = np.zeros(len(plan.row_of), bool)
    differs[plan.slot_node[slots]] = True
    if delta.node >= 0:
        differs[delta.node] = plan.slot_count[delta.node] > 0
    return differs.nonzero()[0]


def _touched_in_place(old: Solution, new: Solution, made: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the nodes (N,) with another set object, if only the sets of ``made`` were made again."""
    touched = np.zeros(len(new.sets), bool)
    before, after = old.row_of, new.row_of
    if len(made):
        touched[made] = _others(old.sets[made], new.sets[made])
        touched = touched[after]
    if before is not after:  # the cut left some nodes a single predecessor, whose row they share
        nodes = (before != after).nonzero()[0]
        touched[nodes] = _others(old.sets[before[nodes]], new.sets[after[nodes]])
    return touched


def _touched(old: Solution | None, new: Solution) -> NDArray[np.bool_]:
    """Mark the nodes (N,) that are new or have another set object; nodes are compared by id."""
    nodes = new.plan.graph.nodes
    if old is None:
        return np.ones(len(nodes), bool)
    at = old.plan.graph.indexes(nodes)
    return _others(old.sets[old.row_of[at]], new.sets[new.row_of]) | (at < 0)


def _others(before: NDArray[np.object_], after: NDArray[np.object_]) -> NDArray[np.bool_]:
    """Where two arrays hold different objects: equal sets of one builder are one object."""
    return np.array(list(map(operator.is_not, before.tolist(), after.tolist())), bool)


def _hops_differ(old: SpfPlan, new: SpfPlan) -> bool:
    """Whether the first hops, or the nodes to which the root's own edges lead, are others."""
    before, after = (
        plan.graph.nodes[np.concatenate((plan.hops, plan.graph.dst[plan.via]))]
        for plan in (old, new)
    )
    return not np.array_equal(before, after)


def _packed(
    flow: SlotCapacities, limit: NDArray[np.float64], members: Members
) -> NDArray[np.float64]:
    """Return the capacity of each slot (S,), bounded by the root's own links, as in ``pack``."""
    packed = np.minimum(flow.bound, limit)
    if flow.unknown is None and members.known:
        return packed
    unknown = np.isnan(limit)
    packed = np.where(unknown, flow.bound, packed)
    if flow.unknown is not None:
        unknown |= flow.unknown
    return np.where(unknown, -2.0 - packed, packed)


def _matrix(
    plan: SpfPlan,
    nodes: NDArray[np.int64],
    packed: NDArray[np.float64],
    members: Members,
) -> NDArray[np.float64]:
    """Return the packed rows of some nodes over all first hops (K, H)."""
    width = len(plan.hops)
    shaped = np.empty((len(nodes), width))
    shaped.fill(ABSENT)
    if len(nodes) <= _FEW_NODES:
        for row, node in enumerate(nodes.tolist()):
            mine = plan.slots(node)
            shaped[row, plan.slot_hop[mine]] = packed[mine]
    else:
        counts, first = plan.slot_count[nodes], plan.slot_start[nodes]
        full = (counts == width).nonzero()[0]  # their slots are the row, without gaps
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
    if not members.plain:
        shaped[:, ~members.usable] = ABSENT
    return shaped
