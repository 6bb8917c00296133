"""PDUs from bytes and to bytes (ISO 10589 §9); other packages import the codec from here."""

from __future__ import annotations

from typing import Final, NamedTuple

from fared.core.wire import DecodeError
from fared.protocols.igp.keys import AuthKey
from fared.protocols.isis.ids import PATH_CAPACITY, LevelSet, LspId
from fared.protocols.isis.pdu.auth import sign
from fared.protocols.isis.pdu.header import (
    COMMON_SIZE,
    CSNP,
    LAN_HELLO,
    LSP,
    LSPS,
    P2P_HELLO,
    PSNP,
    LspPeek,
    RawPdu,
    checksum_of,
    checksum_ok,
    common_header,
    is_copy,
    peek_lsp,
    peek_lsp_id,
    peek_type,
    read_pdu,
    set_length,
    with_checksum,
    with_lifetime,
)
from fared.protocols.isis.pdu.model import Csnp, LanHello, Lsp, P2pHello, Pdu, PduType, Psnp
from fared.protocols.isis.pdu.tlv_lists import (
    decode_tlvs,
    encode_tlvs,
    entries_size,
    entry_size,
    tlvs_by_bytes,
    tlvs_size,
)
from fared.protocols.isis.pdu.tlvs import Authentication, Tlv
from fared.protocols.isis.pdu.triplet import DecodeOptions

__all__ = [
    "LSPS",
    "Former",
    "LspPeek",
    "RawPdu",
    "checksum_of",
    "checksum_ok",
    "decode_pdu",
    "decode_raw",
    "encode_pdu",
    "encode_tlvs",
    "entries_size",
    "entry_size",
    "is_copy",
    "kind_of",
    "peek_lsp",
    "peek_lsp_id",
    "peek_type",
    "read_pdu",
    "tlvs_size",
    "with_checksum",
    "with_lifetime",
]

_K = PduType
_PRIORITY: Final = 0x7F
_CIRCUIT_TYPE: Final = 0x03
_PARTITION: Final = 0x80
_ATTACHED: Final = 0x08
_OVERLOAD: Final = 0x04
_IS_TYPE: Final = 0x03
_LEVEL_KINDS: Final[dict[type[Pdu], tuple[PduType, PduType]]] = {
    LanHello: (_K.L1_LAN_HELLO, _K.L2_LAN_HELLO),
    Lsp: (_K.L1_LSP, _K.L2_LSP),
    Csnp: (_K.L1_CSNP, _K.L2_CSNP),
    Psnp: (_K.L1_PSNP, _K.L2_PSNP),
}


class Former(NamedTuple):
    """An earlier PDU, without trailing bytes, and its decoded TLVs."""

    raw: bytes
    tlvs: tuple[Tlv, ...]


def kind_of(pdu: Pdu) -> PduType:
    """The PDU type of a decoded PDU."""
    if isinstance(pdu, P2pHello):
        return _K.P2P_HELLO
    return _LEVEL_KINDS[type(pdu)][pdu.level - 1]


def decode_pdu(
    data: bytes,
    *,
    strict: bool = False,
    verify_checksum: bool = True,
    capacity_code: int | None = PATH_CAPACITY,
) -> Pdu:
    """Decode a PDU from bytes, as ``decode_raw``; trailing bytes are accepted.

    Raises DecodeError as ``read_pdu`` and ``decode_raw`` do.
    """
    return decode_raw(
        read_pdu(data),
        strict=strict,
        verify_checksum=verify_checksum,
        capacity_code=capacity_code,
    )


def decode_raw(
    raw: RawPdu,
    *,
    strict: bool = False,
    verify_checksum: bool = True,
    capacity_code: int | None = PATH_CAPACITY,
    former: Former | None = None,
    packed: bool = False,
) -> Pdu:
    """Decode the fields of the fixed header, and the TLVs.

    Authentication is left to ``auth.verify``. The checksum of an LSP is verified unless its
    lifetime is zero. ``strict``: malformed TLVs of LSPs and known sub-TLVs of a wrong size are
    errors; otherwise they are kept as unknown ones. ``capacity_code`` is the code point of the
    path capacity sub-TLV. ``former`` is a PDU of the same type, decoded in the same way, an LSP
    with a correct checksum: TLVs that both have are used again. ``packed``: entries of SNPs stay
    bytes. Raises DecodeError: ``checksum``, ``tlv`` for malformed TLVs, ``type`` for a hello
    without a level in its circuit type.
    """
    data = raw.data
    # ISO 10589 §7.3.14.2 e): a corrupted LSP
    if verify_checksum and raw.kind in LSPS and not checksum_ok(data):
        found = peek_lsp(data).checksum
        raise DecodeError("checksum", 24, f"checksum {found:#06x}, not {checksum_of(data):#06x}")
    keep_malformed = raw.kind in LSPS and not strict
    options = DecodeOptions(strict, capacity_code, keep_malformed, packed)
    known: dict[bytes, Tlv] = {}
    if former is not None:
        known = tlvs_by_bytes(former.raw, raw.tlvs, len(former.raw), former.tlvs)
    tlvs = decode_tlvs(data, raw.tlvs, len(data), options, known)
    return _DECODERS[raw.kind](raw, tlvs)


def _circuit_type(value: int) -> LevelSet:
    # ISO 10589 §9.5 to §9.7: value 0 is reserved, and the PDU ignored
    levels = LevelSet(value & _CIRCUIT_TYPE)
    if not levels:
        raise DecodeError("type", COMMON_SIZE, "hello without a level in its circuit type")
    return levels


def _lan_hello(raw: RawPdu, tlvs: tuple[Tlv, ...]) -> Pdu:
    circuit, source, holding_time, _, priority, lan_id = LAN_HELLO.unpack_from(
        raw.data, COMMON_SIZE
    )
    return LanHello(
        raw.kind.level,
        _circuit_type(circuit),
        int.from_bytes(source, "big"),
        holding_time,
        priority & _PRIORITY,
        int.from_bytes(lan_id, "big"),
        tlvs,
    )


def _p2p_hello(raw: RawPdu, tlvs: tuple[Tlv, ...]) -> Pdu:
    circuit, source, holding_time, _length, local = P2P_HELLO.unpack_from(raw.data, COMMON_SIZE)
    source_id = int.from_bytes(source, "big")
    return P2pHello(_circuit_type(circuit), source_id, holding_time, local, tlvs)


def _lsp(raw: RawPdu, tlvs: tuple[Tlv, ...]) -> Pdu:
    _, lifetime, identifier, sequence, checksum, flags = LSP.unpack_from(raw.data, COMMON_SIZE)
    return Lsp(
        level=raw.kind.level,
        lsp_id=LspId(identifier),
        sequence_number=sequence,
        remaining_lifetime=lifetime,
        checksum=checksum,
        partition_repair=bool(flags & _PARTITION),
        attached=bool(flags & _ATTACHED),
        overload=bool(flags & _OVERLOAD),
        is_type=flags & _IS_TYPE,
        tlvs=tlvs,
    )


def _csnp(raw: RawPdu, tlvs: tuple[Tlv, ...]) -> Pdu:
    _, source, start, end = CSNP.unpack_from(raw.data, COMMON_SIZE)
    source_id = int.from_bytes(source, "big")
    return Csnp(raw.kind.level, source_id, LspId(start), LspId(end), tlvs)


def _psnp(raw: RawPdu, tlvs: tuple[Tlv, ...]) -> Pdu:
    _, source = PSNP.unpack_from(raw.data, COMMON_SIZE)
    return Psnp(raw.kind.level, int.from_bytes(source, "big"), tlvs)


_DECODERS: Final = {
    _K.L1_LAN_HELLO: _lan_hello,
    _K.L2_LAN_HELLO: _lan_hello,
    _K.P2P_HELLO: _p2p_hello,
    _K.L1_LSP: _lsp,
    _K.L2_LSP: _lsp,
    _K.L1_CSNP: _csnp,
    _K.L2_CSNP: _csnp,
    _K.L1_PSNP: _psnp,
    _K.L2_PSNP: _psnp,
}


def encode_pdu(
    pdu: Pdu, key: AuthKey | None = None, *, capacity_code: int | None = PATH_CAPACITY
) -> bytes:
    """Encode a PDU, with its length and, for an LSP, its checksum filled in.

    The checksum is computed where ``pdu.checksum`` is 0, purges included, and always under a
    key. Another value is written as it is, so that a decoded LSP is encoded to the same bytes; to
    encode a changed one, clear the checksum. ``key`` signs: its authentication TLV goes in front of
    the others and replaces any there. Raises ValueError if a field is too long.
    """
    tlvs = pdu.tlvs
    if key is not None:
        tlvs = tuple([tlv for tlv in tlvs if not isinstance(tlv, Authentication)])
    kind = kind_of(pdu)
    body = encode_tlvs(tlvs, capacity_code)
    raw = set_length(common_header(kind) + _header(pdu) + body, kind)
    if key is not None:
        return sign(raw, key)
    if isinstance(pdu, Lsp) and not pdu.checksum:
        return with_checksum(raw, checksum_of(raw))
    return raw


def _header(pdu: Pdu) -> bytes:
    """The fixed fields after the common ones, with a PDU length of zero."""
    match pdu:
        case LanHello():
            return LAN_HELLO.pack(
                pdu.circuit_type,
                pdu.source_id.to_bytes(6, "big"),
                pdu.holding_time,
                0,
                pdu.priority & _PRIORITY,
                pdu.lan_id.to_bytes(7, "big"),
            )
        case P2pHello():
            source = pdu.source_id.to_bytes(6, "big")
            circuit_id = pdu.local_circuit_id
            return P2P_HELLO.pack(pdu.circuit_type, source, pdu.holding_time, 0, circuit_id)
        case Lsp():
            return _lsp_header(pdu)
        case Csnp():
            return CSNP.pack(0, pdu.source_id.to_bytes(7, "big"), pdu.start, pdu.end)
        case Psnp():
            return PSNP.pack(0, pdu.source_id.to_bytes(7, "big"))


def _lsp_header(lsp: Lsp) -> bytes:
    flags = lsp.partition_repair * _PARTITION | lsp.attached * _ATTACHED
    flags |= lsp.overload * _OVERLOAD | lsp.is_type & _IS_TYPE
    lifetime = lsp.remaining_lifetime
    return LSP.pack(0, lifetime, lsp.lsp_id, lsp.sequence_number, lsp.checksum, flags)
