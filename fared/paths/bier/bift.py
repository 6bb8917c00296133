"""The bit index forwarding table: for each bit a neighbor and its forwarding bit mask (F-BM).

RFC 8279 §6.4: the F-BM of a neighbor is the OR of the bits of all BFERs that are reached through
it. There is one table for each set and value of entropy; equal tables are one object, and a router
where every path is the only one has a single table for a set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from fared.paths.bier.birt import BfrNeighbor, BirtEntry
from fared.paths.bier.bit_string import place
from fared.paths.bier.ecmp import TABLES, assign


class BiftTable(msgspec.Struct, frozen=True):
    """One table: the F-BM of each neighbor, ascending by neighbor, and the bit of this router.

    No two masks have a common bit; a bit in none of them is not reachable.
    """

    masks: tuple[tuple[BfrNeighbor, int], ...] = ()
    local: int = 0


class Bift(msgspec.Struct, frozen=True):
    """The tables of one set, one for each value of the low bits of the entropy."""

    set_id: int
    tables: tuple[BiftTable, ...]

    def table(self, entropy: int) -> BiftTable:
        """Return the table that the entropy of a packet selects."""
        return self.tables[entropy % len(self.tables)]


def make_bifts(
    birt: Mapping[int, Iterable[BirtEntry]], length: int, tables: int = TABLES
) -> dict[int, Bift]:
    """Return the BIFT of each set that has a usable BFER, for bit strings of ``length`` bits."""
    usable = [entry for entries in birt.values() for entry in entries if entry.usable]
    ways = {entry.bfr_id: entry.ways for entry in usable if not entry.local}
    assigned = assign(ways, tables)
    local: dict[int, int] = {}
    masks: dict[int, list[dict[BfrNeighbor, int]]] = {}
    for entry in usable:
        set_id, bit = place(entry.bfr_id, length)
        of_set = masks.setdefault(set_id, [{} for _ in range(tables)])
        if entry.local:
            local[set_id] = local.get(set_id, 0) | bit
            continue
        for table, neighbor in zip(of_set, assigned[entry.bfr_id], strict=True):
            table[neighbor] = table.get(neighbor, 0) | bit
    return {s: Bift(s, _tables(masks[s], local.get(s, 0))) for s in sorted(masks)}


def _tables(masks: Iterable[Mapping[BfrNeighbor, int]], local: int) -> tuple[BiftTable, ...]:
    shared: dict[BiftTable, BiftTable] = {}
    made = (BiftTable(tuple(sorted(each.items())), local) for each in masks)
    return tuple(shared.setdefault(table, table) for table in made)
