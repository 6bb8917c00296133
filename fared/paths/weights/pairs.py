"""The least path capacity between any two of some nodes: the weakest pair of leaves.

One pass over the shortest paths of a root gives its capacity to all others
(``path_capacity.capacities_from``). Two nodes that have the same neighbors over links of the same
metrics and capacities can change places, so one pass serves all nodes that are equal: in a fabric
of 64 spines and 512 leaves one for all whole leaves, and one for each that has lost something.
Oracles: the planner and networkx in tests/plan/test_pairs.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.paths.spf.search import shortest_paths
from fared.paths.ted.graph import run_lengths, run_starts
from fared.paths.weights.path_capacity import capacities_along

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.paths.ted.graph import Graph

MOST_WORK = 40_000_000
"""The most that is computed: 512 leaves with 64 links each, all of them different."""
_STEP = 1000
"""What a step along the paths costs, in edges."""
_UNEQUAL = 4
"""How many times as much the paths cost where metrics differ."""
_PORTION = 32
"""Nodes that are compared between two pauses."""


class PairCapacities(msgspec.Struct):
    """The capacities of all pairs, each in both directions.

    ``least``: the least one, bytes/s, infinite if none is known, that the pair ``ends`` (ids) and
    ``alike`` pairs together have. ``pairs`` counts those of known capacity, and ``unknown`` the
    others.
    """

    least: float = np.inf
    ends: tuple[int, int] = (-1, -1)
    alike: int = 0
    pairs: int = 0
    unknown: int = 0
    _rows: Counter[float] = msgspec.field(default_factory=Counter)

    @property
    def usual(self) -> float | None:
        """The capacity that most pairs certainly have, bytes/s."""
        ((value, number),) = self._rows.most_common(1) or [(0.0, 0)]
        return value if number and 2 * number > self.pairs else None

    def add(
        self, source: int, targets: NDArray[np.int64], flow: NDArray[np.float64], times: int
    ) -> None:
        """Add what ``times`` equal sources have to ``targets`` (T,): ``flow`` (T,)."""
        known = ~np.isnan(flow)
        targets, flow = targets[known], np.round(flow[known])
        self.unknown += times * int(len(known) - len(flow))
        if not len(flow):
            return
        self.pairs += times * len(flow)
        ordered = np.sort(flow).astype(np.int64)
        begin = run_starts(ordered)
        values, counts = ordered[begin], run_lengths(begin, len(ordered))
        if values[0] < self.least:
            self.least, self.alike = float(values[0]), 0
            self.ends = source, int(targets[flow.argmin()])
        if values[0] == self.least:
            self.alike += times * int(counts[0])
        at = counts.argmax()
        self._rows[float(values[at])] += times * int(counts[at])


def all_pairs(
    graph: Graph, nodes: NDArray[np.int64], found: PairCapacities
) -> Generator[None, None, bool]:
    """Add the capacities of all pairs of ``nodes``, indexes in ascending order, to ``found``.

    Yields where it may pause; what is written to the graph then is not seen. Returns False, and
    adds nothing more, if that is too much work.
    """
    capacity, ids = graph.capacity.copy(), graph.nodes[nodes]
    classes: dict[bytes, list[int]] = {}
    for number, node in enumerate(nodes.tolist()):
        classes.setdefault(surroundings(graph, capacity, node), []).append(number)
        if number % _PORTION == 0:
            yield
    for numbers in classes.values():
        first = numbers[0]
        root = int(nodes[first])
        levels = shortest_paths(graph, root)[1]
        if work_of(graph, len(levels), len(classes)) > MOST_WORK:
            return False
        flow = capacities_along(levels, capacity, root, len(graph.nodes))[nodes]
        others = np.arange(len(nodes)) != first
        found.add(int(ids[first]), ids[others], flow[others], len(numbers))
        yield
    return True


def work_of(graph: Graph, levels: int, roots: int) -> int:
    """Return what the paths of so many roots cost, to be compared with ``MOST_WORK``."""
    edges = len(graph.dst) * (1 if graph.uniform_metric else _UNEQUAL)
    return roots * (edges + _STEP * levels)


def surroundings(graph: Graph, capacity: NDArray[np.float64], node: int) -> bytes:
    """Return a value that is the same for nodes that can change places.

    They have the same neighbors, so they are none of each other, over edges of the same metrics and
    ``capacity`` (E,) in both directions.
    """
    out = slice(int(graph.indptr[node]), int(graph.indptr[node + 1]))
    back = graph.reverse[out]
    own = (graph.transit[node], graph.network[node])
    columns = (graph.dst[out], graph.metric[out], graph.metric[back], capacity[out], capacity[back])
    return b"".join(part.tobytes() for part in (*own, *columns))
