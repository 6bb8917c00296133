"""The opposite edge of each edge of a graph, and edge numbers after edges came or went."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

_MOST_PENDING = 64
"""Lost edges after which the numbers are computed, wanted or not."""
_T = TypeVar("_T", bound=np.generic)


class Opposite(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The opposite edges: those ``known`` of an earlier graph, without the edges ``cut`` of it.

    The numbers are computed at first use: a lost link is urgent, and needs none of them.
    """

    known: NDArray[np.int64]
    cut: tuple[int, ...] = ()

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """The opposite edge of each edge (E,)."""
        if not self.cut:
            return self.known
        numbers = renumbered(self.known, self.cut, ())
        return np.concatenate([numbers[part] for part in parts_left(self.cut, len(numbers))])

    def without(self, cut: Sequence[int]) -> Opposite:
        """Return the opposite edges without these edges, ascending."""
        known, gone = self._settled()
        return Opposite(known, also_lost(gone, cut))

    def edited(
        self, cut: Sequence[int], places: Sequence[int], fresh: NDArray[np.int64]
    ) -> Opposite:
        """Return the opposite edges without ``cut``, and with ``fresh`` ones before ``places``."""
        known, before = self._settled()
        gone = also_lost(before, cut)
        new = _first_numbers(before, places)
        # A link that comes back moves no other edge: it does what its loss undid.
        lost, added = list(gone), new.copy()
        for edge in gone:
            if edge + 1 in added:
                added.remove(edge + 1)
                lost.remove(edge)
        return Opposite(edit(renumbered(known, lost, added), gone, new, fresh))

    def _settled(self) -> tuple[NDArray[np.int64], tuple[int, ...]]:
        """Return ``known`` and ``cut``, or ``edges`` and no cut where they are or should be."""
        settled = "edges" in self.__dict__ or len(self.cut) > _MOST_PENDING
        return (self.edges, ()) if settled else (self.known, self.cut)


def also_lost(lost: Sequence[int], present: Iterable[int]) -> tuple[int, ...]:
    """Return the lost numbers, ascending, with more: ``present`` counts only what is not lost."""
    return tuple(sorted((*lost, *_first_numbers(lost, present))))


def _first_numbers(cut: Sequence[int], present: Iterable[int]) -> list[int]:
    """Return the numbers that edges had before ``cut`` (ascending)."""
    left = [edge - at for at, edge in enumerate(cut)]
    return [number + bisect_right(left, number) for number in present]


def renumbered(
    edges: NDArray[np.int64], cut: Sequence[int], places: Sequence[int]
) -> NDArray[np.int64]:
    """Map old edge numbers to new ones; ``cut`` and ``places`` ascend."""
    shifted: NDArray[np.int64] = edges - np.array(cut, np.int64).searchsorted(edges)
    if places:
        shifted += np.array(places, np.int64).searchsorted(edges, "right")
    return shifted


def parts_left(cut: Sequence[int], size: int) -> list[slice]:
    """Return the parts of so many values that are between those of ``cut`` (ascending)."""
    return [slice(low + 1, high) for low, high in itertools.pairwise((-1, *cut, size))]


def edit(
    values: NDArray[_T], cut: Sequence[int], places: Sequence[int], fresh: NDArray[_T]
) -> NDArray[_T]:
    """Remove the values at ``cut`` and insert ``fresh`` ones before those at ``places``."""
    parts, done = [], 0
    stops = [(place, 0, at) for at, place in enumerate(places)] + [(c, 1, 0) for c in cut]
    for place, skip, at in sorted(stops):
        parts.append(values[done:place])
        if not skip:
            parts.append(fresh[at : at + 1])
        done = place + skip
    return np.concatenate((*parts, values[done:]))
