"""One fragment of our LSPs: entries in TLVs, and the room that is left.

Each TLV keeps its own entries, so that sizes add up exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from fared.protocols.isis.pdu.geninfo import GENINFO, encode_geninfo
from fared.protocols.isis.pdu.geninfo import HEAD as GENINFO_HEAD
from fared.protocols.isis.pdu.tlvs import IpReach, IpReachability, IsNeighbor, IsReachability, Tlv

MAX_VALUE = 255
TLV_HEADER = 2
_TOPOLOGY_SIZE = 2
ItemKey = tuple[int, ...]
ALONE = 0
"""The group of entries without a group."""


class TlvKind(NamedTuple):
    """Entries that may share a TLV: ``family`` 0 is IS reachability, 4 and 6 that of prefixes.

    251 is GENINFO, and ``topology`` its application.
    """

    family: int
    topology: int | None = None

    @property
    def head(self) -> int:
        """Bytes of the value before the first entry."""
        if self.family == GENINFO:
            return GENINFO_HEAD
        return 0 if self.topology is None else _TOPOLOGY_SIZE


class Item(msgspec.Struct, frozen=True):
    """One entry of a TLV. ``size`` is its encoded length; entries of a ``group`` stay together."""

    kind: TlvKind
    value: IsNeighbor | IpReach | bytes
    size: int
    group: int = ALONE


class _Bin(msgspec.Struct):
    """One TLV."""

    kind: TlvKind
    items: dict[ItemKey, Item] = msgspec.field(default_factory=dict)
    used: int = 0

    @property
    def free(self) -> int:
        return MAX_VALUE - self.kind.head - self.used


class Fragment:
    """The TLVs of one fragment and the room left in it; the ``first`` one has the header."""

    __slots__ = ("bins", "first", "free")

    def __init__(self, room: int, *, first: bool) -> None:
        self.bins: list[_Bin] = []
        self.free = room
        self.first = first

    def takes(self, kind: TlvKind) -> bool:
        """Whether entries of a kind may be beside those that are here."""
        informs = kind.family == GENINFO
        if self.first:
            return not informs
        return not self.bins or (self.bins[0].kind.family == GENINFO) == informs

    def add(self, key: ItemKey, item: Item) -> bool:
        """Add an entry to the first TLV with room, or to a new one; False: it has no place."""
        if item.size > self.free or not self.takes(item.kind):
            return False
        for known in self.bins:
            if known.kind == item.kind and item.size <= known.free:
                self._fill(known, key, item)
                return True
        overhead = TLV_HEADER + item.kind.head
        if item.size + overhead > self.free or item.size + item.kind.head > MAX_VALUE:
            return False
        fresh = _Bin(item.kind)
        self.bins.append(fresh)
        self.free -= overhead
        self._fill(fresh, key, item)
        return True

    def _fill(self, where: _Bin, key: ItemKey, item: Item) -> None:
        where.items[key] = item
        where.used += item.size
        self.free -= item.size

    def remove(self, key: ItemKey) -> None:
        """Remove an entry, and its TLV with the last one."""
        where = next(known for known in self.bins if key in known.items)
        item = where.items.pop(key)
        where.used -= item.size
        self.free += item.size
        if not where.items:
            self.bins.remove(where)
            self.free += TLV_HEADER + where.kind.head

    def exchange(self, key: ItemKey, item: Item) -> bool:
        """Replace an older entry of the same key; False: the new one is too long."""
        for known in self.bins:
            old = known.items.get(key)
            if old is None:
                continue
            more = item.size - old.size
            if known.kind != item.kind or more > min(known.free, self.free):
                return False
            known.items[key] = item
            known.used += more
            self.free -= more
            return True
        return False

    def tlvs(self) -> list[Tlv]:
        """The TLVs, entries in order of key."""
        return [_tlv(known) for known in self.bins]


def _tlv(known: _Bin) -> Tlv:
    values = [item.value for _, item in sorted(known.items.items())]
    family, topology = known.kind
    if family == 0:
        neighbors = tuple(value for value in values if isinstance(value, IsNeighbor))
        return IsReachability(neighbors, topology)
    if family == GENINFO:
        pieces = [value for value in values if isinstance(value, bytes)]
        return encode_geninfo(topology or 0, pieces)
    prefixes = tuple(value for value in values if isinstance(value, IpReach))
    return IpReachability(family, prefixes, topology)


def keyed(kind: TlvKind, rest: Iterable[int]) -> ItemKey:
    """The key of an entry: its kind, and its identity among entries of that kind."""
    return (kind.family, -1 if kind.topology is None else kind.topology, *rest)
