"""How weights follow load without chasing it: damping, dead band, fallback.

Weights made of available bandwidth move traffic, which moves the available bandwidth: a loop.
With rho the part of the residual capacity that is in use its gain is ``rho / (1 - rho)``, so
following at once swings from half load on. Here shares relax toward their target with a time
constant of at least ten times the delay of the loop, which is stable to rho = 0.94 whatever the
number of routers. What is a fact and not load (capacity, members) is not part of the loop and
takes effect at once.

``equalise`` is another rule for the same shares, an experimental one: each is multiplied, again
and again, by how much less its path is used than the others. It ends where all paths are used
alike, and its gain is rho: it needs no headroom.

Shares are kept in one matrix, a row for each weight vector and a column for each next hop of
this router, so that a step costs a few array operations for a whole fabric.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING

import numpy as np

from fared.weights.staffing import lean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Rows = slice | NDArray[np.int64]

_DELAYS = 10.0
"""Time constant over loop delay: stable to 94 % of the residual capacity."""
_EQUALISING = 0.45
"""Loop delay over time constant where utilisations are equalised: swings from pi / 2 on."""
_LEAK = 0.01
"""What of a share goes back to the ratio of capacities while utilisations are equalised."""
_SAME = 1e-6
_AT_FLOOR = 1.01
_ALL = slice(None)


@dataclass(frozen=True, slots=True)
class AdaptationSettings:
    """How weights follow load; times in seconds, ratios 0..1.

    ``time_constant`` is the least one, 0 follows at once. ``dead_band``: the relative change of
    a share since it was programmed that is worth programming again. ``floor``: no path counts for
    less than this part of its capacity.
    ``stale_after``: without measured load for so long, weights go back to capacities.
    ``measure_period``, ``announce_interval`` and ``flooding`` are what others of the loop take.
    ``equalise``: make paths equally used; differences up to ``threshold`` then count as none,
    because others do not announce them.
    """

    time_constant: float = 20.0
    dead_band: float = 0.05
    floor: float = 0.02
    period: float = 1.0
    jitter: float = 0.1
    measure_period: float = 1.0
    announce_interval: float = 1.0
    flooding: float = 0.05
    stale_after: float = 10.0
    equalise: bool = False
    threshold: float = 0.03

    @property
    def loop_delay(self) -> float:
        """From a load to the weights that answer it, on average, damping aside."""
        halves = self.measure_period + self.period + self.announce_interval
        return halves / 2 + self.flooding

    @property
    def damping(self) -> float:
        """The time constant toward shares that are known; 0 undamped."""
        return max(self.time_constant, _DELAYS * self.loop_delay) if self.time_constant else 0.0

    @property
    def tau(self) -> float:
        """The time constant in use."""
        return self.loop_delay / _EQUALISING if self.equalise else self.damping


@dataclass(frozen=True, slots=True)
class VectorState:
    """One weight vector as it stands: shares in the order of its columns.

    ``loop_gain`` is rho / (1 - rho), or rho while equalising, with all load of the paths
    counted, which is the most that it can be. ``fallback`` tells why shares go to the capacities instead, None where they do not.
    """

    target: NDArray[np.float64]
    relaxed: NDArray[np.float64]
    programmed: NDArray[np.float64]
    loop_gain: float
    fallback: str | None


class Relaxation:
    """Relaxed shares of all weight vectors of one router.

    With ``flows`` targets lean away from small paths, as ``fared.weights.staffing`` says.
    """

    def __init__(self, settings: AdaptationSettings, flows: int | None = None) -> None:
        self.settings = settings
        self._flows = flows
        self._free: list[int] = []
        self._size = 0
        self._stale = False
        empty: NDArray[np.float64] = np.zeros((0, 0))
        self._capacity: NDArray[np.float64] = empty
        self._target: NDArray[np.float64] = empty
        self._known: NDArray[np.bool_] = np.zeros(0, bool)
        self._relaxed: NDArray[np.float64] = empty
        self._programmed: NDArray[np.float64] = empty

    def add(self) -> int:
        """Begin a new vector, without members yet; return its row."""
        if self._free:
            return self._free.pop()
        if self._size == len(self._known):
            self._grow(max(8, self._size), 0)
        self._size += 1
        return self._size - 1

    def remove(self, row: int) -> None:
        """Forget a vector."""
        for matrix in (self._capacity, self._target, self._relaxed, self._programmed):
            matrix[row] = 0.0
        self._known[row] = False
        self._free.append(row)

    def widen(self, columns: int) -> None:
        """Make room for so many next hops."""
        missing = columns - self._capacity.shape[1]
        if missing > 0:
            self._grow(0, max(missing, self._capacity.shape[1]))

    def _grow(self, rows: int, columns: int) -> None:
        more = ((0, rows), (0, columns))
        self._capacity = np.pad(self._capacity, more)
        self._target = np.pad(self._target, more)
        self._relaxed = np.pad(self._relaxed, more)
        self._programmed = np.pad(self._programmed, more)
        self._known = np.pad(self._known, (0, rows))

    def feed(
        self,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
        capacity: NDArray[np.float64],
        target: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Take what the members at ``columns`` (M,) of vectors (K,) can carry, and have left.

        Both (K, M), in bytes/s or any unit of a vector's own; ``capacity`` is above zero,
        ``target`` NaN where nothing is known. None counts as less than the floor: a path that is
        full today must still be tried. The floor is one of paths and not of links: a full 400G
        uplink before a 100G downlink would else look as if the path had room.

        Returns of which vectors (K,) facts changed: there shares already follow them and are to
        be programmed at once. A member's share goes with its capacity, and what members lose the
        others share. New ones begin at their target, but with no more than their part of the
        capacity: they are free because they were not there, and all routers see it.
        """
        before = self._capacity[rows]
        after = np.zeros(before.shape)
        after[:, columns] = capacity
        self._known[rows] = ~np.isnan(target).any(axis=1)
        left = np.zeros(before.shape)
        left[:, columns] = np.nan_to_num(np.maximum(target, capacity * self.settings.floor))
        self._target[rows] = left
        scale = np.maximum(before, after).max(axis=1, initial=0.0, keepdims=True)
        changed: NDArray[np.bool_] = (np.abs(after - before) > _SAME * scale).any(axis=1)
        if changed.any():
            self._capacity[rows[changed]] = after[changed]
            shifted = self._shifted(rows[changed], before[changed], after[changed])
            self._relaxed[rows[changed]] = shifted
        return changed

    def _shifted(
        self, rows: NDArray[np.int64], before: NDArray[np.float64], after: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The relaxed shares (K, M) of rows when their capacities become others."""
        wanted = self._wanted(rows)
        pulled = self._pull(before)
        scaled = self._relaxed[rows] * (self._pull(after) / np.where(pulled > 0, pulled, 1.0))
        kept: NDArray[np.float64] = np.where(before > 0, scaled, 0.0)
        new = (after > 0) & (before <= 0)
        part = _shares(self._pull(after))
        begin = part if self.settings.equalise else np.minimum(wanted, part)
        added = np.where(new, begin, 0.0)
        shifted = _shares(_shares(kept) * (1.0 - added.sum(axis=1, keepdims=True)) + added)
        begun = kept.any(axis=1, keepdims=True)
        result: NDArray[np.float64] = np.where(begun, shifted, wanted)
        return result

    def _saturated(self, rows: _Rows) -> NDArray[np.bool_]:
        """Vectors (K,) of which no member has more left than the floor."""
        capacity = self._capacity[rows]
        floor = capacity * self.settings.floor * _AT_FLOOR
        full: NDArray[np.bool_] = (self._target[rows] <= floor) | (capacity <= 0)
        saturated: NDArray[np.bool_] = np.all(full, axis=1)
        return saturated

    def _blind(self, rows: _Rows) -> NDArray[np.bool_]:
        """Vectors (K,) whose load says nothing: they go to the ratio of capacities."""
        return self._saturated(rows) | ~self._known[rows] | self._stale

    def _wanted(self, rows: _Rows = _ALL) -> NDArray[np.float64]:
        """Shares (K, M) to move to: those of what is left, else those of the capacities."""
        blind = self._blind(rows)[:, None]
        if not self.settings.equalise:
            values = np.where(blind, self._capacity[rows], self._target[rows])
            return _shares(self._pull(values))
        capacities = _shares(self._pull(self._capacity[rows]))
        return np.where(blind, capacities, self._equalised(rows, capacities))

    def _pull(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """What values (K, M) count for: themselves, unless few flows are expected."""
        return values if self._flows is None else lean(values, self._flows)

    def _equalised(self, rows: _Rows, capacities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Shares (K, M) that differ from the relaxed ones by how unequally paths are used.

        What no announcement would tell is no difference: adding it up would lead anywhere. So
        does each share leak to that of ``capacities``.
        """
        shares, capacity = self._relaxed[rows], self._capacity[rows]
        if not shares.any():
            return _shares(self._target[rows])
        there = capacity > 0
        used = 1.0 - self._target[rows] / np.where(there, capacity, 1.0)
        error = (shares * used).sum(axis=1, keepdims=True) - used
        error = np.sign(error) * np.maximum(np.abs(error) - self.settings.threshold, 0.0)
        moved = shares * (1.0 + error) + _LEAK * (capacities - shares)
        return _shares(np.maximum(moved, capacities * self.settings.floor))

    def step(self, seconds: float, *, stale: bool = False) -> NDArray[np.int64]:
        """Let time pass; return the rows that have left the dead band around what is programmed.

        The band is relative to the share; while equalising, to that of the capacity where this is
        larger: small shares are never at rest then.
        ``stale``: load has not been measured lately.
        """
        self._stale = stale
        settings = self.settings
        slow, fast = _way(seconds, settings.damping), _way(seconds, settings.tau)
        gain = np.where(self._blind(_ALL), slow, fast)[:, None]
        self._relaxed += gain * (self._wanted() - self._relaxed)
        around = self._programmed
        if settings.equalise:
            around = np.maximum(around, _shares(self._capacity))
        moved: NDArray[np.bool_] = (
            np.abs(self._relaxed - self._programmed) > settings.dead_band * around
        )
        rows: NDArray[np.int64] = np.flatnonzero(np.any(moved, axis=1))
        return rows

    def program(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Note that the relaxed shares of rows are programmed now, and return them (K, M)."""
        self._programmed[rows] = self._relaxed[rows]
        shares: NDArray[np.float64] = self._relaxed[rows]
        return shares

    def state(self, row: int, columns: NDArray[np.int64]) -> VectorState:
        """One vector as it stands."""
        only = slice(row, row + 1)
        left = float(self._target[row].sum())
        load = float(self._capacity[row].sum()) - left
        fallback = None
        if self._stale:
            fallback = "stale"
        elif not self._known[row]:
            fallback = "unknown"
        elif self._saturated(only)[0]:
            fallback = "saturated"
        return VectorState(
            target=self._wanted(only)[0, columns],
            relaxed=self._relaxed[row, columns],
            programmed=self._programmed[row, columns],
            loop_gain=self._loop_gain(max(load, 0.0), left),
            fallback=fallback,
        )

    def _loop_gain(self, load: float, left: float) -> float:
        if self.settings.equalise:
            return load / (load + left) if load else 0.0
        return load / left if left > 0 else float("inf")


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values (K, M) as parts of the sum of their row; zeros stay."""
    total = values.sum(axis=1, keepdims=True)
    return values / np.where(total > 0, total, 1.0)


def _way(seconds: float, time_constant: float) -> float:
    """How much of the way to a target is gone in this time, 0..1."""
    return 1.0 - exp(-seconds / time_constant) if time_constant else 1.0
