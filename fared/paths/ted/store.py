"""The links of all routers in shared arrays, updated with each change.

The rows of a new block replace the slice of its router, so that building a graph takes a few
operations over whole arrays instead of a walk over thousands of routers. Routers are numbered in
order of appearance; a slice that grew moves to the end, and ``lay`` restores the order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from fared.paths.ted.graph import absent, anywhere, runs
from fared.paths.ted.model import MAX_LINK_METRIC
from fared.runtime.startup import keep_freed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.paths.ted.rows import LinkRows

_T = TypeVar("_T", bound=np.generic)
_FIRST_ROOM = 64
_COMPACT_ABOVE = 1024
_MIXED = -1
_KEPT_PER_ROW = 64
"""Bytes for each row of freed memory that is kept and used for new arrays."""


class GraphLayout(msgspec.Struct, frozen=True, eq=False):
    """The rows (R,) of N routers in ascending order of node id.

    ``row_ptr`` (N+1,) first row of each; ``head`` (R,) the index of the neighbor, -1 where it
    is not described; ``metric``; ``capacity``, ``available`` bytes/s as of ``LinkRows.left``: views
    that must not be written. ``uniform_metric`` is the metric that all share, 0 if they differ;
    ``loaded``: some router advertises available bandwidth.
    """

    nodes: NDArray[np.int64]
    transit: NDArray[np.bool_]
    network: NDArray[np.bool_]
    has_unknown_capacity: bool
    row_ptr: NDArray[np.int64]
    head: NDArray[np.int64]
    metric: NDArray[np.int64]
    capacity: NDArray[np.float64]
    available: NDArray[np.float64]
    uniform_metric: int
    loaded: bool


class _Routers(msgspec.Struct, eq=False):
    """By number (C,): node id, slice of the rows, kind.

    ``uniform_metric`` is as in GraphLayout, or _MIXED. ``room``: the rows that fit into the slice,
    so that a link that comes back fits without a move.
    """

    node: NDArray[np.int64]
    start: NDArray[np.int64]
    count: NDArray[np.int64]
    room: NDArray[np.int64]
    uniform_metric: NDArray[np.int64]
    present: NDArray[np.bool_]
    transit: NDArray[np.bool_]
    network: NDArray[np.bool_]
    has_unknown_capacity: NDArray[np.bool_]
    loaded: NDArray[np.bool_]


def _no_routers() -> _Routers:
    node, start, count, room, uniform_metric = (np.zeros(_FIRST_ROOM, np.int64) for _ in range(5))
    present, transit, network, has_unknown_capacity, loaded = (
        np.zeros(_FIRST_ROOM, bool) for _ in range(5)
    )
    return _Routers(
        node,
        start,
        count,
        room,
        uniform_metric,
        present,
        transit,
        network,
        has_unknown_capacity,
        loaded,
    )


def _grown(values: NDArray[_T], room: int) -> NDArray[_T]:
    larger = np.zeros(room, values.dtype)
    larger[: len(values)] = values
    return larger


class LinkStore:
    """All rows of one area."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._routers = _no_routers()
        self._end = self._live = 0
        self._heads = np.zeros(_FIRST_ROOM, np.int64)
        self._metrics = np.zeros(_FIRST_ROOM, np.int64)
        self._capacities = np.zeros(_FIRST_ROOM)
        self._availables = np.zeros(_FIRST_ROOM)

    def put(self, rows: LinkRows) -> None:
        """Store the links of a router, which are new or differ."""
        number, count = self._number(rows.block.node), len(rows.metrics)
        neighbors = rows.neighbors.tolist()
        try:
            heads = list(map(self._numbers.__getitem__, neighbors))
        except KeyError:  # a neighbor that is not known yet
            heads = [self._number(node) for node in neighbors]
        routers = self._routers
        if routers.room[number] < count:
            self._move(number, count)
        self._live += count - int(routers.count[number])
        routers.count[number] = count
        low = int(routers.start[number])
        self._heads[low : low + count] = heads
        self._metrics[low : low + count] = rows.metrics
        first = int(rows.metrics[0]) if count else 0
        shared = first < MAX_LINK_METRIC and not anywhere(rows.metrics != first)
        routers.uniform_metric[number] = first if shared else _MIXED
        routers.transit[number] = rows.block.transit
        routers.network[number] = rows.block.network
        routers.has_unknown_capacity[number] = rows.has_unknown_capacity
        routers.present[number] = True
        self._write(number, low, rows)

    def write(self, rows: LinkRows) -> None:
        """Store new capacities of a router whose links are the same."""
        number = self._numbers[rows.block.node]
        self._write(number, int(self._routers.start[number]), rows)

    def _write(self, number: int, low: int, rows: LinkRows) -> None:
        high = low + len(rows.metrics)
        self._capacities[low:high] = rows.capacities
        self._availables[low:high] = rows.left()
        self._routers.loaded[number] = rows.advertised > 0

    def remove(self, node: int) -> None:
        """Remove a router that has been put."""
        number = self._numbers[node]
        self._live -= int(self._routers.count[number])
        self._routers.count[number] = 0
        self._routers.present[number] = False

    def _number(self, node: int) -> int:
        number = self._numbers.setdefault(node, len(self._numbers))
        if number == len(self._routers.node):
            routers = self._routers
            room = 2 * max(number, _FIRST_ROOM)
            self._routers = _Routers(
                *(_grown(getattr(routers, name), room) for name in _Routers.__struct_fields__)
            )
        self._routers.node[number] = node
        return number

    def _move(self, number: int, count: int) -> None:
        """Move a router to the end, with room for so many rows."""
        routers = self._routers
        if self._end > 2 * self._live + _COMPACT_ABOVE:
            here = routers.present.nonzero()[0]
            start, counts = routers.start[here], routers.count[here]
            self._arrange(start, counts, 0, loaded=True)
            self._place(here, counts)
        room = self._end + count
        if room > len(self._heads):
            room += room >> 1
            self._heads, self._metrics = _grown(self._heads, room), _grown(self._metrics, room)
            self._capacities = _grown(self._capacities, room)
            self._availables = _grown(self._availables, room)
            keep_freed(room * _KEPT_PER_ROW)
        routers.start[number], routers.room[number] = self._end, count
        self._end += count

    def layout(self) -> GraphLayout:
        """Sort the rows by node and return them as arrays."""
        order = self._routers.present.nonzero()[0]
        if len(self._numbers) > 2 * len(order) + _COMPACT_ABOVE:
            self._forget_names()
            order = self._routers.present.nonzero()[0]
        routers = self._routers
        order = order[routers.node[order].argsort()]
        start, count = routers.start[order], routers.count[order]
        uniform_metric = _shared_metric(routers.uniform_metric[order][count > 0])
        loaded = anywhere(routers.loaded[order])
        if len(order) and anywhere(start[1:] != start[:-1] + count[:-1]):
            self._arrange(start, count, uniform_metric, loaded=loaded)
            self._place(order, count)
            start = routers.start[order]
        low = int(start[0]) if len(order) else 0
        row_ptr = np.empty(len(order) + 1, np.int64)
        row_ptr[:-1], row_ptr[-1] = start - low, self._live
        rank = absent(len(routers.node))
        rank[order] = np.arange(len(order))
        high = low + self._live
        return GraphLayout(
            nodes=routers.node[order],
            transit=routers.transit[order],
            network=routers.network[order],
            has_unknown_capacity=anywhere(routers.has_unknown_capacity[order]),
            row_ptr=row_ptr,
            head=rank[self._heads[low:high]],
            metric=self._metrics[low:high],
            capacity=self._capacities[low:high],
            available=self._availables[low:high],
            uniform_metric=uniform_metric,
            loaded=loaded,
        )

    def _arrange(
        self,
        start: NDArray[np.int64],
        count: NDArray[np.int64],
        uniform_metric: int,
        *,
        loaded: bool,
    ) -> None:
        """Concatenate all slices in this order."""
        at = runs(start, count)
        room = len(at) + (len(at) >> 3) + _FIRST_ROOM
        self._heads = _grown(self._heads[at], room)
        self._metrics = (
            np.full(room, uniform_metric) if uniform_metric else _grown(self._metrics[at], room)
        )
        self._capacities = _grown(self._capacities[at], room)
        self._availables = _grown(self._availables[at], room) if loaded else self._capacities.copy()
        self._end = self._live

    def _place(self, numbers: NDArray[np.int64], count: NDArray[np.int64]) -> None:
        """Record the places of these routers' slices after concatenation."""
        self._routers.start[numbers] = count.cumsum() - count
        self._routers.room[:] = 0
        self._routers.room[numbers] = count

    def _forget_names(self) -> None:
        """Renumber the routers: most numbers belong to nodes that no router lists any more."""
        routers, end = self._routers, self._end
        names = dict(zip(self._numbers.values(), self._numbers, strict=True))
        used = np.zeros(len(routers.node), bool)
        kept = routers.present.nonzero()[0]
        used[kept] = True
        at = runs(routers.start[kept], routers.count[kept])
        used[self._heads[at]] = True
        old = used.nonzero()[0]
        fresh = np.zeros(len(routers.node), np.int64)
        fresh[old] = np.arange(len(old))
        self._heads[:end] = fresh[self._heads[:end]]
        self._numbers = {names[number]: place for place, number in enumerate(old.tolist())}
        self._routers = _Routers(
            *(getattr(routers, name)[old] for name in _Routers.__struct_fields__),
        )


def _shared_metric(metrics: NDArray[np.int64]) -> int:
    if not len(metrics) or anywhere(metrics != metrics[0]):
        return 0
    return max(int(metrics[0]), 0)
