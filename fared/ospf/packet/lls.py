"""The link-local signaling block after a packet (RFC 5613), as far as strict BFD needs it.

Without cryptographic authentication it follows the packet, whose length does not count it.
"""

from __future__ import annotations

import struct

from fared.core.checksum import internet_checksum
from fared.core.wire import DecodeError, Reader

B_BIT = 0x10
"""BFD strict mode, in the extended options and flags (RFC 9355 §2)."""
EXTENDED_OPTIONS = 1
_HEADER = struct.Struct(">HH")
"""Checksum and length, in words of 32 bits (RFC 5613 §2.2)."""
_TLV = struct.Struct(">HH")
_FLAGS = struct.Struct(">HHI")


def encode_block(flags: int) -> bytes:
    """Encode a block with extended options."""
    body = _FLAGS.pack(EXTENDED_OPTIONS, 4, flags)
    words = (_HEADER.size + len(body)) // 4
    # RFC 5613 §2.2: the checksum covers the whole block
    checksum = internet_checksum(_HEADER.pack(0, words) + body)
    return _HEADER.pack(checksum, words) + body


def decode_flags(data: bytes) -> int:
    """Return the extended options of a block, 0 if it has none. Raises DecodeError."""
    reader = Reader(data)
    expected, words = _HEADER.unpack(reader.take(_HEADER.size, "LLS block"))
    size = words * 4
    if size < _HEADER.size or size > len(data):
        raise DecodeError("length", 2, f"an LLS block of {size} bytes, received {len(data)}")
    if internet_checksum(data[:size]):
        raise DecodeError("checksum", 0, f"wrong checksum {expected:#06x} of an LLS block")
    flags = 0
    block = Reader(data, _HEADER.size, size)
    while block.remaining:
        kind, length = _TLV.unpack(block.take(_TLV.size, "TLV of an LLS block"))
        # §2.3: the length excludes header and padding
        value = block.take(length, "LLS TLV")
        block.take(min(-length % 4, block.remaining), "padding")
        if kind == EXTENDED_OPTIONS:
            if length != 4:
                raise DecodeError("tlv", block.offset, f"extended options of {length} bytes")
            flags = int.from_bytes(value, "big")
    return flags
