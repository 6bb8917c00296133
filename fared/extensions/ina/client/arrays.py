"""Arrays as chunks, and results back in place.

Integers travel as they are, floats as block fixed point (``slots.numbers``): first the
exponents of all chunks, as a maximum, then the sums. The caller's array may be changed as soon as a
call returns, but a new epoch may need its chunks once more: so they are copies. Some chunks at a
time are copied when the first of them is sent, so that the first ones are on their way while others
are copied.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fared.extensions.ina.slots.chunks import Input
from fared.extensions.ina.slots.numbers import Floats, exponents, fast_scales, quantised, scale_of
from fared.extensions.ina.slots.packet import (
    NOT_FINITE,
    DataType,
    Op,
    Values,
    controls_of,
    types_of,
)

Array = NDArray[Any]
"""Of int32 or float32."""
_AT_ONCE = 16
"""Chunks that are copied together: a call of NumPy takes as long as the copy of one of them."""


class ArrayPart(Protocol):
    """The chunks of one array in a call, a ``Part`` as the machine takes it."""

    count: int
    receiver: int

    def made(self, at: int) -> Input:
        """Return chunk ``at``, with its neighbors as it is now."""

    def store(self, at: int, values: Values) -> None:
        """Store the result of a chunk."""


class Call:
    """The chunks of some arrays in one pass, array after array.

    Only the worker ``receiver`` gets the results, by BFR-id; 0: all get them.
    """

    def __init__(self, receiver: int = 0) -> None:
        self.parts: list[ArrayPart] = []
        self._receiver = receiver

    def add(self, part: ArrayPart) -> None:
        """Add the chunks of an array."""
        part.receiver = self._receiver
        if part.count:
            self.parts.append(part)


class _ChunkedArray:
    """An array in chunks of ``count`` values, the last of which may be shorter."""

    def __init__(self, flat: Array, count: int, data_type: DataType, op: Op) -> None:
        self.flat, self.size, self.receiver = flat, count, 0
        self.count = -(-len(flat) // count)
        self._type, self._op = data_type, op
        self._made: dict[int, Input] = {}

    def made(self, at: int) -> Input:
        """Return chunk ``at``, with its neighbors as it is now."""
        found = self._made.pop(at, None)
        if found is None:
            self._make(at - at % _AT_ONCE)
            found = self._made.pop(at)
        return found

    def _make(self, first: int) -> None:
        end = min(self.count, first + _AT_ONCE)
        copy = self.copied(first, end)
        whole = len(copy) // self.size
        rows = copy[: whole * self.size].reshape(whole, self.size)
        sums = self._op is Op.SUM
        controls = controls_of(rows) if sums else [0] * whole
        types, size = types_of(self._type, self._op), self.size * self._type.dtype.itemsize
        for place, control in enumerate(controls):
            at = first + place
            self._made[at] = Input(
                rows[place], types, size, self.exponent(at), control, self.receiver
            )
        if first + whole < end:
            rest = copy[whole * self.size :]
            self._made[end - 1] = Input.of(
                rest, self._type, self._op, self.exponent(end - 1), self.receiver
            )

    def target(self, at: int) -> Array:
        """Return the place of a chunk in the array."""
        return self.flat[at * self.size : (at + 1) * self.size]

    def exponent(self, at: int) -> int:
        """Return the exponent of a chunk."""
        del at
        return 0

    def copied(self, first: int, end: int) -> Values:
        """Return the values of some chunks as they travel."""
        raise NotImplementedError


class _Exact(_ChunkedArray):
    """Values that travel as they are."""

    def copied(self, first: int, end: int) -> Values:
        found: Values = self.flat[first * self.size : end * self.size].astype(self._type.dtype)
        return found

    def store(self, at: int, values: Values) -> None:
        """Store the result of a chunk."""
        self.target(at)[:] = values


def integers(call: Call, array: NDArray[np.int32], op: Op, payload: int) -> None:
    """Add an array of integers, whose sums wrap as in MPI."""
    call.add(_Exact(_flat(array), payload // 4, DataType.INT32, op))


def exact_floats(call: Call, array: Floats, op: Op, payload: int) -> None:
    """Add an array of floats for a maximum or minimum, which is exact in any order, or a product.

    Factors have no common exponent, so products are rounded by each router that multiplies.
    """
    call.add(_Exact(_flat(array), payload // 4, DataType.FLOAT32, op))


class FloatSum(_ChunkedArray):
    """An array of floats: ``exponents`` go first, in a call of their own, then ``add``."""

    def __init__(self, array: Floats, workers: int, data_type: DataType, payload: int) -> None:
        super().__init__(_flat(array), payload // data_type.dtype.itemsize, data_type, Op.SUM)
        self._workers = workers
        self.exponents = exponents(self.flat, self.size)
        self._exponents: list[int] = []
        self._scales: list[np.float32 | None] = []

    def add(self, call: Call) -> None:
        """Add the chunks; ``exponents`` are now those of all workers."""
        self._exponents = self.exponents.tolist()
        self._scales = fast_scales(self.exponents, self._workers, self._type)
        call.add(self)

    def exponent(self, at: int) -> int:
        """Return the exponent of a chunk."""
        return self._exponents[at]

    def copied(self, first: int, end: int) -> Values:
        """Return the integers of some chunks."""
        values = self.flat[first * self.size : end * self.size]
        return quantised(values, self.exponents[first:end], self.size, self._workers, self._type)

    def store(self, at: int, values: Values) -> None:
        """Store the sums of a chunk as floats."""
        target, scale = self.target(at), self._scales[at]
        if scale is not None:
            target[:] = values
            np.multiply(target, scale, target)
        elif self._exponents[at] == NOT_FINITE:
            target.fill(np.nan)
        else:
            exact = scale_of(self._exponents[at], self._workers, self._type)
            with np.errstate(over="ignore"):  # n finite values may add up to infinity
                np.multiply(values, exact, out=target, casting="same_kind")


def _flat(array: Array) -> Array:
    """Return the array as one row, without a copy. Raises ValueError if that is impossible."""
    flat = array.view()
    flat.shape = (array.size,)
    return flat
