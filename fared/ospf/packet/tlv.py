"""Type-length-value triplets as opaque LSAs carry them (RFC 3630 §2.3.2).

Type and length have 16 bits, the length counts the value only, and values are padded to four
bytes. IS-IS has another shape (8 bits, no padding), which is why this is not in ``core``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from fared.core.wire import DecodeError

_HEAD = struct.Struct(">HH")
_ALIGN: Final = 4


def read_tlvs(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Walk the triplets between two offsets: type, and where the value starts and ends.

    Padding missing after the very last value is forgiven. Raises DecodeError ``tlv`` at the
    triplet that does not fit.
    """
    offset = start
    while offset < end:
        value = offset + _HEAD.size
        if value > end:
            raise DecodeError("tlv", offset, f"{end - offset} bytes cannot be a TLV")
        kind, length = _HEAD.unpack_from(data, offset)
        if value + length > end:
            raise DecodeError(
                "tlv", offset, f"TLV {kind} claims {length} bytes, {end - value} are left"
            )
        yield kind, value, value + length
        offset = value + length + -length % _ALIGN


def write_tlv(kind: int, value: bytes) -> bytes:
    """One triplet, padded."""
    return _HEAD.pack(kind, len(value)) + value + bytes(-len(value) % _ALIGN)
