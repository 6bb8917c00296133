"""Routes toward the nodes of one area: graph, plan, path capacities and next-hop sets.

Keeps what the last computation found, so that a change of capacities sweeps the present plan
and touches only the rows that came out different.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fared.rib.members import Members, SetBuilder, build_members
from fared.spf.plan import UNREACHABLE, Plan, build_plan
from fared.ted.database import Ted
from fared.ted.graph import runs
from fared.weights.path_capacity import (
    Flow,
    Row,
    destination_row,
    link_capacities,
    node_row,
    propagate,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.core.ids import NodeId
    from fared.rib.model import NextHopSet
    from fared.rib.settings import SolverSettings
    from fared.ted.model import LocalLink

_FORGET_ABOVE = 4


@dataclass(frozen=True, slots=True, eq=False)
class AreaChange:
    """What an update did; ``nodes`` (N,) marks those whose next-hop set is another object."""

    spf_ran: bool
    nodes: NDArray[np.bool_]

    @property
    def any(self) -> bool:
        """Whether anything may look different from outside."""
        return self.spf_ran or bool(self.nodes.any())


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """All that is known of one area at one time.

    ``capacity`` (E,) in the mode of the settings; ``flow`` per slot before and ``bound``,
    ``unknown`` (S,) after the root's own links; ``sets`` (N,) of NextHopSet or None, valid at
    the nodes that stand for a row.
    """

    plan: Plan
    capacity: NDArray[np.float64]
    flow: Flow
    members: Members
    bound: NDArray[np.float64]
    unknown: NDArray[np.bool_]
    sets: NDArray[np.object_]


class AreaSolver:
    """Computes one area for one root."""

    def __init__(self, root: NodeId) -> None:
        self.root = root
        self.ted = Ted()
        self.links: tuple[LocalLink, ...] = ()
        self.solution: Solution | None = None
        self._builder: SetBuilder | None = None
        self._seen: tuple[int, int] = (-1, -1)
        self._seen_links: tuple[LocalLink, ...] = ()
        self._seen_local: tuple[object, ...] = ()

    def forget(self) -> None:
        """Compute everything anew next time (the settings are others now)."""
        self.solution = None
        self._builder = None
        self._seen_local = ()

    def update(self, settings: SolverSettings) -> AreaChange | None:
        """Bring the solution up to date; None if nothing changed since the last time."""
        graph = self.ted.graph()
        seen = (self.ted.generation, self.ted.capacity_generation)
        old = self.solution
        if old is not None and seen == self._seen and self.links == self._seen_links:
            return None
        self._seen, self._seen_links = seen, self.links
        root = graph.index(self.root)
        if root is None:
            return self._lost(old)
        spf_ran = old is None or old.plan.graph is not graph
        plan = build_plan(graph, root) if old is None or spf_ran else old.plan
        capacity = link_capacities(graph, settings.mode, settings.floor)
        members, builder = self._members(plan, capacity, settings)
        self.solution = self._solve(plan, capacity, members, builder, old)
        return AreaChange(spf_ran, self._changed(old, self.solution))

    def _lost(self, old: Solution | None) -> AreaChange | None:
        """This router is not (or no longer) described in the area: nothing is reachable."""
        self.solution = None
        self._seen_local = ()
        return None if old is None else AreaChange(True, np.zeros(0, bool))

    def _members(
        self, plan: Plan, capacity: NDArray[np.float64], settings: SolverSettings
    ) -> tuple[Members, SetBuilder]:
        rows = self.ted.links(self.root)
        assert rows is not None
        builder, old = self._builder, self.solution
        same = (self.links, plan, rows.capacities, rows.availables)
        if (
            builder is not None
            and old is not None
            and len(self._seen_local) == len(same)
            and self.links == self._seen_local[0]
            and all(a is b for a, b in zip(same[1:], self._seen_local[1:], strict=True))
            and not np.isnan(rows.capacities).any()
        ):
            return old.members, builder
        self._seen_local = same
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
        old: Solution | None,
    ) -> Solution:
        flow = propagate(plan, capacity)
        hop = plan.slot_hop
        unlimited = np.where(np.isnan(members.local), np.inf, members.local)
        bound = np.minimum(flow.bound, unlimited[hop])
        unknown = np.isnan(members.local)[hop]
        if flow.unknown is not None:
            unknown |= flow.unknown
        rows = np.zeros(len(plan.distance), bool)
        if old is not None and old.plan is plan and old.members.identity() == members.identity():
            rows[plan.slot_node[(bound != old.bound) | (unknown != old.unknown)]] = True
            sets = old.sets.copy()
        else:
            rows[plan.slot_node] = True
            sets = np.full(len(rows), None, object)
        rows &= plan.row_of == np.arange(len(rows))
        nodes = np.flatnonzero(rows)
        if len(nodes):
            found = builder.build(*_matrix(plan, nodes, bound, unknown, members.usable))
            sets[nodes] = np.array([*found, None], object)[:-1]
        return Solution(plan, capacity, flow, members, bound, unknown, sets)

    @staticmethod
    def _changed(old: Solution | None, new: Solution) -> NDArray[np.bool_]:
        row_of, nodes = new.plan.row_of, new.plan.graph.nodes
        if old is None:
            return np.ones(len(nodes), bool)
        if old.plan is new.plan:
            pairs = zip(old.sets.tolist(), new.sets.tolist(), strict=True)
            return np.array([a is not b for a, b in pairs], bool)[row_of]
        at = old.plan.graph.indexes(nodes)
        before = old.sets[old.plan.row_of][at].tolist() if len(old.sets) else [None] * len(at)
        after = new.sets[row_of].tolist()
        return np.array([a is not b for a, b in zip(before, after, strict=True)], bool) | (at < 0)

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
        plan, members = solution.plan, solution.members
        row = destination_row(plan, solution.flow, solution.capacity, nodes, announced)
        return clipped(row, members)

    def row(self, node: int) -> Row:
        """Values toward the node that stands for this one, clipped by the root's own links."""
        solution = self.solution
        assert solution is not None
        plan = solution.plan
        return clipped(node_row(plan, solution.flow, int(plan.row_of[node])), solution.members)

    def build(self, row: Row, limit: float) -> NextHopSet | None:
        """The next-hop set of a row that no single node stands for."""
        assert self._builder is not None
        return self._builder.build(
            row.bound[None, :], row.unknown[None, :], row.present[None, :], limit
        )[0]

    def reached(self) -> int:
        """How many nodes the root reaches, without itself."""
        if self.solution is None:
            return 0
        return int((self.solution.plan.distance != UNREACHABLE).sum()) - 1


def clipped(row: Row, members: Members) -> Row:
    """Bound a row by what the root's own links can carry; drop hops without a link."""
    nowhere = np.isnan(members.local)
    present = row.present & members.usable
    bound = np.minimum(row.bound, np.where(nowhere, np.inf, members.local))
    return Row(np.where(present, bound, 0.0), (row.unknown | nowhere) & present, present)


def _matrix(
    plan: Plan,
    nodes: NDArray[np.int64],
    bound: NDArray[np.float64],
    unknown: NDArray[np.bool_],
    usable: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
    """Rows of some nodes over all first hops: bound, unknown, present, each (K, H)."""
    width = len(plan.hops)
    counts = plan.slot_count[nodes]
    slots = runs(plan.slot_start[nodes], counts)
    slots = slots[usable[plan.slot_hop[slots]]]
    line = np.zeros(len(plan.distance), np.int64)
    line[nodes] = np.arange(len(nodes))
    at = line[plan.slot_node[slots]] * width + plan.slot_hop[slots]
    values = np.zeros(len(nodes) * width)
    values[at] = bound[slots]
    doubtful = np.zeros(len(values), bool)
    doubtful[at] = unknown[slots]
    present = np.zeros(len(values), bool)
    present[at] = True
    shape = (len(nodes), width)
    return values.reshape(shape), doubtful.reshape(shape), present.reshape(shape)
