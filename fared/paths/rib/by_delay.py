"""Next hops of shortest paths that are not used because of their delay.

``area`` asks for the path delay of each slot, and hides those that the rule of the settings
excludes: for sets of next hops they are not there. Without a rule nothing here runs; with one,
delays are swept again whenever an area is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.paths.ted.graph import runs
from fared.paths.weights.path_delay import NOWHERE, slot_delays

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fared.paths.rib.members import Members
    from fared.paths.spf.plan import SpfPlan
    from fared.paths.ted.database import Ted
    from fared.paths.weights.path_capacity import CapacityRow
    from fared.paths.weights.path_delay import DelayRule


class ChosenSlots(msgspec.Struct, frozen=True, eq=False):
    """What a rule chooses from the slots of a plan.

    ``delay`` (S,): path delay, microseconds, ``NOWHERE`` without a usable link. ``packed`` (S,)
    has ``absent`` where a slot is not used. ``row_of`` (N,) is as in the plan, but for nodes of
    which other first hops are used than of the node whose row they share.
    """

    delay: NDArray[np.float64]
    packed: NDArray[np.float64]
    row_of: NDArray[np.int64]


def path_delays(ted: Ted, plan: SpfPlan, members: Members, rule: DelayRule) -> NDArray[np.float64]:
    """Return the path delay of each slot (S,), microseconds, own links included."""
    known = ted.delays()
    edges = np.full(len(plan.graph.dst), np.nan) if known is None else known
    counted = rule.counted(edges)
    own = counted[plan.via] if members.delay is None else members.delay
    found = slot_delays(plan, counted) + own[plan.slot_hop]
    found[~members.usable[plan.slot_hop]] = NOWHERE
    return found


def choose(
    plan: SpfPlan,
    packed: NDArray[np.float64],
    delay: NDArray[np.float64],
    rule: DelayRule,
    absent: float,
) -> ChosenSlots:
    """Hide the slots that are not used.

    A node shares the row of the node that all its paths cross, so their delays differ by the same:
    the margin excludes the same first hops of both, but a bound need not.
    """
    used = rule.used(delay, plan.slot_node, len(plan.row_of))
    row_of = plan.row_of
    if rule.bound is not None:
        nodes = (row_of != np.arange(len(row_of))).nonzero()[0]
        rows = row_of[nodes]
        counts = plan.slot_count[nodes]
        mine, shared = runs(plan.slot_start[nodes], counts), runs(plan.slot_start[rows], counts)
        packed = packed.copy()
        packed[mine] = packed[shared]
        differs = np.zeros(len(row_of), bool)
        differs[plan.slot_node[mine[used[mine] != used[shared]]]] = True
        if differs.any():
            row_of = np.where(differs, np.arange(len(row_of)), row_of)
    return ChosenSlots(delay, np.where(used, packed, absent), row_of)


def of_nodes(
    plan: SpfPlan, delay: NDArray[np.float64], nodes: Iterable[int]
) -> NDArray[np.float64]:
    """Return the path delay of each first hop (H,) toward any of some nodes: the longest."""
    found = np.full(len(plan.hops), NOWHERE)
    for node in nodes:
        slots = plan.slots(node)
        hops = plan.slot_hop[slots]
        found[hops] = np.maximum(found[hops], delay[slots])
    return found


def chosen(row: CapacityRow, delay: NDArray[np.float64], rule: DelayRule) -> CapacityRow:
    """Return a row without the first hops that are not used; ``delay`` (H,)."""
    there = np.where(row.present, delay, NOWHERE)
    used = rule.used(there, np.zeros(len(there), np.int64), 1)
    return msgspec.structs.replace(
        row,
        bound=np.where(used, row.bound, 0.0),
        unknown=row.unknown & used,
        present=row.present & used,
    )
