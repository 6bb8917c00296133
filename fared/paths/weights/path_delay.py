"""Path delay of each first hop toward each destination, and which first hops are used by it.

The path delay of first hop p to node t is the sum of the delays of links in the direction of
travel: of the root's own link to p, and behind it of the longest of the shortest paths by metric,
over the same DAG as path capacity. The longest counts since packets may take any of them: the
routers behind choose for themselves, and no choice of theirs takes a packet a longer way.

A choice among next hops of shortest paths is free of loops whatever other routers choose: each of
them is nearer to the destination (RFC 2328 §16.1). So routers with other settings, and routers of
other makes, may be mixed. Oracle: networkx in tests/weights/test_path_delay.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fared.paths.spf.plan import SpfPlan
    from fared.paths.spf.search import Depth

NOWHERE = -np.inf
"""The delay of a node, or of a first hop toward it, without a path."""


class DelayRule(msgspec.Struct, frozen=True):
    """Which of several next hops at equal cost are used, by path delay; microseconds.

    ``bound``: none above it, unless all are. ``margin``: then none that is this far above the
    lowest. None: not by this. ``unknown`` is what a link counts for that no router floods a delay
    of: 0 where such links are short, as within a site.
    """

    margin: float | None = None
    bound: float | None = None
    unknown: float = 0.0

    def __bool__(self) -> bool:
        return self.margin is not None or self.bound is not None

    def counted(self, delay: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the delays of edges as they count."""
        return np.where(np.isnan(delay), self.unknown, delay)

    def limit(self, lowest: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the longest delay that is used where the lowest one is ``lowest``."""
        limit = np.full_like(lowest, np.inf)
        if self.bound is not None:
            limit[lowest <= self.bound] = self.bound
        if self.margin is not None:
            np.minimum(limit, lowest + self.margin, out=limit)
        return limit

    def used(
        self, delay: NDArray[np.float64], group: NDArray[np.int64], groups: int
    ) -> NDArray[np.bool_]:
        """Return which next hops are used (S,): at least one of each group, if any is there.

        ``delay`` (S,) is ``NOWHERE`` for those that are not; ``group`` numbers the next hops toward
        one destination.
        """
        there = delay > NOWHERE
        lowest = np.full(groups, np.inf)
        np.minimum.at(lowest, group[there], delay[there])
        used: NDArray[np.bool_] = there & (delay <= self.limit(lowest)[group])
        return used


def slot_delays(plan: SpfPlan, delay: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the path delay of each slot (S,) from its first hop on; ``delay`` (E,) is counted."""
    laid = plan.laid
    by_number = laid.by_first_number(delay)
    found = np.full(laid.size, NOWHERE)
    for number, step in enumerate(laid.steps):
        value = found[step.source] + by_number[step.edge]
        if laid.lost_edges or laid.lost_slots:
            value[laid.dead[number]] = NOWHERE
        if step.target is None:
            found[step.low : step.high] = value
        else:
            np.maximum.at(found[step.low : step.high], step.target, value)
        found[step.seeds] = 0.0
    return laid.present(found)


def delays_along(
    levels: Iterable[Depth], delay: NDArray[np.float64], root: int, size: int
) -> NDArray[np.float64]:
    """Return the longest delay of the shortest paths from ``root`` to each node (N,).

    ``NOWHERE`` without a path; ``levels`` as of ``search.shortest_paths``, ``size`` nodes.
    """
    found = np.full(size, NOWHERE)
    found[root] = 0.0
    for level in levels:
        value = found[level.tails] + delay[level.edges]
        found[level.nodes] = np.maximum.reduceat(value, level.begin)
    return found
