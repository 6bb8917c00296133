"""Bounded reading of network byte order, and the formats of fields.

A decoder built on ``Reader`` returns a value or raises ``DecodeError``: every read is checked
against the end of its slice, so a wrong length field of a peer cannot reach outside.

A ``Format`` declares how a field is encoded: decoders, encoders, JSON and the strategies of tests
follow from it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

_U32 = struct.Struct(">I")


class DecodeError(ValueError):
    """A packet violates its format.

    ``code`` is one of truncated, length, checksum, version, type, tlv, auth, message; ``offset``
    counts bytes from the start of the decoder's input.
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


class Format:
    """How a value is encoded: one item of ``struct``, and what converts it.

    ``read`` makes the value of what struct reads, ``write`` what struct writes of the value;
    without them both are the same. ``text`` makes JSON of the value.

    ``load`` decodes the value at an offset, where the caller has checked that it is all there,
    ``load_all`` the values that fill a block.
    ``dump`` encodes a value, and raises struct.error or OverflowError if it does not fit.
    """

    __slots__ = ("dump", "item", "load", "load_all", "read", "size", "text", "write")

    def __init__(
        self,
        item: str,
        read: Callable[[Any], Any] | None = None,
        write: Callable[[Any], Any] | None = None,
        text: Callable[[Any], Any] | None = None,
    ) -> None:
        compiled = struct.Struct(f">{item}")
        pack, unpack, unpack_all = compiled.pack, compiled.unpack_from, compiled.iter_unpack

        def dump(value: Any) -> bytes:  # noqa: ANN401 - the format knows the type
            return pack(value if write is None else write(value))

        def load(data: bytes, at: int) -> Any:  # noqa: ANN401
            (value,) = unpack(data, at)
            return value if read is None else read(value)

        def load_all(block: bytes) -> tuple[Any, ...]:
            if read is None:
                return tuple([value for (value,) in unpack_all(block)])
            return tuple([read(value) for (value,) in unpack_all(block)])

        self.item, self.size = item, compiled.size
        self.read, self.write, self.text = read, write, text
        self.load: Callable[[bytes, int], Any] = load
        self.load_all: Callable[[bytes], tuple[Any, ...]] = load_all
        self.dump: Callable[[Any], bytes] = pack if write is None else dump

    def shown(self, text: Callable[[Any], Any]) -> Format:
        """Return the same format with another text."""
        return Format(self.item, self.read, self.write, text)


def integer(size: int, text: Callable[[Any], Any] | None = None) -> Format:
    """Return the format of an unsigned integer of so many bytes."""
    return Format(f"{size}s", int.from_bytes, lambda value: value.to_bytes(size, "big"), text)


U8: Final = Format("B")
U16: Final = Format("H")
U24: Final = integer(3)
U32: Final = Format("I")
F32: Final = Format("f")
