"""Routes toward the nodes of one area: graph, plan, path capacities and next-hop sets.

Keeps what the last computation found, so that a change of capacities sweeps the present plan
and touches only the rows that came out different.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fared.rib.members import ABSENT, Members, SetBuilder, build_members, pack
from fared.spf.plan import UNREACHABLE, Plan, build_plan
from fared.ted.database import Ted
from fared.ted.graph import runs
from fared.weights.path_capacity import (
    Contraction,
    Flow,
    Row,
    contract,
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

    ``capacity`` (E,) in the mode of the settings; ``flow`` per slot before and ``packed`` (S,)
    after the root's own links; ``sets`` (N,) of NextHopSet or None, valid at the nodes that
    stand for a row.
    """

    plan: Plan
    capacity: NDArray[np.float64]
    flow: Flow
    members: Members
    packed: NDArray[np.float64]
    sets: NDArray[np.object_]


class AreaSolver:
    """Computes one area for one root."""

    def __init__(self, root: NodeId) -> None:
        self.root = root
        self.ted = Ted()
        self.links: tuple[LocalLink, ...] = ()
        self.solution: Solution | None = None
        self._builder: SetBuilder | None = None
        self._solved_by: SetBuilder | None = None
        self._contractions: dict[tuple[int, ...], Contraction] = {}
        self._seen: tuple[int, int] = (-1, -1)
        self._seen_links: tuple[LocalLink, ...] = ()
        self._seen_local: tuple[object, ...] = ()
        self._seen_rows: tuple[object, ...] = (None, None, None)

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
        return AreaChange(spf_ran, self._solve(plan, capacity, members, builder))

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
        doubtful = bool(np.isnan(members.local).any())
        unlimited = np.where(np.isnan(members.local), np.inf, members.local)
        packed = np.minimum(flow.bound, unlimited[plan.slot_hop])
        if flow.unknown is not None or doubtful:
            unknown = np.isnan(members.local)[plan.slot_hop]
            if flow.unknown is not None:
                unknown |= flow.unknown
            packed = np.where(unknown, -2.0 - packed, packed)
        size = len(plan.distance)
        stands = plan.row_of == np.arange(size)
        same = old is not None and old.plan is plan and self._solved_by is builder
        if old is not None and same:
            rows = np.zeros(size, bool)
            rows[plan.slot_node[packed != old.packed]] = True
            nodes = np.flatnonzero(rows & stands)
            sets = old.sets
        else:
            nodes = np.flatnonzero(stands & (plan.slot_count > 0))
            sets = np.full(size, None, object)
        before = sets[nodes].tolist()
        after = builder.build(_matrix(plan, nodes, packed, members.usable)) if len(nodes) else []
        if after:
            sets[nodes] = np.fromiter(after, object, len(after))
        self.solution = Solution(plan, capacity, flow, members, packed, sets)
        self._solved_by = builder
        self._contractions = {}
        if old is None or not same:
            return self._changed(old)
        renewed = [a is not b for a, b in zip(before, after, strict=True)]
        mask = np.zeros(size, bool)
        mask[nodes[np.array(renewed, bool)]] = True
        return mask[plan.row_of] if mask.any() else mask

    def _changed(self, old: Solution | None) -> NDArray[np.bool_]:
        """Compare with the sets of another plan, by node id."""
        new = self.solution
        assert new is not None
        nodes = new.plan.graph.nodes
        if old is None:
            return np.ones(len(nodes), bool)
        at = old.plan.graph.indexes(nodes)
        before = old.sets[old.plan.row_of[at]].tolist()
        after = new.sets[new.plan.row_of].tolist()
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
        return self._builder.build(pack(row), limit)[0]

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
    packed: NDArray[np.float64],
    usable: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Packed rows of some nodes over all first hops (K, H)."""
    width = len(plan.hops)
    counts, first = plan.slot_count[nodes], plan.slot_start[nodes]
    shaped = np.full((len(nodes), width), ABSENT)
    full = counts == width  # these rows lie in the slots as they are
    if full.any():
        begin, count = int(first[full][0]), int(full.sum())
        if (np.diff(first[full]) == width).all():
            shaped[full] = packed[begin : begin + count * width].reshape(count, width)
        else:
            shaped[full] = packed[first[full][:, None] + np.arange(width)]
    counts, first = counts[~full], first[~full]
    slots = runs(first, counts)
    shaped[np.repeat(np.flatnonzero(~full), counts), plan.slot_hop[slots]] = packed[slots]
    if not usable.all():
        shaped[:, ~usable] = ABSENT
    return shaped
