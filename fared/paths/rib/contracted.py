"""Which rows toward several nodes stay as they are when a link is lost.

A fast path beside ``contract``: tests/rib/test_incremental.py proves them equal; row ``rows toward
several leaves``.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fared.paths.spf.patch import PlanDelta
    from fared.paths.spf.plan import SpfPlan
    from fared.paths.weights.path_capacity import Contraction


def still_contracted(
    contractions: Mapping[tuple[int, ...], Contraction], plan: SpfPlan, delta: PlanDelta
) -> dict[tuple[int, ...], Contraction]:
    """Return the contractions that a cut plan leaves as they are, where no capacity differs.

    One edge was cut from the paths. Only the node that it led to, and those behind, are reached
    otherwise: nodes that are as near, and their predecessors, are not.
    """
    if delta.node < 0:
        return dict(contractions)
    distance = plan.distance
    depth = distance.item(delta.node)
    return {
        nodes: contraction
        for nodes, contraction in contractions.items()
        if delta.node not in nodes and all(distance.item(node) <= depth for node in nodes)
    }


def equal_without(
    before: NDArray[np.float64], after: NDArray[np.float64], cut: Sequence[int]
) -> bool:
    """Whether values of edges are equal but for the edges ``cut`` (ascending) of the first.

    They are compared as bits: unknown values are equal to each other.
    """
    if len(before) != len(after) + len(cut):
        return False
    # Copies of many values cost more than the rest of the comparison.
    old, new = before.view(np.int64), after.view(np.int64)
    kept = itertools.pairwise((-1, *cut, len(before)))
    return not any(
        (old[low + 1 : high] != new[low + 1 - at : high - at]).any()
        for at, (low, high) in enumerate(kept)
    )
