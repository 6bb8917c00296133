"""The bit index forwarding table: for each bit a neighbor and its forwarding bit mask (F-BM).

RFC 8279 §6.4: the F-BM of a neighbor is the OR of the bits of all BFERs that are reached through
it. There is one table for each set and value of entropy; equal tables are one object, and a router
where every path is the only one has a single table for a set.

Over several equal paths a BFER has one neighbor in each of a fixed number of tables (RFC 8279
§6.7.2, deterministic ECMP): the entropy of a packet selects the table, so that the path to a BFER
does not depend on the other bits of the packet. The number of tables in which a BFER has a neighbor
follows the weight of that neighbor, which fared takes from path capacities. Within a table as many
BFERs as possible share a neighbor, because each further neighbor is a further copy of the packet on
a link of this router. So the most frequent weights are laid out first, and others move as few
tables as possible from the layout that is most alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

import msgspec

from fared.paths.bier.birt import BfrNeighbor, BirtEntry
from fared.paths.bier.bit_string import place

TABLES = 16
"""The tables of a BIFT; the low bits of the entropy select one."""

NeighborT = TypeVar("NeighborT", bound=Hashable)
BferT = TypeVar("BferT", bound=Hashable)
Weighted = tuple[tuple[NeighborT, int], ...]


def share_tables(weights: Weighted[NeighborT], tables: int = TABLES) -> dict[NeighborT, int]:
    """Return the number of tables of each neighbor, by largest remainder; the sum is ``tables``.

    Equal remainders go to the neighbor that is listed first.
    """
    total = sum(weight for _, weight in weights)
    found = {neighbor: tables * weight // total for neighbor, weight in weights}
    remainders = sorted(
        ((-(tables * weight % total), at, n) for at, (n, weight) in enumerate(weights)),
        key=lambda each: each[:2],
    )
    for _, _, neighbor in remainders[: tables - sum(found.values())]:
        found[neighbor] += 1
    return found


def assign(
    ways: Mapping[BferT, Weighted[NeighborT]], tables: int = TABLES
) -> dict[BferT, tuple[NeighborT, ...]]:
    """Return the neighbor of each BFER in each table.

    The result depends on nothing but ``ways`` and the order of neighbors in them: equal routers
    make equal tables, and a restarted one makes those that it had.
    """
    frequency = Counter(ways.values())
    shares = {weights: share_tables(weights, tables) for weights in frequency}
    layouts: dict[Weighted[NeighborT], tuple[NeighborT, ...]] = {}
    # Equal frequency: in the order of BFERs.
    for weights, _ in frequency.most_common():
        layouts[weights] = _lay_out(shares[weights], layouts.values())
    return {bfer: layouts[weights] for bfer, weights in ways.items()}


def _lay_out(
    share: Mapping[NeighborT, int], present: Iterable[tuple[NeighborT, ...]]
) -> tuple[NeighborT, ...]:
    """Return a layout with these shares that differs from one of ``present`` in few tables."""
    best: tuple[NeighborT, ...] = ()
    most = 0
    for layout in present:
        kept = Counter(layout)
        common = sum(min(count, kept[neighbor]) for neighbor, count in share.items())
        if common > most:
            best, most = layout, common
    if not best:
        return tuple(neighbor for neighbor, count in share.items() for _ in range(count))
    return _move(best, share)


def _move(layout: tuple[NeighborT, ...], share: Mapping[NeighborT, int]) -> tuple[NeighborT, ...]:
    """Keep what the shares permit, and give the rest of the tables to those that lack some."""
    left = dict(share)
    kept: list[NeighborT | None] = []
    for neighbor in layout:
        keep = left.get(neighbor, 0) > 0
        kept.append(neighbor if keep else None)
        if keep:
            left[neighbor] -= 1
    lacking = iter([neighbor for neighbor, count in left.items() for _ in range(count)])
    return tuple(next(lacking) if neighbor is None else neighbor for neighbor in kept)


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
