"""The links of one router as the graph uses them: sorted, the noise of IEEE singles removed."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.ted.model import NodeBlock

_SIGNIFICANT_DIGITS = 7
_FEW_VALUES = 64


@dataclass(slots=True, eq=False)
class Rows:
    """The links of one router sorted by (neighbor, metric, local id); all arrays (K,).

    ``order`` maps the block's own order to this one, ``capacities`` and ``availables`` have
    float32 noise removed. ``doubtful``: some capacity is unknown; ``loaded``: some available
    bandwidth is told.
    """

    block: NodeBlock
    order: NDArray[np.int64]
    neighbors: NDArray[np.int64]
    metrics: NDArray[np.int64]
    local_ids: NDArray[np.int64]
    remote_ids: NDArray[np.int64]
    capacities: NDArray[np.float64]
    availables: NDArray[np.float64]
    doubtful: bool
    loaded: bool

    @classmethod
    def of(cls, block: NodeBlock) -> Self:
        """Sort the links of a block."""
        order = np.arange(len(block.neighbors))
        ints = (block.neighbors, block.metrics, block.local_ids, block.remote_ids)
        floats = (block.capacities, block.availables)
        if not (ints[0][1:] > ints[0][:-1]).all():  # else sorted as they are
            order = np.lexsort((block.local_ids, block.metrics, block.neighbors))
            ints = (ints[0][order], ints[1][order], ints[2][order], ints[3][order])
            floats = (floats[0][order], floats[1][order])
        neighbors, metrics, local_ids, remote_ids = ints
        capacities, availables = floats
        loaded = not np.isnan(availables).all()
        if loaded:
            capacities, availables = snap(np.stack((capacities, availables)))
        else:
            capacities = snap(capacities)
        return cls(
            block=block,
            order=order,
            neighbors=neighbors,
            metrics=metrics,
            local_ids=local_ids,
            remote_ids=remote_ids,
            capacities=capacities,
            availables=availables,
            doubtful=bool(np.isnan(capacities).any()),
            loaded=loaded,
        )

    def left(self) -> NDArray[np.float64]:
        """What is available (K,), all of the capacity where nothing is told; NaN unknown.

        How loaded the far direction is says nothing of this one.
        """
        if not self.loaded or self.availables is self.capacities:
            return self.capacities
        return np.where(np.isnan(self.availables), self.capacities, self.availables)

    def renew(self, block: NodeBlock) -> tuple[bool, bool]:
        """Take a block with the same links: whether capacities and availables are others now.

        Those that are the same as before stay the same array.
        """
        old, self.block = self.block, block
        before = self.capacities, self.availables
        self.capacities = _renewed(before[0], self.order, old.capacities, block.capacities)
        self.availables = _renewed(before[1], self.order, old.availables, block.availables)
        available = self.availables is not before[1]
        if available:
            self.loaded = not np.isnan(self.availables).all()
        return self.capacities is not before[0], available


def _renewed(
    kept: NDArray[np.float64],
    order: NDArray[np.int64],
    old: NDArray[np.float64],
    new: NDArray[np.float64],
) -> NDArray[np.float64]:
    """``kept`` itself if ``new`` says the same, else a copy that has what differs."""
    if same(old, new):
        return kept
    places = (new != old)[order].nonzero()[0]
    values = snap(new[order[places]])
    result = kept.copy()
    result[places] = values
    return kept if same(result, kept) else result


def same(old: NDArray[np.generic], new: NDArray[np.generic]) -> bool:
    """Whether two arrays of one type are equal bit by bit; for short ones the quickest way."""
    return old is new or old.tobytes() == new.tobytes()


def same_links(old: NodeBlock, new: NodeBlock) -> bool:
    """Whether only floats can differ; what is unknown must stay unknown, too."""
    return (
        old.transit == new.transit
        and old.network == new.network
        and same(old.neighbors, new.neighbors)
        and same(old.metrics, new.metrics)
        and same(old.local_ids, new.local_ids)
        and same(old.remote_ids, new.remote_ids)
        and (
            old.capacities is new.capacities
            or same(np.isnan(old.capacities), np.isnan(new.capacities))
        )
    )


def snap(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Remove the noise of IEEE singles: 49999998976 bytes/s was meant to be 400 Gb/s.

    Rounds to seven significant digits in bits/s, which is all a single holds.
    """
    if values.size > _FEW_VALUES:
        first = values.flat[0]
        if (values == first).all():
            return np.full(values.shape, _snapped(float(first)) if first > 0.0 else first)
        return _rounded(values)
    snapped = [_snapped(v) if v > 0.0 else v for v in values.ravel().tolist()]
    return np.array(snapped, np.float64).reshape(values.shape)


@functools.lru_cache(maxsize=1024)
def _snapped(value: float) -> float:
    """One value: a fabric has few different capacities, and changes come one by one."""
    if not math.isfinite(value):
        return value
    bits = value * 8.0
    exponent = math.floor(math.log10(bits)) - (_SIGNIFICANT_DIGITS - 1)
    coarse, fine = 10.0 ** max(exponent, 0), 10.0 ** max(-exponent, 0)
    return round(bits * fine / coarse) * coarse / fine / 8.0


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    bits = values * 8.0
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.floor(np.log10(bits)) - (_SIGNIFICANT_DIGITS - 1)
        coarse = np.power(10.0, np.maximum(exponent, 0.0))
        fine = np.power(10.0, np.maximum(-exponent, 0.0))
        snapped = np.rint(bits * fine / coarse) * coarse / fine / 8.0
    return np.where(np.isfinite(values) & (values > 0.0), snapped, values)
