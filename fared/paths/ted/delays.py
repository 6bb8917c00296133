"""The delays of the edges of a graph, from the rows of the routers that flood any.

Most fabrics have no delays, and those with a WAN have them at a few border routers. So the graph
has no array for them: ``Ted`` makes one of these rows when it is read, and keeps it while the edges
and all delays are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fared.paths.ted.graph import anywhere

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fared.paths.ted.graph import Graph
    from fared.paths.ted.rows import LinkRows


def edge_delays(graph: Graph, delayed: Iterable[LinkRows]) -> NDArray[np.float64]:
    """Return the delay of each edge (E,), microseconds, NaN where its tail floods none.

    ``delayed`` are the rows of the routers that flood any. The delay is that of one direction: that
    of the far end does not stand in for it (RFC 7471 §4.1). Of parallel links it is the longest
    one, since packets may take any of them. Out of a transit network it is 0.
    """
    found = np.full(len(graph.dst), np.nan)
    if anywhere(graph.network):
        found[graph.network[graph.src]] = 0.0
    for rows in delayed:
        node, delays = graph.index(rows.block.node), rows.delays
        if node is not None and delays is not None and not graph.network[node]:
            _write(graph, node, rows, delays, found)
    return found


def _write(
    graph: Graph,
    node: int,
    rows: LinkRows,
    delays: NDArray[np.float64],
    found: NDArray[np.float64],
) -> None:
    """Write the delays of the edges that leave a node, as ``assemble.refresh`` does capacities."""
    low, high = int(graph.indptr[node]), int(graph.indptr[node + 1])
    if high - low == len(rows.metrics):  # each row is an edge, in the same order
        found[low:high] = delays
        return
    if low == high:
        return
    index = graph.indexes(rows.neighbors)
    place = np.minimum(graph.dst[low:high].searchsorted(index), high - low - 1)
    # Rows that are one-way, or costlier than a parallel link, belong to no edge.
    used = (graph.dst[low + place] == index) & (graph.metric[low + place] == rows.metrics)
    np.fmax.at(found, low + place[used], delays[used])
