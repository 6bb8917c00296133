"""Decoding of the TLVs of all PDUs, by a table of their types.

A TLV of unknown type is kept as bytes. A known one whose length or contents are malformed is a
DecodeError ``tlv``, and its PDU is discarded. An LSP is not: RFC 8918 §4 requires that it be stored
and flooded all the same, or databases would differ. There the malformed TLV is kept as bytes and
ignored (``DecodeOptions.keep_malformed``). TLVs that are not allowed in a PDU are ignored too
(RFC 8918 §3.1): readers pick the TLVs that they use.
"""

from __future__ import annotations

import contextlib
import functools
import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6
from fared.core.wire import DecodeError
from fared.protocols.isis.ids import LspId, Snpa
from fared.protocols.isis.pdu.flooding_parameters import decode_parameters
from fared.protocols.isis.pdu.ip_reach import decode_prefixes
from fared.protocols.isis.pdu.is_reach import decode_neighbors
from fared.protocols.isis.pdu.narrow import (
    NEIGHBOR,
    PREFIX,
    decode_narrow_neighbors,
    decode_narrow_prefixes,
)
from fared.protocols.isis.pdu.tlvs import (
    AreaAddresses,
    Authentication,
    BfdEnabled,
    Hostname,
    InterfaceAddresses,
    IpReachability,
    IsNeighbors,
    IsReachability,
    LspBufferSize,
    LspEntries,
    LspEntry,
    MultiTopology,
    NarrowIpReachability,
    NarrowIsReachability,
    Padding,
    ProtocolsSupported,
    PurgeOriginator,
    Restart,
    TeRouterId,
    ThreeWay,
    Tlv,
    TlvType,
    Topology,
    UnknownTlv,
)
from fared.protocols.isis.pdu.triplet import (
    HEADER,
    DecodeOptions,
    check_multiple,
    read_triplets,
)

_Decoder = Callable[[bytes, int, int, DecodeOptions], Tlv]
Pieces = list[tuple[int, int, int]]
_T = TlvType
_NOTHING: Final[Mapping[bytes, Tlv]] = MappingProxyType({})
_MAX_AREA_ADDRESS: Final = 13
_TOPOLOGY_ID: Final = 0x0FFF
_OVERLOAD: Final = 0x8000
_ATTACHED: Final = 0x4000
_SYSTEM_ID: Final = 6
_ADDRESS_SIZES: Final = {FAMILY_IPV4: 4, FAMILY_IPV6: 16}
_COMMON: Final = frozenset((_T.AREA_ADDRESSES, _T.PROTOCOLS_SUPPORTED, _T.MULTI_TOPOLOGY))
_HALF = struct.Struct(">H")
_WORD = struct.Struct(">I")
_LSP_ENTRY = struct.Struct(">HQIH")
_BFD_ENABLED = struct.Struct(">HB")
_THREE_WAY = struct.Struct(">BI6sI")
_THREE_WAY_OWN = struct.Struct(">BI")
_RESTART = struct.Struct(">BH")
_RESTART_LAN = struct.Struct(">BH6s")


def decode_tlvs(
    data: bytes, start: int, end: int, options: DecodeOptions, known: Mapping[bytes, Tlv] = _NOTHING
) -> tuple[Tlv, ...]:
    """Decode the TLVs between two offsets. Raises DecodeError ``tlv``.

    ``known``, from ``tlvs_by_bytes``, holds TLVs decoded before, which are used again.
    """
    found: list[Tlv] = []
    for kind, first, last in read_triplets(data, start, end):
        same = known.get(data[first - HEADER : last]) if known else None
        found.append(_decode_one(data, kind, first, last, options) if same is None else same)
    return tuple(found)


def differing(data: bytes, former: bytes, start: int) -> Pieces | None:
    """The TLVs from ``start`` on whose values differ between two PDUs: place, start and end.

    The TLVs of ``former`` are well-formed. None: the others are not of the same types and sizes.
    """
    size = len(former)
    if len(data) != size:
        return None
    found, at, place = [], start, 0
    while at < size:
        following = at + HEADER + former[at + 1]
        if data[at:following] != former[at:following]:
            if data[at : at + HEADER] != former[at : at + HEADER]:
                return None
            found.append((place, at, following))
        at = following
        place += 1
    return found


def decode_differing(
    data: bytes, pieces: Pieces, options: DecodeOptions, former: tuple[Tlv, ...]
) -> tuple[Tlv, ...]:
    """Decode the TLVs that ``differing`` found. Raises DecodeError as ``decode_tlvs``."""
    found = list(former)
    for place, at, following in pieces:
        found[place] = _decode_one(data, data[at], at + HEADER, following, options)
    return tuple(found)


def _decode_one(data: bytes, kind: int, first: int, last: int, options: DecodeOptions) -> Tlv:
    decoder = _DECODERS.get(kind)
    if decoder is None:
        return UnknownTlv(kind, data[first:last])
    try:
        if kind in _COMMON:
            with contextlib.suppress(DecodeError):  # raised again below, with the place in the PDU
                return _decode_common(kind, data[first:last], options)
        return decoder(data, first, last, options)
    except DecodeError:
        if not options.keep_malformed:
            raise
        # RFC 8918 §4: the TLV is ignored, the LSP is not
        return UnknownTlv(kind, data[first:last])


@functools.lru_cache(maxsize=64)
def _decode_common(kind: int, value: bytes, options: DecodeOptions) -> Tlv:
    """Decode a TLV that most routers have with the same contents: one object for all."""
    return _DECODERS[kind](value, 0, len(value), options)


def malformed_types(tlvs: tuple[Tlv, ...]) -> list[int]:
    """The types of the TLVs that were kept as bytes although their type is known."""
    if UnknownTlv not in map(type, tlvs):  # mostly
        return []
    return [tlv.type for tlv in tlvs if isinstance(tlv, UnknownTlv) and tlv.type in _DECODERS]


def tlvs_by_bytes(data: bytes, start: int, end: int, tlvs: tuple[Tlv, ...]) -> dict[bytes, Tlv]:
    """TLVs by the bytes they were decoded from, their headers included."""
    return {
        data[first - HEADER : last]: tlv
        for (_, first, last), tlv in zip(read_triplets(data, start, end), tlvs, strict=True)
    }


def _area_addresses(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    addresses = []
    while start < end:
        size = data[start]
        first = start + 1
        start = first + size
        if not 1 <= size <= _MAX_AREA_ADDRESS or start > end:
            raise DecodeError("tlv", first - 1, f"area address of {size} bytes")
        addresses.append(data[first:start])
    return AreaAddresses(tuple(addresses))


def _is_neighbors(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    check_multiple(start, end, 6, "SNPAs")
    return IsNeighbors(
        tuple([Snpa(int.from_bytes(data[at : at + 6], "big")) for at in range(start, end, 6)])
    )


def _padding(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    value = data[start:end]
    return UnknownTlv(_T.PADDING, value) if any(value) else Padding(len(value))


def _lsp_entries(data: bytes, start: int, end: int, options: DecodeOptions) -> Tlv:
    check_multiple(start, end, _LSP_ENTRY.size, "LSP entries")
    if options.packed:
        return LspEntries((), data[start:end])
    return LspEntries(
        tuple(
            [
                LspEntry(LspId(identifier), sequence, lifetime, checksum)
                for lifetime, identifier, sequence, checksum in _LSP_ENTRY.iter_unpack(
                    data[start:end]
                )
            ]
        )
    )


def _authentication(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    if start == end:
        raise DecodeError("tlv", start, "authentication without a type")
    return Authentication(data[start], data[start + 1 : end])


def _purge_originator(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    size = end - start
    if not size or data[start] not in (1, 2) or size != 1 + _SYSTEM_ID * data[start]:
        raise DecodeError("tlv", start, f"purge originator of {size} bytes")
    first, *second = (
        int.from_bytes(data[at : at + _SYSTEM_ID], "big")
        for at in range(start + 1, end, _SYSTEM_ID)
    )
    return PurgeOriginator(first, second[0] if second else None)


def _lsp_buffer_size(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    _check_size(start, end, _HALF.size, "LSP buffer size")
    return LspBufferSize(_HALF.unpack_from(data, start)[0])


def _check_size(start: int, end: int, size: int, what: str) -> None:
    if end - start != size:
        raise DecodeError("tlv", start, f"{what} of {end - start} bytes, not {size}")


def _narrow_is_reachability(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    if start == end:
        raise DecodeError("tlv", start, "IS reachability without the virtual flag")
    check_multiple(start + 1, end, NEIGHBOR.size, "neighbors")
    neighbors = (*decode_narrow_neighbors(data, start + 1, end),)
    return NarrowIsReachability(neighbors, data[start])


def _is_reachability(data: bytes, start: int, end: int, options: DecodeOptions) -> Tlv:
    return IsReachability(decode_neighbors(data, start, end, options))


def _topology(data: bytes, start: int, end: int) -> int:
    if end - start < _HALF.size:
        raise DecodeError("tlv", start, "no topology id")
    (field,) = _HALF.unpack_from(data, start)
    return int(field) & _TOPOLOGY_ID


def _mt_is_reachability(data: bytes, start: int, end: int, options: DecodeOptions) -> Tlv:
    topology = _topology(data, start, end)
    neighbors = decode_neighbors(data, start + _HALF.size, end, options)
    return IsReachability(neighbors, topology)


def _ip_reachability(family: int) -> _Decoder:
    def decode(data: bytes, start: int, end: int, options: DecodeOptions) -> Tlv:
        return IpReachability(family, (*decode_prefixes(data, start, end, family, options),))

    return decode


def _mt_ip_reachability(family: int) -> _Decoder:
    def decode(data: bytes, start: int, end: int, options: DecodeOptions) -> Tlv:
        topology = _topology(data, start, end)
        prefixes = decode_prefixes(data, start + _HALF.size, end, family, options)
        return IpReachability(family, (*prefixes,), topology)

    return decode


def _narrow_ip_reachability(*, external: bool) -> _Decoder:
    def decode(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
        check_multiple(start, end, PREFIX.size, "prefixes")
        return NarrowIpReachability((*decode_narrow_prefixes(data, start, end),), external)

    return decode


def _protocols(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    return ProtocolsSupported(tuple(data[start:end]))


def _interface_addresses(family: int) -> _Decoder:
    def decode(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
        size = _ADDRESS_SIZES[family]
        check_multiple(start, end, size, "addresses")
        addresses = [int.from_bytes(data[at : at + size], "big") for at in range(start, end, size)]
        return InterfaceAddresses(family, tuple(addresses))

    return decode


def _te_router_id(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    _check_size(start, end, _WORD.size, "TE router id")
    return TeRouterId(_WORD.unpack_from(data, start)[0])


def _hostname(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    """RFC 5301; a name that is not printable text is kept as bytes, since terminals show it."""
    value = data[start:end]
    try:
        name = value.decode()
    except UnicodeDecodeError:
        return UnknownTlv(_T.HOSTNAME, value)
    return Hostname(name) if name.isprintable() else UnknownTlv(_T.HOSTNAME, value)


def _multi_topology(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    check_multiple(start, end, _HALF.size, "topologies")
    return MultiTopology(
        tuple(
            [
                Topology(field & _TOPOLOGY_ID, bool(field & _OVERLOAD), bool(field & _ATTACHED))
                for (field,) in _HALF.iter_unpack(data[start:end])
            ]
        )
    )


def _bfd_enabled(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    check_multiple(start, end, _BFD_ENABLED.size, "BFD protocols")
    pairs = _BFD_ENABLED.iter_unpack(data[start:end])
    return BfdEnabled(tuple([(field & _TOPOLOGY_ID, nlpid) for field, nlpid in pairs]))


def _three_way(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    # RFC 5303 §3.1: all fields but the state are optional
    size = end - start
    if size == 1:
        return ThreeWay(data[start])
    if size == _THREE_WAY_OWN.size:
        return ThreeWay(*_THREE_WAY_OWN.unpack_from(data, start))
    _check_size(start, end, _THREE_WAY.size, "three-way adjacency")
    state, own, system, other = _THREE_WAY.unpack_from(data, start)
    return ThreeWay(state, own, int.from_bytes(system, "big"), other)


def _restart(data: bytes, start: int, end: int, _: DecodeOptions) -> Tlv:
    # RFC 8706 §3.1: the remaining time and the system id are optional
    size = end - start
    if size == 1:
        return Restart(data[start])
    if size == _RESTART.size:
        return Restart(*_RESTART.unpack_from(data, start))
    _check_size(start, end, _RESTART_LAN.size, "restart")
    flags, remaining, system = _RESTART_LAN.unpack_from(data, start)
    return Restart(flags, remaining, int.from_bytes(system, "big"))


_DECODERS: Final[dict[int, _Decoder]] = {
    _T.AREA_ADDRESSES: _area_addresses,
    _T.IS_REACHABILITY: _narrow_is_reachability,
    _T.IS_NEIGHBORS: _is_neighbors,
    _T.PADDING: _padding,
    _T.LSP_ENTRIES: _lsp_entries,
    _T.AUTHENTICATION: _authentication,
    _T.PURGE_ORIGINATOR: _purge_originator,
    _T.LSP_BUFFER_SIZE: _lsp_buffer_size,
    _T.FLOODING_PARAMETERS: decode_parameters,
    _T.EXTENDED_IS_REACHABILITY: _is_reachability,
    _T.IP_INTERNAL_REACHABILITY: _narrow_ip_reachability(external=False),
    _T.PROTOCOLS_SUPPORTED: _protocols,
    _T.IP_EXTERNAL_REACHABILITY: _narrow_ip_reachability(external=True),
    _T.IP_INTERFACE_ADDRESSES: _interface_addresses(FAMILY_IPV4),
    _T.TE_ROUTER_ID: _te_router_id,
    _T.EXTENDED_IP_REACHABILITY: _ip_reachability(FAMILY_IPV4),
    _T.HOSTNAME: _hostname,
    _T.BFD_ENABLED: _bfd_enabled,
    _T.MT_IS_REACHABILITY: _mt_is_reachability,
    _T.MULTI_TOPOLOGY: _multi_topology,
    _T.IPV6_INTERFACE_ADDRESSES: _interface_addresses(FAMILY_IPV6),
    _T.MT_IP_REACHABILITY: _mt_ip_reachability(FAMILY_IPV4),
    _T.IPV6_REACHABILITY: _ip_reachability(FAMILY_IPV6),
    _T.MT_IPV6_REACHABILITY: _mt_ip_reachability(FAMILY_IPV6),
    _T.THREE_WAY: _three_way,
    _T.RESTART: _restart,
}
