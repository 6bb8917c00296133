"""Which fragment of our LSP each thing we announce goes into, and stays in.

ISO 10589 §7.3.7 wants entries to stay where they are, so that one changed link floods one
fragment again. Entries of one circuit keep together for the same reason: a link that fails
takes its adjacency, its prefixes and its addresses out of one fragment. Entries lie in TLVs of
which each keeps its own entries, so that sizes add up exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fared.isis.ids import MAX_FRAGMENT
from fared.isis.pdu.model import IpReach, IpReachability, IsNeighbor, IsReachability, Tlv

MAX_VALUE = 255
TLV_HEADER = 2
_TOPOLOGY_SIZE = 2
ItemKey = tuple[int, ...]
ALONE = 0
"""The group of entries that belong to no other."""


class TlvKind(NamedTuple):
    """What may share a TLV: ``family`` 0 is IS reachability, 4 and 6 that of prefixes."""

    family: int
    topology: int | None = None

    @property
    def head(self) -> int:
        """Bytes of the value before the first entry."""
        return 0 if self.topology is None else _TOPOLOGY_SIZE


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a TLV. ``size`` is its encoded length, ``group`` what it changes with."""

    kind: TlvKind
    value: IsNeighbor | IpReach
    size: int
    group: int = ALONE


@dataclass(slots=True)
class _Bin:
    """One TLV."""

    kind: TlvKind
    items: dict[ItemKey, Item] = field(default_factory=dict)
    used: int = 0

    @property
    def free(self) -> int:
        return MAX_VALUE - self.kind.head - self.used


class _Fragment:
    """The TLVs of one fragment and the room left in it."""

    __slots__ = ("bins", "free")

    def __init__(self, room: int) -> None:
        self.bins: list[_Bin] = []
        self.free = room

    def add(self, key: ItemKey, item: Item) -> bool:
        """Put an entry into the first TLV with room, or into a new one; False: it is full."""
        if item.size > self.free:
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
        """Take an entry out, and its TLV with the last one."""
        where = next(known for known in self.bins if key in known.items)
        item = where.items.pop(key)
        where.used -= item.size
        self.free += item.size
        if not where.items:
            self.bins.remove(where)
            self.free += TLV_HEADER + where.kind.head

    def exchange(self, key: ItemKey, item: Item) -> bool:
        """Put an entry in the place of an older one of the same key; False: it is too long."""
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
    prefixes = tuple(value for value in values if isinstance(value, IpReach))
    return IpReachability(family, prefixes, topology)


class FragmentTable:
    """The entries of one LSP (of this router, or of one of its pseudonodes) by fragment.

    ``omitted`` counts entries that all 256 fragments together have no room for; what is left
    out is then decided by the keys alone, prefixes before adjacencies.
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
        self._homeless: dict[ItemKey, None] = {}
        self._repack = False

    @property
    def items(self) -> Mapping[ItemKey, Item]:
        """All entries, those without room included."""
        return self._items

    def set_header(self, tlvs: tuple[Tlv, ...], size: int, room: int) -> None:
        """What fragment 0 begins with, its encoded length, and the bytes for TLVs of any LSP."""
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
        while first.free < 0 and first.bins:  # the last that came moves out
            key = next(reversed(first.bins[-1].items))
            self._take_out(key)
            self._homeless[key] = None

    def put(self, key: ItemKey, item: Item) -> None:
        """Announce an entry, or another one in the place of that with the same key."""
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
        self._homeless[key] = None

    def remove(self, key: ItemKey) -> None:
        """Announce an entry no longer."""
        if self._items.pop(key, None) is None:
            return
        self._homeless.pop(key, None)
        if key in self._where:
            self._take_out(key)
        if self.omitted:
            self._repack = True

    def settle(self) -> set[int]:
        """Find a place for what has none; return the fragments that read differently."""
        if self._homeless and self.omitted:
            self._repack = True
        if not self._repack and self._homeless and not self._place():
            self._repack = True
        if self._repack:
            self._pack_anew()
        changed, self._changed = self._changed, set()
        return changed

    def contents(self, number: int) -> tuple[Tlv, ...] | None:
        """The TLVs of a fragment; None for one that is not there. Fragment 0 always is."""
        fragment = self._fragments.get(number)
        found = [] if fragment is None else fragment.tlvs()
        if number == 0:
            return (*self._header, *found)
        return tuple(found) or None

    def numbers(self) -> list[int]:
        """The fragments that there are, ascending."""
        return sorted({0} | {n for n, fragment in self._fragments.items() if fragment.bins})

    # Places

    def _place(self) -> bool:
        """Place all homeless entries; False if that takes more than 256 fragments."""
        homeless, self._homeless = self._homeless, {}
        by_group: dict[int, list[ItemKey]] = {}
        for key in sorted(homeless, key=_rank):
            by_group.setdefault(self._items[key].group, []).append(key)
        for group, keys in by_group.items():
            if group == ALONE:
                if not all(self._place_alone(key) for key in keys):
                    return False
            elif not self._place_group(group, keys):
                return False
        return True

    def _place_group(self, group: int, keys: list[ItemKey]) -> bool:
        """Place entries where the others of their group are; else move all of these together."""
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
            number = self._first_with(size)
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

    def _first_with(self, size: int) -> int | None:
        """The first fragment with so much room."""
        for number in range(MAX_FRAGMENT + 1):
            if self._fragment(number).free >= size:
                return number
        return None

    def _fragment(self, number: int) -> _Fragment:
        if number not in self._fragments:
            room = self._room - (self._header_size if number == 0 else 0)
            self._fragments[number] = _Fragment(room)
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

    def _pack_anew(self) -> None:
        """Place everything by key alone; leave out what does not fit."""
        self._repack = False
        self._changed.update(self._fragments)
        self._fragments, self._where, self._groups, self._homeless = {}, {}, {}, {}
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
    """What an entry takes at most, a TLV of its own included."""
    return item.size + TLV_HEADER + item.kind.head


def keyed(kind: TlvKind, rest: Iterable[int]) -> ItemKey:
    """The key of an entry: its kind, and what tells it from others of that kind."""
    return (kind.family, -1 if kind.topology is None else kind.topology, *rest)
