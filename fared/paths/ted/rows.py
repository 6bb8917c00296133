"""The links of one router in the form the graph uses: sorted, float32 noise removed."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Self

import msgspec
import numpy as np

from fared.paths.ted.graph import anywhere

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.paths.ted.model import NodeBlock

_SIGNIFICANT_DIGITS = 7
_FEW_VALUES = 64


class LinkRows(msgspec.Struct, eq=False):
    """The links of one router sorted by (neighbor, metric, local id); all arrays (K,).

    ``order`` maps the block's own order to this one, None if it is the same; ``capacities`` and
    ``availables`` have float32 noise removed. ``unknown``: the number of links of unknown capacity,
    ``advertised``: of those with an available bandwidth. ``version``: the first version of the
    graph with these rows.
    """

    block: NodeBlock
    order: NDArray[np.int64] | None
    neighbors: NDArray[np.int64]
    metrics: NDArray[np.int64]
    local_ids: NDArray[np.int64]
    remote_ids: NDArray[np.int64]
    capacities: NDArray[np.float64]
    availables: NDArray[np.float64]
    unknown: int
    advertised: int
    version: int = 0
    """The inverse of ``order``, made at first use."""

    @property
    def has_unknown_capacity(self) -> bool:
        """Whether the capacity of some link is unknown."""
        return self.unknown > 0

    def lists(self, node: int) -> bool:
        """Whether any of these links leads to a node."""
        place = int(self.neighbors.searchsorted(node))
        return place < len(self.neighbors) and self.neighbors.item(place) == node

    @classmethod
    def of(cls, block: NodeBlock) -> Self:
        """Sort the links of a block."""
        order = None
        ints = (block.neighbors, block.metrics, block.local_ids, block.remote_ids)
        floats = (block.capacities, block.availables)
        if anywhere(ints[0][1:] <= ints[0][:-1]):  # else they are sorted already
            order = np.lexsort((block.local_ids, block.metrics, block.neighbors))
            ints = (ints[0][order], ints[1][order], ints[2][order], ints[3][order])
            floats = (floats[0][order], floats[1][order])
        neighbors, metrics, local_ids, remote_ids = ints
        capacities, availables = floats
        advertised = _known(availables)
        capacities = snap(capacities)
        availables = snap(availables) if advertised else availables.copy()
        return cls(
            block=block,
            order=order,
            neighbors=neighbors,
            metrics=metrics,
            local_ids=local_ids,
            remote_ids=remote_ids,
            capacities=capacities,
            availables=availables,
            unknown=_unknown(capacities),
            advertised=advertised,
        )

    def left(self) -> NDArray[np.float64]:
        """Return the available bandwidth (K,), the capacity where none is advertised; NaN unknown.

        The load of the opposite direction is not used: the two are independent.
        """
        if not self.advertised or self.availables is self.capacities:
            return self.capacities
        return np.where(np.isnan(self.availables), self.capacities, self.availables)

    @property
    def delays(self) -> NDArray[np.float64] | None:
        """The delay of each link (K,), microseconds, NaN unknown; None: no link has one."""
        delays = self.block.delays
        return delays if delays is None or self.order is None else delays[self.order]

    def renew(self, block: NodeBlock) -> tuple[bool, bool]:
        """Take a block with the same links; return whether capacities, availables changed.

        An array that did not change stays the same object.
        """
        old, self.block = self.block, block
        before = self.capacities, self.availables
        self.capacities = _renewed(before[0], self.order, old.capacities, block.capacities)
        self.availables = _renewed(before[1], self.order, old.availables, block.availables)
        available = self.availables is not before[1]
        if available:
            self.advertised = _known(self.availables)
        return self.capacities is not before[0], available


def _unknown(values: NDArray[np.float64]) -> int:
    # A sum of squares is NaN only if a value is: as nearly never, and sooner told than for each.
    if not math.isnan(values.dot(values)):
        return 0
    return len(values) - _known(values)


def _known(values: NDArray[np.float64]) -> int:
    return np.isnan(values).tobytes().count(0)


def _renewed(
    kept: NDArray[np.float64],
    order: NDArray[np.int64] | None,
    old: NDArray[np.float64],
    new: NDArray[np.float64],
) -> NDArray[np.float64]:
    """``kept`` itself if ``new`` equals ``old``, else a copy with the new values."""
    if same(old, new):
        return kept
    differ = new != old
    places = (differ if order is None else differ[order]).nonzero()[0]
    values = snap(new[places if order is None else order[places]])
    result = kept.copy()
    result[places] = values
    return kept if same(result, kept) else result


def same(old: NDArray[np.generic], new: NDArray[np.generic]) -> bool:
    """Whether two arrays of one type are equal bit by bit; quickest for short ones."""
    return old is new or old.tobytes() == new.tobytes()


def same_links(old: NodeBlock, new: NodeBlock) -> bool:
    """Whether only known capacities can differ; unknown ones must be unknown in both."""
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
    """Remove the noise of IEEE single floats: 49999998976 bytes/s stands for 400 Gb/s.

    Rounds to seven significant digits in bits/s, the precision of a single.
    """
    if values.size > _FEW_VALUES:
        first = values.flat[0]
        if not anywhere(values != first):
            return np.full(values.shape, snapped(float(first)) if first > 0.0 else first)
        return _rounded(values)
    single = [snapped(v) if v > 0.0 else v for v in values.ravel().tolist()]
    return np.array(single, np.float64).reshape(values.shape)


@functools.lru_cache(maxsize=1024)
def snapped(value: float) -> float:
    """``snap`` of one value, cached: a fabric has few capacities, and changes come one by one."""
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
