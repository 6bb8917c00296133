"""All advertisements of prefixes: one row of arrays for each.

``PrefixSelector`` fills the table and selects from it. A fabric advertises each of its
point-to-point links as a prefix at both ends, and border and AS boundary routers advertise the
prefixes beyond, so there are far more advertisements than routers. They change one LSA at a time:
a change writes only its rows, and marks their prefixes for ``selection``, which compares the rows
of a prefix by one integer key each.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, cast

import numpy as np

from fared.core.ids import BACKBONE, NodeId
from fared.ted.change import ChangeKind, change_of_prefix
from fared.ted.model import EXTERNAL_TYPES, PathType, PrefixReachability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.core.ids import Prefix

Advertiser = tuple[int, NodeId]
"""The area and node id of a node that advertises prefixes."""
Changes = Mapping[Hashable, PrefixReachability | None]
"""Changed advertisements of one node, by source (LSA, TLV or prefix); None: withdrawn."""

NONE = -1
"""The number of no prefix, no row and no advertiser."""
PREFIX, METRIC, PATH_TYPE, KEY, ASBR, ADVERTISER = range(6)
METRIC_SHIFT = 34
TYPE_SHIFT = 58
_NOT_PREFERRED = 1 << 33
_FIRST_ROOM = 64
_COMPACT_ABOVE = 4096
_Items = Mapping[Hashable, PrefixReachability]
_Known = dict[Hashable, PrefixReachability]
"""The advertisements of one node, by source."""
_NOWHERE: Advertiser = (-1, NodeId(-1))
"""Advertiser 0, which is unreachable: the advertiser of free rows."""


class PrefixTable:
    """All advertisements of all areas; advertisers, prefixes and rows are numbered as they arrive.

    New advertisements are collected, and written to the arrays together at the next read: while a
    database is learned, and with the first block of a router, they come by the thousand.
    """

    def __init__(self) -> None:
        self.prefixes: list[Prefix] = []
        self.advertisers: list[Advertiser] = [_NOWHERE]
        self.size = 0
        """R: rows from here on were never used."""
        self.changed: set[int] = set()
        """Prefixes, by number, to select again."""
        self.inside_changed = False
        """Whether one of them was, or is, advertised from inside the AS."""
        self._columns: NDArray[np.int64] = np.zeros((6, _FIRST_ROOM), np.int64)
        self._capacity: NDArray[np.float64] = np.zeros(_FIRST_ROOM)
        self._unwritten: list[int] = []
        self._unwritten_numbers: list[int] = []
        """Rows to write, and the numbers of their prefixes. Lists of all nodes, not one for each:
        the collector would go over the database that is learned more often."""
        self._released: list[int] = []
        self._items: list[PrefixReachability] = []
        self._advertiser_of = array("q")
        """The advertiser of each row, 0 for a free row, which keeps its last item."""
        self._first, self._next = array("q"), array("q")
        """The first row of each prefix, by its number; the row after each row; NONE at the end."""
        self._free: list[int] = []
        self._prefix_number: dict[Prefix, int] = {}
        self._advertiser_number: dict[Advertiser, int] = {_NOWHERE: 0}
        self._advertised: dict[int, _Known] = {}
        self._advertiser_arrays = (np.empty(0, np.int64), np.empty(0, np.int64))

    @property
    def columns(self) -> NDArray[np.int64]:
        """The columns (6, R or more): one row for each advertisement, free rows included.

        ``KEY`` is the advertisement's preference at distance 0. ``ASBR`` is the number of the AS
        boundary router that the advertiser leads to, NONE for none.
        """
        self._write()
        return self._columns

    @property
    def capacity(self) -> NDArray[np.float64]:
        """The advertised capacity of each row, bytes/s, infinite without."""
        self._write()
        return self._capacity

    def number(self, prefix: Prefix) -> int:
        """Return the number of a prefix, NONE if it was never advertised."""
        return self._prefix_number.get(prefix, NONE)

    def advertiser(self, area: int, node: NodeId) -> int:
        """Return the number of a node in an area; assign one if it has none."""
        number = self._advertiser_number.setdefault((area, node), len(self.advertisers))
        if number == len(self.advertisers):
            self.advertisers.append((area, node))
        return number

    def advertiser_arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Areas and node ids of all advertisers (A,)."""
        if len(self._advertiser_arrays[0]) != len(self.advertisers):
            columns = np.array(self.advertisers, np.int64).reshape(-1, 2)
            self._advertiser_arrays = columns[:, 0], columns[:, 1]
        return self._advertiser_arrays

    def advertised(
        self, prefix: Prefix | None = None
    ) -> Iterator[tuple[Advertiser, Hashable, PrefixReachability]]:
        """Iterate over all advertisements, or those of one prefix: advertiser, source, content."""
        if prefix is None:
            numbers: set[int] = set(self._advertised)
        else:
            number = self.number(prefix)
            rows = () if number == NONE else self._rows(number)
            numbers = {self._advertiser_of[row] for row in rows}
        for number in sorted(numbers):
            for source, item in self._advertised[number].items():
                if prefix in (None, item.prefix):
                    yield self.advertisers[number], source, item

    def sources(self, area: int, node: NodeId) -> Collection[Hashable]:
        """Return the sources of the advertisements of a node in an area."""
        number = self._advertiser_number.get((area, node), NONE)
        return self._advertised.get(number, {}).keys()

    def advertised_by(
        self, area: int, node: NodeId
    ) -> Iterable[tuple[Hashable, PrefixReachability]]:
        """Iterate over the advertisements of a node in an area: source, content."""
        number = self._advertiser_number.get((area, node), NONE)
        return self._advertised.get(number, {}).items()

    def put(self, area: int, node: NodeId, changes: Changes) -> ChangeKind:
        """Process changed advertisements of a node; return the kind of change."""
        advertiser = self.advertiser(area, node)
        known = self._advertised.setdefault(advertiser, {})
        if known:
            kind, added = self._withdraw(advertiser, known, changes)
        else:  # the first advertisements of a node, possibly very many
            added = _advertised(changes)
            kind = ChangeKind.PREFIX if added else ChangeKind.NONE
        if added:
            known.update(added)
            self._add(area, advertiser, list(added.values()))
        if not known:
            del self._advertised[advertiser]
        return kind

    def _withdraw(
        self, advertiser: int, known: _Known, changes: Changes
    ) -> tuple[ChangeKind, _Items]:
        """Free the rows of changed and withdrawn advertisements.

        Returns the kind of change, and the new advertisements.
        """
        kind = ChangeKind.NONE
        added: dict[Hashable, PrefixReachability] = {}
        for source, item in changes.items():
            before = known.get(source)
            found = change_of_prefix(before, item)
            if found is ChangeKind.NONE:
                continue
            kind = max(kind, found)
            if before is not None:
                self.inside_changed |= before.path_type not in EXTERNAL_TYPES
                self._release(advertiser, before)
                del known[source]
            if item is not None:
                added[source] = item
        return kind, added

    def _release(self, advertiser: int, item: PrefixReachability) -> None:
        """Free a row of an advertiser with this content."""
        number, last = self._prefix_number[item.prefix], NONE
        row = self._first[number]
        while self._items[row] is not item or self._advertiser_of[row] != advertiser:
            last, row = row, self._next[row]
        if last == NONE:
            self._first[number] = self._next[row]
        else:
            self._next[last] = self._next[row]
        self.changed.add(number)
        self._advertiser_of[row] = 0
        self._free.append(row)
        self._released.append(row)

    def _add(self, area: int, advertiser: int, items: list[PrefixReachability]) -> None:
        """Assign rows to new advertisements of a node."""
        kinds = {item.path_type for item in items}
        self.inside_changed |= not kinds.issubset(EXTERNAL_TYPES)
        if not kinds.isdisjoint(EXTERNAL_TYPES):
            for asbr in {item.asbr for item in items if item.asbr is not None}:
                self.advertiser(area, asbr)
        numbers, rows = self._numbers(items), self._take_rows(advertiser, items)
        first, following = self._first, self._next
        for number, row in zip(numbers, rows, strict=True):
            following[row] = first[number]
            first[number] = row
        self.changed.update(numbers)
        self._unwritten += rows
        self._unwritten_numbers += numbers

    def _numbers(self, items: list[PrefixReachability]) -> list[int]:
        """Return the numbers of the prefixes; assign new ones."""
        known = self._prefix_number
        prefixes = [item.prefix for item in items]
        new = [prefix for prefix in prefixes if prefix not in known]
        if new:
            new = list(dict.fromkeys(new))
            known.update(zip(new, count(len(known)), strict=False))
            self.prefixes += new
            self._first.extend([NONE] * len(new))
        return [known[prefix] for prefix in prefixes]

    def _take_rows(self, advertiser: int, items: list[PrefixReachability]) -> list[int]:
        """Return rows for these advertisements: free ones first, then new ones."""
        left = max(0, len(self._free) - len(items))
        rows, self._free[left:] = self._free[left:], ()
        for row, item in zip(rows, items, strict=False):
            self._items[row], self._advertiser_of[row] = item, advertiser
        more = len(items) - len(rows)
        rows.extend(range(self.size, self.size + more))
        self._items += items[len(items) - more :]
        self._advertiser_of.extend([advertiser] * more)
        self._next.extend([NONE] * more)
        self.size += more
        return rows

    def _write(self) -> None:
        """Bring the arrays up to date."""
        if self._unwritten:
            # In order of addition: a row may have been freed and used again, or be free.
            rows = zip(self._unwritten, self._unwritten_numbers, strict=True)
            used = {row: number for row, number in rows if self._advertiser_of[row]}
            self._unwritten, self._unwritten_numbers = [], []
            self._write_rows(used)
        if self._released:
            released, self._released = self._released, []
            self._columns[:, [row for row in released if not self._advertiser_of[row]]] = 0

    def _write_rows(self, numbers: dict[int, int]) -> None:
        """Write these rows, whose prefixes have these numbers."""
        if len(self._capacity) < self.size:
            more = self.size + (self.size >> 1) - len(self._capacity)
            self._columns = np.concatenate((self._columns, np.zeros((6, more), np.int64)), 1)
            self._capacity = np.concatenate((self._capacity, np.zeros(more)))
        items = [self._items[row] for row in numbers]
        advertisers = [self._advertiser_of[row] for row in numbers]
        at = np.array([*numbers], np.int64)
        columns = np.empty((6, len(at)), np.int64)
        columns[PREFIX] = [*numbers.values()]
        columns[ADVERTISER] = advertisers
        columns[METRIC] = [item.metric for item in items]
        kinds = {item.path_type for item in items}
        columns[PATH_TYPE] = [*kinds] if len(kinds) == 1 else [item.path_type for item in items]
        columns[KEY] = (columns[PATH_TYPE] << TYPE_SHIFT) + columns[METRIC]
        columns[ASBR] = NONE
        if not kinds.isdisjoint(EXTERNAL_TYPES):
            areas = [self.advertisers[known][0] for known in advertisers]
            where = list(zip(areas, items, strict=True))
            columns[KEY] = [_key_at_zero(area, item) for area, item in where]
            columns[ASBR] = [
                NONE if item.asbr is None else self._advertiser_number[area, item.asbr]
                for area, item in where
            ]
        self._columns[:, at] = columns
        capacities = [item.capacity for item in items]
        self._capacity[at] = np.inf
        if capacities.count(None) < len(capacities):
            self._capacity[at] = [np.inf if known is None else known for known in capacities]

    def rows_of(self, numbers: list[int]) -> NDArray[np.int64]:
        """Return all rows of these prefixes, in their order."""
        return np.array([row for number in numbers for row in self._rows(number)], np.int64)

    def _rows(self, number: int) -> Iterator[int]:
        row = self._first[number]
        while row != NONE:
            yield row
            row = self._next[row]

    def compacted(self) -> PrefixTable | None:
        """Return a renumbered table if most numbers belong to withdrawn prefixes or advertisers."""
        stale = len(self.advertisers) > 2 * len(self._advertised) + _COMPACT_ABOVE
        used = self.size - len(self._free)
        if len(self.prefixes) <= 2 * used + _COMPACT_ABOVE and not stale:
            return None
        table = PrefixTable()
        for number, mine in sorted(self._advertised.items()):
            table.put(*self.advertisers[number], mine)
        return table


def _advertised(changes: Changes) -> _Items:
    """Return the changes that are not withdrawals, usually all."""
    if all(changes.values()):
        return cast("_Items", changes)
    return {source: item for source, item in changes.items() if item is not None}


def _key_at_zero(area: int, item: PrefixReachability) -> int:
    """Return the key at distance 0: path type first; for external type 2 then its own metric.

    Among externals, a path inside a non-backbone area to the AS boundary router comes before any
    other, regardless of distance (RFC 2328 §16.4.1).
    """
    # RFC 2328 §16.4 (6)(a), (b): paths inside the AS first, then type 1, then type 2
    key = item.path_type << TYPE_SHIFT
    # §16.2 (5) to (7): inter-area after intra-area paths and before externals, then the least cost.
    # §16.3 is for transit areas of virtual links, which fared lacks.
    if item.path_type not in EXTERNAL_TYPES:
        return key + item.metric
    # §16.4.1: intra-area paths through the backbone and inter-area paths are equal
    if area == BACKBONE or item.asbr is not None:
        key += _NOT_PREFERRED
    if item.path_type is PathType.EXTERNAL_2:
        return key + (item.metric << METRIC_SHIFT) + item.distance
    return key + item.metric
