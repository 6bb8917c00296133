"""The BIER header (RFC 8296 §2), in the encapsulation without MPLS (§2.2).

::

     0                   1                   2                   3
     0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    +---------------------------------------+-----+-+---------------+
    |              BIFT-id                  | TC  |S|     TTL       |
    +-------+-------+-------+---------------+-----+-+---------------+
    |Nibble |  Ver  |  BSL  |              Entropy                  |
    +---+---+-------+---+---+-------+-------------------------------+
    |OAM|Rsv|   DSCP    |   Proto   |            BFIR-id            |
    +---+---+-----------+-----------+-------------------------------+
    |                BitString (first 32 bits) ...                  |

With MPLS the first word is a label stack entry of the same shape, and the nibble is 5 (§2.1).
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from fared.core.bier import CODE_OF, LENGTHS
from fared.core.wire import DecodeError

ETHERTYPE: Final = 0xAB37
"""BIER in Ethernet (RFC 8296 §3.2)."""
PROTO_IPV4: Final = 4
"""The payload is an IPv4 packet (IANA, BIER Next Protocol Identifiers)."""
PROTO_IPV6: Final = 6
FIXED_SIZE: Final = 12
"""Bytes before the bit string."""
MPLS_NIBBLE: Final = 5
DEFAULT_TTL: Final = 64
ENTROPY_BITS: Final = 20
_WORDS = struct.Struct(">III")


class BierHeader(msgspec.Struct, frozen=True):
    """A header; ``length`` is that of the bit string, bits. The rest as in the picture."""

    bift_id: int
    bit_string: int
    length: int
    bfir_id: int = 0
    proto: int = PROTO_IPV4
    entropy: int = 0
    ttl: int = DEFAULT_TTL
    traffic_class: int = 0
    bottom: bool = True
    nibble: int = 0
    version: int = 0
    oam: int = 0
    reserved: int = 0
    dscp: int = 0

    @property
    def size(self) -> int:
        """Bytes on the wire."""
        return FIXED_SIZE + self.length // 8


def encode_header(header: BierHeader) -> bytes:
    """Encode a header. Raises KeyError if the length is not of RFC 8296."""
    first = header.bift_id << 12 | header.traffic_class << 9 | header.bottom << 8 | header.ttl
    code = CODE_OF[header.length]
    second = header.nibble << 28 | header.version << 24 | code << 20 | header.entropy
    third = header.oam << 30 | header.reserved << 28 | header.dscp << 22
    third |= header.proto << 16 | header.bfir_id
    return _WORDS.pack(first, second, third) + header.bit_string.to_bytes(header.length // 8, "big")


def decode_header(data: bytes, start: int = 0) -> BierHeader:
    """Decode the header at ``start``; the payload follows after ``size`` bytes.

    Raises DecodeError: ``truncated``, ``version`` (§2.1.2: other versions are dropped) or
    ``length`` (a BSL that is not defined).
    """
    if len(data) - start < FIXED_SIZE:
        raise DecodeError("truncated", start, f"BIER header of {len(data) - start} bytes, below 12")
    first, second, third = _WORDS.unpack_from(data, start)
    version, code = second >> 24 & 0xF, second >> 20 & 0xF
    if version:
        raise DecodeError("version", start + 4, f"BIER header of version {version}")
    if not 1 <= code <= len(LENGTHS):
        raise DecodeError("length", start + 5, f"BSL {code}, not in 1-7")
    length = LENGTHS[code - 1]
    string, end = start + FIXED_SIZE, start + FIXED_SIZE + length // 8
    if end > len(data):
        raise DecodeError("truncated", len(data), f"bit string of {length} bits is not complete")
    return BierHeader(
        bift_id=first >> 12,
        bit_string=int.from_bytes(data[string:end], "big"),
        length=length,
        bfir_id=third & 0xFFFF,
        proto=third >> 16 & 0x3F,
        entropy=second & (1 << ENTROPY_BITS) - 1,
        ttl=first & 0xFF,
        traffic_class=first >> 9 & 7,
        bottom=bool(first >> 8 & 1),
        nibble=second >> 28,
        version=version,
        oam=third >> 30,
        reserved=third >> 28 & 3,
        dscp=third >> 22 & 0x3F,
    )
