"""PDUs from bytes and to bytes (ISO 10589 §9); what the rest of the room imports the codec from."""

from __future__ import annotations

from typing import Final, NamedTuple

from fared.core.keys import AuthKey
from fared.core.wire import DecodeError
from fared.isis.auth import sign
from fared.isis.ids import LevelSet, LspId
from fared.isis.pdu.header import (
    COMMON_SIZE,
    CSNP,
    LAN_HELLO,
    LSP,
    P2P_HELLO,
    PSNP,
    Frame,
    LspPeek,
    checksum_of,
    checksum_ok,
    common_header,
    exact,
    pdu_type,
    peek_lsp,
    read_frame,
    set_length,
    with_checksum,
    with_lifetime,
)
from fared.isis.pdu.model import (
    Authentication,
    Csnp,
    LanHello,
    Lsp,
    P2pHello,
    Pdu,
    PduType,
    Psnp,
    Tlv,
)
from fared.isis.pdu.tlv_decode import decode_tlvs, tlvs_by_bytes
from fared.isis.pdu.tlv_encode import encode_tlv, encode_tlvs, entries_size, entry_size, tlvs_size
from fared.isis.pdu.triplet import Reading
from fared.isis.settings import PATH_CAPACITY

__all__ = [
    "LspPeek",
    "checksum_of",
    "checksum_ok",
    "decode_pdu",
    "encode_pdu",
    "encode_tlv",
    "encode_tlvs",
    "entries_size",
    "entry_size",
    "exact",
    "kind_of",
    "pdu_type",
    "peek_lsp",
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
    """A PDU, without bytes behind it, and the TLVs it was decoded to."""

    raw: bytes
    tlvs: tuple[Tlv, ...]


def kind_of(pdu: Pdu) -> PduType:
    """The type a PDU is encoded as."""
    if isinstance(pdu, P2pHello):
        return _K.P2P_HELLO
    return _LEVEL_KINDS[type(pdu)][pdu.level - 1]


def decode_pdu(
    data: bytes,
    *,
    strict: bool = False,
    verify_checksum: bool = True,
    capacity_code: int | None = PATH_CAPACITY,
    former: Former | None = None,
) -> Pdu:
    """Decode a PDU; bytes behind it (``exact`` cuts them off) are no fault.

    Authentication is left to ``auth.verify``. The checksum of an LSP is verified unless its
    lifetime is zero. ``strict`` refuses known sub-TLVs of a wrong size, which are else kept as
    unknown ones. ``capacity_code`` is the code point of the path capacity sub-TLV. ``former`` is
    a PDU of the same type, decoded in the same way: TLVs that both have are taken over. Raises
    DecodeError: what ``header.read_frame`` raises, ``checksum``, ``tlv`` for TLVs that
    do not add up, ``type`` for a hello of neither level.
    """
    frame = read_frame(data)
    if verify_checksum and frame.kind in (_K.L1_LSP, _K.L2_LSP):
        _check_sum(data if frame.end == len(data) else data[: frame.end])
    known: dict[bytes, Tlv] = {}
    if former is not None:
        known = tlvs_by_bytes(former.raw, frame.tlvs, len(former.raw), former.tlvs)
    tlvs = decode_tlvs(data, frame.tlvs, frame.end, Reading(strict, capacity_code), known)
    return _DECODERS[frame.kind](data, frame, tlvs)


def _check_sum(data: bytes) -> None:
    if not checksum_ok(data):
        found = peek_lsp(data).checksum
        raise DecodeError("checksum", 24, f"checksum {found:#06x}, not {checksum_of(data):#06x}")


def _circuit_type(value: int) -> LevelSet:
    levels = LevelSet(value & _CIRCUIT_TYPE)
    if not levels:
        raise DecodeError("type", COMMON_SIZE, "a hello of neither level")
    return levels


def _lan_hello(data: bytes, frame: Frame, tlvs: tuple[Tlv, ...]) -> Pdu:
    circuit, source, holding_time, _, priority, lan_id = LAN_HELLO.unpack_from(data, COMMON_SIZE)
    return LanHello(
        frame.kind.level,
        _circuit_type(circuit),
        int.from_bytes(source, "big"),
        holding_time,
        priority & _PRIORITY,
        int.from_bytes(lan_id, "big"),
        tlvs,
    )


def _p2p_hello(data: bytes, _: Frame, tlvs: tuple[Tlv, ...]) -> Pdu:
    circuit, source, holding_time, _length, local = P2P_HELLO.unpack_from(data, COMMON_SIZE)
    source_id = int.from_bytes(source, "big")
    return P2pHello(_circuit_type(circuit), source_id, holding_time, local, tlvs)


def _lsp(data: bytes, frame: Frame, tlvs: tuple[Tlv, ...]) -> Pdu:
    _, lifetime, identifier, sequence, checksum, flags = LSP.unpack_from(data, COMMON_SIZE)
    return Lsp(
        level=frame.kind.level,
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


def _csnp(data: bytes, frame: Frame, tlvs: tuple[Tlv, ...]) -> Pdu:
    _, source, start, end = CSNP.unpack_from(data, COMMON_SIZE)
    source_id = int.from_bytes(source, "big")
    return Csnp(frame.kind.level, source_id, LspId(start), LspId(end), tlvs)


def _psnp(data: bytes, frame: Frame, tlvs: tuple[Tlv, ...]) -> Pdu:
    _, source = PSNP.unpack_from(data, COMMON_SIZE)
    return Psnp(frame.kind.level, int.from_bytes(source, "big"), tlvs)


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
    key; another value is written as it is, so that what was decoded can be encoded again: whoever
    changes a decoded LSP must clear it. ``key`` signs: its authentication TLV goes in front of the
    others and any there is left out. Raises ValueError if something is too long.
    """
    tlvs = pdu.tlvs
    if key is not None:
        tlvs = tuple(tlv for tlv in tlvs if not isinstance(tlv, Authentication))
    kind = kind_of(pdu)
    body = encode_tlvs(tlvs, capacity_code)
    raw = set_length(common_header(kind) + _header(pdu) + body, kind)
    if key is not None:
        return sign(raw, key)
    if isinstance(pdu, Lsp) and not pdu.checksum:
        return with_checksum(raw, checksum_of(raw))
    return raw


def _header(pdu: Pdu) -> bytes:
    """The fixed fields behind the common ones; lengths are zero still."""
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
