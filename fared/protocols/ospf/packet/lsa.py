"""LSA headers, and LSAs as bytes for flooding and storage (RFC 2328 §12.1, §A.4.1).

An LSA is stored as the bytes received. They are flooded with the age updated and are not encoded
again, so opaque LSAs of unknown types are flooded unchanged (RFC 5250 §3).
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from fared.core.checksum import fletcher16, fletcher_ok
from fared.core.ids import dotted
from fared.core.wire import DecodeError, Reader

# Architectural constants (RFC 2328 appendix B); ages and times in seconds.
INITIAL_SEQUENCE_NUMBER: Final = -0x7FFFFFFF
MAX_SEQUENCE_NUMBER: Final = 0x7FFFFFFF
MAX_AGE: Final = 3600
MAX_AGE_DIFF: Final = 900
LS_REFRESH_TIME: Final = 1800
LS_INFINITY: Final = 0xFFFFFF

LSA_HEADER_SIZE: Final = 20
LS_TYPE_OFFSET: Final = 3
_CHECKSUM_OFFSET: Final = 16
_MAX_LENGTH: Final = 0xFFFF
_HEADER = struct.Struct(">HBBIIiHH")
_SEQUENCE_NUMBER = slice(12, 16)
_AGE_AND_INSTANCE = struct.Struct(">H18s")
_KEY = struct.Struct(">3xBII")
_U16 = struct.Struct(">H")


class LsType(enum.IntEnum):
    """LS types with a name here (RFC 2328 §A.4.1, RFC 5250 §3; 7: RFC 3101, not flooded)."""

    ROUTER = 1
    NETWORK = 2
    SUMMARY_NETWORK = 3
    SUMMARY_ASBR = 4
    AS_EXTERNAL = 5
    NSSA_EXTERNAL = 7
    OPAQUE_LINK = 9
    OPAQUE_AREA = 10
    OPAQUE_AS = 11


class LsaKey(msgspec.Struct, frozen=True, order=True, gc=False, array_like=True):
    """The identity of an LSA (RFC 2328 §12.1): LS type, link state id, advertising router."""

    ls_type: int
    link_state_id: int
    advertising_router: int

    def __str__(self) -> str:
        """The key as text: ``1 10.255.0.1 10.255.0.1``."""
        return f"{self.ls_type} {dotted(self.link_state_id)} {dotted(self.advertising_router)}"


class LsaHeader(msgspec.Struct, frozen=True):
    """The LSA header (RFC 2328 §A.4.1); ``ls_sequence_number`` is signed (§12.1.6)."""

    ls_age: int
    options: int
    ls_type: int
    link_state_id: int
    advertising_router: int
    ls_sequence_number: int
    ls_checksum: int
    length: int

    @property
    def key(self) -> LsaKey:
        """The identity of the LSA."""
        return LsaKey(self.ls_type, self.link_state_id, self.advertising_router)


class Lsa(msgspec.Struct, frozen=True):
    """One LSA: its header and all its bytes (header included, exactly ``header.length``)."""

    header: LsaHeader
    raw: bytes


def decode_headers(reader: Reader) -> tuple[LsaHeader, ...]:
    """Read headers to the end of the slice, as in database descriptions and acknowledgments.

    Raises DecodeError ``length`` if the slice does not end with a whole header.
    """
    return tuple([LsaHeader(*fields) for fields in _HEADER.iter_unpack(packed_headers(reader))])


def packed_headers(reader: Reader) -> bytes:
    """Like ``decode_headers``, as bytes."""
    if reader.remaining % LSA_HEADER_SIZE:
        raise DecodeError(
            "length",
            reader.offset,
            f"{reader.remaining} bytes of LSA headers, not a multiple of 20",
        )
    return reader.rest()


def split_headers(packed: bytes) -> Iterator[tuple[int, bytes]]:
    """Age and instance (``instance_of``) of each header."""
    return _AGE_AND_INSTANCE.iter_unpack(packed)


def instance_of(raw: bytes) -> bytes:
    """The instance of an LSA or header: all fields of the header but the age.

    Equal instances are the same one (§13.1) unless their ages tell them apart.
    """
    return raw[2:LSA_HEADER_SIZE]


def name_of(raw: bytes) -> bytes:
    """The key of an LSA or header as bytes: LS type, link state id, advertising router."""
    return raw[3:12]


def sequence_number_of(raw: bytes) -> int:
    """The LS sequence number of an LSA or header, signed (§12.1.6)."""
    return int.from_bytes(raw[_SEQUENCE_NUMBER], "big", signed=True)


def decode_header(raw: bytes) -> LsaHeader:
    """The header at the beginning of an LSA."""
    return LsaHeader(*_HEADER.unpack_from(raw))


def key_of(raw: bytes) -> LsaKey:
    """The key of an LSA or header."""
    return LsaKey(*_KEY.unpack_from(raw))


def describes_router(key: LsaKey) -> bool:
    """Whether an LSA is the router LSA of its advertising router.

    Its link state id is that router's id (RFC 2328 §12.4.1), by which §16.1 finds it. One with
    another id is flooded like any LSA, and no part of the topology.
    """
    return key.ls_type == LsType.ROUTER and key.link_state_id == key.advertising_router


def encode_header(header: LsaHeader) -> bytes:
    """Write the 20 bytes of a header. Raises struct.error if a field does not fit."""
    return _HEADER.pack(
        header.ls_age,
        header.options,
        header.ls_type,
        header.link_state_id,
        header.advertising_router,
        header.ls_sequence_number,
        header.ls_checksum,
        header.length,
    )


def decode_lsa(reader: Reader) -> Lsa:
    """Read one LSA as bytes, without decoding its body or verifying its checksum.

    Raises DecodeError ``length`` if its length is below that of a header, ``truncated`` if it
    exceeds the bytes left.
    """
    start = reader.offset
    head = reader.take(LSA_HEADER_SIZE, "LSA header")
    header = LsaHeader(*_HEADER.unpack(head))
    if header.length < LSA_HEADER_SIZE:
        raise DecodeError("length", start + 18, f"LSA length {header.length}, below 20")
    return Lsa(header, head + reader.take(header.length - LSA_HEADER_SIZE, "LSA body"))


def encode_lsa(
    *,
    ls_age: int,
    options: int,
    ls_type: int,
    link_state_id: int,
    advertising_router: int,
    ls_sequence_number: int,
    body: bytes,
) -> Lsa:
    """Build an LSA; length and checksum are computed. Raises ValueError beyond 65,535 bytes."""
    length = LSA_HEADER_SIZE + len(body)
    if length > _MAX_LENGTH:
        raise ValueError(f"an LSA of {length} bytes does not fit its length field")
    blank = LsaHeader(
        ls_age,
        options,
        ls_type,
        link_state_id,
        advertising_router,
        ls_sequence_number,
        0,
        length,
    )
    raw = bytearray(encode_header(blank) + body)
    checksum = fletcher16(bytes(raw[2:]), _CHECKSUM_OFFSET - 2)
    _U16.pack_into(raw, _CHECKSUM_OFFSET, checksum)
    return Lsa(replace(blank, ls_checksum=checksum), bytes(raw))


def with_age(lsa: Lsa, age: int) -> Lsa:
    """The same instance with its age updated; the checksum excludes the age (§12.1.7)."""
    if age == lsa.header.ls_age:
        return lsa
    old = lsa.header
    header = LsaHeader(
        age,
        old.options,
        old.ls_type,
        old.link_state_id,
        old.advertising_router,
        old.ls_sequence_number,
        old.ls_checksum,
        old.length,
    )
    return Lsa(header, _U16.pack(age) + lsa.raw[2:])


def lsa_checksum_ok(lsa: Lsa) -> bool:
    """Whether the Fletcher checksum is correct; zero is not valid (RFC 2328 §12.1.7)."""
    return raw_checksum_ok(lsa.raw)


def raw_checksum_ok(raw: bytes) -> bool:
    """The same of an LSA as bytes."""
    checksum = raw[_CHECKSUM_OFFSET : _CHECKSUM_OFFSET + 2]
    return checksum != b"\0\0" and fletcher_ok(raw[2:])
