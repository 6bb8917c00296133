"""All advertisements of prefixes, by prefix and by source.

``PrefixSelector`` fills the table and selects from it. A fabric advertises each of its
point-to-point links as a prefix at both ends, and border and AS boundary routers advertise the
prefixes beyond, so there are far more advertisements than routers. They change one LSA at a time:
a change writes only its rows (``rows``), and marks their prefixes for ``selection``, which compares
the rows of a prefix by one integer key each.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from fared.core.ids import NodeId
from fared.paths.rib.rows import (
    NONE,
    AdvertisementRows,
    Columns,
    CopiedRows,
    columns_of,
    new_numbers,
    packed,
)
from fared.paths.rib.sources import RowsBySource
from fared.paths.ted.change import ChangeKind, change_of_prefix, change_of_withdrawal
from fared.paths.ted.model import EXTERNAL_TYPES, PathType, PrefixReachability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.core.ids import Prefix
    from fared.paths.rib.rows import AdvertisementRow

Advertiser = tuple[int, NodeId]
"""The area and node id of a node that advertises prefixes."""
Changes = Mapping[Hashable, PrefixReachability | None]
"""Changed advertisements of one node, by source (LSA, TLV or prefix); None: withdrawn."""

_COMPACT_ABOVE = 4096
_NONE = packed(NONE)
"""One item of an array of rows."""
_Items = Mapping[Hashable, PrefixReachability]
_NOWHERE: Advertiser = (-1, NodeId(-1))
"""Advertiser 0, which is unreachable: the advertiser of free rows."""


class PrefixTable:
    """All advertisements of all areas; advertisers, prefixes and rows are numbered as they arrive.

    There may be a hundred thousand: a row keeps no object but its source.
    """

    def __init__(self) -> None:
        self.prefixes: list[Prefix] = []
        self.numbers: dict[Prefix, int] = {}
        """The number of each prefix that was ever advertised."""
        self.advertisers: list[Advertiser] = [_NOWHERE]
        self.changed: set[int] = set()
        """Prefixes, by number, to select again."""
        self.inside_changed = False
        """Whether one of them was, or is, advertised from inside the AS."""
        self._content = AdvertisementRows()
        self._first, self._next = array("i"), array("i")
        """The first row of each prefix, by its number; the row after each row; NONE at the end."""
        self._free: list[int] = []
        self._advertiser_number: dict[Advertiser, int] = {_NOWHERE: 0}
        self._advertised = RowsBySource()
        self._advertiser_arrays = (np.empty(0, np.int64), np.empty(0, np.int64))
        self._integers: list[int] = []
        """0, 1, 2...: rows and prefixes with one number have one object."""

    @property
    def size(self) -> int:
        """R: rows from here on were never used."""
        return len(self._content)

    def number(self, prefix: Prefix) -> int:
        """Return the number of a prefix, NONE if it was never advertised."""
        return self.numbers.get(prefix, NONE)

    def advertiser(self, area: int, node: NodeId) -> int:
        """Return the number of a node in an area; assign one if it has none."""
        number = self._advertiser_number.setdefault((area, node), len(self.advertisers))
        if number == len(self.advertisers):
            self.advertisers.append((area, node))
        return number

    def known_advertiser(self, area: int, node: NodeId) -> int:
        """Return the number of a node that has advertised something; NONE for another."""
        return self._advertiser_number.get((area, node), NONE)

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
            numbers = {self._content.advertiser[row] for row in rows}
        for number in sorted(numbers):
            for source, row in self._advertised.items(number):
                if prefix in (None, self.prefixes[self._content.number[row]]):
                    yield self.advertisers[number], source, self._advertisement(row)

    def advertisers_of(self, prefix: Prefix) -> Iterator[tuple[Advertiser, PathType]]:
        """Iterate over who advertises a prefix, and how: only these advertisements are read."""
        number = self.number(prefix)
        for row in () if number == NONE else self._rows(number):
            at = self.advertisers[self._content.advertiser[row]]
            yield at, self._advertisement(row).path_type

    def _advertisement(self, row: int) -> PrefixReachability:
        prefix = self.prefixes[self._content.number[row]]
        return self._content.advertisement(row, prefix, lambda at: self.advertisers[at][1])

    def path_types(self, area: int, node: NodeId, changes: Changes) -> set[PathType]:
        """Return the path types of changed advertisements of a node, before and after."""
        number = self.known_advertiser(area, node)
        known = self._advertised.of(number)
        found = {item.path_type for item in changes.values() if item is not None}
        found.update(self._content.path_type(known[at]) for at in changes if at in known)
        return found

    def sources(self, area: int, node: NodeId) -> Collection[Hashable]:
        """Return the sources of the advertisements of a node in an area."""
        number = self.known_advertiser(area, node)
        return self._advertised.sources(number)

    def advertised_by(
        self, area: int, node: NodeId
    ) -> Iterable[tuple[Hashable, PrefixReachability]]:
        """Iterate over the advertisements of a node in an area: source, content."""
        number = self.known_advertiser(area, node)
        known = self._advertised.items(number)
        return ((source, self._advertisement(row)) for source, row in known)

    def put(self, area: int, node: NodeId, changes: Changes) -> ChangeKind:
        """Process changed advertisements of a node; return the kind of change.

        A node that only withdraws what it has not advertised gets no number: with a new number
        comes a changed prefix, for which the selector locates the node.
        """
        advertiser = self._advertiser_number.get((area, node))
        known = {} if advertiser is None else self._advertised.of(advertiser)
        if advertiser is None or not known:  # its first advertisements, possibly very many
            added = _advertised(changes)
            if not added:
                return ChangeKind.NONE
            number = self.advertiser(area, node)
            rows = self._add(area, number, list(added.values()))
            self._advertised.begin(number, added, rows)
            return ChangeKind.PREFIX
        kind, added = self._withdraw(known, changes)
        if added:
            rows = self._add(area, advertiser, list(added.values()))
            known.update(zip(added, rows, strict=True))
        elif not known:
            self._advertised.forget(advertiser)
        return kind

    def _withdraw(self, known: dict[Hashable, int], changes: Changes) -> tuple[ChangeKind, _Items]:
        """Free the rows of changed and withdrawn advertisements of a node.

        Returns the kind of change, and the new advertisements.
        """
        kind = ChangeKind.NONE
        added: dict[Hashable, PrefixReachability] = {}
        for source, item in changes.items():
            row = known.get(source)
            if row is not None:
                former = self._content.path_type(row)
                if item is None:
                    found = change_of_withdrawal(former)
                else:
                    found = change_of_prefix(self._advertisement(row), item)
                if found is ChangeKind.NONE:
                    continue
                kind = max(kind, found)
                self.inside_changed |= former not in EXTERNAL_TYPES
                self._release(row)
                del known[source]
            elif item is not None:
                kind = max(kind, ChangeKind.PREFIX)
            if item is not None:
                added[source] = item
        return kind, added

    def _release(self, row: int) -> None:
        """Free a row."""
        number, last = self._content.number[row], NONE
        at = self._first[number]
        while at != row:
            last, at = at, self._next[at]
        if last == NONE:
            self._first[number] = self._next[row]
        else:
            self._next[last] = self._next[row]
        self._next[row] = NONE
        self.changed.add(number)
        self._content.free(row)
        self._free.append(row)

    def _add(self, area: int, advertiser: int, items: list[PrefixReachability]) -> list[int]:
        """Assign rows to new advertisements of a node, and return them."""
        new = columns_of(area, items, partial(self.advertiser, area))
        self.inside_changed |= new.inside
        numbers = self._numbers(new.prefixes)
        rows = self._take_rows(advertiser, numbers, new)
        first, following = self._first, self._next
        if len(self.prefixes) == len(first) + len(rows):
            first.fromlist(rows)  # all are new, as nearly always while a database is learnt
        else:
            first.frombytes(_NONE * (len(self.prefixes) - len(first)))
            for number, row in zip(numbers, rows, strict=True):
                following[row] = first[number]
                first[number] = row
        self.changed.update(numbers)
        return rows

    def _numbers(self, prefixes: list[Prefix]) -> list[int]:
        """Return the numbers of prefixes; assign new ones."""
        known = self.numbers
        found = list(map(known.get, prefixes))
        missing = found.count(None)
        if not missing:
            return cast("list[int]", found)
        new = prefixes
        if missing < len(prefixes):
            new = [prefixes[at] for at, number in enumerate(found) if number is None]
        if missing > 1:
            new = list(dict.fromkeys(new))
        added = self._counted(len(known), len(new))
        known.update(zip(new, added, strict=True))
        self.prefixes += new
        return added if len(new) == len(prefixes) else [known[prefix] for prefix in prefixes]

    def _take_rows(self, advertiser: int, numbers: list[int], new: Columns) -> list[int]:
        """Return rows for advertisements of a node, written: free ones first, then new ones."""
        count, rows = len(numbers), list[int]()
        if self._free:
            left = max(0, len(self._free) - count)
            rows, self._free[left:] = self._free[left:], ()
        more = self._counted(self.size, count - len(rows))
        self._content.write(rows, advertiser, numbers, new)
        self._next.frombytes(_NONE * len(more))
        return rows + more if rows else more

    def _counted(self, first: int, count: int) -> list[int]:
        """Return the integers from ``first`` on."""
        end = first + count
        if end > len(self._integers):
            self._integers.extend(range(len(self._integers), end))
        return self._integers[first:end]

    @property
    def tagged(self) -> bool:
        """Whether any advertisement had a tag."""
        return self._content.tagged

    def tags(self, number: int, row: int, ends: Collection[int]) -> tuple[int, ...]:
        """Return the tags of a prefix, each once, ascending, and no 0.

        Of all that the advertisers ``ends`` advertise; without them of one row.
        """
        rows = [row]
        if ends:
            rows = [at for at in self._rows(number) if self._content.advertiser[at] in ends]
        return tuple(sorted({tag for at in rows if (tag := self._content.tag(at))}))

    def path_type(self, row: int) -> PathType:
        """The path type of a row."""
        return self._content.path_type(row)

    def read(self, rows: NDArray[np.integer] | None = None) -> CopiedRows:
        """Return the contents of these rows, all without ``rows``."""
        return self._content.read(rows)

    def ends_and_keys(
        self, rows: NDArray[np.integer]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the advertisers and keys of these rows."""
        return self._content.ends_and_keys(rows)

    def read_one(self, row: int) -> AdvertisementRow:
        """Return the content of one row."""
        return self._content.read_one(row)

    def rows_of_one(self, number: int) -> list[int]:
        """Return the rows of one prefix."""
        return list(self._rows(number))

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
        return self.renumbered()

    def renumbered(self) -> PrefixTable:
        """Return the same advertisements, without free rows and what only these refer to."""
        table = PrefixTable()
        rows = self._content.used()
        kept = self._content.read(rows)
        prefixes = np.unique(kept.number)
        advertisers = np.unique(np.concatenate(([0], kept.advertiser, kept.asbr)))
        advertisers = advertisers[advertisers != NONE]
        number_of = new_numbers(prefixes, len(self.prefixes))
        advertiser_of = new_numbers(advertisers, len(self.advertisers))
        row_of = new_numbers(rows, self.size)
        table.inside_changed = self.inside_changed
        table._content = self._content.renumbered(rows, kept, number_of, advertiser_of)
        table._first.frombytes(row_of[np.array(self._first)[prefixes]].tobytes())
        table._next.frombytes(row_of[np.array(self._next)[rows]].tobytes())
        table.prefixes = [self.prefixes[number] for number in prefixes.tolist()]
        table.advertisers = [self.advertisers[number] for number in advertisers.tolist()]
        integers = table._counted(0, max(len(rows), len(prefixes)))
        table.numbers = dict(zip(table.prefixes, integers, strict=False))
        table._advertiser_number = {at: number for number, at in enumerate(table.advertisers)}
        for number in sorted(self._advertised):
            again = row_of[[row for _, row in self._advertised.items(number)]].tolist()
            mine = [integers[row] for row in again]
            at = int(advertiser_of[number])
            table._advertised.begin(at, self._advertised.sources(number), mine)
        return table


def _advertised(changes: Changes) -> _Items:
    """Return the changes that are not withdrawals, usually all."""
    if all(changes.values()):
        return cast("_Items", changes)
    return {source: item for source, item in changes.items() if item is not None}
