"""Type-length-value triplets as opaque LSAs carry them (RFC 3630 §2.3.2).

Type and length have 16 bits, the length is that of the value only, and values are padded to four
bytes. Those of IS-IS differ (8 bits, no padding).

A body whose TLVs are values is a class of ``TlvBody``, which declares them as its fields: decoder,
encoder and JSON follow.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Self

import msgspec

from fared.core.json_text import unknown_document
from fared.core.wire import DecodeError, Format

Json = dict[str, Any]

_HEAD = struct.Struct(">HH")
_ALIGN: Final = 4


def read_tlvs(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the triplets between two offsets: type, and start and end of the value.

    Missing padding after the last value is accepted. Raises DecodeError ``tlv`` at a triplet that
    does not fit.
    """
    offset = start
    while offset < end:
        value = offset + _HEAD.size
        if value > end:
            raise DecodeError("tlv", offset, f"TLV of {end - offset} bytes, below 4")
        kind, length = _HEAD.unpack_from(data, offset)
        if value + length > end:
            raise DecodeError(
                "tlv", offset, f"TLV {kind} of length {length}, but {end - value} bytes left"
            )
        yield kind, value, value + length
        offset = value + length + -length % _ALIGN


def write_tlv(kind: int, value: bytes) -> bytes:
    """One triplet, padded."""
    return _HEAD.pack(kind, len(value)) + value + bytes(-len(value) % _ALIGN)


class TlvField(msgspec.Struct, frozen=True):
    """The TLV of a field: its type, and how its value is encoded.

    ``load`` takes the value and its offset. It raises DecodeError, or returns None for what does
    not count, which is kept as it is. Of several TLVs the first counts; the others are kept too if
    ``keep``. ``dump`` returns None for what is not sent, ``text`` makes JSON of a value.
    """

    type: int
    load: Callable[[bytes, int], Any]
    dump: Callable[[Any], bytes | None]
    text: Callable[[Any], Any] | None = None
    keep: bool = False


def fixed(kind: int, shape: Format) -> TlvField:
    """Return a TLV of one format, of which no other size is accepted."""

    def load(value: bytes, offset: int) -> object:
        if len(value) != shape.size:
            raise DecodeError("tlv", offset, f"TLV {kind} of {len(value)} bytes, not as specified")
        return shape.load(value, 0)

    return TlvField(kind, load, shape.dump, shape.text)


class TlvBody(msgspec.Struct, frozen=True, kw_only=True):
    """A body of TLVs: each annotated field is one, ``unknown`` are the others, as received."""

    unknown: tuple[tuple[int, bytes], ...] = ()

    @classmethod
    def decode(cls, data: bytes, start: int) -> Self:
        """Decode the TLVs from ``start`` to the end of ``data``. Raises DecodeError ``tlv``."""
        fields = {field.type: (name, field) for name, field in _fields_of(cls).items()}
        found: dict[str, Any] = {}
        unknown: list[tuple[int, bytes]] = []
        for kind, first, last in read_tlvs(data, start, len(data)):
            value, loaded = data[first:last], None
            name, field = fields.get(kind, ("", None))
            if field is not None:
                loaded = field.load(value, first)
            if field is None or loaded is None or (field.keep and name in found):
                unknown.append((kind, value))
            else:
                found.setdefault(name, loaded)
        return cls._made(found, tuple(unknown), start)

    @classmethod
    def _made(cls, found: dict[str, Any], unknown: tuple[tuple[int, bytes], ...], _: int) -> Self:
        return cls(**found, unknown=unknown)

    def encode(self) -> bytes:
        """Encode the body."""
        values = [
            (field.type, field.dump(value))
            for name, field in _fields_of(type(self)).items()
            if (value := getattr(self, name)) is not None
        ]
        sent = [(kind, value) for kind, value in values if value is not None]
        return b"".join([write_tlv(kind, value) for kind, value in (*sent, *self.unknown)])

    def document(self) -> Json:
        """Return the fields as JSON, None where not sent."""
        out: Json = {}
        for name, field in _fields_of(type(self)).items():
            value = getattr(self, name)
            out[name] = value if value is None or field.text is None else field.text(value)
        return {**out, "unknown": unknown_document(self.unknown)}


@functools.cache
def _fields_of(cls: type[TlvBody]) -> Mapping[str, TlvField]:
    """The fields with TLVs; annotations of the module must not be text."""
    hints = cls.__annotations__
    return {name: hints[name].__metadata__[0] for name in hints}
