"""Weights whose sum is bounded: the entries that a group takes in the ECMP table of a chip.

A group takes one entry for each unit of weight. For any scale ``s`` no member may have more than
``floor(s * w)``, so the vectors worth trying are those that D'Hondt's divisors give for each sum
up to the bound, and the best of them loses least of all vectors within both bounds (oracle:
tests/weights/test_group_size.py tries all). Rows are independent of each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDING = 1.0 - 1e-12


def fit_rows(
    units: NDArray[np.int64], max_weight: int, max_sum: int, tolerance: float
) -> NDArray[np.int64]:
    """Return weights of at most ``max_weight`` with a sum of at most ``max_sum`` (K, n).

    ``units`` are capacities without a common divisor, each row with a positive one. Rows that fit
    stay as they are; of others the smallest vector within ``tolerance`` of the best is taken. Of
    equal members that do not all fit the first in order get the entries.
    """
    fitted = units.copy()
    large = (units.sum(axis=1) > max_sum) | (units.max(axis=1, initial=0) > max_weight)
    rows = np.flatnonzero(large)
    if not len(rows):
        return fitted
    wanted = units[rows]
    total = wanted.sum(axis=1)
    limit = (max_sum + (wanted > 0).sum(axis=1)) / total  # the sum of all floors is not below
    sums, scale, best = _search(wanted, limit, max_weight, max_sum, tolerance)
    # Where the greatest weight holds a member back, a greater scale may still carry more.
    again = np.flatnonzero(best < max_sum / limit * _ROUNDING)
    if len(again):
        further = np.maximum(limit[again], max_sum / np.maximum(best[again], 1e-300))
        further = np.minimum(further, max_weight / _least(wanted[again]))
        sums[again], scale[again], _ = _search(
            wanted[again], further, max_weight, max_sum, tolerance
        )
    found = _trimmed(wanted, _floors(wanted, scale, max_weight), sums, scale)
    fitted[rows] = found // np.maximum(np.gcd.reduce(found, axis=1), 1)[:, None]
    return fitted


def _least(units: NDArray[np.int64]) -> NDArray[np.int64]:
    least: NDArray[np.int64] = np.where(units > 0, units, units.max()).min(axis=1)
    return least


def _floors(
    units: NDArray[np.int64], scale: NDArray[np.float64], max_weight: int
) -> NDArray[np.int64]:
    """Return how many divisors ``j / w`` of each member are not above the scale of its row."""
    top = scale[:, None]
    one = np.maximum(units, 1)
    floors = np.floor(units * top).astype(np.int64)
    # Divisions round equal ratios equally, products do not.
    floors += (floors + 1) / one <= top
    floors -= floors / one > top
    floors[units == 0] = 0
    return np.minimum(floors, max_weight)


def _search(
    units: NDArray[np.int64],
    limit: NDArray[np.float64],
    max_weight: int,
    max_sum: int,
    tolerance: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return sum and scale of the vector to take, and what the best one achieves, for each row."""
    counts = _floors(units, limit, max_weight)
    flat = counts.ravel()
    begin = np.cumsum(flat) - flat
    number = np.arange(int(flat.sum())) - begin.repeat(flat) + 1
    ratio = number / units.ravel().repeat(flat)
    each = counts.sum(axis=1)
    width = int(each.max())
    divisors = np.full((len(units), max(width, 1)), np.inf)
    divisors[np.arange(divisors.shape[1]) < each[:, None]] = ratio
    divisors.sort(axis=1)
    divisors = divisors[:, :max_sum]
    achieved = np.arange(1, divisors.shape[1] + 1) / divisors
    best = achieved.max(axis=1)
    good = achieved >= (best * ((1.0 - tolerance) * _ROUNDING))[:, None]
    at = good.argmax(axis=1)
    # A sum amid equal divisors would treat equal members unequally where all of them fit.
    scale = divisors[np.arange(len(at)), at]
    sums = (divisors <= scale[:, None]).sum(axis=1)
    return sums, scale, best


def _trimmed(
    units: NDArray[np.int64],
    floors: NDArray[np.int64],
    sums: NDArray[np.int64],
    scale: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Take what is above the sum from the last of the members whose divisor is the scale."""
    excess = floors.sum(axis=1) - sums
    for row in np.flatnonzero(excess > 0).tolist():
        top = np.flatnonzero(floors[row] / np.maximum(units[row], 1) == scale[row])
        floors[row, top[len(top) - int(excess[row]) :]] -= 1
    return floors
