"""The steps of a plan as they were laid out when it was built, and what the plan lost since.

A lost link takes an edge and a few slots out of hundred thousand pairs. To copy these would cost
more than anything else that follows the loss, so they stay: a lost edge carries nothing, nor does
a lost slot, and in a sum zeros change no bit.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from fared.paths.ted.opposite import also_lost, parts_left

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_T = TypeVar("_T", bound=np.generic)


class SweepStep(msgspec.Struct, frozen=True, eq=False):
    """One depth: slots ``low`` to ``high - 1`` are fed by pairs (source slot, edge).

    ``source``, ``edge`` (K,); ``target`` (K,) counts from ``low``, or is None where pair i feeds
    slot ``low + i``. ``seeds`` are the slots of direct neighbors, which are unlimited.
    ``unlimited``: all sources are such slots without another feed, so only the edges limit.
    """

    low: int
    high: int
    source: NDArray[np.int64]
    edge: NDArray[np.int64]
    target: NDArray[np.int64] | None
    seeds: NDArray[np.int64]
    unlimited: bool


class Laid(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Steps and levels (as in SpfPlan), with the numbers that edges and slots had at first.

    ``size``: how many slots there were; ``lost_edges``, ``lost_slots``: those that are gone,
    ascending.
    """

    steps: tuple[SweepStep, ...]
    levels: tuple[NDArray[np.int64], ...]
    size: int
    lost_edges: tuple[int, ...] = ()
    lost_slots: tuple[int, ...] = ()

    def without(self, edges: Iterable[int], slots: Iterable[int]) -> Laid:
        """Return the same steps without these edges and slots, by their present numbers."""
        lost_edges = also_lost(self.lost_edges, edges)
        lost_slots = also_lost(self.lost_slots, slots)
        return Laid(self.steps, self.levels, self.size, lost_edges, lost_slots)

    def by_first_number(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return values of the present edges by their first numbers; 0 at the lost ones."""
        if not self.lost_edges:
            return values
        stops = [edge - at for at, edge in enumerate(self.lost_edges)]
        parts, none = [values[: stops[0]]], np.zeros(1)
        for low, high in itertools.pairwise((*stops, len(values))):
            parts += (none, values[low:high])
        return np.concatenate(parts)

    def present(self, values: NDArray[_T]) -> NDArray[_T]:
        """Return values of the slots that are left."""
        if not self.lost_slots:
            return values
        return np.concatenate([values[part] for part in parts_left(self.lost_slots, self.size)])

    @cached_property
    def dead(self) -> tuple[NDArray[np.int64], ...]:
        """The pairs of each step over lost edges, or of lost slots.

        Their zeros would not show beside what is unknown: the other edge or slot of the pair.
        """
        slots, edges = np.array(self.lost_slots, np.int64), np.array(self.lost_edges)
        return tuple(
            (among(step.edge, edges) | among(step.source, slots)).nonzero()[0]
            for step in self.steps
        )

    @cached_property
    def present_levels(self) -> tuple[NDArray[np.int64], ...]:
        """The edges of each level that are left, by their present numbers."""
        if not self.lost_edges:
            return self.levels
        lost = np.array(self.lost_edges)
        found = []
        for level in self.levels:
            kept = level[~among(level, lost)]
            found.append(kept - lost.searchsorted(kept))
        return tuple(found)


def among(numbers: NDArray[np.int64], few: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers are among a few others, ascending."""
    if not len(few):
        return np.zeros(len(numbers), bool)
    marks = np.zeros(int(few[-1]) + 2, bool)
    marks[few] = True
    return marks.take(numbers, mode="clip")
