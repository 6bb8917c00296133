"""Bounded reading and writing of network byte order, shared by every codec.

A decoder built on ``Reader`` can only return a value or raise ``DecodeError``: every read is
checked against the end of its own slice, so a length field from a peer cannot reach outside.
"""

from __future__ import annotations

import struct

_U16 = struct.Struct(">H")
_U32 = struct.Struct(">I")
_U64 = struct.Struct(">Q")
_F32 = struct.Struct(">f")


class DecodeError(ValueError):
    """A packet that is not what its format says.

    ``code`` is one of truncated, length, checksum, version, type, tlv, auth; ``offset`` counts
    bytes from the start of what was handed to the decoder.
    """

    def __init__(self, code: str, offset: int, what: str) -> None:
        super().__init__(f"{what} (at byte {offset})")
        self.code = code
        self.offset = offset
        self.what = what


class Reader:
    """A cursor over one slice of a packet; offsets in errors are those of the whole packet."""

    __slots__ = ("_data", "end", "offset")

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

    def u8(self, what: str = "byte") -> int:
        """Read one byte."""
        return self._data[self._advance(1, what)]

    def u16(self, what: str = "16-bit field") -> int:
        """Read 16 bits."""
        return int(_U16.unpack_from(self._data, self._advance(2, what))[0])

    def u24(self, what: str = "24-bit field") -> int:
        """Read 24 bits."""
        start = self._advance(3, what)
        return int.from_bytes(self._data[start : start + 3], "big")

    def u32(self, what: str = "32-bit field") -> int:
        """Read 32 bits."""
        return int(_U32.unpack_from(self._data, self._advance(4, what))[0])

    def u64(self, what: str = "64-bit field") -> int:
        """Read 64 bits."""
        return int(_U64.unpack_from(self._data, self._advance(8, what))[0])

    def f32(self, what: str = "float") -> float:
        """Read an IEEE single: may be NaN or infinite, the caller must judge."""
        return float(_F32.unpack_from(self._data, self._advance(4, what))[0])

    def take(self, size: int, what: str = "bytes") -> bytes:
        """Read ``size`` bytes."""
        start = self._advance(size, what)
        return bytes(self._data[start : start + size])

    def rest(self) -> bytes:
        """Read all that is left of this slice."""
        return self.take(self.remaining)

    def sub(self, size: int, what: str = "block") -> Reader:
        """Open a reader on the next ``size`` bytes and step over them."""
        start = self._advance(size, what)
        return Reader(self._data, start, start + size)


class Writer:
    """Builds a packet; lengths and checksums are patched in at the end."""

    __slots__ = ("buffer",)

    def __init__(self) -> None:
        self.buffer = bytearray()

    def __len__(self) -> int:
        return len(self.buffer)

    def u8(self, value: int) -> None:
        """Append one byte."""
        self.buffer.append(value)

    def u16(self, value: int) -> None:
        """Append 16 bits."""
        self.buffer += _U16.pack(value)

    def u24(self, value: int) -> None:
        """Append 24 bits."""
        self.buffer += value.to_bytes(3, "big")

    def u32(self, value: int) -> None:
        """Append 32 bits."""
        self.buffer += _U32.pack(value)

    def u64(self, value: int) -> None:
        """Append 64 bits."""
        self.buffer += _U64.pack(value)

    def f32(self, value: float) -> None:
        """Append an IEEE single."""
        self.buffer += _F32.pack(value)

    def put(self, data: bytes) -> None:
        """Append raw bytes."""
        self.buffer += data

    def patch_u16(self, offset: int, value: int) -> None:
        """Overwrite 16 bits at an offset."""
        _U16.pack_into(self.buffer, offset, value)

    def finish(self) -> bytes:
        """Return what was built."""
        return bytes(self.buffer)
