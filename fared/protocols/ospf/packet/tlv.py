"""Type-length-value triplets as opaque LSAs carry them (RFC 3630 §2.3.2).

Type and length have 16 bits, the length is that of the value only, and values are padded to four
bytes. Those of IS-IS differ (8 bits, no padding).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from fared.core.wire import DecodeError

_HEAD = struct.Struct(">HH")
_ALIGN: Final = 4


def read_tlvs(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the triplets between two offsets: type, and start and end of the value.

    Missing padding after the last value is accepted. Raises DecodeError ``tlv`` at a triplet that
    does not fit.
    """
    offset = start
    while offset < end:
        value = offset + _HEAD.size
        if value > end:
            raise DecodeError("tlv", offset, f"TLV of {end - offset} bytes, below 4")
        kind, length = _HEAD.unpack_from(data, offset)
        if value + length > end:
            raise DecodeError(
                "tlv", offset, f"TLV {kind} of length {length}, but {end - value} bytes left"
            )
        yield kind, value, value + length
        offset = value + length + -length % _ALIGN


def write_tlv(kind: int, value: bytes) -> bytes:
    """One triplet, padded."""
    return _HEAD.pack(kind, len(value)) + value + bytes(-len(value) % _ALIGN)
