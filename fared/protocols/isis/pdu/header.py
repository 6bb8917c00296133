"""Fixed headers of IS-IS PDUs (ISO 10589 §9), read or patched without decoding the TLVs.

``read_pdu`` checks the fixed header once; decoder, verifier and database take the ``RawPdu`` that
it returns. An LSP is flooded as the bytes received, and most LSPs received are copies of known
ones: ``peek_type`` and ``peek_lsp_id`` read one field of bytes that have not been checked,
``with_lifetime`` and ``with_checksum`` change one.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import msgspec

from fared.core.checksum import fletcher16, fletcher_ok
from fared.core.wire import DecodeError
from fared.protocols.isis.ids import LspId
from fared.protocols.isis.pdu.model import PduType

DISCRIMINATOR: Final = 0x83
"""Intradomain routeing protocol discriminator (ISO 9577)."""
COMMON_SIZE: Final = 8
_VERSION: Final = 1
_SYSTEM_ID_LENGTHS: Final = (0, 6)  # 0 means 6
_MAXIMUM_AREA_ADDRESSES: Final = (0, 3)  # 0 means 3
TYPE_BITS: Final = 5
TYPE_MASK: Final = (1 << TYPE_BITS) - 1
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

TYPE_AT: Final = 4
_LIFETIME_AT: Final = 10
_LSP_ID_AT: Final = 12
_CHECKSUM_AT: Final = 24
_CHECKSUM_IN_SUM: Final = _CHECKSUM_AT - _LSP_ID_AT
_SEQUENCE_AT: Final = 20
_NO_LIFETIME: Final = b"\0\0"


class HeaderLayout(msgspec.Struct, frozen=True):
    """Offsets in PDUs of one type: ``size`` of the header, its PDU length field."""

    size: int
    length_at: int


_LAYOUTS: Final = {
    PduType.L1_LAN_HELLO: HeaderLayout(COMMON_SIZE + LAN_HELLO.size, 17),
    PduType.L2_LAN_HELLO: HeaderLayout(COMMON_SIZE + LAN_HELLO.size, 17),
    PduType.P2P_HELLO: HeaderLayout(COMMON_SIZE + P2P_HELLO.size, 17),
    PduType.L1_LSP: HeaderLayout(COMMON_SIZE + LSP.size, 8),
    PduType.L2_LSP: HeaderLayout(COMMON_SIZE + LSP.size, 8),
    PduType.L1_CSNP: HeaderLayout(COMMON_SIZE + CSNP.size, 8),
    PduType.L2_CSNP: HeaderLayout(COMMON_SIZE + CSNP.size, 8),
    PduType.L1_PSNP: HeaderLayout(COMMON_SIZE + PSNP.size, 8),
    PduType.L2_PSNP: HeaderLayout(COMMON_SIZE + PSNP.size, 8),
}
_TYPES: Final = {int(kind): kind for kind in PduType}
LSPS: Final = (PduType.L1_LSP, PduType.L2_LSP)


class RawPdu(NamedTuple):
    """A PDU with a checked fixed header; the TLVs are unchecked.

    ``data`` is exactly the PDU; its TLVs begin at ``tlvs``.
    """

    kind: PduType
    data: bytes
    tlvs: int


class LspPeek(NamedTuple):
    """The fields that identify an instance of an LSP."""

    lsp_id: LspId
    sequence_number: int
    remaining_lifetime: int
    checksum: int
    level: int


def common_header(kind: PduType) -> bytes:
    """The first eight bytes of a PDU."""
    size = _LAYOUTS[kind].size
    return _COMMON.pack(DISCRIMINATOR, size, _VERSION, 0, kind, _VERSION, 0, 0)


def read_pdu(data: bytes) -> RawPdu:
    """Check the fixed header (ISO 10589 §9.5 to §9.13).

    Bytes after the PDU (padding of short Ethernet frames) are cut off. Raises DecodeError: ``type``
    for another protocol or PDU type, ``version`` also for a maximum of area addresses that is not
    3, ``length`` for lengths that contradict each other or system ids that are not 6 bytes,
    ``truncated`` where the PDU is longer than the data.
    """
    if len(data) < COMMON_SIZE:
        raise DecodeError("truncated", len(data), f"a PDU has {COMMON_SIZE} bytes at least")
    discriminator, size, version, id_length, raw_kind, again, _, areas = _COMMON.unpack_from(data)
    if discriminator != DISCRIMINATOR:
        raise DecodeError("type", 0, f"protocol discriminator {discriminator:#04x} is not IS-IS")
    if version != _VERSION or again != _VERSION:
        at = 2 if version != _VERSION else 5
        raise DecodeError("version", at, f"version {data[at]}, not {_VERSION}")
    # §7.3.15.1 a) 4), §7.3.15.2 a), §8.2.5.1, §8.4.2.1: IDFieldLengthMismatch
    if id_length not in _SYSTEM_ID_LENGTHS:
        raise DecodeError("length", 3, f"system ids of {id_length} bytes")
    kind = _TYPES.get(raw_kind & TYPE_MASK)
    if kind is None:
        raise DecodeError("type", TYPE_AT, f"unknown PDU type {raw_kind & TYPE_MASK}")
    # §7.3.15.1 a) 5), §7.3.15.2 a), §8.2.5.2, §8.4.2.2: MaximumAreaAddressesMismatch
    if areas not in _MAXIMUM_AREA_ADDRESSES:
        raise DecodeError("version", 7, f"maximum area addresses {areas}, not 3")
    end = _end_of(data, _LAYOUTS[kind], size)
    return RawPdu(kind, data if end == len(data) else data[:end], size)


def _end_of(data: bytes, layout: HeaderLayout, size: int) -> int:
    """The end of a PDU whose length indicator is ``size``."""
    if size != layout.size:
        raise DecodeError("length", 1, f"header of {size} bytes, not {layout.size}")
    if len(data) < size:
        raise DecodeError("truncated", len(data), f"header of {size} bytes, {len(data)} received")
    end = int(_LENGTH.unpack_from(data, layout.length_at)[0])
    if end < size:
        raise DecodeError("length", layout.length_at, f"PDU of {end} bytes, header of {size}")
    if end > len(data):
        raise DecodeError("truncated", len(data), f"PDU of {end} bytes, {len(data)} received")
    return end


def peek_type(data: bytes) -> PduType | None:
    """Read the type octet alone; None if it is unknown or missing."""
    return _TYPES.get(data[TYPE_AT] & TYPE_MASK) if len(data) > TYPE_AT else None


def peek_lsp_id(data: bytes) -> LspId:
    """Read the LSP id field."""
    return LspId(int.from_bytes(data[_LSP_ID_AT:_SEQUENCE_AT], "big"))


def is_copy(data: bytes, raw: bytes, *, purged: bool) -> bool:
    """Whether received bytes are a copy of the LSP ``raw``, apart from remaining lifetimes.

    Only a purge is a copy of a purge. ``data`` may have trailing bytes.
    """
    return (
        data[_LSP_ID_AT : len(raw)] == raw[_LSP_ID_AT:]
        and data[:_LIFETIME_AT] == raw[:_LIFETIME_AT]
        and (data[_LIFETIME_AT:_LSP_ID_AT] == _NO_LIFETIME) == purged
    )


def peek_lsp(data: bytes) -> LspPeek:
    """Read the fields that identify an instance, without its TLVs. Raises DecodeError."""
    kind, data, _ = read_pdu(data)
    if kind not in LSPS:
        raise DecodeError("type", TYPE_AT, f"{kind.label} is not an LSP")
    _, lifetime, identifier, sequence, checksum, _ = LSP.unpack_from(data, COMMON_SIZE)
    return LspPeek(LspId(identifier), sequence, lifetime, checksum, kind.level)


def with_lifetime(raw: bytes, remaining_lifetime: int) -> bytes:
    """The LSP with a changed remaining lifetime, which its checksum does not cover (§7.3.11)."""
    field = _LENGTH.pack(remaining_lifetime)
    return raw[:_LIFETIME_AT] + field + raw[_LSP_ID_AT:]


def checksum_of(raw: bytes) -> int:
    """The correct checksum of an LSP: over the LSP id and all after it (§7.3.11)."""
    return fletcher16(raw[_LSP_ID_AT:], _CHECKSUM_IN_SUM)


def with_checksum(raw: bytes, checksum: int) -> bytes:
    """The LSP with a changed checksum."""
    return raw[:_CHECKSUM_AT] + _LENGTH.pack(checksum) + raw[_CHECKSUM_AT + _LENGTH.size :]


def checksum_ok(raw: bytes) -> bool:
    """Whether the checksum of an LSP is correct; that of a purge is not examined (§7.3.16.4).

    ``raw`` is exactly the PDU. A checksum of zero is wrong (RFC 3719 §7): it is never computed.
    """
    if raw[_LIFETIME_AT:_LSP_ID_AT] == _NO_LIFETIME:
        return True
    return raw[_CHECKSUM_AT : _CHECKSUM_AT + 2] != b"\0\0" and fletcher_ok(raw[_LSP_ID_AT:])


def blank_mutable(raw: bytes) -> bytes:
    """An LSP as digested: lifetime and checksum are zero (RFC 5304 §2). Other PDUs unchanged."""
    if peek_type(raw) not in LSPS:
        return raw
    return with_checksum(with_lifetime(raw, 0), 0)


def insert_tlv(raw: bytes, tlv: bytes) -> bytes:
    """The PDU with a TLV before the others. Raises ValueError if it exceeds 65535 bytes."""
    kind, data, start = read_pdu(raw)
    return set_length(data[:start] + tlv + data[start:], kind)


def set_length(raw: bytes, kind: PduType) -> bytes:
    """The PDU with its length filled in. Raises ValueError if that is beyond 65535 bytes."""
    if len(raw) > 0xFFFF:
        raise ValueError(f"a PDU of {len(raw)} bytes is too long")
    at = _LAYOUTS[kind].length_at
    return raw[:at] + _LENGTH.pack(len(raw)) + raw[at + _LENGTH.size :]
