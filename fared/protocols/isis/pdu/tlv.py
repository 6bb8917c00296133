"""What a TLV is: a value that knows its code, how it is encoded, and its JSON.

A class of ``FixedTlv`` or ``ListTlv`` declares its fields: decoder, encoder, JSON and the strategy
of the tests follow from them. Other classes have methods for what does not fit. A TLV of an unknown
type, or with malformed contents, is an ``UnknownTlv``.

Values hold numbers, bytes and each other, never what holds them: the collector skips them, and each
takes 16 bytes less.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, TypeVar

import msgspec
from msgspec.structs import asdict, astuple

from fared.core.ids import format_system_id
from fared.core.json_text import unknown_document
from fared.core.wire import U16, DecodeError, Format, integer
from fared.protocols.isis.pdu.triplet import (
    DecodeOptions,
    check_multiple,
    pack_entries,
    write_triplet,
)

Json = dict[str, Any]
Decoder = Callable[[bytes, int, int, DecodeOptions], "Tlv"]


class Tlv(msgspec.Struct, frozen=True, gc=False):
    """A TLV: ``code`` is its type, ``label`` its name in JSON; a class of many has ``codes``."""

    code: ClassVar[int] = 0
    codes: ClassVar[tuple[int, ...]] = ()
    label: ClassVar[str]

    @classmethod
    def decoder(cls, _code: int, /) -> Decoder:
        """Return what decodes TLVs of this code."""
        return cls.decode

    @classmethod
    def decode(cls, data: bytes, start: int, end: int, options: DecodeOptions, /) -> Tlv:
        """Decode the value between two offsets. Raises DecodeError ``tlv``."""
        raise NotImplementedError

    def encode(self, capacity_code: int | None, /) -> bytes:
        """Encode the TLV, or as many as its list needs.

        ``capacity_code`` is the code point of the path capacity sub-TLV. Raises ValueError for a
        single value that is too long.
        """
        raise NotImplementedError

    def fields(self) -> Json:
        """Return the fields as JSON, by the texts of their formats."""
        fields = asdict(self)
        for name, shape in formats(type(self)).items():
            if shape is not None and shape.text is not None and fields[name] is not None:
                fields[name] = shape.text(fields[name])
        return fields

    def document(self) -> Json:
        """Return what it adds to the JSON of its PDU: its fields, a single one without a name."""
        fields = self.fields()
        return {self.label: fields if len(fields) > 1 else next(iter(fields.values()))}


class UnknownTlv(Tlv, frozen=True, gc=False):
    """A TLV carried as bytes."""

    label = "unknown"
    type: int
    value: bytes

    def encode(self, _: int | None, /) -> bytes:
        """Encode it as it was received."""
        return write_triplet(self.type, self.value)

    def document(self) -> Json:
        """Return type and bytes."""
        return {self.label: unknown_document(((self.type, self.value),))}


class FixedTlv(Tlv, frozen=True, gc=False):
    """A TLV of annotated fields, each with its format.

    ``forms`` are the numbers of fields that may be sent, ascending, if the last ones are optional;
    ``what`` names it in errors.
    """

    forms: ClassVar[tuple[int, ...]] = ()
    what: ClassVar[str]

    @classmethod
    def decoder(cls, _: int, /) -> Decoder:
        """Return what decodes the fields of the form that has the size of the value."""
        make: Callable[..., Tlv] = cls
        loads = {form.size: form.load for form in _forms_of(cls)}
        longest = max(loads)

        def decode(data: bytes, start: int, end: int, _: DecodeOptions, /) -> Tlv:
            load = loads.get(end - start)
            if load is None:
                raise DecodeError("tlv", start, f"{cls.what} of {end - start} bytes, not {longest}")
            return make(*load(data, start))

        return decode

    def encode(self, _: int | None, /) -> bytes:
        """Encode the shortest form with all fields that are known."""
        values = astuple(self)
        for form in _forms_of(type(self)):
            if form.count == len(values) or values[form.count] is None:
                return write_triplet(self.code, form.dump(values[: form.count]))
        raise AssertionError("the last form has all fields")


class ListTlv(Tlv, frozen=True, gc=False):
    """A TLV whose only field is a tuple of values of one format, ``item``."""

    item: ClassVar[Format]
    what: ClassVar[str]

    @classmethod
    def decoder(cls, _: int, /) -> Decoder:
        """Return what decodes the values."""
        make: Callable[..., Tlv] = cls
        return decoder_of_list(cls.item, cls.what, make)

    def values(self) -> tuple[Any, ...]:
        """Return the only field."""
        (values,) = astuple(self)
        return values  # type: ignore[no-any-return]

    def encode(self, _: int | None, /) -> bytes:
        """Encode the values, in several TLVs if need be."""
        return pack_entries(self.code, map(self.item.dump, self.values()))

    def document(self) -> Json:
        """Return the values as a list."""
        text = self.item.text
        return {self.label: list(self.values() if text is None else map(text, self.values()))}


_T = TypeVar("_T")


def of_type(tlvs: Iterable[Tlv], kind: type[_T]) -> tuple[_T, ...]:
    """The TLVs of one class, in order."""
    return tuple([tlv for tlv in tlvs if isinstance(tlv, kind)])


def decoder_of_list(item: Format, what: str, make: Callable[..., Tlv]) -> Decoder:
    """Return what decodes values of one format, which must fill the space."""

    def decode(data: bytes, start: int, end: int, _: DecodeOptions, /) -> Tlv:
        check_multiple(start, end, item.size, what)
        return make(item.load_all(data[start:end]))

    return decode


class _Form:
    """Some of the fields of a class, compiled."""

    __slots__ = ("_reads", "_struct", "_writes", "count", "load", "size")

    def __init__(self, shapes: list[Format]) -> None:
        self._struct = struct.Struct(">" + "".join([shape.item for shape in shapes]))
        places = [*enumerate(shapes)]
        self._reads = [(at, shape.read) for at, shape in places if shape.read is not None]
        self._writes = [(at, shape.write) for at, shape in places if shape.write is not None]
        self.count, self.size = len(shapes), self._struct.size
        self.load: Callable[[bytes, int], Iterable[Any]] = (
            self._converted if self._reads else self._struct.unpack_from
        )

    def _converted(self, data: bytes, start: int) -> list[Any]:
        values = [*self._struct.unpack_from(data, start)]
        for at, read in self._reads:
            values[at] = read(values[at])
        return values

    def dump(self, values: Iterable[Any]) -> bytes:
        known = [0 if value is None else value for value in values]
        for at, write in self._writes:
            known[at] = write(known[at])
        return self._struct.pack(*known)


@functools.cache
def _forms_of(cls: type[FixedTlv]) -> tuple[_Form, ...]:
    shapes = [shape for shape in formats(cls).values() if shape is not None]
    return tuple([_Form(shapes[:count]) for count in cls.forms or (len(shapes),)])


@functools.cache
def formats(cls: type[Tlv]) -> Mapping[str, Format | None]:
    """Return the format of each field of a class, None without one.

    Its module must not import ``annotations`` from ``__future__``, or it has none.
    """
    return {
        name: getattr(cls.__annotations__[name], "__metadata__", (None,))[0]
        for name in cls.__struct_fields__
    }


def format_neighbor(neighbor: int) -> str:
    """Write system id and pseudonode number: ``0102.5500.0002.00``."""
    return f"{format_system_id(neighbor >> 8)}.{neighbor & 0xFF:02x}"


SYSTEM_ID: Final = integer(6, format_system_id)
TOPOLOGY: Final = U16
TOPOLOGY_ID: Final = 0x0FFF


def read_topology(data: bytes, start: int, end: int) -> int:
    """Decode the topology of a TLV of RFC 5120. Raises DecodeError ``tlv``."""
    if end - start < TOPOLOGY.size:
        raise DecodeError("tlv", start, "no topology id")
    return int(TOPOLOGY.load(data, start)) & TOPOLOGY_ID


def known_tlvs(base: type[Tlv] = Tlv) -> Mapping[int, type[Tlv]]:
    """Return the classes by their codes."""
    found: dict[int, type[Tlv]] = {}
    for cls in base.__subclasses__():
        found.update({code: cls for code in cls.codes or (cls.code,) if code})
        found.update(known_tlvs(cls))
    return found
