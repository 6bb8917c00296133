"""Fixed headers of IS-IS PDUs, and what can be read or patched without decoding the rest.

An LSP is flooded on as the bytes that came, and most of those that come are known already: the
functions here look at one field, or change one, in bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

from fared.core.checksum import fletcher16, fletcher_ok
from fared.core.wire import DecodeError
from fared.isis.ids import LspId
from fared.isis.pdu.model import PduType

DISCRIMINATOR: Final = 0x83
"""Intradomain routeing protocol discriminator (ISO 9577)."""
COMMON_SIZE: Final = 8
_VERSION: Final = 1
_SYSTEM_ID_LENGTHS: Final = (0, 6)  # 0 says 6
_MAXIMUM_AREA_ADDRESSES: Final = (0, 3)  # 0 says 3
_TYPE_MASK: Final = 0x1F
_COMMON = struct.Struct(">BBBBBBBB")
_LENGTH = struct.Struct(">H")

LAN_HELLO = struct.Struct(">B6sHHB7s")
"""Circuit type, source id, holding time, PDU length, priority, LAN id."""
P2P_HELLO = struct.Struct(">B6sHHB")
"""Circuit type, source id, holding time, PDU length, local circuit id."""
LSP = struct.Struct(">HHQIHB")
"""PDU length, remaining lifetime, LSP id, sequence number, checksum, flags."""
CSNP = struct.Struct(">H7sQQ")
"""PDU length, source id, start and end LSP id."""
PSNP = struct.Struct(">H7s")
"""PDU length, source id."""

_LIFETIME_AT: Final = 10
_LSP_ID_AT: Final = 12
_CHECKSUM_AT: Final = 24
_CHECKSUM_IN_SUM: Final = _CHECKSUM_AT - _LSP_ID_AT


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are in PDUs of one type: ``size`` of the header, its PDU length field."""

    size: int
    length_at: int


_LAYOUTS: Final = {
    PduType.L1_LAN_HELLO: Layout(COMMON_SIZE + LAN_HELLO.size, 17),
    PduType.L2_LAN_HELLO: Layout(COMMON_SIZE + LAN_HELLO.size, 17),
    PduType.P2P_HELLO: Layout(COMMON_SIZE + P2P_HELLO.size, 17),
    PduType.L1_LSP: Layout(COMMON_SIZE + LSP.size, 8),
    PduType.L2_LSP: Layout(COMMON_SIZE + LSP.size, 8),
    PduType.L1_CSNP: Layout(COMMON_SIZE + CSNP.size, 8),
    PduType.L2_CSNP: Layout(COMMON_SIZE + CSNP.size, 8),
    PduType.L1_PSNP: Layout(COMMON_SIZE + PSNP.size, 8),
    PduType.L2_PSNP: Layout(COMMON_SIZE + PSNP.size, 8),
}
_TYPES: Final = {int(kind): kind for kind in PduType}
_LSPS: Final = (PduType.L1_LSP, PduType.L2_LSP)


class Frame(NamedTuple):
    """What the fixed header says: the type, and where TLVs begin and the PDU ends."""

    kind: PduType
    tlvs: int
    end: int


class LspPeek(NamedTuple):
    """The fields that tell whether an LSP is known already."""

    lsp_id: LspId
    sequence_number: int
    remaining_lifetime: int
    checksum: int
    level: int


def layout_of(kind: PduType) -> Layout:
    """Where the fixed fields of a PDU type are."""
    return _LAYOUTS[kind]


def common_header(kind: PduType) -> bytes:
    """The first eight bytes of a PDU."""
    size = _LAYOUTS[kind].size
    return _COMMON.pack(DISCRIMINATOR, size, _VERSION, 0, kind, _VERSION, 0, 0)


def read_frame(data: bytes) -> Frame:
    """Check everything that PDUs have in common (ISO 10589 §9).

    Bytes behind the PDU (padding of short Ethernet frames) are no fault. Raises DecodeError:
    ``type`` for another protocol or PDU type, ``version``, also where the maximum of area
    addresses is not 3 (§7.3.15.1), ``length`` for lengths that contradict each other or system ids
    that are not 6 bytes, ``truncated`` where the PDU is longer than the data.
    """
    if len(data) < COMMON_SIZE:
        raise DecodeError("truncated", len(data), f"a PDU has {COMMON_SIZE} bytes at least")
    discriminator, size, version, id_length, raw_kind, again, _, areas = _COMMON.unpack_from(data)
    if discriminator != DISCRIMINATOR:
        raise DecodeError("type", 0, f"protocol discriminator {discriminator:#04x} is not IS-IS")
    if version != _VERSION or again != _VERSION:
        at = 2 if version != _VERSION else 5
        raise DecodeError("version", at, f"version {data[at]}, not {_VERSION}")
    if id_length not in _SYSTEM_ID_LENGTHS:
        raise DecodeError("length", 3, f"system ids of {id_length} bytes")
    kind = _TYPES.get(raw_kind & _TYPE_MASK)
    if kind is None:
        raise DecodeError("type", 4, f"PDU type {raw_kind & _TYPE_MASK}")
    if areas not in _MAXIMUM_AREA_ADDRESSES:
        raise DecodeError("version", 7, f"maximum area addresses {areas}, not 3")
    return Frame(kind, *_extent(data, _LAYOUTS[kind], size))


def _extent(data: bytes, layout: Layout, size: int) -> tuple[int, int]:
    """Where TLVs begin and end."""
    if size != layout.size:
        raise DecodeError("length", 1, f"header of {size} bytes, not {layout.size}")
    if len(data) < size:
        raise DecodeError("truncated", len(data), f"header of {size} bytes, {len(data)} there")
    (end,) = _LENGTH.unpack_from(data, layout.length_at)
    if end < size:
        raise DecodeError("length", layout.length_at, f"PDU of {end} bytes, header of {size}")
    if end > len(data):
        raise DecodeError("truncated", len(data), f"PDU of {end} bytes, {len(data)} there")
    return size, end


def pdu_type(data: bytes) -> PduType:
    """The type of a PDU, after the checks of ``read_frame``. Raises DecodeError."""
    return read_frame(data).kind


def exact(data: bytes) -> bytes:
    """The PDU without what an Ethernet frame had behind it. Raises DecodeError."""
    end = read_frame(data).end
    return data if end == len(data) else data[:end]


def peek_lsp(data: bytes) -> LspPeek:
    """Read what tells an LSP from another, without its TLVs. Raises DecodeError."""
    kind, _, _ = read_frame(data)
    if kind not in _LSPS:
        raise DecodeError("type", 4, f"{kind.label} is no LSP")
    _, lifetime, identifier, sequence, checksum, _ = LSP.unpack_from(data, COMMON_SIZE)
    return LspPeek(LspId(identifier), sequence, lifetime, checksum, kind.level)


def with_lifetime(raw: bytes, remaining_lifetime: int) -> bytes:
    """An LSP with another remaining lifetime, which its checksum does not cover."""
    field = _LENGTH.pack(remaining_lifetime)
    return raw[:_LIFETIME_AT] + field + raw[_LSP_ID_AT:]


def checksum_of(raw: bytes) -> int:
    """The checksum that an LSP should have: over the LSP id and all behind it (§7.3.11)."""
    return fletcher16(raw[_LSP_ID_AT:], _CHECKSUM_IN_SUM)


def with_checksum(raw: bytes, checksum: int) -> bytes:
    """An LSP with another checksum."""
    return raw[:_CHECKSUM_AT] + _LENGTH.pack(checksum) + raw[_CHECKSUM_AT + _LENGTH.size :]


def checksum_ok(raw: bytes) -> bool:
    """Whether the checksum of an LSP is right; always for a purge, where it says nothing.

    ``raw`` is exactly the PDU. A checksum of zero is wrong: none is ever computed so.
    """
    if raw[_LIFETIME_AT:_LSP_ID_AT] == b"\0\0":
        return True
    return raw[_CHECKSUM_AT : _CHECKSUM_AT + 2] != b"\0\0" and fletcher_ok(raw[_LSP_ID_AT:])


def blank_mutable(raw: bytes) -> bytes:
    """An LSP as digests see it: lifetime and checksum are zero (RFC 5304 §2). Others as is."""
    if raw[4] & _TYPE_MASK not in _LSPS:
        return raw
    return with_checksum(with_lifetime(raw, 0), 0)


def insert_tlv(raw: bytes, tlv: bytes) -> bytes:
    """The PDU with a TLV in front of the others. Raises ValueError if it outgrows 65535 bytes."""
    kind, start, end = read_frame(raw)
    return set_length(raw[:start] + tlv + raw[start:end], kind)


def set_length(raw: bytes, kind: PduType) -> bytes:
    """The PDU with its length filled in. Raises ValueError if that is beyond 65535 bytes."""
    if len(raw) > 0xFFFF:
        raise ValueError(f"a PDU of {len(raw)} bytes is too long")
    at = _LAYOUTS[kind].length_at
    return raw[:at] + _LENGTH.pack(len(raw)) + raw[at + _LENGTH.size :]
