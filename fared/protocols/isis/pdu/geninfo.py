"""GENINFO TLVs (RFC 6823 §3) with information of an application, in pieces.

A TLV has flags (0: no addresses, not leaked), the application, and pieces: key (3 bytes), number of
this piece and of all (2 bytes), length (1 byte), value. A value longer than a piece has several, of
one router, in TLVs and fragments that may be distant.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from fared.core.wire import DecodeError
from fared.protocols.isis.pdu.tlv import UnknownTlv

GENINFO: Final = 251
HEAD: Final = 3
_HEAD = struct.Struct("!BH")
_PIECE = struct.Struct("!BHHHB")
PIECE_HEAD: Final = _PIECE.size
MAX_PIECE: Final = 255 - HEAD - PIECE_HEAD
Pieces = dict[tuple[int, int, int], bytes]
"""By key, number of the piece, and number of all."""


def pieces_of(key: int, value: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and encoded form of each piece of a value."""
    parts = [value[at : at + MAX_PIECE] for at in range(0, len(value), MAX_PIECE)] or [b""]
    for number, part in enumerate(parts):
        head = _PIECE.pack(key >> 16, key & 0xFFFF, number, len(parts), len(part))
        yield number, head + part


def encode_geninfo(application: int, pieces: Iterable[bytes]) -> UnknownTlv:
    """Return the TLV of some encoded pieces."""
    return UnknownTlv(GENINFO, _HEAD.pack(0, application) + b"".join(pieces))


def decode_geninfo(value: bytes, application: int) -> Pieces:
    """Return the pieces of a TLV; none of another application, or with flags.

    Raises DecodeError.
    """
    if len(value) < HEAD:
        raise DecodeError("truncated", len(value), "GENINFO TLV")
    if _HEAD.unpack_from(value) != (0, application):
        return {}
    found: Pieces = {}
    at = HEAD
    while at < len(value):
        if at + PIECE_HEAD > len(value):
            raise DecodeError("truncated", at, "piece of a GENINFO TLV")
        high, low, number, count, size = _PIECE.unpack_from(value, at)
        at += PIECE_HEAD
        if at + size > len(value) or number >= count:
            raise DecodeError("length", at, "piece of a GENINFO TLV")
        found[high << 16 | low, number, count] = value[at : at + size]
        at += size
    return found
