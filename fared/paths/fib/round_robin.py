"""Smooth weighted round robin: in which order packets take the next hops of a group.

At any point of the period each next hop has had its share of the packets, to less than one packet
(the chairman assignment problem: R. Tijdeman, Discrete Mathematics 32, 1980). In blocks, a fast
sender would fill the queue of one link after the other.
"""

from __future__ import annotations

import heapq
import math
from functools import lru_cache
from typing import TYPE_CHECKING

from fared.paths.weights.quantise import divide_buckets

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 512
"""Packets of a period, unless more are needed for four for each next hop. With D'Hondt's rounding
a share of n next hops is at most n / 512 of itself too small."""
_FOR_EACH = 4


def period_of(weights: Sequence[int]) -> tuple[int, ...]:
    """Return how many packets of a period each weight gets: exact if the period is not too long."""
    divisor = math.gcd(*weights) or 1
    counts = tuple(weight // divisor for weight in weights)
    longest = max(LONGEST, _FOR_EACH * len(counts))
    return counts if sum(counts) <= longest else divide_buckets(counts, longest)


@lru_cache(maxsize=4096)
def smooth(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of a period: position i has ``counts[i]`` places in it.

    Tijdeman's rule: the k-th packet (from 0) of a position may go from ``(k + d) / share`` on, and
    is due at ``(k + 1 - d) / share``, where d is 1 / (2n - 2) for n positions; of those that may go
    the one that is due first goes. Then no position ever deviates by more than 1 - d packets.
    """
    total = sum(counts)
    used = [position for position, count in enumerate(counts) if count]
    if len(used) <= 1:
        return tuple(used * total)
    unit = 2 * len(used) - 2  # in units of d everything is an integer
    waiting = [(_ceil(total, unit * counts[at]), at, 0) for at in used]
    heapq.heapify(waiting)
    ready: list[tuple[float, int, int]] = []
    order: list[int] = []
    for turn in range(1, total + 1):
        while waiting and waiting[0][0] <= turn:
            _, at, done = heapq.heappop(waiting)
            due = (done * unit + unit - 1) * total / (unit * counts[at])
            heapq.heappush(ready, (due, at, done))
        _, at, done = heapq.heappop(ready)
        order.append(at)
        done += 1
        if done < counts[at]:
            heapq.heappush(waiting, (_ceil((done * unit + 1) * total, unit * counts[at]), at, done))
    return tuple(order)


def _ceil(number: int, divisor: int) -> int:
    return -(-number // divisor)


def rotated(order: tuple[int, ...], phase: float) -> tuple[int, ...]:
    """Return a period that begins later by the part ``phase`` of it."""
    start = int(phase * len(order))
    return order[start:] + order[:start]
