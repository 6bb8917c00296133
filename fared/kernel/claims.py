"""The places of routes that are ours in the kernel, a hundred thousand of them in little memory.

A set takes 42 bytes for each. Here most IPv4 places are integers in one sorted array, 8 bytes each.
Insertion there would move half of it, so what was added and removed since is kept apart, and merged
into the array when it has grown with that. While all are few, there is no array.
IPv6 places, which do not fit into an integer of numpy, stay in a set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import compress, islice
from operator import not_
from typing import TYPE_CHECKING, Final

import numpy as np

from fared.core.ids import FAMILY_IPV4, Prefix
from fared.core.tables import shrink

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RECENT: Final = 4096
"""Changes that always wait for a merge: those that are added then take 150 kB at most."""
_SHARE: Final = 32
"""So does this part of a larger array: a merge costs some 5 ns for each of the array's entries."""
_SLICE: Final = 4096
"""Prefixes that ``update`` looks at together, each of which takes 50 bytes or more meanwhile."""
_SINGLY: Final = 12
"""As many prefixes are found sooner one by one than by an array."""
_LENGTH_BITS: Final = 6
_NO_KEY: Final = (1 << 64) - 1


class Claims:
    """A set of prefixes that is best asked, and changed, for a whole list at a time."""

    __slots__ = ("_added", "_recent", "_removed", "_six", "_sorted")

    def __init__(self, recent: int = _RECENT) -> None:
        """``recent``: changes that wait for a merge, however small the array is."""
        self._recent = recent
        self._six: set[Prefix] = set()
        self._sorted: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._added: dict[Prefix, None] = {}  # none of which is in the array
        self._removed: set[Prefix] = set()  # all of which are

    def __contains__(self, prefix: Prefix) -> bool:
        if prefix in self._added or prefix in self._six:
            return True
        if not len(self._sorted) or prefix.family != FAMILY_IPV4 or prefix in self._removed:
            return False
        key = np.uint64(prefix.network << _LENGTH_BITS | prefix.length)
        at = self._sorted.searchsorted(key)
        return bool(at < len(self._sorted) and self._sorted[at] == key)

    def known(self, prefixes: Sequence[Prefix]) -> list[bool]:
        """Return whether each of the prefixes is here; with all in the array, none is hashed."""
        if len(prefixes) <= _SINGLY:
            return [prefix in self for prefix in prefixes]
        found = self._merged(prefixes).tolist() if len(self._sorted) else [False] * len(prefixes)
        if self._removed:
            gone = self._removed
            found = [it and at not in gone for it, at in zip(found, prefixes, strict=True)]
        for others in (self._added, self._six):
            if others:
                found = [it or at in others for it, at in zip(found, prefixes, strict=True)]
        return found

    def claim(self, prefixes: Sequence[Prefix]) -> list[bool]:
        """Add prefixes; return whether each was here, or came earlier in the list.

        Quickest in the order of their numbers, as places mostly come, and as the array is.
        """
        found = self.known(prefixes)
        missing = found.count(False)
        if not missing or (missing == len(found) > self._limit() and self._insert(prefixes)):
            return found
        fresh = dict.fromkeys(compress(prefixes, map(not_, found)))
        if len(fresh) < missing:
            first = set[Prefix]()
            for position in [n for n, it in enumerate(found) if not it]:
                found[position] = prefixes[position] in first
                first.add(prefixes[position])
        self._add(fresh)
        self._tidy()
        return found

    def release(self, prefixes: Sequence[Prefix]) -> None:
        """Remove prefixes that may be here."""
        if gone := set(compress(prefixes, self.known(prefixes))):
            self._remove(gone)
            self._tidy()

    def update(self, prefixes: Iterable[Prefix]) -> None:
        """Add prefixes that may be here, a few thousand at a time."""
        rest = iter(prefixes)
        while part := list(islice(rest, _SLICE)):
            self.claim(part)

    def _merged(self, prefixes: Collection[Prefix]) -> NDArray[np.bool_]:
        """Return whether each is in the array, which is not empty."""
        keys = _keys(prefixes)
        # What is beyond the last entry is compared with that.
        nearest = self._sorted.take(self._sorted.searchsorted(keys), mode="clip")
        found: NDArray[np.bool_] = nearest == keys
        return found

    def _add(self, fresh: dict[Prefix, None]) -> None:
        if back := self._removed.intersection(fresh) if self._removed else None:
            self._removed -= back
            fresh = {prefix: None for prefix in fresh if prefix not in back}
        if six := {prefix for prefix in fresh if prefix.family != FAMILY_IPV4}:
            self._six |= six
            fresh = {prefix: None for prefix in fresh if prefix not in six}
        self._added |= fresh

    def _remove(self, gone: set[Prefix]) -> None:
        self._removed |= gone.difference(self._added, self._six)
        for prefix in gone.intersection(self._added):
            del self._added[prefix]
        self._six -= gone
        shrink(self._six)

    def _tidy(self) -> None:
        """Empty the array if nothing is left, and merge if it is due."""
        if self._removed and len(self._removed) == len(self._sorted):
            self._sorted = np.empty(0, np.uint64)
            self._removed.clear()
        if len(self._added) + len(self._removed) > self._limit():
            self._merge()

    def _limit(self) -> int:
        """How many changes may wait for a merge."""
        return max(self._recent, len(self._sorted) // _SHARE)

    def _insert(self, prefixes: Sequence[Prefix]) -> bool:
        """Merge prefixes that are not here; not if one comes twice, or is no IPv4 prefix."""
        if self._removed:
            return False
        merged = np.concatenate((self._sorted, _keys(self._added), _keys(prefixes)))
        merged.sort(kind="stable")
        if merged[-1] == _NO_KEY or (merged[1:] == merged[:-1]).any():
            return False
        self._sorted = merged
        self._added.clear()
        return True

    def _merge(self) -> None:
        removed = self._sorted.searchsorted(_keys(self._removed))
        # The old array is released before the next one is made.
        self._sorted = np.delete(self._sorted, removed)
        self._sorted = np.concatenate((self._sorted, _keys(self._added)))
        self._sorted.sort(kind="stable")  # by merging: nearly all of it is in order
        self._added.clear()
        self._removed.clear()


def _keys(prefixes: Collection[Prefix]) -> NDArray[np.uint64]:
    """Return prefixes as integers, all of IPv6 as one that is no IPv4 prefix."""
    keys = (
        at.network << _LENGTH_BITS | at.length if at.family == FAMILY_IPV4 else _NO_KEY
        for at in prefixes
    )
    return np.fromiter(keys, np.uint64, len(prefixes))
