"""What advertisements say: one row of arrays for each, 16 to 32 bytes, without an object.

``PrefixTable`` assigns the rows. The preference at distance 0 is one integer, from which path type,
metric and distance to the AS boundary router are read again. Advertisements come by the thousand
while a database is learnt, and one LSA at a time later: the arrays are written from Python, and
``read`` copies what ``selection`` compares to NumPy.
"""

from __future__ import annotations

import sys
from array import array
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from fared.core.ids import BACKBONE, HOSTS_AREA
from fared.paths.ted.graph import anywhere
from fared.paths.ted.model import EXTERNAL_TYPES, PathType, PrefixReachability

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from fared.core.ids import NodeId, Prefix

NONE = -1
"""The number of no prefix, no row and no advertiser."""
_SIZE = array("i").itemsize
METRIC_SHIFT = 34
TYPE_SHIFT = 58
_NOT_PREFERRED = 1 << 33
_BELOW_TYPE = (1 << TYPE_SHIFT) - 1
_BELOW_PREFERENCE = _NOT_PREFERRED - 1
_EXTERNAL_1, _EXTERNAL_2 = int(PathType.EXTERNAL_1), int(PathType.EXTERNAL_2)
_UNLIMITED = float("inf")
_T = TypeVar("_T", np.int32, np.int64, np.float64)
_TYPES: Mapping[int, PathType] = MappingProxyType({int(item): item for item in PathType})


class CopiedRows(msgspec.Struct, frozen=True, eq=False):
    """Some rows (Q,), copied.

    ``number`` is that of the prefix, ``key`` the preference at distance 0, ``capacity`` the
    advertised one, bytes/s, infinite without. ``advertiser`` is 0 for a free row; ``asbr`` is the
    number of the AS boundary router that the advertiser leads to, NONE for none.
    """

    number: NDArray[np.intp]
    advertiser: NDArray[np.intp]
    asbr: NDArray[np.int32]
    key: NDArray[np.int64]
    capacity: NDArray[np.float64]


class AdvertisementRow(msgspec.Struct, frozen=True):
    """One row: the fields of ``CopiedRows`` without the prefix."""

    advertiser: int
    asbr: int
    key: int
    capacity: float


class Columns(msgspec.Struct, frozen=True):
    """What some rows are to be, for each: the fields of ``CopiedRows``, with prefixes themselves.

    ``asbrs``, ``capacities`` and ``tags`` are None if no row has any. ``inside``: some are
    advertised from inside the AS.
    """

    prefixes: list[Prefix]
    keys: list[int]
    asbrs: list[int] | None
    capacities: list[float] | None
    inside: bool
    tags: list[int] | None = None


class AdvertisementRows:
    """The rows of all advertisements, by number; the number of a free row's advertiser is 0."""

    __slots__ = ("_asbr", "_capacity", "_key", "_tag", "advertiser", "number")

    def __init__(self) -> None:
        self.number = array("i")
        """The prefix of each row, by its number."""
        self.advertiser = array("i")
        self._key = array("q")
        self._asbr: array[int] | None = None
        self._capacity: array[float] | None = None
        self._tag: array[int] | None = None
        """Of these three there is none before an advertisement has one: most have none."""

    def __len__(self) -> int:
        return len(self.number)

    def write(
        self, again: Sequence[int], advertiser: int, numbers: list[int], new: Columns
    ) -> None:
        """Write advertisements of one node: to rows that are used again, and then to new ones.

        ``numbers`` are those of their prefixes.
        """
        count, written = len(numbers), len(again)
        if self._asbr is None and new.asbrs is not None:
            self._asbr = array("i", [NONE]) * len(self)
        if self._capacity is None and new.capacities is not None:
            self._capacity = array("d", [_UNLIMITED]) * len(self)
        if self._tag is None and new.tags is not None:
            self._tag = array("I", [0]) * len(self)
        _put(self.number, again, numbers)
        _put(self._key, again, new.keys)
        if self._asbr is not None:
            _put(self._asbr, again, new.asbrs or [NONE] * count)
        if self._capacity is not None:
            _put(self._capacity, again, new.capacities or [_UNLIMITED] * count)
        if self._tag is not None:
            _put(self._tag, again, new.tags or [0] * count)
        for row in again:
            self.advertiser[row] = advertiser
        self.advertiser.frombytes(packed(advertiser) * (count - written))

    @property
    def tagged(self) -> bool:
        """Whether any advertisement had a tag."""
        return self._tag is not None

    def tag(self, row: int) -> int:
        """The tag of a row; 0: none."""
        return 0 if self._tag is None else self._tag[row]

    def free(self, row: int) -> None:
        """Free a row; the rest of it stays until it is used again."""
        self.advertiser[row] = 0

    def used(self) -> NDArray[np.int64]:
        """Return the rows that are not free."""
        return np.frombuffer(self.advertiser, np.intc).nonzero()[0]

    def renumbered(
        self,
        places: NDArray[np.int64],
        kept: CopiedRows,
        numbers: NDArray[np.intc],
        advertisers: NDArray[np.intc],
    ) -> AdvertisementRows:
        """Return some rows with new numbers of their prefixes and advertisers (``new_numbers``).

        ``kept`` is what ``places`` contain.
        """
        rows = AdvertisementRows()
        rows.number.frombytes(numbers[kept.number].tobytes())
        rows.advertiser.frombytes(advertisers[kept.advertiser].tobytes())
        rows._key.frombytes(kept.key.tobytes())
        if self._asbr is not None:
            rows._asbr = array("i", advertisers[kept.asbr].tobytes())
        if self._capacity is not None:
            rows._capacity = array("d", kept.capacity.tobytes())
        if self._tag is not None:
            rows._tag = array("I", np.frombuffer(self._tag, np.uintc)[places].tobytes())
        return rows

    def read(self, rows: NDArray[np.integer] | None = None) -> CopiedRows:
        """Return these rows, all without ``rows``."""
        size, asbr, capacity = len(self if rows is None else rows), self._asbr, self._capacity
        # As indices, which they are used for: NumPy would convert others each time.
        return CopiedRows(
            _taken(self.number, rows, np.intc).astype(np.intp),
            _taken(self.advertiser, rows, np.intc).astype(np.intp),
            np.full(size, NONE, np.intc) if asbr is None else _taken(asbr, rows, np.intc),
            _taken(self._key, rows, np.int64),
            np.full(size, np.inf) if capacity is None else _taken(capacity, rows, np.float64),
        )

    def ends_and_keys(
        self, rows: NDArray[np.integer]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the advertisers and keys of these rows."""
        ends: NDArray[np.int32] = np.frombuffer(self.advertiser, np.intc)[rows]
        return ends, np.frombuffer(self._key, np.int64)[rows]

    def read_one(self, row: int) -> AdvertisementRow:
        """Return one row."""
        return AdvertisementRow(
            self.advertiser[row],
            NONE if self._asbr is None else self._asbr[row],
            self._key[row],
            _UNLIMITED if self._capacity is None else self._capacity[row],
        )

    def path_type(self, row: int) -> PathType:
        """The path type of one row."""
        return _TYPES[self._key[row] >> TYPE_SHIFT]

    def advertisement(
        self, row: int, prefix: Prefix, asbr_of: Callable[[int], NodeId]
    ) -> PrefixReachability:
        """The advertisement of a row; ``asbr_of`` returns the node of an advertiser."""
        kind, found = self.path_type(row), self.read_one(row)
        second = kind is PathType.EXTERNAL_2
        return PrefixReachability(
            prefix,
            metric(found.key),
            kind,
            capacity=None if found.capacity == _UNLIMITED else found.capacity,
            asbr=None if found.asbr == NONE else asbr_of(found.asbr),
            distance=found.key & _BELOW_PREFERENCE if second else 0,
            tag=self.tag(row),
        )


def packed(number: int) -> bytes:
    """Return one item of an array of numbers: quicker to repeat than an array is to make."""
    return number.to_bytes(_SIZE, sys.byteorder, signed=True)


def _put(column: array[Any], again: Sequence[int], values: list[Any]) -> None:
    """Write values to rows that are used again, and then to new ones."""
    if again:
        for row, value in zip(again, values, strict=False):
            column[row] = value
        values = values[len(again) :]
    column.fromlist(values)


def _taken(values: array[Any], rows: NDArray[np.integer] | None, dtype: type[_T]) -> NDArray[_T]:
    """Copy the values of some rows, or of all: an array does not grow while there is a view."""
    view: NDArray[_T] = np.frombuffer(values, dtype)
    return view.copy() if rows is None else view[rows]


def new_numbers(kept: NDArray[np.integer], size: int) -> NDArray[np.intc]:
    """Return the new number of each of ``size`` old numbers, and of NONE, by old number.

    Those ``kept`` are numbered from 0 on, in their order; the others get NONE, as NONE does.
    """
    found = np.full(size + 1, NONE, np.intc)
    found[kept] = np.arange(len(kept))
    return found


def path_types(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """The path types of rows, by their keys."""
    found: NDArray[np.int64] = key >> TYPE_SHIFT
    return found


def metric(key: int) -> int:
    """The metric of a row, by its key."""
    kind, rest = key >> TYPE_SHIFT, key & _BELOW_TYPE
    if kind == _EXTERNAL_2:
        return rest >> METRIC_SHIFT
    return rest & _BELOW_PREFERENCE if kind == _EXTERNAL_1 else rest


def metrics(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """The metrics of rows, by their keys."""
    kind, found = key >> TYPE_SHIFT, key & _BELOW_TYPE
    second = kind == _EXTERNAL_2
    if anywhere(second):
        found[second] >>= METRIC_SHIFT
    first = kind == _EXTERNAL_1
    if anywhere(first):
        found[first] &= _BELOW_PREFERENCE
    return found


def _keys_at_zero(
    area: int, items: Sequence[PrefixReachability], kinds: Collection[PathType]
) -> list[int]:
    """Return the keys of advertisements, of these path types, at distance 0: path type first.

    For external type 2 their own metric follows, then the distance. Among externals, a path inside
    a non-backbone area to the AS boundary router comes before any other, regardless of distance
    (RFC 2328 §16.4.1).
    """
    # RFC 2328 §16.4 (6)(a), (b): paths inside the AS first, then type 1, then type 2
    # §16.2 (5) to (7): inter-area after intra-area paths and before externals, then the least cost.
    # §16.3, transit areas: ``selection``
    of_type = {kind: kind << TYPE_SHIFT for kind in kinds}
    # §16.4.1: intra-area paths through the backbone and inter-area paths are equal
    inside = 0 if area % HOSTS_AREA != BACKBONE else _NOT_PREFERRED
    return [
        of_type[item.path_type] + _external(item, inside)
        if item.path_type in EXTERNAL_TYPES
        else of_type[item.path_type] + item.metric
        for item in items
    ]


def _external(item: PrefixReachability, inside: int) -> int:
    """The key of an external below its path type; ``inside``: where its advertiser is the ASBR."""
    preference = inside if item.asbr is None else _NOT_PREFERRED
    if item.path_type is PathType.EXTERNAL_2:
        return preference + (item.metric << METRIC_SHIFT) + item.distance
    return preference + item.metric


def columns_of(
    area: int, items: Sequence[PrefixReachability], asbr_of: Callable[[NodeId], int]
) -> Columns:
    """Return the columns of advertisements; ``asbr_of`` returns the number of a node."""
    types = [item.path_type for item in items]
    kind, asbrs = types[0], None
    if kind not in EXTERNAL_TYPES and types.count(kind) == len(types):  # as nearly always
        base, inside = kind << TYPE_SHIFT, True  # as ``_keys_at_zero``
        keys = [base + item.metric for item in items]
    else:
        kinds = set(types)
        keys, inside = _keys_at_zero(area, items, kinds), not kinds.issubset(EXTERNAL_TYPES)
        found = [item.asbr for item in items]
        if found.count(None) < len(found):
            asbrs = [NONE if asbr is None else asbr_of(asbr) for asbr in found]
    capacities, limits = None, [item.capacity for item in items]
    if limits.count(None) < len(limits):
        capacities = [_UNLIMITED if limit is None else limit for limit in limits]
    tags: list[int] | None = [item.tag for item in items]
    if not any(tags or ()):
        tags = None
    return Columns([item.prefix for item in items], keys, asbrs, capacities, inside, tags)
