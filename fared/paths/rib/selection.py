"""Select the node and area that serve each prefix: preference over arrays, not over objects.

``choose`` compares all advertisements, or those of a few prefixes. ``Selection`` keeps the outcome
and returns the prefixes for which it changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from fared.paths.rib.distances import NO_ROUTE, AdvertiserDistances
from fared.paths.rib.prefixes import PrefixTable
from fared.paths.rib.rows import NONE, TYPE_SHIFT, CopiedRows, metrics, path_types
from fared.paths.ted.graph import anywhere
from fared.paths.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_Number = TypeVar("_Number", np.int32, np.int64)
ANYCAST = -2
"""In place of an advertiser: several nodes serve the prefix, or one with an advertised capacity."""
EgressAdvertisers = tuple[tuple[int, float], ...]
"""(advertiser, its advertised capacity: bytes/s, infinite without) for each, ascending."""
OWN = 1 << 62
EXTERNAL = int(PathType.EXTERNAL_1) << TYPE_SHIFT
OWN_EXTERNAL = EXTERNAL - (1 << 26)
"""From here to EXTERNAL: before the externals of others, after all routes inside the AS."""


_INTRA_AREA, _INTER_AREA = int(PathType.INTRA_AREA), int(PathType.INTER_AREA)
_EXTERNAL_1, _EXTERNAL_2 = int(PathType.EXTERNAL_1), int(PathType.EXTERNAL_2)
_LEVEL_1 = int(PathType.LEVEL_1)
_Values = Any
"""An array of numbers or of booleans, or one of them."""


class Choice(msgspec.Struct, frozen=True, eq=False):
    """The best advertisements of Q prefixes.

    ``key`` (Q,) compares routes, NO_ROUTE without one. ``advertiser`` is the one node to route to,
    NONE, or ANYCAST: then ``egress`` lists the nodes by prefix number. ``row`` is one of the best
    rows, that of the highest advertiser. ``crossing`` are the prefixes, by number, to which paths
    through a transit area are as short or shorter (RFC 2328 §16.3): their row is of the backbone.
    """

    key: NDArray[np.int64]
    advertiser: NDArray[np.int32]
    row: NDArray[np.int32]
    egress: dict[int, EgressAdvertisers]
    crossing: frozenset[int] = frozenset()


class Selection(msgspec.Struct, eq=False):
    """The choice for each prefix, by prefix number (P,); the fields are those of Choice."""

    key: NDArray[np.int64] = msgspec.field(default_factory=lambda: np.empty(0, np.int64))
    advertiser: NDArray[np.int32] = msgspec.field(default_factory=lambda: np.empty(0, np.int32))
    row: NDArray[np.int32] = msgspec.field(default_factory=lambda: np.empty(0, np.int32))
    egress: dict[int, EgressAdvertisers] = msgspec.field(default_factory=dict)
    crossing: frozenset[int] = frozenset()

    def take_all(self, choice: Choice) -> NDArray[np.int64]:
        """Set the choice for all prefixes; return the numbers of those for which it changed."""
        size = min(len(self.key), len(choice.key))
        new = np.ones(len(choice.key), bool)
        new[:size] = choice.key[:size] != self.key[:size]
        new[:size] |= choice.advertiser[:size] != self.advertiser[:size]
        self.key, self.advertiser, self.row = choice.key, choice.advertiser, choice.row
        self.crossing = choice.crossing
        before, self.egress = self.egress, choice.egress
        new[[at for at, egress in self.egress.items() if before.get(at) != egress]] = True
        return new.nonzero()[0]

    def grow(self, size: int) -> None:
        """Make places for ``size`` prefixes at least."""
        if size > len(self.key):
            more = max(size, len(self.key) + (len(self.key) >> 5))
            self.key = _grown(self.key, more, NO_ROUTE)
            self.advertiser = _grown(self.advertiser, more, NONE)
            self.row = _grown(self.row, more, NONE)

    def take(self, numbers: NDArray[np.int64], choice: Choice, size: int) -> NDArray[np.int64]:
        """Set the choice for the prefixes ``numbers``, of ``size`` in total."""
        self.grow(size)
        new = self.key[numbers] != choice.key
        new |= self.advertiser[numbers] != choice.advertiser
        self.key[numbers] = choice.key
        self.advertiser[numbers] = choice.advertiser
        self.row[numbers] = choice.row
        before = {at: self.egress.pop(at) for at in numbers.tolist() if at in self.egress}
        self.egress.update(choice.egress)
        if self.crossing or choice.crossing:
            self.crossing = self.crossing.difference(numbers.tolist()) | choice.crossing
        new |= [before.get(at) != choice.egress.get(at) for at in numbers.tolist()]
        found: NDArray[np.int64] = numbers[new]
        return found


def _grown(values: NDArray[_Number], size: int, fill: int) -> NDArray[_Number]:
    larger = np.full(size, fill, values.dtype)
    larger[: len(values)] = values
    return larger


def union(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the union of two sorted arrays of numbers; usually one is empty."""
    if not len(a) or not len(b):
        return a if len(a) else b
    present = np.zeros(1 + max(int(a.max()), int(b.max())), bool)
    present[a] = present[b] = True
    return present.nonzero()[0]


def choose(
    table: PrefixTable, distances: AdvertiserDistances, numbers: NDArray[np.int64] | None = None
) -> Choice:
    """Find the best advertisements of every prefix (RFC 2328 §11 and §16.4.1 order).

    ``numbers``: of these prefixes, ascending; None: of all.
    """
    at: NDArray[np.integer]
    if numbers is None:
        rows, found = np.arange(table.size), table.read()
        numbers, at = np.arange(len(table.prefixes)), found.number
    else:
        rows = table.rows_of(numbers.tolist())
        found = table.read(rows)
        at = numbers.searchsorted(found.number)
    size, key = len(numbers), _keys(found, distances)
    best = np.full(size, NO_ROUTE)
    np.minimum.at(best, at, key)
    crossing = _cross_transit_areas(found, distances, at, best, key) if distances.crosses else None
    # RFC 2328 §16.2 (7), §16.4 (6): paths of the same cost are added to the entry
    chosen = ((key == best[at]) & (key != NO_ROUTE)).nonzero()[0]
    prefix, server = at[chosen], found.advertiser[chosen]
    advertiser, row = np.full((2, size), NONE)
    advertiser[prefix], row[prefix] = server, rows[chosen]
    several = np.bincount(prefix, minlength=size) > 1
    equal = several[prefix].nonzero()[0]
    # Rows are in order of arrival, which must not affect routes.
    order = server[equal].argsort(kind="stable")
    last = equal[order]
    advertiser[prefix[last]], row[prefix[last]] = server[last], rows[chosen[last]]
    # Externals of this router itself have no next hops to join.
    several &= (best < OWN_EXTERNAL) | (best >= EXTERNAL)
    # An advertised capacity is part of the next-hop set, which other prefixes do not share.
    limited = np.isfinite(found.capacity[chosen]) & ~distances.direct[server]
    several[prefix[limited]] = True
    if crossing is not None:
        several[crossing[0]] = True
        row[crossing[0]] = rows[crossing[1]]
    advertiser[several] = ANYCAST
    egress: dict[int, dict[int, float]] = {}
    for one in several[prefix].nonzero()[0].tolist():
        mine, end = egress.setdefault(int(numbers[prefix[one]]), {}), int(server[one])
        mine[end] = min(float(found.capacity[chosen[one]]), mine.get(end, np.inf))
    ends = {number: tuple(sorted(mine.items())) for number, mine in egress.items()}
    crossed = () if crossing is None else numbers[crossing[0]].tolist()
    return Choice(best, advertiser.astype(np.int32), row.astype(np.int32), ends, frozenset(crossed))


def _cross_transit_areas(
    rows: CopiedRows,
    distances: AdvertiserDistances,
    at: NDArray[np.integer],
    best: NDArray[np.int64],
    key: NDArray[np.int64],
) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
    """Examine the summaries of transit areas (RFC 2328 §16.3).

    They determine the next hops of paths over virtual links, and shorten those through the
    backbone. Changes ``best`` (Q,) and ``key`` (R,) in place where they are as short or shorter;
    ``at`` (R,) is the prefix of each row. Returns such prefixes, and for each a row that was best
    before.
    """
    # (3): only routes through the backbone; the type of the path remains (5)
    before = ((key == best[at]) & (key >= 0) & (key != NO_ROUTE)).nonzero()[0]
    before = before[distances.backbone[rows.advertiser[before]]]
    former = np.full(len(best), NONE)
    former[at[before]] = before
    # (2): not those of this router; (4): none whose border router is unreachable
    far = rows.asbr != NONE
    usable = distances.transit[rows.advertiser] & ~distances.own[rows.advertiser]
    usable &= (distances.distance[rows.advertiser] != NO_ROUTE) & (former[at] != NONE)
    # §16.2 (6): an intra-area path to the AS boundary router is preferred to a summary
    usable &= ~far | (distances.distance[rows.asbr] == NO_ROUTE)
    inter = path_types(rows.key) == int(PathType.INTER_AREA)
    usable &= far | (inter & (best[at] < OWN_EXTERNAL))
    found = usable.nonzero()[0]
    kind = best[at[found]] >> TYPE_SHIFT << TYPE_SHIFT
    cost = distances.distance[rows.advertiser[found]]
    through = np.where(far[found], rows.key[found], kind + metrics(rows.key[found])) + cost
    # (5): less or the same
    short = through <= best[at[found]]
    found = found[short]
    key[found] = through[short]
    np.minimum.at(best, at[found], key[found])
    prefixes = np.unique(at[found])
    return prefixes, former[prefixes]


def _keys(rows: CopiedRows, distances: AdvertiserDistances) -> NDArray[np.int64]:
    """Return the preference of each advertisement."""
    advertiser, far = rows.advertiser, rows.asbr != NONE
    inside = far & (distances.distance[rows.asbr] != NO_ROUTE) if anywhere(far) else far
    found: NDArray[np.int64] = preference(
        rows.key,
        path_types(rows.key),
        metrics(rows.key),
        distances.distance[advertiser],
        direct=distances.direct[advertiser],
        own=distances.own[advertiser],
        beyond=distances.beyond[advertiser],
        far=far,
        inside=inside,
        where=np.where,
    )
    return found


def preference(
    key: _Values,
    kind: _Values,
    metric: _Values,
    distance: _Values,
    *,
    direct: _Values,
    own: _Values,
    beyond: _Values,
    far: _Values,
    inside: _Values,
    where: Callable[[_Values, _Values, _Values], _Values],
) -> _Values:
    """Return one integer for an advertisement; the least is the best, equal ones share the load.

    The order is by path type, then total metric; for external type 2 its own metric before the
    distance. This router's own prefixes come before everything, those that it redistributes before
    other externals; a summary that it only passes on from another area is no route.

    All values are arrays of R advertisements, or Python's numbers and booleans for one of them;
    ``where`` chooses among these: ``np.where``, or ``if``. ``key`` is the preference at distance 0,
    of which ``kind`` and ``metric`` are parts. ``distance``, ``direct``, ``own`` and ``beyond`` are
    those of the advertiser (``AdvertiserDistances``). ``far``: it leads to another router, the AS
    boundary router, to which there is a path ``inside`` the area.
    """
    inter = kind == _INTER_AREA
    external = (kind == _EXTERNAL_1) | (kind == _EXTERNAL_2)
    # Level 1 and 2, the last of all types, are as local as intra-area.
    local = direct & ((kind == _INTRA_AREA) | (kind >= _LEVEL_1))
    found = where(local, metric + distance - OWN, key + distance)
    # Deviation from §16.4 (2), which ignores them: they are routes of this router's kernel.
    found = where(own & external, OWN_EXTERNAL + 2 * metric + kind - _EXTERNAL_1, found)
    ignored = (
        # §16.2 (4), §16.4 (3): no route to the border or AS boundary router
        (distance == NO_ROUTE)
        # §16.2 (2): summaries that the calculating router originates
        | (inter & own)
        # §16.2: an area border router examines backbone summaries only
        | ((inter | far) & (beyond ^ True))
        # §16.2 (6): an intra-area path to the AS boundary router is preferred to a summary
        | (far & (own | inside))
    )
    return where(ignored, NO_ROUTE, found)
