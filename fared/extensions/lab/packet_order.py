"""Reordering of packets with sequence numbers: the metrics of RFC 4737 and RFC 5236.

``traffic`` numbers the packets of each UDP flow and notes the order of their arrival; this module,
which is pure, computes from that order what a receiver must bear. Numbers that arrive again are
dropped first (RFC 4737 §3.1), and lost packets count for nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

DUPLICATE_ACKS = 3
"""RFC 5681 §3.2: with so many, TCP without SACK and RACK takes a packet for lost."""


@dataclass(frozen=True)
class PacketOrder:
    """Order of arrival of packets, of one flow or of several together.

    ``reordered`` packets arrived after one that was sent later (RFC 4737 §3.3). The extent of a
    reordered packet is its distance from the earliest such arrival (§4.2.2). A packet is
    ``n_reordered`` if the last three arrivals before it all were sent later (§5.2, n = 3).
    ``buffer`` is the largest number of packets that a receiver holds to deliver all in order
    (RFC 5236 §4).
    """

    received: int = 0
    duplicates: int = 0
    reordered: int = 0
    n_reordered: int = 0
    mean_extent: float = 0.0
    extent: int = 0
    buffer: int = 0

    @property
    def ratio(self) -> float:
        """The part of the packets that is reordered (RFC 4737 §4.1), 0 to 1."""
        return self.reordered / self.received if self.received else 0.0


def packet_order(arrivals: Iterable[int]) -> PacketOrder:
    """Return the order of one flow from its sequence numbers, as they arrived."""
    numbers = list(arrivals)
    first = list(dict.fromkeys(numbers))
    extents = _extents(first)
    return PacketOrder(
        received=len(first),
        duplicates=len(numbers) - len(first),
        reordered=len(extents),
        n_reordered=sum(degree >= DUPLICATE_ACKS for degree in _degrees(first)),
        mean_extent=sum(extents) / len(extents) if extents else 0.0,
        extent=max(extents, default=0),
        buffer=_buffer(first),
    )


def together(orders: Iterable[PacketOrder]) -> PacketOrder:
    """Return the order of several flows: sums, and the largest extent and buffer of any."""
    known = list(orders)
    reordered = sum(one.reordered for one in known)
    extents = sum(one.mean_extent * one.reordered for one in known)
    return PacketOrder(
        received=sum(one.received for one in known),
        duplicates=sum(one.duplicates for one in known),
        reordered=reordered,
        n_reordered=sum(one.n_reordered for one in known),
        mean_extent=extents / reordered if reordered else 0.0,
        extent=max((one.extent for one in known), default=0),
        buffer=max((one.buffer for one in known), default=0),
    )


def _extents(numbers: Sequence[int]) -> list[int]:
    """Return the extent of each reordered packet: RFC 4737 §4.2.2, i - j for the smallest j."""
    highest: list[int] = []
    places: list[int] = []
    found = []
    for place, number in enumerate(numbers):
        if not highest or number > highest[-1]:
            highest.append(number)
            places.append(place)
        else:
            found.append(place - places[bisect_right(highest, number)])
    return found


def _degrees(numbers: Sequence[int]) -> list[int]:
    """Return for each packet how many arrivals right before it were all sent later."""
    earlier: list[int] = []
    found = []
    for place, number in enumerate(numbers):
        while earlier and numbers[earlier[-1]] > number:
            earlier.pop()
        found.append(place - 1 - (earlier[-1] if earlier else -1))
        earlier.append(place)
    return found


def _buffer(numbers: Sequence[int]) -> int:
    """Return the most packets held at once; lost packets have no place in the order."""
    rank = {number: place for place, number in enumerate(sorted(numbers))}
    held: set[int] = set()
    expected = most = 0
    for number in numbers:
        held.add(rank[number])
        while expected in held:
            held.remove(expected)
            expected += 1
        most = max(most, len(held))
    return most
