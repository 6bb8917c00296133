"""Encoding of TLVs by their class, and the sizes of entries for packing LSP fragments."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from fared.core.ids import FAMILY_IPV4
from fared.protocols.isis.ids import PATH_CAPACITY
from fared.protocols.isis.pdu.flooding_parameters import FloodingParameters, encode_parameters
from fared.protocols.isis.pdu.ip_reach import encode_prefix
from fared.protocols.isis.pdu.is_reach import encode_neighbor
from fared.protocols.isis.pdu.lsp_entries import ENTRY_SIZE, pack
from fared.protocols.isis.pdu.narrow import encode_narrow_neighbor, encode_narrow_prefix
from fared.protocols.isis.pdu.tlvs import (
    AreaAddresses,
    Authentication,
    BfdEnabled,
    Hostname,
    InterfaceAddresses,
    IpReach,
    IpReachability,
    IsNeighbor,
    IsNeighbors,
    IsReachability,
    LspBufferSize,
    LspEntries,
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
from fared.protocols.isis.pdu.triplet import MAX_VALUE, pack_entries, packed_size, write_triplet

_T = TlvType
_OVERLOAD: Final = 0x8000
_ATTACHED: Final = 0x4000
_HALF = struct.Struct(">H")
_WORD = struct.Struct(">I")
_BFD_ENABLED = struct.Struct(">HB")
_THREE_WAY = struct.Struct(">BI6sI")
_THREE_WAY_OWN = struct.Struct(">BI")


def encode_tlvs(tlvs: Iterable[Tlv], capacity_code: int | None = PATH_CAPACITY) -> bytes:
    """Encode TLVs in order; lists too long for 255 bytes become several TLVs.

    Raises ValueError for a single value that is too long.
    """
    return b"".join([encode_tlv(tlv, capacity_code) for tlv in tlvs])


def entry_size(entry: IsNeighbor | IpReach) -> int:
    """Bytes of one entry inside TLV 22, 222, 135, 235, 236 or 237, the TLV's header not counted.

    The size of a path capacity sub-TLV does not depend on its code point.
    """
    if isinstance(entry, IsNeighbor):
        return len(encode_neighbor(entry))
    return len(encode_prefix(entry, PATH_CAPACITY))


def entries_size(sizes: Iterable[int], topology: int | None = None) -> int:
    """Bytes of the TLVs into which entries of these sizes are encoded, in this order."""
    return packed_size(sizes, 0 if topology is None else _HALF.size)


def tlvs_size(tlvs: Iterable[Tlv]) -> int:
    """Bytes of these TLVs on the wire."""
    return len(encode_tlvs(tlvs))


def encode_tlv(tlv: Tlv, capacity_code: int | None = PATH_CAPACITY) -> bytes:
    """Encode one TLV, or as many as its list needs. Raises ValueError as ``encode_tlvs``."""
    match tlv:
        case IsReachability():
            return _is_reachability(tlv)
        case IpReachability():
            return _ip_reachability(tlv, capacity_code)
        case LspEntries():
            return _lsp_entries(tlv)
        case NarrowIsReachability():
            neighbors = map(encode_narrow_neighbor, tlv.neighbors)
            return pack_entries(_T.IS_REACHABILITY, neighbors, bytes((tlv.virtual,)))
        case NarrowIpReachability():
            kind = _T.IP_EXTERNAL_REACHABILITY if tlv.external else _T.IP_INTERNAL_REACHABILITY
            return pack_entries(kind, map(encode_narrow_prefix, tlv.prefixes))
        case _:
            return _encode_list(tlv)


def _lsp_entries(tlv: LspEntries) -> bytes:
    packed = tlv.packed
    if packed and not tlv.entries and len(packed) <= MAX_VALUE:
        return write_triplet(_T.LSP_ENTRIES, packed)
    rest = (packed[at : at + ENTRY_SIZE] for at in range(0, len(packed), ENTRY_SIZE))
    return pack_entries(_T.LSP_ENTRIES, (*map(pack, tlv.entries), *rest))


def _is_reachability(tlv: IsReachability) -> bytes:
    entries = map(encode_neighbor, tlv.neighbors)
    if tlv.topology is None:
        return pack_entries(_T.EXTENDED_IS_REACHABILITY, entries)
    return pack_entries(_T.MT_IS_REACHABILITY, entries, _HALF.pack(tlv.topology))


def _ip_reachability(tlv: IpReachability, capacity_code: int | None) -> bytes:
    entries = (encode_prefix(reach, capacity_code) for reach in tlv.prefixes)
    ipv4 = tlv.family == FAMILY_IPV4
    if tlv.topology is None:
        kind = _T.EXTENDED_IP_REACHABILITY if ipv4 else _T.IPV6_REACHABILITY
        return pack_entries(kind, entries)
    kind = _T.MT_IP_REACHABILITY if ipv4 else _T.MT_IPV6_REACHABILITY
    return pack_entries(kind, entries, _HALF.pack(tlv.topology))


def _encode_list(tlv: Tlv) -> bytes:
    """TLVs that are lists of short entries."""
    entries: Iterable[bytes]
    match tlv:
        case AreaAddresses():
            kind = _T.AREA_ADDRESSES
            entries = (bytes((len(address),)) + address for address in tlv.addresses)
        case IsNeighbors():
            kind, entries = _T.IS_NEIGHBORS, (snpa.to_bytes(6, "big") for snpa in tlv.snpas)
        case InterfaceAddresses():
            ipv4 = tlv.family == FAMILY_IPV4
            kind = _T.IP_INTERFACE_ADDRESSES if ipv4 else _T.IPV6_INTERFACE_ADDRESSES
            size = 4 if ipv4 else 16
            entries = (address.to_bytes(size, "big") for address in tlv.addresses)
        case ProtocolsSupported():
            kind, entries = _T.PROTOCOLS_SUPPORTED, (bytes((n,)) for n in tlv.nlpids)
        case MultiTopology():
            kind, entries = _T.MULTI_TOPOLOGY, map(_topology, tlv.topologies)
        case BfdEnabled():
            kind, entries = _T.BFD_ENABLED, (_BFD_ENABLED.pack(*pair) for pair in tlv.protocols)
        case _:
            return _encode_single(tlv)
    return pack_entries(kind, entries)


def _topology(topology: Topology) -> bytes:
    flags = topology.overload * _OVERLOAD | topology.attached * _ATTACHED
    return _HALF.pack(topology.topology | flags)


def _encode_single(tlv: Tlv) -> bytes:
    """TLVs that are one value."""
    match tlv:
        case UnknownTlv():
            kind, value = tlv.type, tlv.value
        case Padding():
            kind, value = _T.PADDING, bytes(tlv.size)
        case Authentication():
            kind, value = _T.AUTHENTICATION, bytes((tlv.kind,)) + tlv.value
        case PurgeOriginator():
            kind, value = _T.PURGE_ORIGINATOR, _purge_originator(tlv)
        case LspBufferSize():
            kind, value = _T.LSP_BUFFER_SIZE, _HALF.pack(tlv.size)
        case FloodingParameters():
            kind, value = _T.FLOODING_PARAMETERS, encode_parameters(tlv)
        case TeRouterId():
            kind, value = _T.TE_ROUTER_ID, _WORD.pack(tlv.address)
        case Hostname():
            kind, value = _T.HOSTNAME, tlv.name.encode()
        case _:
            return _encode_of_hello(tlv)
    return write_triplet(kind, value)


def _encode_of_hello(tlv: Tlv) -> bytes:
    """TLVs about one adjacency."""
    match tlv:
        case ThreeWay():
            return write_triplet(_T.THREE_WAY, _three_way(tlv))
        case Restart():
            return write_triplet(_T.RESTART, _restart(tlv))
        case _:
            raise TypeError(f"{type(tlv).__name__} is no TLV")


def _purge_originator(tlv: PurgeOriginator) -> bytes:
    systems = [tlv.system_id]
    if tlv.received_from is not None:
        systems.append(tlv.received_from)
    return bytes((len(systems),)) + b"".join(system.to_bytes(6, "big") for system in systems)


def _restart(tlv: Restart) -> bytes:
    value = bytes((tlv.flags,))
    if tlv.remaining_time is not None:
        value += _HALF.pack(tlv.remaining_time)
        if tlv.system_id is not None:
            value += tlv.system_id.to_bytes(6, "big")
    return value


def _three_way(tlv: ThreeWay) -> bytes:
    """The shortest form with all known fields (RFC 5303 §3.1)."""
    if tlv.extended_local_circuit_id is None:
        return bytes((tlv.state,))
    if tlv.neighbor_system_id is None:
        return _THREE_WAY_OWN.pack(tlv.state, tlv.extended_local_circuit_id)
    return _THREE_WAY.pack(
        tlv.state,
        tlv.extended_local_circuit_id,
        tlv.neighbor_system_id.to_bytes(6, "big"),
        tlv.neighbor_extended_local_circuit_id or 0,
    )
