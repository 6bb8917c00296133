"""How two descriptions of one router differ, for people: what a change was, in words later.

Rows are compared as arrays first, so that one changed bandwidth of 512 links costs no walk over
them. A link exists where both ends list it; ``links_between`` counts those of a pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from fared.core.ids import NodeId
from fared.paths.ted.compare import same_delays
from fared.paths.ted.model import longest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fared.paths.ted.model import NodeBlock


class Difference(msgspec.Struct, frozen=True):
    """One value of a router's links to ``end`` that differs: ``what`` and both values.

    ``links`` counts those that the router lists; ``capacity`` and ``available`` are the sum of
    parallel links, bytes/s, NaN where unknown; ``metric`` is the least.
    """

    end: NodeId
    what: str
    before: float
    after: float


class _Joint(msgspec.Struct, frozen=True):
    links: int
    metric: float
    capacity: float
    available: float
    delay: float


_NONE = _Joint(0, np.nan, np.nan, np.nan, np.nan)


def differences(before: NodeBlock, after: NodeBlock) -> Iterator[Difference]:
    """Yield what differs of the links to each neighbor; of links that came or went their number.

    What is available follows a capacity, so it is told only where this is the same.
    """
    ends = _differing(before, after)
    if ends is None:
        return
    old, new = _by_end(before, ends), _by_end(after, ends)
    for end in sorted(old.keys() | new.keys()):
        was, now = old.get(end, _NONE), new.get(end, _NONE)
        if was.links != now.links:
            yield Difference(end, "links", was.links, now.links)
            continue
        differ = [
            Difference(end, what, a, b)
            for what in ("metric", "capacity", "available", "delay")
            if (a := getattr(was, what)) != (b := getattr(now, what))
            and not (np.isnan(a) and np.isnan(b))
        ]
        capacity = any(each.what == "capacity" for each in differ)
        yield from (each for each in differ if not (capacity and each.what == "available"))


def links_between(a: NodeBlock | None, b: NodeBlock | None) -> int:
    """Count the links that both routers list; None: a router that is not in the database."""
    if a is None or b is None:
        return 0
    there = int(np.count_nonzero(a.neighbors == b.node))
    return min(there, int(np.count_nonzero(b.neighbors == a.node))) if there else 0


def _differing(before: NodeBlock, after: NodeBlock) -> set[int] | None:
    """Return the neighbors whose rows may differ; None: no row does."""
    same = np.array_equal(before.neighbors, after.neighbors)
    if not same or not np.array_equal(before.local_ids, after.local_ids):
        return {*before.neighbors.tolist(), *after.neighbors.tolist()}
    rows = before.metrics != after.metrics
    rows |= _other(before.capacities, after.capacities)
    rows |= _other(before.availables, after.availables)
    if not same_delays(before, after):
        rows |= _other(before.each_delay(), after.each_delay())
    return set(before.neighbors[rows].tolist()) or None


def _other(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (a != b) & ~(np.isnan(a) & np.isnan(b))
    return found


def _by_end(block: NodeBlock, ends: set[int]) -> dict[NodeId, _Joint]:
    found: dict[NodeId, _Joint] = {}
    columns = (
        block.neighbors,
        block.metrics,
        block.capacities,
        block.availables,
        block.each_delay(),
    )
    for end, *values in zip(*(c.tolist() for c in columns), strict=True):
        if end in ends:
            known = found.get(NodeId(end))
            row = _Joint(1, *values)
            found[NodeId(end)] = row if known is None else _joined(known, row)
    return found


def _joined(a: _Joint, b: _Joint) -> _Joint:
    least = min(a.metric, b.metric)
    capacity, available = a.capacity + b.capacity, a.available + b.available
    return _Joint(a.links + b.links, least, capacity, available, longest(a.delay, b.delay))
