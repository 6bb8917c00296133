"""TLVs of a PDU: decoding, encoding, the sizes of entries for packing LSP fragments, and JSON.

A TLV of unknown type is kept as bytes. A known one whose length or contents are malformed is a
DecodeError ``tlv``, and its PDU is discarded. An LSP is not: RFC 8918 §4 requires that it be stored
and flooded all the same, or databases would differ. There the malformed TLV is kept as bytes and
ignored (``DecodeOptions.keep_malformed``). TLVs that are not allowed in a PDU are ignored too
(RFC 8918 §3.1): readers pick the TLVs that they use.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from fared.core.wire import DecodeError
from fared.protocols.isis.ids import PATH_CAPACITY
from fared.protocols.isis.pdu.ip_reach import encode_prefix
from fared.protocols.isis.pdu.is_reach import encode_neighbor
from fared.protocols.isis.pdu.tlv import TOPOLOGY, Json, known_tlvs
from fared.protocols.isis.pdu.tlvs import (
    AreaAddresses,
    IpReach,
    IsNeighbor,
    MultiTopology,
    ProtocolsSupported,
    Tlv,
    UnknownTlv,
)
from fared.protocols.isis.pdu.triplet import HEADER, DecodeOptions, packed_size, read_triplets

_DECODERS: Final = {code: cls.decoder(code) for code, cls in known_tlvs().items()}
_NOTHING: Final[Mapping[bytes, Tlv]] = MappingProxyType({})
_COMMON: Final = frozenset((AreaAddresses.code, ProtocolsSupported.code, MultiTopology.code))


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


def encode_tlvs(tlvs: Iterable[Tlv], capacity_code: int | None = PATH_CAPACITY) -> bytes:
    """Encode TLVs in order; lists too long for 255 bytes become several TLVs.

    Raises ValueError for a single value that is too long.
    """
    return b"".join([tlv.encode(capacity_code) for tlv in tlvs])


def entry_size(entry: IsNeighbor | IpReach) -> int:
    """Bytes of one entry inside TLV 22, 222, 135, 235, 236 or 237, the TLV's header not counted.

    The size of a path capacity sub-TLV does not depend on its code point.
    """
    if isinstance(entry, IsNeighbor):
        return len(encode_neighbor(entry))
    return len(encode_prefix(entry, PATH_CAPACITY))


def entries_size(sizes: Iterable[int], topology: int | None = None) -> int:
    """Bytes of the TLVs into which entries of these sizes are encoded, in this order."""
    return packed_size(sizes, 0 if topology is None else TOPOLOGY.size)


def tlvs_size(tlvs: Iterable[Tlv]) -> int:
    """Bytes of these TLVs on the wire."""
    return len(encode_tlvs(tlvs))


def render_tlvs(tlvs: tuple[Tlv, ...]) -> Json:
    """TLVs by name, in the order of the first TLV of each name."""
    out: Json = {}
    for tlv in tlvs:
        for name, value in tlv.document().items():
            if isinstance(value, list) and name in out:
                out[name] = out[name] + value
            elif name == "padding" and name in out:
                out[name] += value
            else:
                out.setdefault(name, value)
    return out
