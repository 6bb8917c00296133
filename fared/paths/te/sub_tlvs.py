"""Values of TE link sub-TLVs that OSPF and IS-IS encode identically.

RFC 3630 §2.5.6-2.5.8 and RFC 5305 §3.4-3.6 define the same three bandwidths, RFC 7471 §4 and RFC
8570 §4 the same seven measured values; both number them consecutively in the same order. So a
protocol passes the code point of the first value and adds its own type and length fields.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from fared.paths.te.attributes import TeAttributes

A_BIT: Final = 0x80000000
"""The measured value exceeds its configured threshold (RFC 7471 §4.1.1)."""
MAX_24_BITS: Final = 0xFFFFFF
_LOSS_UNIT: Final = 0.000003  # per cent (RFC 7471 §4.4.3)
_DELAY, _MIN_MAX_DELAY, _DELAY_VARIATION, _LOSS, _RESIDUAL, _AVAILABLE, _UTILIZED = range(7)
_MAXIMUM, _RESERVABLE, _UNRESERVED = range(3)

SubTlv = tuple[int, bytes]
"""Code point and value."""

WORD: Final = struct.Struct(">I")
PAIR: Final = struct.Struct(">II")
FLOAT: Final = struct.Struct(">f")
EIGHT_FLOATS: Final = struct.Struct(">8f")


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


def delay_of(word: int) -> int:
    """Return the microseconds of a delay or delay variation, A bit and reserved bits removed."""
    return word & MAX_24_BITS


def loss_of(word: int) -> float:
    """Return the per cent of packets lost, A bit and reserved bits removed."""
    return (word & MAX_24_BITS) * _LOSS_UNIT


def bandwidths(attributes: TeAttributes, first: int) -> Iterator[SubTlv]:
    """Yield maximum, maximum reservable and unreserved bandwidth, coded from ``first`` on."""
    if attributes.max_bandwidth is not None:
        yield first + _MAXIMUM, FLOAT.pack(attributes.max_bandwidth)
    if attributes.max_reservable_bandwidth is not None:
        yield first + _RESERVABLE, FLOAT.pack(attributes.max_reservable_bandwidth)
    if attributes.unreserved_bandwidth is not None:
        yield first + _UNRESERVED, EIGHT_FLOATS.pack(*attributes.unreserved_bandwidth)


def measured(attributes: TeAttributes, anomalous: Iterable[int], first: int) -> Iterator[SubTlv]:
    """Yield the values that RFC 7471 and RFC 8570 add; ``first`` is the code point of the delay.

    ``anomalous`` lists the code points with the A bit. Delays beyond 24 bits and losses beyond
    50.33 % are clipped to the largest value that can be expressed (RFC 7471 §4.1.3, §4.4.3).
    """
    bits = dict.fromkeys(anomalous, A_BIT)
    if attributes.delay is not None:
        kind = first + _DELAY
        yield kind, WORD.pack(bits.get(kind, 0) | min(attributes.delay, MAX_24_BITS))
    if attributes.min_max_delay is not None:
        kind = first + _MIN_MAX_DELAY
        low, high = (min(delay, MAX_24_BITS) for delay in attributes.min_max_delay)
        yield kind, PAIR.pack(bits.get(kind, 0) | low, high)
    if attributes.delay_variation is not None:
        yield first + _DELAY_VARIATION, WORD.pack(min(attributes.delay_variation, MAX_24_BITS))
    if attributes.loss is not None:
        kind = first + _LOSS
        loss = min(round(attributes.loss / _LOSS_UNIT), MAX_24_BITS)
        yield kind, WORD.pack(bits.get(kind, 0) | loss)
    for offset, value in (
        (_RESIDUAL, attributes.residual_bandwidth),
        (_AVAILABLE, attributes.available_bandwidth),
        (_UTILIZED, attributes.utilized_bandwidth),
    ):
        if value is not None:
            yield first + offset, FLOAT.pack(value)
