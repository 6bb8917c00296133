"""Fragments of our LSPs: the fragment that each entry is placed in and stays in.

An entry stays in its fragment, so that a changed link causes one fragment to be generated and
flooded (ISO 10589 §7.3.4, multiple LSPs). Entries of one circuit stay together for the same reason:
a failed link removes its adjacency and its prefixes from one fragment. Information of an
application, which often changes just after a link, has fragments of its own: the throttle of an LSP
that a link changed must not delay it. Each TLV keeps its own entries, so that sizes add up exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from fared.isis.ids import MAX_FRAGMENT
from fared.isis.pdu.geninfo import GENINFO, encode_geninfo
from fared.isis.pdu.geninfo import HEAD as GENINFO_HEAD
from fared.isis.pdu.tlvs import IpReach, IpReachability, IsNeighbor, IsReachability, Tlv

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


class _Fragment:
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


class FragmentTable:
    """The entries of one LSP (of this router, or of one of its pseudonodes) by fragment.

    ``omitted`` counts entries for which all 256 fragments together have no room; the keys alone
    decide which are left out, prefixes before adjacencies.
    """

    def __init__(self, room: int) -> None:
        self.omitted = 0
        self._room = room
        self._header: tuple[Tlv, ...] = ()
        self._header_size = 0
        self._items: dict[ItemKey, Item] = {}
        self._where: dict[ItemKey, int] = {}
        self._groups: dict[int, dict[ItemKey, None]] = {}
        self._fragments: dict[int, _Fragment] = {}
        self._changed: set[int] = {0}
        self._unplaced: dict[ItemKey, None] = {}
        self._repack = False

    @property
    def items(self) -> Mapping[ItemKey, Item]:
        """All entries, those without room included."""
        return self._items

    def set_header(self, tlvs: tuple[Tlv, ...], size: int, room: int) -> None:
        """Set the head of fragment 0, its encoded length, and the bytes for TLVs of any LSP."""
        if room != self._room:
            self._room = room
            self._repack = True
        if tlvs == self._header:
            return
        self._header = tlvs
        self._changed.add(0)
        more, self._header_size = size - self._header_size, size
        first = self._fragments.get(0)
        if first is None:
            return
        first.free -= more
        while first.free < 0 and first.bins:  # the last one added moves out
            key = next(reversed(first.bins[-1].items))
            self._take_out(key)
            self._unplaced[key] = None

    def put(self, key: ItemKey, item: Item) -> None:
        """Advertise an entry, replacing one of the same key."""
        old = self._items.get(key)
        if old == item:
            return
        self._items[key] = item
        number = self._where.get(key)
        if number is not None:
            self._changed.add(number)
            if self._fragments[number].exchange(key, item):
                if old is not None and old.group != item.group:
                    self._leave_group(key, old.group)
                    self._join_group(key, item.group)
                return
            self._take_out(key)
            if self._put_in(key, item, number):
                return
        self._unplaced[key] = None

    def remove(self, key: ItemKey) -> None:
        """Withdraw an entry."""
        if self._items.pop(key, None) is None:
            return
        self._unplaced.pop(key, None)
        if key in self._where:
            self._take_out(key)
        if self.omitted:
            self._repack = True

    @property
    def settled(self) -> bool:
        """Whether ``settle`` has nothing to do."""
        return not (self._changed or self._unplaced or self._repack)

    def settle(self) -> set[int]:
        """Place unplaced entries; return the changed fragments."""
        if self._unplaced and self.omitted:
            self._repack = True
        if not self._repack and self._unplaced and not self._place():
            self._repack = True
        if self._repack:
            self._repack_all()
        changed, self._changed = self._changed, set()
        return changed

    def contents(self, number: int) -> tuple[Tlv, ...] | None:
        """The TLVs of a fragment; None if it does not exist. Fragment 0 always does."""
        fragment = self._fragments.get(number)
        found = [] if fragment is None else fragment.tlvs()
        if number == 0:
            return (*self._header, *found)
        return tuple(found) or None

    def number_of(self, key: ItemKey) -> int | None:
        """The fragment of an entry; None: it has no place yet."""
        return self._where.get(key)

    def numbers(self) -> list[int]:
        """The existing fragments, ascending."""
        return sorted({0} | {n for n, fragment in self._fragments.items() if fragment.bins})

    # Places

    def _place(self) -> bool:
        """Place all unplaced entries; False if that takes more than 256 fragments."""
        unplaced, self._unplaced = self._unplaced, {}
        by_group: dict[int, list[ItemKey]] = {}
        for key in sorted(unplaced, key=_rank):
            by_group.setdefault(self._items[key].group, []).append(key)
        for group, keys in by_group.items():
            if group == ALONE:
                if not all(self._place_alone(key) for key in keys):
                    return False
            elif not self._place_group(group, keys):
                return False
        return True

    def _place_group(self, group: int, keys: list[ItemKey]) -> bool:
        """Place entries with the rest of their group; else move the whole group."""
        settled = list(self._groups.get(group, ()))
        homes = sorted({self._where[key] for key in settled})
        left = keys
        for home in homes:
            left = [key for key in left if not self._put_in(key, self._items[key], home)]
        if not left:
            return True
        together = sorted({*settled, *keys}, key=_rank)
        size = sum(_cost(self._items[key]) for key in together)
        if size <= self._room // 2:
            for key in together:
                if key in self._where:
                    self._take_out(key)
            number = self._first_with(size, self._items[together[0]].kind)
            left = [
                key
                for key in together
                if number is None or not self._put_in(key, self._items[key], number)
            ]
        return all(self._place_alone(key) for key in left)

    def _place_alone(self, key: ItemKey) -> bool:
        item = self._items[key]
        for number in range(MAX_FRAGMENT + 1):
            known = self._fragments.get(number)
            if known is not None and known.free < item.size:
                continue
            if self._put_in(key, item, number):
                return True
        return False

    def _first_with(self, size: int, kind: TlvKind) -> int | None:
        """The first fragment with enough room for entries of a kind."""
        for number in range(MAX_FRAGMENT + 1):
            fragment = self._fragment(number)
            if fragment.free >= size and fragment.takes(kind):
                return number
        return None

    def _fragment(self, number: int) -> _Fragment:
        if number not in self._fragments:
            room = self._room - (self._header_size if number == 0 else 0)
            self._fragments[number] = _Fragment(room, first=number == 0)
        return self._fragments[number]

    def _put_in(self, key: ItemKey, item: Item, number: int) -> bool:
        if not self._fragment(number).add(key, item):
            return False
        self._where[key] = number
        self._join_group(key, item.group)
        self._changed.add(number)
        return True

    def _take_out(self, key: ItemKey) -> None:
        number = self._where.pop(key)
        fragment = self._fragments[number]
        group = next(known.items[key].group for known in fragment.bins if key in known.items)
        fragment.remove(key)
        self._changed.add(number)
        self._leave_group(key, group)

    def _join_group(self, key: ItemKey, group: int) -> None:
        if group != ALONE:
            self._groups.setdefault(group, {})[key] = None

    def _leave_group(self, key: ItemKey, group: int) -> None:
        mates = self._groups.get(group)
        if mates is not None:
            mates.pop(key, None)
            if not mates:
                del self._groups[group]

    def _repack_all(self) -> None:
        """Place all entries by key alone; leave out what does not fit."""
        self._repack = False
        self._changed.update(self._fragments)
        self._fragments, self._where, self._groups, self._unplaced = {}, {}, {}, {}
        self.omitted = 0
        number = 0
        for key in sorted(self._items, key=_rank):
            while number <= MAX_FRAGMENT and not self._put_in(key, self._items[key], number):
                number += 1
            if number > MAX_FRAGMENT:
                self.omitted += 1
        self._changed.update(self._fragments)


def _rank(key: ItemKey) -> tuple[bool, ItemKey]:
    """Adjacencies before prefixes: the first item of a key is its family, 0 for adjacencies."""
    return (key[0] != 0, key)


def _cost(item: Item) -> int:
    """The most bytes that an entry takes, a new TLV included."""
    return item.size + TLV_HEADER + item.kind.head


def keyed(kind: TlvKind, rest: Iterable[int]) -> ItemKey:
    """The key of an entry: its kind, and its identity among entries of that kind."""
    return (kind.family, -1 if kind.topology is None else kind.topology, *rest)
