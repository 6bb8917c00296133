"""Packets that wait in a ``Burst``, in portions, and what they count for."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from fared.protocols.igp.events import PacketsReceived, Received

Portion = tuple[str, list[Received]]
"""Packets of a protocol that arrived one after another."""
_OVERHEAD = 128
"""Bytes that take about the time of a packet without contents."""
_RUN, _COPY = 16, 4
"""The same of copies that came together, and of each of them: the first instance takes the time."""


class Waiting(msgspec.Struct):
    """A portion that waits.

    Most have the packets of many interfaces: with a portion for each read of a socket, the portions
    of a flood of copies would take more time than the copies.
    """

    proto: str
    packets: list[Received]
    size: int
    """Bytes that stand for the time of the packets."""
    number: int
    counted: int
    """Packets, of which a slice has a limited number; of copies that came together half as many."""

    @classmethod
    def of(cls, proto: str, packets: list[Received]) -> Waiting:
        """The portion of some packets."""
        size = number = counted = 0
        for one in packets:
            if isinstance(one, PacketsReceived):
                copies = len(one.payloads)
                size += _RUN + _COPY * copies
                number += copies
                counted += (copies + 1) // 2
            else:
                size += len(one.payload) + _OVERHEAD
                number += 1
                counted += 1
        return cls(proto, packets, size, number, counted)

    def append(self, other: Waiting) -> None:
        """Add the packets of another portion of the protocol."""
        self.packets += other.packets
        self.size += other.size
        self.number += other.number
        self.counted += other.counted

    def take_first(self, size: float, least: int, most: int) -> Waiting:
        """Take off the first packets: of this size, but at least and at most so many."""
        some = Waiting(self.proto, [], 0, 0, 0)
        for packet in self.packets:
            if some.counted >= most or (some.size >= size and some.counted >= least):
                break
            some.append(Waiting.of(self.proto, [packet]))
        self.packets = self.packets[len(some.packets) :]
        self.size -= some.size
        self.number -= some.number
        self.counted -= some.counted
        return some


def size_of(portions: Sequence[Portion]) -> int:
    """Bytes that stand for the time of all packets."""
    return sum([Waiting.of(proto, packets).size for proto, packets in portions])
