"""Next-hop sets from rows of path capacities: integer weights over this router's own links.

``AreaSolver`` makes a ``SetBuilder`` for the ``Members`` of its area. Equal rows give one object,
so equal sets are recognized by identity.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fared.paths.rib.model import HopKey, NextHop, NextHopSet
from fared.paths.weights.few_flows import skew_for_few_flows
from fared.paths.weights.path_capacity import CapacityRow, WeightMode, fill_unknown
from fared.paths.weights.quantise import quantise_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.paths.rib.members import Members
    from fared.paths.rib.settings import SolverSettings
    from fared.paths.ted.model import LocalLink

ABSENT = -1.0
"""In a packed row: no shortest path begins with this first hop, or no link leads to it."""


def pack(row: CapacityRow) -> NDArray[np.float64]:
    """Pack a row into a float for each first hop (1, H): its bound, ABSENT, or less if unknown."""
    known = np.where(row.unknown, -2.0 - row.bound, row.bound)
    return np.where(row.present, known, ABSENT)[None, :]


def _bytes_of(rows: NDArray[np.float64]) -> list[bytes]:
    """Return each row as bytes."""
    whole: list[bytes] = rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist()
    return whole


class SolvedHops(NextHopSet):
    """A next-hop set that makes its ``NextHop`` objects at first use.

    Most sets are only compared by ``key``.
    """

    def __init__(
        self, members: Members, capacities: NDArray[np.float64], weights: NDArray[np.int64]
    ) -> None:
        self.__dict__.update(_members=members, _capacities=capacities, _weights=weights)

    @cached_property
    def hops(self) -> tuple[NextHop, ...]:  # type: ignore[override] # not before it is read
        """The next hops; ``capacity`` NaN in the arrays is unknown."""
        members, weights = self.__dict__["_members"], self.__dict__["_weights"].tolist()
        capacities = self.__dict__["_capacities"].tolist()
        return tuple(
            _next_hop(members.links[at], capacities[at], weights[at])
            for at in members.output.tolist()
            if weights[at]
        )

    @cached_property
    def key(self) -> tuple[tuple[HopKey, int], ...]:
        """The content as the kernel has it: (next hop, weight) pairs."""
        members, weights = self.__dict__["_members"], self.__dict__["_weights"].tolist()
        keys = members.keys
        return tuple((keys[at], weights[at]) for at in members.output.tolist() if weights[at])

    @property
    def total_weight(self) -> int:
        """Sum of weights."""
        return int(self.__dict__["_weights"].sum())

    def limited(self, limit: float) -> SolvedHops:
        """Return the same set with capacities of at most ``limit``, bytes/s."""
        members, capacities, weights = self.arrays()
        return SolvedHops(members, np.minimum(capacities, limit), weights)

    def arrays(self) -> tuple[Members, NDArray[np.float64], NDArray[np.int64]]:
        """Return the members, and capacity (bytes/s, NaN unknown) and weight of each."""
        kept = self.__dict__
        return kept["_members"], kept["_capacities"], kept["_weights"]


def _next_hop(link: LocalLink, capacity: float, weight: int) -> NextHop:
    return NextHop(
        ifindex=link.ifindex,
        interface=link.interface,
        family=link.family,
        gateway=link.gateway,
        neighbor=link.neighbor,
        bandwidth=link.bandwidth,
        capacity=None if math.isnan(capacity) else capacity,
        weight=weight,
        onlink=link.onlink,
    )


class _FormerSets:
    """The sets of the builder before, for rows over other first hops.

    With a link that is lost or restored the first hops are others, but most sets do not use it:
    they stay the same objects, and what depends on them stays as it is.
    """

    def __init__(self, sets: dict[bytes, NextHopSet | None], before: Members, now: Members) -> None:
        self._sets = sets
        self._size = len(before.links)
        place = {key: at for at, key in enumerate(before.keys)}
        known = [(at, place.get(key, -1)) for at, key in enumerate(now.keys)]
        same = [(at, old) for at, old in known if old >= 0 and before.links[old] == now.links[at]]
        self._here = [at for at, _ in same]
        self._there = [old for _, old in same]
        self._new = sorted(set(range(len(now.links))).difference(self._here))

    def find(self, packed: NDArray[np.float64], suffix: bytes) -> list[NextHopSet | None]:
        """Return the former set of each packed row; None: there was none."""
        rows = np.full((len(packed), self._size), ABSENT)
        rows[:, self._there] = packed[:, self._here]
        uses_new = (packed[:, self._new] != ABSENT).any(axis=1).tolist()
        get = self._sets.get
        return [
            None if new else get(key + suffix)
            for key, new in zip(_bytes_of(rows), uses_new, strict=True)
        ]


class SetBuilder:
    """Makes next-hop sets from rows; equal content gives the same object."""

    def __init__(
        self, members: Members, settings: SolverSettings, before: SetBuilder | None = None
    ) -> None:
        """``before``: the builder for other members with the same settings, whose sets stay."""
        self.members = members
        self._settings = settings
        self.sets: dict[bytes, NextHopSet | None] = {}
        """What was made, by packed row and limit."""
        self._former: _FormerSets | None = None
        if before is not None and before.members.links and before.members.plain and members.plain:
            self._former = _FormerSets(before.sets, before.members, members)

    def forget_former(self) -> None:
        """Forget the sets of the builder before, once those in use have been built here."""
        self._former = None

    def __len__(self) -> int:
        return len(self.sets)

    def build(self, packed: NDArray[np.float64], limit: float = np.inf) -> NDArray[np.object_]:
        """Return the sets (K,) of packed rows (K, H) that are already bounded by ``Members.local``.

        ``limit`` (bytes/s) lies behind all paths alike: it is displayed but does not change
        weights. None for a row without any usable link.
        """
        if not packed.size:
            return np.full(len(packed), None, object)
        suffix = b"" if math.isinf(limit) else str(limit).encode()
        keys = _bytes_of(packed)
        if suffix:
            keys = [key + suffix for key in keys]
        sets = self.sets
        fresh = {key: at for at, key in enumerate(keys) if key not in sets}
        if fresh and self._former is not None:
            self._take_former(packed, fresh, suffix)
        if fresh:
            new = packed[np.fromiter(fresh.values(), np.int64, len(fresh))]
            made = self._make(new) if math.isinf(limit) else self._limited(new, limit)
            sets.update(zip(fresh, made, strict=True))
        return np.fromiter(map(sets.__getitem__, keys), object, len(keys))

    def _take_former(
        self, rows: NDArray[np.float64], fresh: dict[bytes, int], suffix: bytes
    ) -> None:
        """Take sets that were made before out of ``fresh``: the number of a row, by its key."""
        assert self._former is not None
        places = list(fresh.values())
        former = self._former.find(rows[places], suffix)
        for key, found in zip(list(fresh), former, strict=True):
            if found is not None:
                self.sets[key] = found
                del fresh[key]

    def keep(self, used: NDArray[np.object_]) -> None:
        """Forget all sets but these."""
        known = set(map(id, used.tolist()))
        self.sets = {key: made for key, made in self.sets.items() if id(made) in known}

    def _limited(self, packed: NDArray[np.float64], limit: float) -> list[NextHopSet | None]:
        """Make the sets of rows with a limit: of those without, which nodes have in most cases."""
        return [
            None if whole is None else whole.limited(limit) for whole in self.build(packed).tolist()
        ]

    def _make(self, packed: NDArray[np.float64]) -> list[NextHopSet | None]:
        least = float(packed.min())
        if least >= 0.0:  # every first hop usable, everything known
            return self._laid_out(packed, np.ones(packed.shape, bool), None)
        present = packed != ABSENT
        values = np.where(present, packed, 0.0)
        if least >= ABSENT:  # everything known
            return self._laid_out(values, present, None)
        unknown = packed < ABSENT
        values = np.where(unknown, -2.0 - values, values)
        uncertain: NDArray[np.bool_] = np.logical_or.reduce(unknown, axis=1)
        for row in uncertain.nonzero()[0].tolist():
            values[row] = fill_unknown(CapacityRow(values[row], unknown[row], present[row]))
        return self._laid_out(values, present, unknown)

    def _laid_out(
        self,
        values: NDArray[np.float64],
        present: NDArray[np.bool_],
        unknown: NDArray[np.bool_] | None,
    ) -> list[NextHopSet | None]:
        """Make the sets of rows (K, H): capacity, whether a path exists, whether it is known."""
        members = self.members
        capacity = values
        if not members.plain:
            present = present.take(members.column, 1)
            capacity = values.take(members.column, 1) * members.share
        weights = self.weigh(capacity, present)
        shown = capacity
        if unknown is not None:
            shown = np.where(unknown.take(members.column, 1), np.nan, capacity)
        usable = np.logical_or.reduce(present, axis=1).tolist()
        return [
            SolvedHops(members, row, shares) if some else None
            for row, shares, some in zip(shown, weights, usable, strict=True)
        ]

    def weigh(self, capacity: NDArray[np.float64], present: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return integer weights (K, M); a row with members always has at least one weight.

        Of more than ``most_paths`` members the first in (neighbor, local id) order are used, so
        that the choice does not change with capacities.
        """
        settings = self._settings
        if present.shape[1] > settings.most_paths:
            present = present & (np.cumsum(present, axis=1) <= settings.most_paths)
            capacity = np.where(present, capacity, 0.0)
        if settings.mode is WeightMode.NONE:
            return present.astype(np.int64)
        if settings.flows is not None:
            capacity = skew_for_few_flows(capacity, settings.flows)
        weights = quantise_rows(
            capacity,
            settings.max_weight,
            settings.tolerance,
            settings.search_members,
            settings.max_group_size,
        )
        used = weights.any(axis=1)
        if not used.all():
            weights[~used] = present[~used]
        return weights
