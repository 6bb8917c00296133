"""The two checksums of link-state routing: internet (RFC 1071) and Fletcher (RFC 905 annex B).

Both are sums over bytes, and both are computed here as one division of one long integer, which
CPython does at memory speed instead of a bytecode loop per byte:

- 2**16 is 1 modulo 2**16 - 1, so the ones' complement sum of 16-bit words is the number the
  words spell, modulo 65535.
- 256**k is 1 + 255 k modulo 255**2, so that number modulo 65025 is the plain byte sum plus
  255 times the byte sum weighted by the distance to the end: both halves of Fletcher at once.
"""

from __future__ import annotations

_ONES = 0xFFFF
_MODULUS = 255
_SQUARE = _MODULUS * _MODULUS


def internet_checksum(data: bytes) -> int:
    """The 16-bit ones' complement checksum of RFC 1071; zero over data that contains it."""
    number = int.from_bytes(data, "big")
    if len(data) & 1:
        number <<= 8
    if not number:
        return _ONES
    return _ONES - (number % _ONES or _ONES)


def _fletcher_sums(data: bytes) -> tuple[int, int]:
    """The sums C0 and C1 of RFC 905 annex B, modulo 255."""
    plain = sum(data)
    # The last byte has distance 0 here and weight 1 in the RFC, hence the one more plain sum.
    weighted = (int.from_bytes(data, "big") - plain) % _SQUARE // _MODULUS + plain
    return plain % _MODULUS, weighted % _MODULUS


def fletcher16(data: bytes, checksum_offset: int) -> int:
    """The Fletcher checksum to write at ``checksum_offset``, whatever stands there now.

    For an OSPF LSA ``data`` is the LSA without its age field (RFC 2328 §12.1.7), for an IS-IS
    LSP it begins at the LSP id (ISO 10589 §7.3.11). Neither byte of the result is ever zero.
    Raises ValueError if the field does not lie inside the data.
    """
    to_end = len(data) - checksum_offset
    if checksum_offset < 0 or to_end < 2:
        raise ValueError(f"no checksum field at {checksum_offset} in {len(data)} bytes")
    high, low = data[checksum_offset], data[checksum_offset + 1]
    c0, c1 = _fletcher_sums(data)
    c0 -= high + low
    c1 -= to_end * high + (to_end - 1) * low
    x = ((to_end - 1) * c0 - c1) % _MODULUS or _MODULUS
    y = -(x + c0) % _MODULUS or _MODULUS
    return x << 8 | y


def fletcher_ok(data: bytes) -> bool:
    """Whether data that contains its Fletcher checksum sums to zero (RFC 905 annex B.4).

    A field of zeros may pass this by chance: protocols that forbid it must look themselves.
    """
    return _fletcher_sums(data) == (0, 0)
