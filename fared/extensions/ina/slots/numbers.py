"""Block fixed point: floats as integers whose sum is the same bits in any order.

A chunk has one exponent E, the least with all |x| < 2^E at all workers. With n workers and
``k = width - 2 - ceil(log2 n) - E`` the integers ``rint(x 2^k)`` of n workers cannot overflow, and
their sum is at most ``n / 2 * 2^-k`` from the exact one: 2^-25 of the largest element for eight
workers and 32 bits (float32 alone: 2^-24), 2^-9 for 16 bits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fared.extensions.ina.slots.packet import NOT_FINITE, DataType

ALL_ZERO = -32768
"""Exponent of a chunk that has only zeros."""
_WIDTHS = {DataType.INT32: 32, DataType.INT16: 16}
_MOST_SHIFT = 126
_USUAL = 100
"""Exponents up to this, and from minus this on, need no care: all scales are normal floats."""

Floats = NDArray[np.float32]


def exponents(values: Floats, count: int) -> NDArray[np.int32]:
    """Return the exponent of each chunk of ``count`` values; the last chunk may be shorter."""
    starts = np.arange(0, len(values), count)
    if not len(starts):
        return np.zeros(0, np.int32)
    largest = np.maximum.reduceat(np.abs(values), starts)
    found = np.frexp(largest)[1].astype(np.int32)
    found[largest == 0] = ALL_ZERO
    found[~np.isfinite(largest)] = NOT_FINITE
    return found


def shift_of(exponent: int, workers: int, data_type: DataType) -> int:
    """Return k, by which values are scaled."""
    return _WIDTHS[data_type] - 2 - (workers - 1).bit_length() - exponent


def quantise(
    values: Floats, exponent: int, workers: int, data_type: DataType = DataType.INT32
) -> NDArray[np.int32] | NDArray[np.int16]:
    """Return the integers of one chunk; zeros if it is all zero or not finite."""
    if exponent in (ALL_ZERO, NOT_FINITE):
        return np.zeros(len(values), data_type.dtype)
    scaled = np.ldexp(values.astype(np.float64), shift_of(exponent, workers, data_type))
    np.rint(scaled, out=scaled)
    return scaled.astype(data_type.dtype)


def restore(
    sums: NDArray[np.int32] | NDArray[np.int16],
    exponent: int,
    workers: int,
    data_type: DataType = DataType.INT32,
) -> Floats:
    """Return the sums of one chunk as floats; NaN if a value of a worker was not finite."""
    if exponent == NOT_FINITE:
        return np.full(len(sums), np.nan, np.float32)
    if exponent == ALL_ZERO:
        return np.zeros(len(sums), np.float32)
    with np.errstate(over="ignore"):  # n finite values may add up to infinity
        exact = np.ldexp(sums.astype(np.float64), -shift_of(exponent, workers, data_type))
        return exact.astype(np.float32)


def scale_of(exponent: int, workers: int, data_type: DataType) -> np.float64:
    """Return what one unit of a sum is worth; 0 for a chunk of zeros."""
    if exponent == ALL_ZERO:
        return np.float64(0.0)
    return np.float64(math.ldexp(1.0, -shift_of(exponent, workers, data_type)))


def fast_scales(
    exponents_: NDArray[np.int32], workers: int, data_type: DataType
) -> list[np.float32 | None]:
    """Return what one unit of each chunk's sums is worth, if float32 is exact enough; else None.

    A sum as float32 times a power of two is rounded once, like the exact product, unless it is
    subnormal; and no sum of a usual exponent is infinite.
    """
    usual = np.abs(exponents_) <= _USUAL
    shifts = np.where(usual, exponents_ - shift_of(0, workers, data_type), 0)
    scales = np.ldexp(np.float32(1), shifts.astype(np.int32))
    return [scale if fits else None for scale, fits in zip(scales, usual.tolist(), strict=True)]


def quantised(
    values: Floats,
    exponents_: NDArray[np.int32],
    count: int,
    workers: int,
    data_type: DataType = DataType.INT32,
) -> NDArray[np.int32] | NDArray[np.int16]:
    """Return the integers of all chunks at once: the same as ``quantise`` of each.

    The scaled values are below 2^30, so float32 holds them exactly.
    """
    usable = (exponents_ != ALL_ZERO) & (exponents_ != NOT_FINITE)
    shifts = np.where(usable, shift_of(0, workers, data_type) - exponents_, 0).astype(np.int32)
    whole = len(values) // count
    found = np.zeros(len(values), data_type.dtype)
    for part, shift, valid in (
        (slice(0, whole * count), shifts[:whole], usable[:whole]),
        (slice(whole * count, None), shifts[whole:], usable[whole:]),
    ):
        if not len(shift):
            continue
        rows = values[part].reshape(len(shift), -1)
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = _scaled(rows, shift)
            if not valid.all():
                scaled[~valid] = 0
            np.rint(scaled, out=scaled)
            found[part] = scaled.reshape(-1).astype(data_type.dtype)
    return found


def _scaled(rows: Floats, shifts: NDArray[np.int32]) -> Floats:
    """Return rows times powers of two: as a product, which is fast, where these are normal."""
    if np.abs(shifts).max() < _MOST_SHIFT:
        found: Floats = rows * np.ldexp(np.float32(1), shifts)[:, np.newaxis]
    else:
        found = np.ldexp(rows, shifts[:, np.newaxis])
    return found
