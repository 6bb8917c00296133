"""The link-local signaling block after a packet (RFC 5613), as far as strict BFD needs it.

It follows the packet and its authentication data, whose lengths do not count it. After a packet
with cryptographic authentication it has a digest of its own, which ``auth.link_local`` computes,
in place of the checksum.
"""

from __future__ import annotations

import struct

from fared.core.checksum import internet_checksum
from fared.core.wire import DecodeError, Reader

B_BIT = 0x10
"""BFD strict mode, in the extended options and flags (RFC 9355 §2)."""
EXTENDED_OPTIONS = 1
CRYPTOGRAPHIC_AUTHENTICATION = 2
_HEADER = struct.Struct(">HH")
"""Checksum and length, in words of 32 bits (RFC 5613 §2.2)."""
_TLV = struct.Struct(">HH")
_FLAGS = struct.Struct(">HHI")
_AUTHENTICATION = struct.Struct(">HHI")
"""Type, length, sequence number; the digest follows (RFC 5613 §2.5)."""


def encode_block(flags: int) -> bytes:
    """Encode a block with extended options."""
    body = _FLAGS.pack(EXTENDED_OPTIONS, 4, flags)
    words = (_HEADER.size + len(body)) // 4
    # RFC 5613 §2.2: the checksum covers the whole block
    checksum = internet_checksum(_HEADER.pack(0, words) + body)
    return _HEADER.pack(checksum, words) + body


def encode_unsigned(flags: int, sequence: int, digest_size: int) -> bytes:
    """Encode a block with extended options and authentication, up to the digest (§2.5)."""
    flagged = _FLAGS.pack(EXTENDED_OPTIONS, 4, flags)
    # §2.5: the checksum is not computed, but 0
    words = (_HEADER.size + len(flagged) + _AUTHENTICATION.size + digest_size) // 4
    kind, length = CRYPTOGRAPHIC_AUTHENTICATION, 4 + digest_size
    return _HEADER.pack(0, words) + flagged + _AUTHENTICATION.pack(kind, length, sequence)


def decode_signed(data: bytes) -> tuple[int, int, bytes, bytes]:
    """Read an authenticated block: its options, sequence number, signed part and digest.

    Raises DecodeError, ``auth`` without the TLV of the authentication.
    """
    flags, at = _decode(data, _size(data))
    if at is None:
        raise DecodeError("auth", 0, "an LLS block without authentication")
    _, length, sequence = _AUTHENTICATION.unpack_from(data, at)
    signed, end = at + _AUTHENTICATION.size, at + _TLV.size + length
    return flags, sequence, data[:signed], data[signed:end]


def decode_flags(data: bytes) -> int:
    """Return the extended options of a block, 0 if it has none. Raises DecodeError."""
    size = _size(data)
    if internet_checksum(data[:size]):
        raise DecodeError("checksum", 0, "wrong checksum of an LLS block")
    return _decode(data, size)[0]


def _size(data: bytes) -> int:
    _, words = _HEADER.unpack(Reader(data).take(_HEADER.size, "LLS block"))
    size: int = words * 4
    if size < _HEADER.size or size > len(data):
        raise DecodeError("length", 2, f"an LLS block of {size} bytes, received {len(data)}")
    return size


def _decode(data: bytes, size: int) -> tuple[int, int | None]:
    """The extended options, and where the authentication is, which must be the last TLV."""
    flags = 0
    block = Reader(data, _HEADER.size, size)
    while block.remaining:
        at = block.offset
        kind, length = _TLV.unpack(block.take(_TLV.size, "TLV of an LLS block"))
        # §2.3: the length excludes header and padding
        value = block.take(length, "LLS TLV")
        block.take(min(-length % 4, block.remaining), "padding")
        if kind == EXTENDED_OPTIONS:
            if length != 4:
                raise DecodeError("tlv", block.offset, f"extended options of {length} bytes")
            flags = int.from_bytes(value, "big")
        elif kind == CRYPTOGRAPHIC_AUTHENTICATION:
            if length < _AUTHENTICATION.size - _TLV.size or block.remaining:
                raise DecodeError("tlv", at, "authentication too short, or not the last TLV")
            return flags, at
    return flags, None
