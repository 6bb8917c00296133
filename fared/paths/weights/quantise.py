"""Convert capacities to small integer weights for the kernel, at a bounded loss.

With integer shares q for true capacities w a group achieves ``sum(q) / max(q / w)``: rounding up
overloads a small member and slows everything, rounding down costs almost nothing. So all rounding
here is down. For weights up to M the loss is below ``n / (sum(q) + n)``, independent of the
smallest member; a member below 1/M of the largest gets no share at all.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from fared.paths.weights.defaults import MAX_WEIGHT
from fared.paths.weights.group_size import fit_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

DEFAULT_MAX_WEIGHT = MAX_WEIGHT
DEFAULT_TOLERANCE = 0.005
_SEARCH_EFFORT = 4096
_MOST = 1e18
"""Bits/s in place of more, and of what is not limited at all: an integer cannot say infinite."""
_UNITS = np.array([1.0, 1e3, 1e6])
_UNITS_FROM = np.array([8e6, 8e9])
"""Bits/s in the largest member from which on the second, and the third, unit is used."""


def to_units(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Convert bytes/s (K, n) to integers, in a unit chosen by the largest of each row.

    The unit is Mb/s; kb/s where no member reaches 8 Gb/s, and b/s where none reaches 8 Mb/s, so
    that slow lab links keep their ratio. In each unit an IEEE single, as flooded, rounds exactly.
    """
    bits = np.minimum(rows * 8.0, _MOST)
    unit = _UNITS[_UNITS_FROM.searchsorted(bits.max(axis=1, initial=0.0), "right")]
    units: NDArray[np.int64] = np.rint(bits / unit[:, None]).astype(np.int64)
    return units


def quantise_rows(
    rows: NDArray[np.float64],
    max_weight: int = DEFAULT_MAX_WEIGHT,
    tolerance: float = DEFAULT_TOLERANCE,
    search_up_to: int = 16,
    max_sum: int | None = None,
) -> NDArray[np.int64]:
    """Quantise many rows of capacities (K, n), bytes/s, zero where there is no member.

    Rows whose ratio fits into ``max_weight`` come out exact. Of the others those with at most
    ``search_up_to`` members are searched for the smallest vector within ``tolerance`` of the
    optimum, the rest floored; the result of a row never depends on the other rows. With a
    ``max_sum`` all of them are searched (``group_size``).
    """
    units = to_units(rows)
    divisor = np.gcd.reduce(units, axis=1) if units.shape[1] else np.zeros(len(units), np.int64)
    # Weights without a common divisor that fit are the capacities' ratio, without any loss.
    units //= np.maximum(divisor, 1)[:, None]
    if max_sum is not None:
        return fit_rows(units, max_weight, max_sum, tolerance)
    largest = units.max(axis=1, initial=0)
    coarse = np.flatnonzero(largest > max_weight)
    if not len(coarse):
        return units
    members = (units[coarse] > 0).sum(axis=1)
    few = members <= search_up_to
    many = coarse[~few]
    if len(many):
        floors = units[many] * max_weight // largest[many][:, None]
        units[many] = floors // np.gcd.reduce(floors, axis=1)[:, None]
    for row in coarse[few].tolist():
        units[row] = reduce_weights(tuple(units[row].tolist()), max_weight, tolerance)
    return units


@functools.lru_cache(maxsize=4096)
def reduce_weights(
    weights: tuple[int, ...],
    max_weight: int = DEFAULT_MAX_WEIGHT,
    tolerance: float = DEFAULT_TOLERANCE,
) -> tuple[int, ...]:
    """Return the smallest weights within ``tolerance`` of the optimum, at most ``max_weight``.

    An optimal vector always has the form ``floor(k * w / w_j)``, so trying all k and j finds it.
    With many distinct values only the largest is tried as w_j.
    """
    positive = [w for w in weights if w > 0]
    if not positive:
        return (0,) * len(weights)
    divisor = math.gcd(*positive)
    largest = max(positive) // divisor
    if largest <= max_weight:
        return tuple(w // divisor for w in weights)
    values = sorted({w // divisor for w in positive})
    found = _search(values, [weights.count(v * divisor) for v in values], max_weight, tolerance)
    weight_of = dict(zip(values, found, strict=True))
    return tuple(weight_of[w // divisor] if w > 0 else 0 for w in weights)


def _search(
    values: list[int], counts: list[int], max_weight: int, tolerance: float
) -> tuple[int, ...]:
    """Return weights of distinct values, ascending, each ``counts`` times: see above."""
    largest = values[-1]
    # The search is quadratic in distinct values: of many only the largest is tried.
    bases = values if len(values) * max_weight <= _SEARCH_EFFORT else [largest]
    tried = [
        (base, max(max_weight * base // largest, 1))
        for base in bases
        if largest // base <= max_weight
    ]
    multiple = np.concatenate([np.arange(1, last + 1) for _, last in tried])
    base = np.array([base for base, _ in tried]).repeat([last for _, last in tried])
    candidates = np.array(values)[:, None] * multiple // base  # one a column
    total = np.array(counts) @ candidates
    achieved = total / (multiple / base)  # the base is not rounded down: its load is the highest
    wanted = sum(v * c for v, c in zip(values, counts, strict=True))
    good = (achieved >= (1.0 - tolerance) * wanted * (1.0 - 1e-12)).nonzero()[0]
    best = int(good[total[good].argmin()]) if len(good) else int(achieved.argmax())
    found = candidates[:, best].tolist()
    divisor = math.gcd(*found)
    return tuple(q // divisor for q in found)


def throughput_lost(
    weights: NDArray[np.float64], capacities: NDArray[np.float64], max_paths: int
) -> float:
    """Return what a vector loses of the capacities of the first ``max_paths`` members.

    0 where a capacity is unknown, NaN.
    """
    there = capacities > 0
    there &= np.cumsum(there) <= max_paths
    if not np.isfinite(capacities).all() or not weights[there].any():
        return 0.0
    wanted = capacities[there]
    given = weights[there]
    return max(0.0, float(1 - given.sum() / (given / wanted).max() / wanted.sum()))


@functools.lru_cache(maxsize=4096)
def divide_buckets(weights: tuple[int, ...], buckets: int) -> tuple[int, ...]:
    """Return the smallest weights that give a resilient group's members D'Hondt's buckets."""
    shares = dhondt(weights, buckets)
    divisor = math.gcd(*shares) or 1
    return tuple(share // divisor for share in shares)


def dhondt(weights: Sequence[float], buckets: int) -> tuple[int, ...]:
    """Divide the buckets of a resilient group by D'Hondt: the sum is ``buckets`` exactly.

    Each bucket goes to the member whose load per capacity stays least, which again never rounds a
    small member up into overload.
    """
    capacity = np.array(weights, np.float64)
    if not (capacity > 0).any():
        return (0,) * len(weights)
    share = np.floor(capacity * (buckets / capacity.sum())).astype(np.int64)
    for _ in range(buckets - int(share.sum())):
        share[np.argmax(capacity / (share + 1))] += 1
    return tuple(share.tolist())
