"""Several equal paths: in each of a fixed number of tables a BFER has one neighbor.

RFC 8279 §6.7.2, deterministic ECMP: the entropy of a packet selects the table, so that the path to
a BFER does not depend on the other bits of the packet. The number of tables in which a BFER has a
neighbor follows the weight of that neighbor, which fared takes from path capacities.

Within a table as many BFERs as possible share a neighbor, because each further neighbor is a
further copy of the packet on a link of this router. So the most frequent weights are laid out
first, and others move as few tables as possible from the layout that is most alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

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
