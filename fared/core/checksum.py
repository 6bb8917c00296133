"""The two checksums of link-state routing: internet (RFC 1071) and Fletcher (RFC 905 annex B).

Both are sums over bytes. Each is computed as one division of one long integer, which CPython does
at memory speed, where a loop would run bytecode for every byte:

- 2**16 is 1 modulo 2**16 - 1. So the ones' complement sum of 16-bit words is the integer that the
  words form, modulo 65535.
- 256**k is 1 + 255 k modulo 255**2. So the integer that the bytes form is, modulo 65025, their sum
  plus 255 times their sum weighted by position: both halves of Fletcher. Reading the bytes
  backwards gives the weights in the other order, and the difference cancels the plain sum.
"""

from __future__ import annotations

_ONES = 0xFFFF
_MODULUS = 255
_SQUARE = _MODULUS * _MODULUS
_HALF = 128
"""The inverse of 2 modulo 255."""


def internet_checksum(data: bytes) -> int:
    """Return the 16-bit ones' complement checksum (RFC 1071); 0 over data that contains it."""
    words = sum_of_words(data)
    if words:
        return _ONES - words
    return 0 if any(data) else _ONES


def sum_of_words(data: bytes) -> int:
    """Return the ones' complement sum of 16-bit words (RFC 1071), modulo 65535.

    The sums of two parts add to that of the whole if the first has whole words.
    """
    number = int.from_bytes(data, "big")
    return (number << 8 if len(data) & 1 else number) % _ONES


def _fletcher_sums(data: bytes) -> tuple[int, int]:
    """Return the sums C0 and C1 of RFC 905 annex B, modulo 255.

    With n bytes b_i: C0 is the sum of b_i, C1 the sum of (n - i) b_i.
    """
    size = len(data)
    forward = int.from_bytes(data, "big") % _SQUARE  # C0 + 255 * sum of (n - 1 - i) b_i
    backward = int.from_bytes(data, "little") % _SQUARE  # C0 + 255 * sum of i b_i
    c0 = forward % _MODULUS
    difference = (forward - backward) % _SQUARE // _MODULUS  # (n - 1) C0 - 2 * sum of i b_i
    by_index = ((size - 1) * c0 - difference) * _HALF
    return c0, (size * c0 - by_index) % _MODULUS


def fletcher16(data: bytes, checksum_offset: int) -> int:
    """Return the Fletcher checksum to write at ``checksum_offset``, whose value is ignored.

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

    A field of zeros may pass by chance: the caller must reject it where the protocol forbids it.
    """
    # With C0 = 0 the sum weighted by position is that in either order (``_fletcher_sums``).
    forward = int.from_bytes(data, "big") % _SQUARE
    return not forward % _MODULUS and forward == int.from_bytes(data, "little") % _SQUARE
