"""How TE link sub-TLVs encode attributes, and how blocks of sub-TLVs are recognized.

RFC 3630 and RFC 5305 define the same attributes, RFC 7471 and RFC 8570 the same measured values,
nearly all of them encoded identically in OSPF and IS-IS.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

import msgspec

from fared.core.wire import U24, Format

MAX_24_BITS: Final = 0xFFFFFF
_LOSS_UNIT: Final = 0.000003  # per cent (RFC 7471 §4.4.3)
_PAIR = struct.Struct(">II")
_EIGHT = struct.Struct(">8f")


class SubTlv(msgspec.Struct, frozen=True):
    """The sub-TLV of an attribute: its type in OSPF and in IS-IS, and the format of its value.

    ``a_bit``: its first bit tells that the value exceeds its configured threshold (RFC 7471
    §4.1.1). ``in_isis``: the format in IS-IS if it is another one.
    """

    ospf: int
    isis: int
    format: Format
    a_bit: bool = False
    in_isis: Format | None = None


def _delay_of(word: int) -> int:
    """A delay without A bit and reserved bits."""
    return word & MAX_24_BITS


def _clipped(value: int) -> int:
    """The value, or the largest that can be expressed (RFC 7471 §4.1.3, §4.4.3)."""
    return min(value, MAX_24_BITS)


def _delays_of(value: bytes) -> tuple[int, int]:
    low, high = _PAIR.unpack(value)
    return low & MAX_24_BITS, high & MAX_24_BITS


METRIC_24: Final = Format(U24.item, U24.read, lambda value: _clipped(value).to_bytes(3, "big"))
"""RFC 5305 §3.7."""
EIGHT_FLOATS: Final = Format("32s", _EIGHT.unpack, lambda values: _EIGHT.pack(*values))
"""Bytes/s for each priority."""
MICROSECONDS: Final = Format("I", _delay_of, _clipped)
MIN_MAX: Final = Format("8s", _delays_of, lambda pair: _PAIR.pack(*map(_clipped, pair)))
"""Two delays, microseconds (RFC 7471 §4.2)."""
LOSS: Final = Format(
    "I",
    lambda word: (word & MAX_24_BITS) * _LOSS_UNIT,
    lambda loss: _clipped(round(loss / _LOSS_UNIT)),
)
"""Per cent, up to 50.33 (RFC 7471 §4.4)."""


class Layout:
    """One order of sub-TLVs, by which blocks are recognized: their sizes and headers are equal.

    A block has this layout if its size is equal and its bytes under ``mask`` are ``headers``.
    ``parts`` are the constant bytes, each with the number of bytes of the value that follows.
    """

    __slots__ = ("headers", "mask", "size")

    def __init__(self, parts: Iterable[tuple[bytes, int]]) -> None:
        parts = list(parts)  # a tuple of a generator would stay (``startup.empty_free_lists``)
        mask = b"".join(b"\xff" * len(fixed) + bytes(free) for fixed, free in parts)
        self.size = len(mask)
        self.mask = int.from_bytes(mask, "big")
        self.headers = int.from_bytes(b"".join(fixed + bytes(free) for fixed, free in parts), "big")

    def fits(self, block: bytes) -> bool:
        """Whether a block has this layout."""
        return len(block) == self.size and int.from_bytes(block, "big") & self.mask == self.headers
