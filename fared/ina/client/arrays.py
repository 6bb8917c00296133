"""Arrays as chunks, and results back in place.

Integers travel as they are, floats as block fixed point (``fared.ina.slots.numbers``): first the
exponents of all chunks, as a maximum, then the sums. The caller's array may be changed as soon as a
call returns, but a new epoch may need its chunks once more: so they are copies. Each is made when
the chunk is sent, so that the first ones are on their way while others are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fared.ina.slots.numbers import Floats, exponents, quantised, scale_of
from fared.ina.slots.packet import NOT_FINITE, DataType, Op, Values
from fared.ina.slots.worker import Source

Array = NDArray[Any]
"""Of int32 or float32."""
Chunk = tuple[Source, DataType, Op, int]
"""Source of the values, type, operation and exponent, as ``WorkerMachine.put`` takes them."""


class Call:
    """The chunks of some arrays in one pass; ``store`` takes the result of each."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []
        self._stores: list[Callable[[Values], None]] = []

    def add(self, chunk: Chunk, store: Callable[[Values], None]) -> None:
        """Add a chunk."""
        self.chunks.append(chunk)
        self._stores.append(store)

    def store(self, place: int, values: Values) -> None:
        """Store the result of a chunk."""
        self._stores[place](values)


def integers(call: Call, array: NDArray[np.int32], op: Op, payload: int) -> None:
    """Add an array of integers, whose sums wrap as in MPI."""
    _add_exact(call, _flat(array), DataType.INT32, op, payload)


def extremes(call: Call, array: Floats, op: Op, payload: int) -> None:
    """Add an array of floats for a maximum or minimum, which is exact in any order."""
    _add_exact(call, _flat(array), DataType.FLOAT32, op, payload)


def _add_exact(call: Call, flat: Array, data_type: DataType, op: Op, payload: int) -> None:
    for part in _parts(len(flat), payload // 4):
        target = flat[part]
        call.add((partial(target.astype, data_type.dtype), data_type, op, 0), _copier(target))


class FloatSum:
    """An array of floats: ``exponents`` go first, in a call of their own, then ``add``."""

    def __init__(self, array: Floats, workers: int, data_type: DataType, payload: int) -> None:
        self._flat = _flat(array)
        self._workers, self._type = workers, data_type
        self._count = payload // data_type.dtype.itemsize
        self.exponents = exponents(self._flat, self._count)

    def add(self, call: Call) -> None:
        """Add the chunks; ``exponents`` are now those of all workers."""
        for at, part in enumerate(_parts(len(self._flat), self._count)):
            target, exponent = self._flat[part], int(self.exponents[at])
            source = partial(
                quantised, target, self.exponents[at : at + 1], len(target), self._workers,
                self._type,
            )  # fmt: skip
            call.add((source, self._type, Op.SUM, exponent), self._restorer(target, exponent))

    def _restorer(self, target: Floats, exponent: int) -> Callable[[Values], None]:
        if exponent == NOT_FINITE:
            return lambda _: target.fill(np.nan)
        scale = scale_of(exponent, self._workers, self._type)

        def store(values: Values) -> None:
            with np.errstate(over="ignore"):  # n finite values may add up to infinity
                np.multiply(values, scale, out=target, casting="same_kind")

        return store


def _flat(array: Array) -> Array:
    """Return the array as one row, without a copy. Raises ValueError if that is impossible."""
    flat = array.view()
    flat.shape = (array.size,)
    return flat


def _parts(size: int, count: int) -> Iterator[slice]:
    return (slice(at, min(size, at + count)) for at in range(0, size, count))


def _copier(target: Array) -> Callable[[Values], None]:
    def store(values: Values) -> None:
        target[:] = values

    return store
