"""The links of all routers laid end to end, kept so from change to change.

A block that arrives replaces its own slice here, so that making a graph is a few operations
over whole arrays and not a walk over thousands of routers. Routers have numbers in order of
appearance; a slice that grew is moved to the end, and ``lay`` brings all into order again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fared.ted.graph import runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.ted.rows import Rows

_T = TypeVar("_T", bound=np.generic)
_FIRST_ROOM = 64
_COMPACT_ABOVE = 1024
_MIXED = -1
_KEPT_PER_ROW = 64
_LARGEST_KEPT = 32 * 1024 * 1024 - 65536
"""glibc takes no notice of blocks from 32 MiB on."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The rows (R,) of N routers in ascending order of node id.

    ``row_ptr`` (N+1,) first row of each; ``head`` (R,) the index of the neighbor, -1 where it
    is not described; ``metric``; ``capacity``, ``available`` bytes/s as of ``Rows.left``: views
    that must not be written. ``uniform`` is the metric that all share, 0 if they differ;
    ``loaded``: some available bandwidth is told.
    """

    nodes: NDArray[np.int64]
    transit: NDArray[np.bool_]
    network: NDArray[np.bool_]
    doubtful: bool
    row_ptr: NDArray[np.int64]
    head: NDArray[np.int64]
    metric: NDArray[np.int64]
    capacity: NDArray[np.float64]
    available: NDArray[np.float64]
    uniform: int
    loaded: bool


@dataclass(slots=True, eq=False)
class _Routers:
    """By number (C,): node id, slice of the rows, kind; ``uniform`` as in Layout or _MIXED.

    ``room`` is how many rows fit where they are: a link that comes back finds its place.
    """

    node: NDArray[np.int64]
    start: NDArray[np.int64]
    count: NDArray[np.int64]
    room: NDArray[np.int64]
    uniform: NDArray[np.int64]
    present: NDArray[np.bool_]
    transit: NDArray[np.bool_]
    network: NDArray[np.bool_]
    doubtful: NDArray[np.bool_]
    loaded: NDArray[np.bool_]


def _no_routers() -> _Routers:
    integers = np.zeros((5, _FIRST_ROOM), np.int64)
    flags = np.zeros((5, _FIRST_ROOM), bool)
    node, start, count, room, uniform = (values.copy() for values in integers)
    present, transit, network, doubtful, loaded = (values.copy() for values in flags)
    return _Routers(node, start, count, room, uniform, present, transit, network, doubtful, loaded)


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

    def put(self, rows: Rows) -> None:
        """Take a router's links, new or other than before."""
        number, count = self._number(rows.block.node), len(rows.metrics)
        known = self._numbers
        heads = [known.get(node, -1) for node in rows.neighbors.tolist()]
        if -1 in heads:
            heads = [self._number(node) for node in rows.neighbors.tolist()]
        routers = self._routers
        if routers.room[number] < count:
            self._move(number, count)
        self._live += count - int(routers.count[number])
        routers.count[number] = count
        low = int(routers.start[number])
        self._heads[low : low + count] = heads
        self._metrics[low : low + count] = rows.metrics
        first = int(rows.metrics[0]) if count else 0
        routers.uniform[number] = first if (rows.metrics == first).all() else _MIXED
        routers.transit[number] = rows.block.transit
        routers.network[number] = rows.block.network
        routers.doubtful[number] = rows.doubtful
        routers.present[number] = True
        self.write(rows)

    def write(self, rows: Rows) -> None:
        """Take other capacities of a router whose links are the same."""
        number = self._numbers[rows.block.node]
        low = int(self._routers.start[number])
        high = low + len(rows.metrics)
        self._capacities[low:high] = rows.capacities
        self._availables[low:high] = rows.left()
        self._routers.loaded[number] = rows.loaded

    def remove(self, node: int) -> None:
        """Forget a router that has been put."""
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
                *(_grown(getattr(routers, name), room) for name in _Routers.__slots__)
            )
        self._routers.node[number] = node
        return number

    def _move(self, number: int, count: int) -> None:
        """Find room for so many rows of a router at the end."""
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
            _keep_freed(room)
        routers.start[number], routers.room[number] = self._end, count
        self._end += count

    def lay(self) -> Layout:
        """Bring the rows into order and return them."""
        routers = self._routers
        if len(self._numbers) > 2 * np.count_nonzero(routers.present) + _COMPACT_ABOVE:
            self._forget_names()
            routers = self._routers
        order = routers.present.nonzero()[0]
        order = order[routers.node[order].argsort()]
        start, count = routers.start[order], routers.count[order]
        uniform = _shared_metric(routers.uniform[order][count > 0])
        loaded = bool(routers.loaded[order].any())
        if len(order) and (start[1:] != start[:-1] + count[:-1]).any():
            self._arrange(start, count, uniform, loaded=loaded)
            self._place(order, count)
            start = routers.start[order]
        low = int(start[0]) if len(order) else 0
        row_ptr = np.append(start - low, self._live)
        rank = np.full(len(routers.node), -1)
        rank[order] = np.arange(len(order))
        high = low + self._live
        return Layout(
            nodes=routers.node[order],
            transit=routers.transit[order],
            network=routers.network[order],
            doubtful=bool(routers.doubtful[order].any()),
            row_ptr=row_ptr,
            head=rank[self._heads[low:high]],
            metric=self._metrics[low:high],
            capacity=self._capacities[low:high],
            available=self._availables[low:high],
            uniform=uniform,
            loaded=loaded,
        )

    def _arrange(
        self, start: NDArray[np.int64], count: NDArray[np.int64], uniform: int, *, loaded: bool
    ) -> None:
        """Lay all slices end to end, in this order."""
        at = runs(start, count)
        room = len(at) + (len(at) >> 3) + _FIRST_ROOM
        self._heads = _grown(self._heads[at], room)
        self._metrics = np.full(room, uniform) if uniform else _grown(self._metrics[at], room)
        self._capacities = _grown(self._capacities[at], room)
        self._availables = _grown(self._availables[at], room) if loaded else self._capacities.copy()
        self._end = self._live

    def _place(self, numbers: NDArray[np.int64], count: NDArray[np.int64]) -> None:
        """Note where the slices of these routers lie after being laid end to end."""
        self._routers.start[numbers] = count.cumsum() - count
        self._routers.room[:] = 0
        self._routers.room[numbers] = count

    def _forget_names(self) -> None:
        """Number afresh: most numbers are of nodes that nobody lists any more."""
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
            *(getattr(routers, name)[old] for name in _Routers.__slots__),
        )


def _keep_freed(rows: int) -> None:
    """Let freed memory stay with the process, some bytes a row.

    glibc gives back what is free beyond twice the largest block freed so far, and to get it
    again costs a page fault every 4 KiB, which takes longer than computing what goes there. A
    block never written to takes no memory itself.
    """
    np.empty(min(rows * _KEPT_PER_ROW, _LARGEST_KEPT), np.uint8)


def _shared_metric(metrics: NDArray[np.int64]) -> int:
    if not len(metrics) or not (metrics == metrics[0]).all():
        return 0
    return max(int(metrics[0]), 0)
