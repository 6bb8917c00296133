"""Select the nodes that serve a few prefixes, as ``selection.choose``, one advertisement at a time.

When a link is lost only its own prefix is selected again, of two advertisements. ``choose`` takes
forty steps over arrays for it, which count with cold caches.

A fast path beside ``choose``: tests/rib/test_few.py proves them equal; row ``one changed prefix``.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import msgspec

from fared.paths.rib.distances import NO_ROUTE, AdvertiserDistances
from fared.paths.rib.rows import NONE, TYPE_SHIFT, AdvertisementRow, metric
from fared.paths.rib.selection import ANYCAST, EXTERNAL, OWN_EXTERNAL, preference

if TYPE_CHECKING:
    from fared.paths.rib.prefixes import PrefixTable
    from fared.paths.rib.selection import EgressAdvertisers, Selection

FEW = 8
"""Prefixes, up to which steps over arrays take longer than one prefix after the other."""
_FEW_ROWS = 32


class _Chosen(msgspec.Struct, frozen=True):
    """The best advertisements of one prefix: the fields of ``Choice``."""

    key: int
    advertiser: int
    row: int
    egress: EgressAdvertisers | None


def take_few(
    selection: Selection, table: PrefixTable, distances: AdvertiserDistances, numbers: list[int]
) -> list[int] | None:
    """Select the prefixes ``numbers``; return those with another choice, None if it is too much."""
    if len(numbers) > FEW or distances.crosses:
        return None
    rows = [table.rows_of_one(number) for number in numbers]
    if sum(map(len, rows)) > _FEW_ROWS:
        return None
    selection.grow(len(table.prefixes))
    return [
        number
        for number, mine in zip(numbers, rows, strict=True)
        if _take(selection, number, _choose(table, distances, mine))
    ]


def _take(selection: Selection, number: int, chosen: _Chosen) -> bool:
    """Set the choice for a prefix; return whether it changed."""
    different = (
        selection.key.item(number) != chosen.key
        or selection.advertiser.item(number) != chosen.advertiser
    )
    selection.key[number] = chosen.key
    selection.advertiser[number] = chosen.advertiser
    selection.row[number] = chosen.row
    before = selection.egress.pop(number, None)
    if chosen.egress is not None:
        selection.egress[number] = chosen.egress
    return different or before != chosen.egress


def _choose(table: PrefixTable, distances: AdvertiserDistances, places: list[int]) -> _Chosen:
    rows = [(place, table.read_one(place)) for place in places]
    keys = [_key(row, distances) for _, row in rows]
    best = min(keys, default=NO_ROUTE)
    if best == NO_ROUTE:
        return _Chosen(NO_ROUTE, NONE, NONE, None)
    # RFC 2328 §16.2 (7), §16.4 (6): paths of the same cost are added to the entry
    chosen = [one for one, key in zip(rows, keys, strict=True) if key == best]
    # Rows are in order of arrival, which must not affect routes: the highest advertiser's counts.
    place, last = max(reversed(chosen), key=lambda one: one[1].advertiser)
    # Externals of this router itself have no next hops to join.
    several = len(chosen) > 1 and not OWN_EXTERNAL <= best < EXTERNAL
    # An advertised capacity is part of the next-hop set, which other prefixes do not share.
    if not several and not any(_limited(row, distances) for _, row in chosen):
        return _Chosen(best, last.advertiser, place, None)
    ends: dict[int, float] = {}
    for _, row in chosen:
        ends[row.advertiser] = min(row.capacity, ends.get(row.advertiser, row.capacity))
    return _Chosen(best, ANYCAST, place, tuple(sorted(ends.items())))


def _limited(row: AdvertisementRow, distances: AdvertiserDistances) -> bool:
    return isfinite(row.capacity) and not distances.direct.item(row.advertiser)


def _key(row: AdvertisementRow, distances: AdvertiserDistances) -> int:
    """Return the preference of one advertisement."""
    at, far = row.advertiser, row.asbr != NONE
    found: int = preference(
        row.key,
        row.key >> TYPE_SHIFT,
        metric(row.key),
        distances.distance.item(at),
        direct=distances.direct.item(at),
        own=distances.own.item(at),
        beyond=distances.beyond.item(at),
        far=far,
        inside=far and distances.distance.item(row.asbr) != NO_ROUTE,
        where=_if,
    )
    return found


def _if(condition: bool, this: int, other: int) -> int:  # noqa: FBT001 - as np.where
    return this if condition else other
