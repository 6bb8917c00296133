"""Packets of a train that are alike: what has been tested of one holds for the others.

A train is packets of one sender that came together. Nearly all of them differ from packets before
in sequence, exponent and control sum only, so these three are all that is read of their headers.

A fast path beside ``packet.decode_header`` and the tests of each packet: tests/ina/test_alike.py
proves them equal; row ``aggregation: packets of a train``.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from fared.extensions.ina.slots.packet import CHANGING, LENGTH_AT, USUAL_LENGTH, USUAL_SIZE, Buffer

_Meaning = TypeVar("_Meaning")
_MOST = 1024

Changing = tuple[int, int, int]
"""Sequence, exponent, control sum."""


class Alike(Generic[_Meaning]):
    """What headers mean, by sender and by the octets that packets have in common.

    Only headers with a bit string of 64 bits are known.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, bytes, bytes, int, bytes], tuple[_Meaning, int]] = {}

    def clear(self) -> None:
        """Forget all: they meant that in another epoch."""
        self._known.clear()

    def remember(self, sender: Hashable, data: Buffer, meaning: _Meaning) -> None:
        """Note what a packet means that has passed all tests; so will others like it."""
        if len(data) < USUAL_SIZE or data[LENGTH_AT] != USUAL_LENGTH:
            return
        before, _, shape, _, receiver, _, bits = CHANGING.unpack_from(data)
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[sender, before, shape, receiver, bits] = meaning, len(data)

    def first(
        self, sender: Hashable, train: Buffer, at: int, step: int
    ) -> tuple[_Meaning | None, list[Changing]]:
        """Return what the packets of a train mean that are alike from ``at`` on.

        Their sequences are consecutive. None: the first one is not known.
        """
        end = len(train)
        if end - at < USUAL_SIZE:
            return None, []
        unpack = CHANGING.unpack_from
        before, sequence, shape, exponent, receiver, control, bits = unpack(train, at)
        meaning, size = self._known.get((sender, before, shape, receiver, bits), (None, 0))
        if meaning is None or size != min(step, end - at):
            return None, []
        found = [(sequence, exponent, control)]
        for place in range(at + step, end - step + 1, step):
            then, following, form, exponent, to, control, also = unpack(train, place)
            sequence += 1
            if following != sequence or then != before or form != shape or also != bits:
                break
            if to != receiver:
                break
            found.append((sequence, exponent, control))
        return meaning, found
