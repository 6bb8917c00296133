"""Closed forms of three stages: one tree for each spine, and the leaves' widths as a matrix.

The star of spine s reduces at ``b_s = min over leaves of min(up, down)``; all stars together at
their sum, since they share no link. That is the min cut, so no algorithm is better, if one leaf is
the weakest at every spine. A job on 512 leaves of 64 spines takes milliseconds.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from fared.extensions.ina.plan.model import Capacities, SummingJob, Vertex
from fared.paths.ted.graph import Graph


class StarWidths(msgspec.Struct, frozen=True, eq=False):
    """``up`` and ``down`` (L, S): capacities between each leaf and each root, bytes/s."""

    leaves: NDArray[np.int64]
    roots: NDArray[np.int64]
    up: NDArray[np.float64]
    down: NDArray[np.float64]

    @property
    def widths(self) -> NDArray[np.float64]:
        """The least direction (L, S)."""
        return np.minimum(self.up, self.down)

    @property
    def rates(self) -> NDArray[np.float64]:
        """The rate b_s of each star (S,)."""
        return star_rates(self.widths)


def star_rates(widths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return b_s (S,) of widths (L, S)."""
    return widths.min(axis=0) if len(widths) else np.zeros(widths.shape[1])


def widths_of_graph(graph: Graph, leaves: NDArray[np.int64]) -> StarWidths:
    """Read the widths between some leaves and all their neighbors from the TED.

    ``leaves`` (L,) are vertices of the graph, without repetition. A link of unknown capacity is
    unlimited, as in path capacity.
    """
    at = graph.indexes(leaves)
    counts = graph.indptr[at + 1] - graph.indptr[at]
    edges = np.repeat(graph.indptr[at] - np.concatenate(([0], counts.cumsum()[:-1])), counts)
    edges += np.arange(len(edges))
    capacity = np.where(np.isnan(graph.capacity), np.inf, graph.capacity)
    column = np.full(len(graph.nodes), -1)
    heads = graph.dst[edges]
    column[heads] = 0
    column[at] = -1  # a leaf of the job is no root
    roots = np.flatnonzero(column == 0)
    column[roots] = np.arange(len(roots))
    rows = np.repeat(np.arange(len(leaves)), counts)
    inside = column[heads] >= 0
    place = rows[inside], column[heads[inside]]
    up, down = np.zeros((2, len(leaves), len(roots)))
    up[place] = capacity[edges[inside]]
    down[place] = capacity[graph.reverse[edges[inside]]]
    return StarWidths(leaves, graph.nodes[roots], up, down)


def widths_of(network: Capacities, job: SummingJob) -> StarWidths:
    """Return the widths between the job's leaves and the routers next to them that sum."""
    leaves = job.leaves
    rows = {leaf: row for row, leaf in enumerate(leaves)}
    next_to: dict[Vertex, int] = {}
    for tail, head in sorted(network.links):
        if tail in rows and head in network.adders and head not in rows:
            next_to.setdefault(head, len(next_to))
    up, down = np.zeros((2, len(leaves), len(next_to)))
    for (tail, head), capacity in network.links.items():
        if tail in rows and head in next_to:
            up[rows[tail], next_to[head]] = capacity
        elif head in rows and tail in next_to:
            down[rows[head], next_to[tail]] = capacity
    return StarWidths(np.array(leaves, np.int64), np.array(list(next_to), np.int64), up, down)
