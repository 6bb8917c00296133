"""The rows of all routers where capacities are unknown: the far end of a link stands in for it.

``assemble`` makes ``Partners`` with the graph, ``Ted`` writes new capacities through them. When
links are lost, ``without_links`` removes their rows and edges, and nothing is assembled again:
without TE LSAs the capacities of all links of a fabric are unknown.

``without_links`` is a fast path beside ``assemble``: tests/ted/test_changes.py proves them equal;
row ``graph of a lost link, capacities unknown``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from fared.paths.ted.change import columns_of, one_more
from fared.paths.ted.graph_update import without_edges
from fared.paths.ted.rows import same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fared.paths.ted.graph import Graph
    from fared.paths.ted.rows import LinkRows

_MOST_LOST = 100
"""The most rows to remove: ``_closed_up`` counts them in eight bits."""


class Partners(msgspec.Struct, frozen=True, eq=False):
    """How unknown capacities are filled in; R rows as of GraphLayout.

    ``row_edge`` (R,) the edge a row counts for, -1 where it counts for none (one-way, costlier
    than its parallels); ``partner`` (R,) the same link as the other end describes it, -1
    unknown; ``capacity``, ``available`` (R,) as of GraphLayout.
    """

    row_ptr: NDArray[np.int64]
    row_edge: NDArray[np.int64]
    partner: NDArray[np.int64]
    capacity: NDArray[np.float64]
    available: NDArray[np.float64]

    def write(self, graph: Graph, node: int, rows: LinkRows) -> bool:
        """Write new capacities of one router (by index) into the graph, in place.

        Returns whether there were any.
        """
        if graph.network[node]:
            return False
        low, high = int(self.row_ptr[node]), int(self.row_ptr[node + 1])
        capacity, available, left = self.capacity[low:high], self.available[low:high], rows.left()
        if same(capacity, rows.capacities) and same(available, left):
            return False
        capacity[:], available[:] = rows.capacities, left
        partners = self.partner[low:high]
        if np.isnan(self.capacity[partners[partners >= 0]]).any():
            self.fill(graph, 0, len(graph.nodes))  # edges of other routers use these capacities
        else:
            self.fill(graph, node, node + 1)
        return True

    def fill(self, graph: Graph, first: int, last: int) -> None:
        """Sum the rows of the routers ``first`` to ``last - 1`` into their edges.

        Where a capacity is unknown here, the far end's counts.
        """
        rows = slice(int(self.row_ptr[first]), int(self.row_ptr[last]))
        base, end = int(graph.indptr[first]), int(graph.indptr[last])
        used = self.row_edge[rows] >= 0
        edge, partner = self.row_edge[rows][used] - base, self.partner[rows][used]
        capacity, available = self.capacity[rows][used], self.available[rows][used]
        far = np.where(partner >= 0, self.capacity[partner], np.nan)
        capacity = np.where(np.isnan(capacity) & np.isfinite(far), far, capacity)
        available = np.where(np.isnan(available), capacity, available)
        graph.capacity[base:end] = _total(edge, capacity, end - base)
        graph.available[base:end] = _total(edge, available, end - base)


def _total(edge: NDArray[np.int64], values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Sum by edge; a parallel link of unknown capacity counts as the mean of its parallels."""
    known = ~np.isnan(values)
    total = np.bincount(edge, np.where(known, values, 0.0), size)
    count = np.bincount(edge, known, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(count > 0, total * (np.bincount(edge, minlength=size) / count), np.nan)


class Reshaped(NamedTuple):
    """A router (by index) whose links differ: as in the graph, and as they are now."""

    node: int
    before: LinkRows
    after: LinkRows


def without_links(
    partners: Partners, graph: Graph, routers: Sequence[Reshaped]
) -> tuple[Partners, Graph, tuple[int, ...]] | None:
    """Return both without one link of each of the routers, and the edges of ``graph`` that went.

    The graph is the same object if none went: the other end had dropped the link before. None
    where links differ in another way, were parallel, or led to a network.
    """
    if len(routers) > _MOST_LOST:
        return None
    row_edge, partner = partners.row_edge.copy(), partners.partner.copy()
    gone: list[int] = []
    cut: list[int] = []
    for router in routers:
        place = _lost_place(graph, router)
        if place is None:
            return None
        row = int(partners.row_ptr[router.node]) + place
        gone.append(row)
        edge = int(row_edge[row])
        if edge < 0:  # one-way: it counted for none
            continue
        far, back = int(graph.dst[edge]), int(graph.reverse[edge])
        if graph.network[far]:
            return None
        cut += (edge, back)
        # RFC 2328 §16.1 (2)(b): what the far end lists does not count any more
        theirs = slice(int(partners.row_ptr[far]), int(partners.row_ptr[far + 1]))
        row_edge[theirs][row_edge[theirs] == back] = -1
        partner[theirs][partner[theirs] == row] = -1
    gone.sort()
    cut.sort()
    left = Partners(
        row_ptr=partners.row_ptr - np.array(gone, np.int64).searchsorted(partners.row_ptr),
        row_edge=_closed_up(np.delete(row_edge, gone), cut),
        partner=_closed_up(np.delete(partner, gone), gone),
        capacity=np.delete(partners.capacity, gone),
        available=np.delete(partners.available, gone),
    )
    return left, without_edges(graph, cut) if cut else graph, tuple(cut)


def _lost_place(graph: Graph, router: Reshaped) -> int | None:
    """Return the place of the one link that a router has lost, its only one to that neighbor."""
    node, before, after = router
    block = after.block
    if block.network or graph.network[node] or bool(graph.transit[node]) != block.transit:
        return None
    if len(after.neighbors) != len(before.neighbors) - 1:
        return None
    place = one_more(columns_of(before), columns_of(after))
    if place is None or np.count_nonzero(before.neighbors == before.neighbors[place]) > 1:
        return None
    return place


def _closed_up(numbers: NDArray[np.int64], gone: Sequence[int]) -> NDArray[np.int64]:
    """Renumber what stays after these numbers went (ascending); -1 stays."""
    shift = np.zeros(len(numbers), np.int8)
    for number in gone:
        shift += (numbers > number).view(np.int8)
    return numbers - shift
