"""The longest delay between any two of some nodes, over their shortest paths by metric.

As in ``pairs``, nodes that can change places are looked at once. Oracle: networkx in
tests/weights/test_path_delay.py.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.paths.spf.search import shortest_paths
from fared.paths.weights.pairs import MOST_WORK, surroundings, work_of
from fared.paths.weights.path_delay import delays_along

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.paths.ted.graph import Graph

_PORTION = 32
"""Nodes that are compared between two pauses."""


class LongestPair(msgspec.Struct):
    """The pair with the longest delay, microseconds, by the ids of its ends; the lowest ids."""

    delay: float = 0.0
    ends: tuple[int, int] = (-1, -1)


def longest_of(
    graph: Graph, delay: NDArray[np.float64], nodes: NDArray[np.int64], found: LongestPair
) -> Generator[None, None, bool]:
    """Compare the pairs of ``nodes``, indexes in ascending order, with the one in ``found``.

    ``delay`` (E,), microseconds; what is unknown counts for nothing. Yields where it may pause.
    Returns False, and compares no more, if that is too much work.
    """
    delay, ids = np.nan_to_num(delay), graph.nodes[nodes]
    classes: dict[bytes, int] = {}
    for number, node in enumerate(nodes.tolist()):
        classes.setdefault(surroundings(graph, delay, node), node)
        if number % _PORTION == 0:
            yield
    for root in classes.values():
        levels = shortest_paths(graph, root)[1]
        if work_of(graph, len(levels), len(classes)) > MOST_WORK:
            return False
        reached = delays_along(levels, delay, root, len(graph.nodes))[nodes]
        longest = float(reached.max(initial=0.0))
        if longest > found.delay:
            end = int(ids[reached.argmax()])
            found.delay, found.ends = longest, (int(graph.nodes[root]), end)
        yield
    return True
