"""Bounded reading of network byte order: all codecs read packets through ``Reader``.

A decoder built on it returns a value or raises ``DecodeError``: every read is checked against the
end of its slice, so a wrong length field of a peer cannot reach outside.
"""

from __future__ import annotations

import struct

_U32 = struct.Struct(">I")


class DecodeError(ValueError):
    """A packet violates its format.

    ``code`` is one of truncated, length, checksum, version, type, tlv, auth; ``offset`` counts
    bytes from the start of the decoder's input.
    """

    def __init__(self, code: str, offset: int, what: str) -> None:
        super().__init__(f"{what} (at byte {offset})")
        self.code = code
        self.offset = offset
        self.what = what


class Reader:
    """A cursor over one slice of a packet; offsets in errors are those of the whole packet."""

    __slots__ = ("_data", "end", "offset")

    @property
    def data(self) -> bytes:
        """The whole packet, for a decoder that checks its reads against ``end`` itself."""
        return self._data

    def __init__(self, data: bytes, offset: int = 0, end: int | None = None) -> None:
        self._data = data
        self.offset = offset
        self.end = len(data) if end is None else end
        if self.end > len(data):
            raise DecodeError("truncated", len(data), f"need {self.end - len(data)} more bytes")

    @property
    def remaining(self) -> int:
        """Bytes left in this slice."""
        return self.end - self.offset

    def _advance(self, size: int, what: str) -> int:
        start = self.offset
        if size < 0 or start + size > self.end:
            raise DecodeError(
                "truncated", start, f"{what}: need {size} bytes, {self.end - start} left"
            )
        self.offset = start + size
        return start

    def u32(self, what: str = "32-bit field") -> int:
        """Read 32 bits."""
        return int(_U32.unpack_from(self._data, self._advance(4, what))[0])

    def take(self, size: int, what: str = "bytes") -> bytes:
        """Read ``size`` bytes."""
        start = self._advance(size, what)
        return bytes(self._data[start : start + size])

    def rest(self) -> bytes:
        """Read the rest of this slice."""
        return self.take(self.remaining)

    def sub(self, size: int, what: str = "block") -> Reader:
        """Open a reader on the next ``size`` bytes and step over them."""
        start = self._advance(size, what)
        return Reader(self._data, start, start + size)
