"""Forwarding of one packet by a table: RFC 8279 §6.5, the reference for the rules in the kernel."""

from __future__ import annotations

from typing import NamedTuple

from fared.paths.bier.bift import BiftTable
from fared.paths.bier.birt import BfrNeighbor


class Forwarded(NamedTuple):
    """What becomes of a packet: the bit string of each copy, and the bits of other kinds.

    ``local``: bits of this router, for which it delivers the payload once. ``lost``: bits without
    an entry.
    """

    copies: tuple[tuple[BfrNeighbor, int], ...]
    local: int
    lost: int


def forward(table: BiftTable, bit_string: int) -> Forwarded:
    """Forward a packet; the copies are in the order of their lowest bits."""
    local = bit_string & table.local  # RFC 8279 §6.5 step 3: this router is the BFER
    left = bit_string ^ local
    copies: list[tuple[BfrNeighbor, int]] = []
    lost = 0
    while left:
        lowest = left & -left  # step 2: the next bit
        found = next(((n, mask) for n, mask in table.masks if mask & lowest), None)
        if found is None:
            lost |= lowest
            left ^= lowest
            continue
        neighbor, mask = found
        copies.append((neighbor, left & mask))  # steps 5 and 7: the copy has the bits of the F-BM
        left &= ~mask  # step 6: and the packet has them no more
    return Forwarded(tuple(copies), local, lost)
