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

_FEW_CUTS = 8
_FEW_EDGES = 512
"""Edges that are looked up one by one, in fewer steps."""
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
        return _renumbered_left(self.known, self.cut) if self.cut else self.known

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
    if len(edges) <= _FEW_EDGES:
        shifted: NDArray[np.int64] = edges - np.array(cut, np.int64).searchsorted(edges)
        if places:
            shifted += np.array(places, np.int64).searchsorted(edges, "right")
        return shifted
    if len(cut) + len(places) > _FEW_CUTS:
        shift = np.zeros(len(edges) + 1, np.int64)
        np.add.at(shift, np.array(places, np.int64), 1)
        np.subtract.at(shift, np.array(cut, np.int64) + 1, 1)
        numbers: NDArray[np.int64] = (np.arange(len(edges)) + shift[:-1].cumsum())[edges]
        return numbers
    shift = np.zeros(len(edges), np.int8)
    for place in cut:
        shift -= (edges > place).view(np.int8)
    for place in places:
        shift += (edges >= place).view(np.int8)
    return edges + shift


def parts_left(cut: Sequence[int], size: int) -> list[slice]:
    """Return the parts of so many values that are between those of ``cut`` (ascending)."""
    return [slice(low + 1, high) for low, high in itertools.pairwise((-1, *cut, size))]


def _renumbered_left(edges: NDArray[np.int64], cut: Sequence[int]) -> NDArray[np.int64]:
    """Remove the edges ``cut``, and map the numbers of the others."""
    kept = parts_left(cut, len(edges))
    if len(edges) <= _FEW_EDGES or len(cut) > _FEW_CUTS:
        numbers = renumbered(edges, cut, ())
        return np.concatenate([numbers[part] for part in kept])
    # Written once: to copy so many numbers takes as long as to map them.
    left, at = np.empty(len(edges) - len(cut), np.int64), 0
    for part in kept:
        mine = edges[part]
        shift = np.zeros(len(mine), np.int8)
        for edge in cut:
            shift += (mine > edge).view(np.int8)
        np.subtract(mine, shift, out=left[at : at + len(mine)])
        at += len(mine)
    return left


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
