"""The weights to write for each next-hop set: what neighbors share counts once, in few groups.

With ``max_groups`` the routes of all protocols and families share at most so many vectors, the
nearest at the least harm (``weights.merge``). Others than those that change move only where that
costs clearly less. A chip has a table of so many groups; a single next hop needs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.core.ids import Prefix
from fared.paths.fib.desired import wanted_of
from fared.paths.fib.settings import FibSettings
from fared.paths.rib.model import HopKey, NextHopSet, Route, RouteDelta
from fared.paths.weights.defaults import MAX_WEIGHT
from fared.paths.weights.merge import Assigned, assign
from fared.paths.weights.quantise import quantise_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

Weights = tuple[tuple[HopKey, int], ...]
"""Next hops, each once, with the weight to write."""

_FINE = 1e11
"""A share of 1 is this number before it becomes an integer weight."""
_MOST = 65535


class _Vector(msgspec.Struct, eq=False):
    """A weight vector of routes, and what is written instead; ``group`` -1: it is new."""

    wanted: Weights
    given: Weights
    routes: int = 0
    group: int = -1


class MergedWeights:
    """What is written for the next-hop sets of a table."""

    def __init__(self, settings: FibSettings) -> None:
        self._settings = settings
        self._vectors: dict[Weights, _Vector] = {}
        self._of: dict[Prefix, _Vector] = {}
        self._assigned: Assigned | None = None
        self._columns: list[HopKey] = []
        self._begun = False

    def written(self, hops: NextHopSet) -> Weights:
        """Return the weights to write for a set."""
        wanted = self._combined(hops.key)
        vector = self._vectors.get(wanted) if self._vectors else None
        return wanted if vector is None else vector.given

    def take(self, changed: RouteDelta, table: Mapping[Prefix, Route]) -> list[Prefix]:
        """Process changed routes of a table; return others that have other weights now.

        The first time all routes of the table count as changed.
        """
        most = self._settings.max_groups
        if most is None:
            return []
        changes: Iterable[tuple[Prefix, Route | None]] = changed.items()
        if not self._begun:
            self._begun, changes = True, table.items()
        if not self._count(changes):
            return []
        several = [vector for vector in self._vectors.values() if len(vector.wanted) > 1]
        moved = {id(vector) for vector in self._assign(several, most)}
        if not moved:
            return []
        return [at for at, vector in self._of.items() if id(vector) in moved and at not in changed]

    def _combined(self, pairs: Weights) -> Weights:
        """Add the weights of neighbors that share a next hop; scale them into the bound."""
        weights: dict[HopKey, int] = {}
        for hop, weight in pairs:
            weights[hop] = weights.get(hop, 0) + weight
        if len(weights) == len(pairs):
            return pairs
        most = self._settings.max_weight or _MOST
        if max(weights.values()) > most:
            rows = np.array([list(weights.values())], np.float64) * _FINE
            (fitted,) = quantise_rows(rows, most, max_sum=self._settings.max_group_size).tolist()
            weights = dict(zip(weights, fitted, strict=True))
        return tuple([pair for pair in weights.items() if pair[1]])

    def _count(self, changes: Iterable[tuple[Prefix, Route | None]]) -> bool:
        """Count the routes of each vector; return whether there are other vectors."""
        known: dict[int, _Vector] = {}
        different = False
        left: dict[int, _Vector] = {}
        for prefix, route in changes:
            hops, before = wanted_of(route), self._of.get(prefix)
            vector = None
            if hops is not None:
                vector = known.get(id(hops))
                if vector is None:
                    wanted = self._combined(hops.key)
                    vector = self._vectors.get(wanted)
                    if vector is None:
                        different = True
                        vector = self._vectors[wanted] = _Vector(wanted, wanted)
                    known[id(hops)] = vector
            if vector is before:
                continue
            if before is not None:
                before.routes -= 1
                left[id(before)] = before
            if vector is None:
                del self._of[prefix]
            else:
                vector.routes += 1
                self._of[prefix] = vector
        for vector in left.values():
            if not vector.routes:
                different = True
                del self._vectors[vector.wanted]
        return different

    def _assign(self, several: list[_Vector], most: int) -> list[_Vector]:
        """Assign vectors to groups; return those with other weights than before, not new ones."""
        if len(several) <= most:
            self._assigned = None
            given, group = [vector.wanted for vector in several], [0] * len(several)
        else:
            columns, rows = self._rows([vector.wanted for vector in several])
            before = self._before(several, columns, rows)
            counts = np.array([vector.routes for vector in several])
            fit = partial(_fitted, settings=self._settings)
            self._assigned = found = assign(rows, counts, most, fit, before)
            self._columns = columns
            groups = [_weights(columns, row) for row in found.given.tolist()]
            group = found.group.tolist()
            given = [groups[number] for number in group]
        moved = []
        for vector, weights, number in zip(several, given, group, strict=True):
            if vector.given != weights:
                vector.given = weights
                moved.append(vector)
            vector.group = number
        return moved

    def _before(
        self, several: list[_Vector], columns: list[HopKey], rows: NDArray[np.int64]
    ) -> Assigned:
        """Return the present groups in these columns: where all had their own, each has one."""
        group, known = np.array([vector.group for vector in several]), self._assigned
        if known is None:
            return Assigned(np.where(group < 0, -1, np.arange(len(several))), rows, 0.0)
        return known._replace(group=group, given=self._moved(columns, known.given))

    def _rows(self, wanted: list[Weights]) -> tuple[list[HopKey], NDArray[np.int64]]:
        columns = sorted({hop for weights in wanted for hop, _ in weights})
        at = {hop: number for number, hop in enumerate(columns)}
        rows = np.zeros((len(wanted), len(columns)), np.int64)
        for number, weights in enumerate(wanted):
            rows[number, [at[hop] for hop, _ in weights]] = [weight for _, weight in weights]
        return columns, rows

    def _moved(self, columns: list[HopKey], given: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the weights of groups in other columns: groups over next hops that left have none.

        No vector is in these any more.
        """
        if columns == self._columns:
            return given
        place = {hop: at for at, hop in enumerate(self._columns)}
        padded = np.append(given, np.zeros((len(given), 1), np.int64), axis=1)
        return padded[:, [place.get(hop, -1) for hop in columns]]


def _fitted(shares: NDArray[np.float64], settings: FibSettings) -> NDArray[np.int64]:
    most = settings.max_weight or MAX_WEIGHT
    return quantise_rows(shares * _FINE, most, 0.0, 0, settings.max_group_size)


def _weights(columns: list[HopKey], row: list[int]) -> Weights:
    return tuple([(hop, weight) for hop, weight in zip(columns, row, strict=True) if weight])
