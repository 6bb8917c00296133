"""The neighbors that take part in flooding, as bits of bitmaps.

A fabric's router floods each LSA to tens or hundreds of neighbors. So the set of neighbors that an
LSA is to be sent to, or that have not acknowledged it, is one integer: a bit for each neighbor.
"""

from __future__ import annotations

from collections.abc import Iterator

from fared.protocols.ospf.interface import Neighbor


class Participants:
    """The neighbors in state Exchange or greater (RFC 2328 §13.3 (1)(a)), each with its bit.

    ``version`` changes with everything that bitmaps may be derived from: participants, their
    states, the settings of their interfaces. ``on_lans``: those on broadcast networks, where what
    is flooded to one is flooded to all.
    """

    def __init__(self) -> None:
        self.version = 0
        self.on_lans = 0
        self._by_bit: list[Neighbor | None] = []

    def changed(self) -> None:
        """State or settings of a participant have changed, or may have."""
        self.version += 1

    def admit(self, neighbor: Neighbor) -> None:
        """Give a neighbor the lowest free bit."""
        if neighbor.bit:
            return
        if None in self._by_bit:
            at = self._by_bit.index(None)
            self._by_bit[at] = neighbor
        else:
            at = len(self._by_bit)
            self._by_bit.append(neighbor)
        neighbor.bit = 1 << at
        if neighbor.interface.broadcast:
            self.on_lans |= neighbor.bit
        self.version += 1

    def dismiss(self, neighbor: Neighbor) -> None:
        """Free the bit of a neighbor; no bitmap may have it any more."""
        if not neighbor.bit:
            return
        self._by_bit[neighbor.bit.bit_length() - 1] = None
        self.on_lans &= ~neighbor.bit
        neighbor.bit = 0
        self.version += 1

    def of(self, bitmap: int) -> Iterator[Neighbor]:
        """The neighbors of a bitmap."""
        while bitmap:
            bit = bitmap & -bitmap
            bitmap ^= bit
            neighbor = self._by_bit[bit.bit_length() - 1]
            if neighbor is not None:
                yield neighbor

    def __iter__(self) -> Iterator[Neighbor]:
        return (neighbor for neighbor in self._by_bit if neighbor is not None)
