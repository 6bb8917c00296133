"""Bit strings: which BFR-id has which bit of which set (RFC 8279 §3).

A bit string is an integer here. BFR-id 1 is the lowest bit, in print and on the wire the rightmost
one; a BFR-id above the length of the bit string has its bit in a further set (SI).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def place(bfr_id: int, length: int) -> tuple[int, int]:
    """Return the set and the bit of a BFR-id, the bit as a bit string with only that one.

    RFC 8279 §3: the set is the quotient, the bit the remainder of BFR-id - 1 by the length.
    """
    set_id, bit = divmod(bfr_id - 1, length)
    return set_id, 1 << bit


def bit_strings(bfr_ids: Iterable[int], length: int) -> dict[int, int]:
    """Return the bit string of each set, by set, that BFR-ids have together."""
    found: dict[int, int] = {}
    for bfr_id in bfr_ids:
        set_id, bit = place(bfr_id, length)
        found[set_id] = found.get(set_id, 0) | bit
    return found


def bfr_ids(bit_string: int, length: int, set_id: int = 0) -> Iterator[int]:
    """Yield the BFR-ids of a bit string of a set, ascending."""
    first = set_id * length
    while bit_string:
        lowest = bit_string & -bit_string
        yield first + lowest.bit_length()
        bit_string ^= lowest


def as_ranges(numbers: Iterable[int]) -> str:
    """Return numbers in ascending order as text, ``1-4,7``."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in runs)
