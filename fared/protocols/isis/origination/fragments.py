"""Fragments of our LSPs: the fragment that each entry is placed in and stays in.

An entry stays in its fragment, so that a changed link causes one fragment to be generated and
flooded (ISO 10589 §7.3.4, multiple LSPs). Entries of one circuit stay together for the same reason:
a failed link removes its adjacency and its prefixes from one fragment. Information of an
application, which often changes just after a link, has fragments of its own: the throttle of an LSP
that a link changed must not delay it.
"""

from __future__ import annotations

from collections.abc import Mapping

from fared.protocols.isis.ids import MAX_FRAGMENT
from fared.protocols.isis.origination.fragment import (
    ALONE,
    TLV_HEADER,
    Fragment,
    Item,
    ItemKey,
    TlvKind,
)
from fared.protocols.isis.pdu.tlvs import Tlv


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
        self._fragments: dict[int, Fragment] = {}
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

    def _fragment(self, number: int) -> Fragment:
        if number not in self._fragments:
            room = self._room - (self._header_size if number == 0 else 0)
            self._fragments[number] = Fragment(room, first=number == 0)
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
