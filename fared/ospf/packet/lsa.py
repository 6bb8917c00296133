"""LSA headers and the envelope in which an LSA travels and is stored (RFC 2328 §12.1, §A.4.1).

An LSA is kept as the bytes it arrived in: flooding forwards those bytes with the age patched,
never a re-encoding, so that unknown LSA types pass through unharmed (RFC 5250 §3).
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from fared.core.checksum import fletcher16, fletcher_ok
from fared.core.wire import DecodeError, Reader

# Architectural constants (RFC 2328 appendix B); ages and times in seconds.
INITIAL_SEQUENCE_NUMBER: Final = -0x7FFFFFFF
MAX_SEQUENCE_NUMBER: Final = 0x7FFFFFFF
MAX_AGE: Final = 3600
MAX_AGE_DIFF: Final = 900
LS_REFRESH_TIME: Final = 1800
LS_INFINITY: Final = 0xFFFFFF

LSA_HEADER_SIZE: Final = 20
_CHECKSUM_OFFSET: Final = 16
_MAX_LENGTH: Final = 0xFFFF
_HEADER = struct.Struct(">HBBIIiHH")
_U16 = struct.Struct(">H")


class LsType(enum.IntEnum):
    """LS types this router knows (RFC 2328 §A.4.1, RFC 5250)."""

    ROUTER = 1
    NETWORK = 2
    SUMMARY_NETWORK = 3
    SUMMARY_ASBR = 4
    AS_EXTERNAL = 5
    NSSA_EXTERNAL = 7
    OPAQUE_LINK = 9
    OPAQUE_AREA = 10
    OPAQUE_AS = 11


class LsaKey(NamedTuple):
    """What names an LSA (RFC 2328 §12.1): three instances with one key differ only in age."""

    ls_type: int
    link_state_id: int
    advertising_router: int


@dataclass(frozen=True, slots=True)
class LsaHeader:
    """The 20 bytes at the head of each LSA; ``ls_sequence_number`` is signed."""

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
        """The LSA's identity."""
        return LsaKey(self.ls_type, self.link_state_id, self.advertising_router)


@dataclass(frozen=True, slots=True)
class Lsa:
    """One LSA: its header and all its bytes (header included, exactly ``header.length``)."""

    header: LsaHeader
    raw: bytes


def decode_header(reader: Reader) -> LsaHeader:
    """Read one LSA header. Raises DecodeError ``truncated``; judges no field."""
    return LsaHeader(*_HEADER.unpack(reader.take(LSA_HEADER_SIZE, "LSA header")))


def decode_headers(reader: Reader) -> tuple[LsaHeader, ...]:
    """Read headers to the end of the slice, as database descriptions and acks list them.

    Raises DecodeError ``length`` if the slice does not end with a whole header.
    """
    if reader.remaining % LSA_HEADER_SIZE:
        raise DecodeError("length", reader.offset, f"{reader.remaining} bytes of LSA headers")
    return tuple(LsaHeader(*fields) for fields in _HEADER.iter_unpack(reader.rest()))


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
    """Read one LSA and keep its bytes; neither its body nor its checksum is looked at.

    Raises DecodeError ``length`` if the LSA claims less than a header, ``truncated`` if more
    than the reader holds.
    """
    start = reader.offset
    head = reader.take(LSA_HEADER_SIZE, "LSA header")
    header = LsaHeader(*_HEADER.unpack(head))
    if header.length < LSA_HEADER_SIZE:
        raise DecodeError("length", start + 18, f"LSA length {header.length} is below 20")
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
    """The same instance at another age; the checksum does not cover the age (§12.1.7)."""
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
    """Whether the Fletcher checksum holds; zero counts as wrong (RFC 2328 §12.1.7)."""
    return lsa.header.ls_checksum != 0 and fletcher_ok(lsa.raw[2:])
