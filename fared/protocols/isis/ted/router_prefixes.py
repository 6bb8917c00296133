"""The prefixes that one router advertises in all its fragments, and those that changed.

A router has up to 256 fragments, of which one changes at a time. A changed fragment is compared
with its former contents, and a prefix that differs is looked up in the fragments that list it only:
where there are several, these are kept with it.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fared.core.ids import Prefix
from fared.paths.ted.model import PrefixReachability
from fared.protocols.isis.ted.fragment_prefixes import NARROW, At, FragmentPrefixes, rank

if TYPE_CHECKING:
    from fared.protocols.isis.ted.fragment_facts import FragmentFacts

Changes = dict[Hashable, PrefixReachability | None]
"""As ``PrefixesUpdated.changes``: the entry advertised from now on, None if withdrawn."""
_Rank = tuple[int, ...]
_Before = Mapping[At, dict[Prefix, PrefixReachability | None]]
_NOTHING = FragmentPrefixes()
_UNCHANGED: Final[_Before] = MappingProxyType({})
_NOT_LISTED = object()
_WIDE, _IGNORED, _NARROW = range(3)


class RouterPrefixes:
    """The prefixes in the fragments of one router, by number."""

    __slots__ = ("_before", "_fragments", "_listed")

    def __init__(self, fragments: Mapping[int, FragmentFacts]) -> None:
        """``fragments`` are the present ones, which the caller changes after each ``replace``."""
        self._fragments = fragments
        self._listed: dict[At, dict[Prefix, tuple[int, ...]]] | None = None
        """The numbers of the fragments that list a prefix, ascending; None up to one fragment."""
        self._before = _UNCHANGED
        """Of prefixes that may have changed: the entry that counted at the last ``take``."""

    @property
    def changed(self) -> bool:
        """Whether a prefix may have changed since the last ``take``."""
        return bool(self._before)

    def replace(self, number: int, new: FragmentPrefixes | None) -> None:
        """Compare the prefixes that a fragment will have with the present ones; None: it goes."""
        known = self._fragments.get(number)
        old = _NOTHING if known is None else known.prefixes
        others = len(self._fragments) - (known is not None)
        if self._listed is not None and not others:
            self._listed = None
        elif self._listed is None and others:
            self._list_all()
        if new is old:  # nothing but links was read again
            return
        changed = dict(self._before)
        for at in {**old.entries, **(new or _NOTHING).entries}:
            before, differing = changed.get(at, {}), _differing(old, new or _NOTHING, at)
            for prefix in differing:
                if prefix not in before:
                    before[prefix] = self._best(at, prefix)
            if before:
                changed[at] = before
            if self._listed is not None:
                self._list(number, (new or _NOTHING).entries.get(at, {}), at, differing)
        self._before = changed or _UNCHANGED

    def _list_all(self) -> None:
        """Record which fragments list each prefix."""
        self._listed = {}
        for number, fragment in self._fragments.items():
            for at, present in fragment.prefixes.entries.items():
                self._list(number, present, at, present)

    def _list(
        self, number: int, present: Container[Prefix], at: At, differing: Iterable[Prefix]
    ) -> None:
        """Record for prefixes that differ whether a fragment lists them."""
        assert self._listed is not None
        listed, alone = self._listed.setdefault(at, {}), (number,)
        for prefix in differing:
            others = tuple([n for n in listed.get(prefix, ()) if n != number])
            if prefix in present:
                listed[prefix] = tuple(sorted(others + alone)) if others else alone
            elif others:
                listed[prefix] = others
            else:
                del listed[prefix]
        if not listed:
            del self._listed[at]

    def take(self, was: Mapping[int, At], now: Mapping[int, At]) -> dict[int, Changes]:
        """The changes of the router's prefixes since the last call, by family.

        ``was`` and ``now`` are the topologies in which it takes part in each family, then and now.
        In a family that is missing it advertises nothing.
        """
        found: dict[int, Changes] = {}
        for family in {**was, **now}:
            former, present = was.get(family), now.get(family)
            if former == present and present is not None:
                found[family] = dict(self._differences(present))
                continue
            before = {} if former is None else self._former(former)
            after = {} if present is None else dict(self._present(present))
            changes: Changes = {p: item for p, item in after.items() if before.get(p) != item}
            changes.update((prefix, None) for prefix in before if prefix not in after)
            found[family] = changes
        self._before = _UNCHANGED
        return found

    def _differences(self, at: At) -> Iterator[tuple[Prefix, PrefixReachability | None]]:
        for prefix, before in self._before.get(at, {}).items():
            item = self._best(at, prefix)
            if item != before:
                yield prefix, item

    def _former(self, at: At) -> dict[Prefix, PrefixReachability]:
        """The entries that counted at the last ``take``."""
        known = {**dict(self._present(at)), **self._before.get(at, {})}
        return {prefix: item for prefix, item in known.items() if item is not None}

    def _present(self, at: At) -> Iterator[tuple[Prefix, PrefixReachability]]:
        if self._listed is not None:
            prefixes: Iterable[Prefix] = self._listed.get(at, ())
        else:  # one fragment at most
            prefixes = [
                p for one in self._fragments.values() for p in one.prefixes.entries.get(at, ())
            ]
        for prefix in prefixes:
            item = self._best(at, prefix)
            if item is not None:
                yield prefix, item

    def _best(self, at: At, prefix: Prefix) -> PrefixReachability | None:
        """The entry of a prefix that counts, if any."""
        if self._listed is None:
            known = (
                one.prefixes.entries.get(at, {}).get(prefix) for one in self._fragments.values()
            )
            return next(known, None)
        numbers = self._listed.get(at, {}).get(prefix)
        if numbers is None:
            return None
        if len(numbers) == 1:
            return self._fragments[numbers[0]].prefixes.entries[at][prefix]
        number = min(numbers, key=lambda number: self._rank(number, at, prefix))
        return self._fragments[number].prefixes.entries[at][prefix]

    def _rank(self, number: int, at: At, prefix: Prefix) -> _Rank:
        """The lowest counts: wide TLVs before narrow ones, even if a wide entry is ignored."""
        fragment = self._fragments[number].prefixes
        item = fragment.entries[at][prefix]
        if item is None:
            return (_IGNORED,)
        narrow = at == NARROW and prefix in fragment.narrow
        return (_NARROW if narrow else _WIDE, *rank(item))


def _differing(old: FragmentPrefixes, new: FragmentPrefixes, at: At) -> dict[Prefix, None]:
    """The prefixes whose entries differ between two instances of a fragment."""
    if old is new:
        return {}
    mine, theirs = old.entries.get(at, {}), new.entries.get(at, {})
    found = dict.fromkeys(
        prefix
        for prefix, item in theirs.items()
        if (known := mine.get(prefix, _NOT_LISTED)) is not item and known != item
    )
    found.update((prefix, None) for prefix in mine if prefix not in theirs)
    if at == NARROW:
        found.update(dict.fromkeys(sorted(old.narrow ^ new.narrow)))
    return found
