"""What path attributes and capabilities have in common: a code, a name, and how they are encoded.

A class declares ``shape``, the format of its only field, or of the items of it (``many``). Decoder,
encoder, JSON and the strategies of the tests follow. Other classes have methods for what does not
fit. Values hold numbers, bytes and each other, never what holds them: the collector skips them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeVar

import msgspec
from msgspec.structs import astuple

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6
from fared.core.wire import DecodeError, Format

Json = dict[str, Any]
AS_TRANS: Final = 23456
"""Stands for an AS number of four octets where there is room for two (RFC 6793 §4.2)."""
MAX_TWO_OCTET_AS: Final = 0xFFFF


class Coding(NamedTuple):
    """How the messages of a session are encoded, and what they may contain, once it is agreed.

    ``first_as``: with which every AS_PATH of an external neighbor has to begin, 0 for any.
    """

    four_octet_as: bool = True
    internal: bool = False
    first_as: int = 0
    families: tuple[int, ...] = (FAMILY_IPV4, FAMILY_IPV6)
    limit: int = 4096
    """Octets of a message at most."""


class Coded(msgspec.Struct, frozen=True, gc=False):
    """A value with a code; without a ``shape`` it is empty, or encoded by methods of its class."""

    code: ClassVar[int] = 0
    label: ClassVar[str]
    shape: ClassVar[Format | None] = None
    many: ClassVar[bool] = False

    @classmethod
    def decode(cls, value: bytes, _: Coding, /) -> Self:
        """Decode a value. Raises DecodeError ``length``."""
        shape, size = cls.shape, len(value)
        if shape is None:
            if size:
                raise DecodeError("length", 0, f"{cls.label} of {size} bytes, not empty")
            return cls()
        if cls.many:
            if not size or size % shape.size:
                raise DecodeError("length", 0, f"{cls.label}: {size} bytes, {shape.size} each")
            return cls(shape.load_all(value))
        if size != shape.size:
            raise DecodeError("length", 0, f"{cls.label} of {size} bytes, not {shape.size}")
        return cls(shape.load(value, 0))

    def encode(self, _: Coding, /) -> bytes:
        """Encode the value. Raises struct.error or OverflowError if a number does not fit."""
        if self.shape is None:
            return b""
        (value,) = astuple(self)
        return b"".join(map(self.shape.dump, value)) if self.many else self.shape.dump(value)

    def document(self) -> Any:  # noqa: ANN401 - a number, a text or a list
        """Return the value as JSON."""
        if self.shape is None:
            return True
        (value,) = astuple(self)
        text = self.shape.text
        if self.many:
            return list(value if text is None else map(text, value))
        return value if text is None else text(value)


_C = TypeVar("_C", bound=Coded)


def known(base: type[_C]) -> dict[int, type[_C]]:
    """Return the classes below one by their codes."""
    found = {}
    for cls in base.__subclasses__():
        if cls.code:
            found[cls.code] = cls
        found.update(known(cls))
    return found


def read_pairs(data: bytes, start: int, end: int, head: int = 2) -> Iterator[tuple[int, bytes]]:
    """Type and value of each triplet between two offsets; ``head`` 3: lengths have two octets.

    Raises DecodeError ``length`` for one that exceeds the end.
    """
    while start < end:
        first = start + head
        last = first + int.from_bytes(data[start + 1 : first], "big")
        if first > end or last > end:
            raise DecodeError("length", start, f"type {data[start]} exceeds its block")
        yield data[start], data[first:last]
        start = last


def write_pair(kind: int, value: bytes) -> bytes:
    """Encode a triplet with a length of one octet. Raises OverflowError for a long value."""
    return bytes((kind,)) + len(value).to_bytes(1, "big") + value
