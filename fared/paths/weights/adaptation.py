"""Weights that follow load without oscillation: damping, dead band, fallback.

``rib.adapted`` feeds the capacities and loads of paths and reads shares. Weights made of available
bandwidth move traffic, which moves the available bandwidth: a loop. Its gain is
``rho / (1 - rho)``, with rho the part of the residual capacity that is in use, so undamped weights
oscillate from half load on. Here shares approach their target exponentially, with a time constant
of at least ten times the loop delay, which is stable to rho = 0.94 for any number of routers.
Changes that are not load (capacity, members) are outside the loop and take effect at once.

``equalise`` is another, experimental rule for the shares: each is multiplied repeatedly by how much
less its path is used than the others. It ends where all paths are used alike. Its gain is rho, so
it needs no headroom.

Shares are kept in one matrix, a row for each weight vector and a column for each next hop of
this router, so that a step costs a few array operations for a whole fabric.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.paths.te.advertise import DEFAULT_ADVERTISE
from fared.paths.weights.defaults import DEAD_BAND, FLOOR, MEASURE_PERIOD, TIME_CONSTANT
from fared.paths.weights.few_flows import skew_for_few_flows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Rows = slice | NDArray[np.int64]

_DELAYS = 10.0
"""Time constant over loop delay: stable to 94 % of the residual capacity."""
_EQUALISING = 0.45
"""Loop delay over time constant while utilizations are equalized: unstable from pi / 2 on."""
_LEAK = 0.01
"""The part of a share that returns to the ratio of capacities while utilizations are equalized."""
_SAME = 1e-6
_AT_FLOOR = 1.01
_SETTLED = 1e-9
"""Up to this difference a share is at its target."""


class AdaptationSettings(msgspec.Struct, frozen=True):
    """How weights follow load; times in seconds, ratios 0..1.

    ``time_constant`` is the minimum; 0 follows at once. ``dead_band``: a share is programmed again
    when it differs by this ratio from the programmed one. ``floor``: every path counts for at least
    this part of its capacity.
    ``stale_after``: after so long without measured load, weights return to the capacities.
    ``measure_period``, ``advertise_interval`` and ``flooding`` are the other delays of the loop.
    ``equalise``: equalize utilization; differences up to ``threshold`` are then ignored, because
    they are not advertised.
    """

    time_constant: float = TIME_CONSTANT
    dead_band: float = DEAD_BAND
    floor: float = FLOOR
    period: float = 1.0
    jitter: float = 0.1
    measure_period: float = MEASURE_PERIOD
    advertise_interval: float = 1.0
    flooding: float = 0.05
    stale_after: float = 10.0
    equalise: bool = False
    threshold: float = DEFAULT_ADVERTISE.threshold

    @property
    def loop_delay(self) -> float:
        """The average time from a change of load to the weights that follow it, without damping."""
        halves = self.measure_period + self.period + self.advertise_interval
        return halves / 2 + self.flooding

    @property
    def damping(self) -> float:
        """The time constant toward shares that are known; 0: undamped."""
        return max(self.time_constant, _DELAYS * self.loop_delay) if self.time_constant else 0.0

    @property
    def tau(self) -> float:
        """The time constant in use."""
        return self.loop_delay / _EQUALISING if self.equalise else self.damping

    def slowed(self, averaging: float) -> float:
        """Return by which factor to damp more, where routers average loads before advertising.

        An average is late by its time constant, but weakens oscillation; half of it counts as
        delay, like a measuring period.
        """
        if not self.tau or averaging <= 0.0:
            return 1.0
        delay = self.loop_delay + averaging / 2
        needed = delay / _EQUALISING if self.equalise else max(self.tau, _DELAYS * delay)
        return needed / self.tau


class VectorState(msgspec.Struct, frozen=True):
    """The state of one weight vector: shares in the order of its columns.

    ``loop_gain`` is rho / (1 - rho), or rho while equalizing, with all load of the paths counted:
    an upper bound. ``fallback`` is the reason why shares approach the capacities instead, None
    where they follow load.
    """

    target: NDArray[np.float64]
    smoothed: NDArray[np.float64]
    programmed: NDArray[np.float64]
    loop_gain: float
    fallback: str | None


class ExponentialSmoother:
    """Shares of all weight vectors of one router, smoothed exponentially toward their targets.

    With ``flows`` the targets are skewed for few flows (``fared.paths.weights.few_flows``).
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
        self._moving: NDArray[np.bool_] = np.zeros(0, bool)
        """Rows whose shares are not at their targets."""
        self._smoothed: NDArray[np.float64] = empty
        self._programmed: NDArray[np.float64] = empty

    def add(self) -> int:
        """Add a vector without members; return its row."""
        if self._free:
            return self._free.pop()
        if self._size == len(self._known):
            self._grow(max(8, self._size), 0)
        self._size += 1
        return self._size - 1

    def remove(self, row: int) -> None:
        """Remove a vector."""
        for matrix in (self._capacity, self._target, self._smoothed, self._programmed):
            matrix[row] = 0.0
        self._known[row] = self._moving[row] = False
        self._free.append(row)

    def widen(self, columns: int) -> None:
        """Provide columns for so many next hops."""
        missing = columns - self._capacity.shape[1]
        if missing > 0:
            self._grow(0, max(missing, self._capacity.shape[1]))

    def _grow(self, rows: int, columns: int) -> None:
        more = ((0, rows), (0, columns))
        self._capacity = np.pad(self._capacity, more)
        self._target = np.pad(self._target, more)
        self._smoothed = np.pad(self._smoothed, more)
        self._programmed = np.pad(self._programmed, more)
        self._known = np.pad(self._known, (0, rows))
        self._moving = np.pad(self._moving, (0, rows))

    def feed(
        self,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
        capacity: NDArray[np.float64],
        target: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Set capacity and remaining capacity of the members at ``columns`` (M,) of vectors (K,).

        Both are (K, M), in bytes/s or any unit common to a vector; ``capacity`` is above zero,
        ``target`` (the remaining capacity) NaN where unknown. Values below the floor count as the
        floor: a path that is full today must still be tried. The floor applies to paths, not to
        links: otherwise a full 400G uplink before a 100G downlink would look as if the path had
        room.

        Returns for each vector (K,) whether capacities or members changed: then the shares have
        already been adjusted and are to be programmed at once. A member's share changes with its
        capacity, and the others divide what members lose. A new member begins at its target, but
        with no more than its part of the capacity: it has no load because it is new, and all
        routers see that.
        """
        before = self._capacity[rows]
        after = np.zeros(before.shape)
        after[:, columns] = capacity
        self._known[rows] = ~np.isnan(target).any(axis=1)
        self._moving[rows] = True
        left = np.zeros(before.shape)
        left[:, columns] = np.nan_to_num(np.maximum(target, capacity * self.settings.floor))
        self._target[rows] = left
        scale = np.maximum(before, after).max(axis=1, initial=0.0, keepdims=True)
        changed: NDArray[np.bool_] = (np.abs(after - before) > _SAME * scale).any(axis=1)
        # ``capacity`` does not contain load, so its changes are outside the loop: no damping.
        if changed.any():
            self._capacity[rows[changed]] = after[changed]
            shifted = self._shifted(rows[changed], before[changed], after[changed])
            self._smoothed[rows[changed]] = shifted
        return changed

    def _shifted(
        self, rows: NDArray[np.int64], before: NDArray[np.float64], after: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the smoothed shares (K, M) of rows after a change of their capacities."""
        targets = self._targets(rows)
        effective = self._effective(before)
        scaled = self._smoothed[rows] * (
            self._effective(after) / np.where(effective > 0, effective, 1.0)
        )
        kept: NDArray[np.float64] = np.where(before > 0, scaled, 0.0)
        new = (after > 0) & (before <= 0)
        part = _shares(self._effective(after))
        begin = part if self.settings.equalise else np.minimum(targets, part)
        added = np.where(new, begin, 0.0)
        shifted = _shares(_shares(kept) * (1.0 - added.sum(axis=1, keepdims=True)) + added)
        begun = kept.any(axis=1, keepdims=True)
        result: NDArray[np.float64] = np.where(begun, shifted, targets)
        return result

    def _saturated(self, rows: _Rows) -> NDArray[np.bool_]:
        """Whether no member of a vector (K,) has more left than the floor."""
        capacity = self._capacity[rows]
        floor = capacity * self.settings.floor * _AT_FLOOR
        full: NDArray[np.bool_] = (self._target[rows] <= floor) | (capacity <= 0)
        saturated: NDArray[np.bool_] = np.all(full, axis=1)
        return saturated

    def _without_signal(self, rows: _Rows) -> NDArray[np.bool_]:
        """Whether vectors (K,) lack a usable load signal and follow the shares of capacity."""
        return self._saturated(rows) | ~self._known[rows] | self._stale

    def _targets(self, rows: _Rows) -> NDArray[np.float64]:
        """Return the target shares (K, M): of the remaining capacity, else of the capacity."""
        no_signal = self._without_signal(rows)[:, None]
        if not self.settings.equalise:
            values = np.where(no_signal, self._capacity[rows], self._target[rows])
            return _shares(self._effective(values))
        capacities = _shares(self._effective(self._capacity[rows]))
        return np.where(no_signal, capacities, self._equalised(rows, capacities))

    def _effective(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return effective capacities (K, M): ``values``, skewed if few flows are expected."""
        return values if self._flows is None else skew_for_few_flows(values, self._flows)

    def _equalised(self, rows: _Rows, capacities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return shares (K, M) that differ from the smoothed ones by how unequally paths are used.

        Differences below the threshold are ignored: they are never advertised, and integrating them
        would drift. For the same reason each share leaks toward that of ``capacities``.
        """
        shares, capacity = self._smoothed[rows], self._capacity[rows]
        if not shares.any():
            return _shares(self._target[rows])
        there = capacity > 0
        used = 1.0 - self._target[rows] / np.where(there, capacity, 1.0)
        error = (shares * used).sum(axis=1, keepdims=True) - used
        error = np.sign(error) * np.maximum(np.abs(error) - self.settings.threshold, 0.0)
        moved = shares * (1.0 + error) + _LEAK * (capacities - shares)
        return _shares(np.maximum(moved, capacities * self.settings.floor))

    def step(self, seconds: float, *, stale: bool = False) -> NDArray[np.int64]:
        """Move shares for ``seconds``; return the rows that left the dead band, ascending.

        The band around a programmed share is relative to it; while equalizing, to that of the
        capacity where this is larger: small shares are never at rest then. ``stale``: load has not
        been measured lately.
        """
        settings = self.settings
        everything = stale != self._stale or settings.equalise
        self._stale = stale
        rows = np.arange(self._size) if everything else np.flatnonzero(self._moving)
        if not len(rows):
            return rows
        slow, fast = _fraction(seconds, settings.damping), _fraction(seconds, settings.tau)
        # Shares of capacities do not react to load: without a signal the slower constant suffices.
        gain = np.where(self._without_signal(rows), slow, fast)[:, None]
        targets, smoothed = self._targets(rows), self._smoothed[rows]
        smoothed += gain * (targets - smoothed)
        settled = (np.abs(targets - smoothed) <= _SETTLED).all(axis=1)
        self._smoothed[rows] = smoothed
        around = programmed = self._programmed[rows]
        if settings.equalise:
            around = np.maximum(around, _shares(self._capacity[rows]))
        moved: NDArray[np.bool_] = np.any(
            np.abs(smoothed - programmed) > settings.dead_band * around, axis=1
        )
        self._moving[rows] = moved | ~settled
        found: NDArray[np.int64] = rows[moved]
        return found

    def program(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Record the smoothed shares of rows as programmed; return them (K, M)."""
        self._programmed[rows] = self._smoothed[rows]
        shares: NDArray[np.float64] = self._smoothed[rows]
        return shares

    def state(self, row: int, columns: NDArray[np.int64]) -> VectorState:
        """Return the state of one vector."""
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
            target=self._targets(only)[0, columns],
            smoothed=self._smoothed[row, columns],
            programmed=self._programmed[row, columns],
            loop_gain=self._loop_gain(max(load, 0.0), left),
            fallback=fallback,
        )

    def _loop_gain(self, load: float, left: float) -> float:
        if self.settings.equalise:
            return load / (load + left) if load else 0.0
        return load / left if left > 0 else float("inf")


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values (K, M) as parts of the sum of their row; zeros stay."""
    total = values.sum(axis=1, keepdims=True)
    return values / np.where(total > 0, total, 1.0)


def _fraction(seconds: float, time_constant: float) -> float:
    """Return the fraction (0..1) of the distance to a target covered in this time."""
    return 1.0 - exp(-seconds / time_constant) if time_constant else 1.0
