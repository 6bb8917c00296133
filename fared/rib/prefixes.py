"""Which node, in which area, serves each prefix: preference over arrays, not over objects.

A fabric announces each of its point-to-point links as a prefix at both ends, so there are far
more announcements than routers. They are kept as small arrays a router, concatenated when one
of them changes, and compared by one integer key each. What border routers say lies behind a prefix
moves with load: where nothing but that has changed, only those prefixes are looked at again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from fared.core.ids import BACKBONE
from fared.spf.plan import UNREACHABLE
from fared.ted.compare import same_announced
from fared.ted.model import PathType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from fared.core.ids import NodeId, Prefix
    from fared.ted.model import PrefixAttachment

NO_ROUTE = UNREACHABLE
NOBODY = -1
SEVERAL = -2
_EXTERNAL = (PathType.EXTERNAL_1, PathType.EXTERNAL_2)
_TYPE_SHIFT = 58
_METRIC_SHIFT = 34
_OWN = 1 << 62
_COMPACT_ABOVE = 4096
_PREFIX, _METRIC, _PATH_TYPE, _KEY, _ASBR = range(5)
_NOT_PREFERRED = 1 << 33
_OWN_EXTERNAL = (int(PathType.EXTERNAL_1) << _TYPE_SHIFT) - 1
"""Before every external of another router, behind everything inside the AS."""


@dataclass(frozen=True, slots=True, eq=False)
class _Announcements:
    """R announcements: ``columns`` (5, R) as of ``_PREFIX`` to ``_ASBR``, ``capacity`` (R,).

    The key is what an announcement counts for at distance 0. ``capacity`` is infinite where
    none is told. ``_ASBR`` is the owner number, in this area, of the AS boundary router that
    the announcing node leads to, NOBODY where there is none in between.
    """

    columns: NDArray[np.int64]
    capacity: NDArray[np.float64]


def _key_at_zero(area: int, item: PrefixAttachment) -> int:
    """By path type; for external type 2 by its own metric before the distance.

    Among externals, a way inside a non-backbone area to the AS boundary router comes before
    any other, whatever the distance (RFC 2328 §16.4.1).
    """
    key = item.path_type << _TYPE_SHIFT
    if item.path_type not in _EXTERNAL:
        return key + item.metric
    if area == BACKBONE or item.asbr is not None:
        key += _NOT_PREFERRED
    if item.path_type is PathType.EXTERNAL_2:
        return key + (item.metric << _METRIC_SHIFT) + item.distance
    return key + item.metric


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """How this router reaches the announcing nodes, by owner number (O,).

    ``distance`` is NO_ROUTE where it does not; ``own`` marks this router itself, ``direct``
    this router and the transit networks it is on: what they announce is connected. ``index``
    is the index in the area's graph, -1 for a node that is not in it. ``beyond`` is False where
    what a node tells of other areas does not count: an area border router that is connected to
    the backbone believes nothing but the backbone (RFC 2328 §16.2, RFC 3509).
    """

    distance: NDArray[np.int64]
    own: NDArray[np.bool_]
    direct: NDArray[np.bool_]
    index: NDArray[np.int64]
    beyond: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """The best announcements of each prefix, by prefix number (P,).

    ``key`` compares routes, NO_ROUTE without one; ``owner`` is the one node to route to,
    NOBODY, or SEVERAL: then (or where a capacity is announced) ``shared`` lists
    (owner, announced capacity) in order of owner. ``row`` is one of the best announcements, of
    which ``chosen`` lists all.
    """

    key: NDArray[np.int64]
    owner: NDArray[np.int64]
    row: NDArray[np.int64]
    shared: dict[int, tuple[tuple[int, float], ...]]
    chosen: NDArray[np.int64]


class PrefixTable:
    """All announcements of all areas. Owners and prefixes are numbered as they come."""

    def __init__(self) -> None:
        self.prefixes: list[Prefix] = []
        self.owners: list[tuple[int, NodeId]] = []
        self.changed = False
        """Whether more than announced capacities has changed since the last selection."""
        self.retold: set[int] = set()
        """The prefixes, by number, whose announced capacities have changed since."""
        self._prefix_number: dict[Prefix, int] = {}
        self._owner_number: dict[tuple[int, NodeId], int] = {}
        self._announced: dict[int, tuple[PrefixAttachment, ...]] = {}
        self._arrays: dict[int, _Announcements] = {}
        self._live = 0
        self._added: set[int] = set()
        self._all: _Announcements | None = None
        self._start: dict[int, int] = {}
        self._row_owner: NDArray[np.int64] = np.empty(0, np.int64)
        self._owner_arrays = (np.empty(0, np.int64), np.empty(0, np.int64))

    def number(self, prefix: Prefix) -> int:
        """The number of a prefix, NOBODY if it was never announced."""
        return self._prefix_number.get(prefix, NOBODY)

    def owner(self, area: int, node: NodeId) -> int:
        """The number of a node, NOBODY if it was never heard of."""
        return self._owner_number.get((area, node), NOBODY)

    def add(self, placed: Mapping[tuple[int, NodeId], tuple[PrefixAttachment, ...]]) -> None:
        """Attach more to these nodes, and to nobody else, than they announce themselves."""
        for owner in self._added - self._announced.keys():
            self._arrays.pop(owner, None)
        for owner in self._added & self._announced.keys():
            self._arrays[owner] = self._to_arrays(self.owners[owner][0], self._announced[owner])
        if self._added or placed:
            self._all, self.changed = None, True
        self._added = set()
        for (area, node), prefixes in placed.items():
            owner = self._number(area, node)
            self._added.add(owner)
            whole = self._announced.get(owner, ()) + prefixes
            self._arrays[owner] = self._to_arrays(area, whole)

    def put(self, area: int, node: NodeId, prefixes: tuple[PrefixAttachment, ...]) -> None:
        """Replace what a node announces in an area."""
        owner = self._number(area, node)
        before = self._announced.pop(owner, ())
        self._live += len(prefixes) - len(before)
        if prefixes:
            self._announced[owner] = prefixes
        known = self._all is not None and owner not in self._added
        if prefixes and known and same_announced(before, prefixes):
            self._retell(owner, prefixes)
            return
        self._arrays.pop(owner, None)
        if prefixes:
            self._arrays[owner] = self._to_arrays(area, prefixes)
        self._all, self.changed = None, True

    def _retell(self, owner: int, prefixes: tuple[PrefixAttachment, ...]) -> None:
        """Take other capacities of the announcements that an owner has already."""
        assert self._all is not None
        columns, before = self._arrays[owner].columns, self._arrays[owner].capacity
        capacity = _capacities(prefixes)
        self._arrays[owner] = _Announcements(columns, capacity)
        start = self._start[owner]
        self._all.capacity[start : start + len(capacity)] = capacity
        self.retold.update(columns[_PREFIX, capacity != before].tolist())

    def _number(self, area: int, node: NodeId) -> int:
        owner = self._owner_number.setdefault((area, node), len(self.owners))
        if owner == len(self.owners):
            self.owners.append((area, node))
        return owner

    def compact(self) -> bool:
        """Number everything afresh if most numbers are of prefixes and owners long gone."""
        stale_owners = len(self.owners) > 2 * len(self._announced) + _COMPACT_ABOVE
        if len(self.prefixes) <= self._live + _COMPACT_ABOVE and not stale_owners:
            return False
        announced = {self.owners[owner]: what for owner, what in sorted(self._announced.items())}
        PrefixTable.__init__(self)
        for (area, node), prefixes in announced.items():
            self.put(area, node, prefixes)
        return True

    def announcements(
        self, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Metric, path type and owner of announcements of the last selection."""
        columns = self._concatenated().columns
        return columns[_METRIC][rows], columns[_PATH_TYPE][rows], self._row_owner[rows]

    def owner_arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Areas and node ids of all owners (O,)."""
        if len(self._owner_arrays[0]) != len(self.owners):
            columns = np.array(self.owners, np.int64).reshape(-1, 2)
            self._owner_arrays = columns[:, 0], columns[:, 1]
        return self._owner_arrays

    def _to_arrays(self, area: int, prefixes: tuple[PrefixAttachment, ...]) -> _Announcements:
        numbers = self._prefix_number
        rows = []
        for item in prefixes:
            number = numbers.setdefault(item.prefix, len(numbers))
            if number == len(self.prefixes):
                self.prefixes.append(item.prefix)
            asbr = NOBODY if item.asbr is None else self._number(area, item.asbr)
            key = _key_at_zero(area, item)
            rows.append((number, item.metric, int(item.path_type), key, asbr))
        return _Announcements(np.array(rows, np.int64).T, _capacities(prefixes))

    def _concatenated(self) -> _Announcements:
        if self._all is None:
            owners = sorted(self._arrays)
            parts = [self._arrays[owner] for owner in owners]
            lengths = [len(part.capacity) for part in parts]
            self._row_owner = np.array(owners, np.int64).repeat(lengths)
            self._start = dict(zip(owners, accumulate([0, *lengths]), strict=False))
            self._all = _Announcements(
                np.concatenate([np.empty((5, 0), np.int64), *(part.columns for part in parts)], 1),
                np.concatenate([np.empty(0), *(part.capacity for part in parts)]),
            )
        return self._all

    def select(self, reach: Reach) -> Selection:
        """Find the best announcements of every prefix (RFC 2328 §11 and §16.4.1 order)."""
        table, owner, size = self._concatenated(), self._row_owner, len(self.prefixes)
        announced = table.columns[_PREFIX]
        key = _keys(table, owner, reach)
        best = np.full(size, NO_ROUTE)
        np.minimum.at(best, announced, key)
        chosen = ((key == best[announced]) & (key != NO_ROUTE)).nonzero()[0]
        prefix = announced[chosen]
        served, row = np.full((2, size), NOBODY)
        row[prefix] = chosen
        found = Selection(best, served, row, {}, chosen)
        self._serve(found, chosen, reach)
        self.changed = False
        self.retold.clear()
        return found

    def select_retold(self, old: Selection, reach: Reach) -> Selection:
        """Follow announced capacities, where nothing else has changed since the last selection."""
        retold = np.zeros(len(self.prefixes), bool)
        retold[list(self.retold)] = True
        shared = {number: s for number, s in old.shared.items() if number not in self.retold}
        found = Selection(old.key, old.owner.copy(), old.row, shared, old.chosen)
        announced = self._concatenated().columns[_PREFIX]
        self._serve(found, old.chosen[retold[announced[old.chosen]]], reach)
        self.retold.clear()
        return found

    def _serve(self, found: Selection, chosen: NDArray[np.int64], reach: Reach) -> None:
        """Say who serves prefixes, of which ``chosen`` are all the best announcements."""
        table, owner = self._concatenated(), self._row_owner
        prefix, server = table.columns[_PREFIX][chosen], owner[chosen]
        found.owner[prefix] = server
        several = np.bincount(prefix, minlength=len(found.key)) > 1
        several &= found.key != _OWN_EXTERNAL
        limited = np.isfinite(table.capacity[chosen])
        if limited.any():
            several[prefix[limited & ~reach.direct[server]]] = True
        found.owner[several] = SEVERAL
        shared: dict[int, list[tuple[int, float]]] = {}
        for at in several[prefix].nonzero()[0].tolist():
            entry = (int(server[at]), float(table.capacity[chosen[at]]))
            shared.setdefault(int(prefix[at]), []).append(entry)
        found.shared.update((number, tuple(sorted(ends))) for number, ends in shared.items())


def _capacities(prefixes: tuple[PrefixAttachment, ...]) -> NDArray[np.float64]:
    told = [np.inf if item.capacity is None else item.capacity for item in prefixes]
    return np.array(told, np.float64)


def _keys(table: _Announcements, owner: NDArray[np.int64], reach: Reach) -> NDArray[np.int64]:
    """One integer an announcement; the least is the best, equal ones share the load.

    By path type, then total metric; for external type 2 its own metric before the distance.
    What this router itself announces as its own comes before everything, what it redistributes
    before other externals; a summary that it merely passes on from another area is no route.
    """
    distance = reach.distance[owner]
    key: NDArray[np.int64] = np.where(
        distance != NO_ROUTE, table.columns[_KEY] + distance, NO_ROUTE
    )
    direct = reach.direct[owner].nonzero()[0]
    kind = table.columns[_PATH_TYPE, direct]
    # Level 1 and 2, the last of all types, are as local as intra-area.
    local = (kind == int(PathType.INTRA_AREA)) | (kind >= int(PathType.LEVEL_1))
    mine = direct[local]
    key[mine] = table.columns[_METRIC, mine] + distance[mine] - _OWN
    external = (kind == int(PathType.EXTERNAL_1)) | (kind == int(PathType.EXTERNAL_2))
    key[direct[external & reach.own[owner[direct]]]] = _OWN_EXTERNAL
    passed_on = (kind == int(PathType.INTER_AREA)) & reach.own[owner[direct]]
    key[direct[passed_on]] = NO_ROUTE
    asbr = table.columns[_ASBR]
    far = asbr != NOBODY
    outside = (table.columns[_PATH_TYPE] == int(PathType.INTER_AREA)) | far
    key[outside & ~reach.beyond[owner]] = NO_ROUTE
    if far.any():
        # §16.3: an AS boundary router inside the area is not looked for outside of it.
        inside = far & (reach.distance[asbr] != NO_ROUTE)
        key[inside | (far & reach.own[owner])] = NO_ROUTE
    return key
