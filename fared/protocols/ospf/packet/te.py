"""Traffic engineering LSAs: router address and link TLVs (RFC 3630, 4203, 7471).

``TeAttributes`` declares the sub-TLVs of attributes; those that identify the link are here.

Floats are decoded as received, also NaN and infinities, so that captures are shown unchanged.
``TeAttributes`` rejects such values where they are used.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from fared.core.wire import U8, U32, DecodeError, Format
from fared.paths.te.attributes import A_BIT, OSPF_TE, TeAttributes
from fared.protocols.ospf.packet.opaque import TeLink, TeRouterAddress
from fared.protocols.ospf.packet.tlv import read_tlvs, write_tlv

_ROUTER_ADDRESS: Final = 1
LINK_TLV: Final = 2


class LinkSubTlv(enum.IntEnum):
    """Sub-TLVs of the link TLV that identify the link (RFC 3630 §2.5, RFC 4203 §1.1)."""

    LINK_TYPE = 1
    LINK_ID = 2
    LOCAL_ADDRESS = 3
    REMOTE_ADDRESS = 4
    LINK_IDENTIFIERS = 11


_S = LinkSubTlv
_PAIR = struct.Struct(">II")
_FORMATS: Final[Mapping[int, Format]] = {
    _S.LINK_TYPE: U8,
    _S.LINK_ID: U32,
    _S.LINK_IDENTIFIERS: Format("8s", _PAIR.unpack, lambda pair: _PAIR.pack(*pair)),
    **{row.type: row.format for row in OSPF_TE.rows.values()},
}
"""Those of one size; the two address lists have any multiple of four bytes."""
_ADDRESS_LISTS = (_S.LOCAL_ADDRESS, _S.REMOTE_ADDRESS)
SIZES: Final[Mapping[int, int]] = {
    **dict.fromkeys(map(int, _ADDRESS_LISTS), U32.size),
    **{kind: shape.size for kind, shape in _FORMATS.items()},
}
"""The usual size of each sub-TLV: that of address lists with one address."""


def decode_te(data: bytes, start: int) -> TeRouterAddress | TeLink | None:
    """Decode a TE LSA; None if it has neither TLV.

    RFC 3630 §2.4 allows one top-level TLV. FRR sends its router address before each link, so the
    first TLV of each type is used. Raises DecodeError ``tlv``.
    """
    address: int | None = None
    link: TeLink | None = None
    for kind, value, end in read_tlvs(data, start, len(data)):
        if kind == _ROUTER_ADDRESS and address is None:
            if end - value != U32.size:
                raise DecodeError(
                    "tlv", value, f"router address of {end - value} bytes, expected 4"
                )
            address = U32.load(data, value)
        elif kind == LINK_TLV and link is None:
            link = _decode_link(data, value, end)
    if link is not None:
        return link if address is None else replace(link, router_address=address)
    return None if address is None else TeRouterAddress(address)


def _decode_link(data: bytes, first: int, last: int) -> TeLink:
    """Decode a link TLV (RFC 3630 §2.4.2); of several sub-TLVs of one type the first counts."""
    fields: dict[int, Any] = {}
    anomalous: list[int] = []
    unknown: list[tuple[int, bytes]] = []
    for kind, start, end in read_tlvs(data, first, last):
        shape = _FORMATS.get(kind)
        if shape is not None:
            if end - start != shape.size:
                raise DecodeError(
                    "tlv",
                    start,
                    f"link sub-TLV {kind} of {end - start} bytes, expected {shape.size}",
                )
            if kind not in fields:
                fields[kind] = shape.load(data, start)
                if kind in OSPF_TE.a_bits and data[start] & A_BIT:
                    anomalous.append(kind)
        elif kind in _ADDRESS_LISTS:
            if (end - start) % 4:
                raise DecodeError(
                    "tlv", start, f"addresses of {end - start} bytes, not a multiple of 4"
                )
            addresses = struct.unpack_from(f">{(end - start) // 4}I", data, start)
            fields.setdefault(kind, addresses)
        else:
            unknown.append((kind, data[start:end]))
    local, remote = fields.get(_S.LINK_IDENTIFIERS, (None, None))
    return TeLink(
        link_type=fields.get(_S.LINK_TYPE),
        link_id=fields.get(_S.LINK_ID),
        local_addresses=fields.get(_S.LOCAL_ADDRESS, ()),
        remote_addresses=fields.get(_S.REMOTE_ADDRESS, ()),
        local_identifier=local,
        remote_identifier=remote,
        attributes=TeAttributes(*map(fields.get, OSPF_TE.rows)),
        anomalous=tuple(sorted(anomalous)),
        unknown=tuple(unknown),
    )


def encode_te_router_address(body: TeRouterAddress) -> bytes:
    """Encode a TE LSA body with the router address TLV (RFC 3630 §2.4.1)."""
    return write_tlv(_ROUTER_ADDRESS, U32.dump(body.address))


def encode_te_link(body: TeLink) -> bytes:
    """Encode a TE LSA body with one link TLV, sub-TLVs in the order of their types.

    If ``router_address`` is set, its TLV precedes the link TLV, as FRR sends it.
    """
    parts = OSPF_TE.encode(body.attributes, body.anomalous)
    if body.link_type is not None:
        parts[_S.LINK_TYPE] = U8.dump(body.link_type)
    if body.link_id is not None:
        parts[_S.LINK_ID] = U32.dump(body.link_id)
    if body.local_addresses:
        parts[_S.LOCAL_ADDRESS] = _addresses(body.local_addresses)
    if body.remote_addresses:
        parts[_S.REMOTE_ADDRESS] = _addresses(body.remote_addresses)
    if body.local_identifier is not None:
        parts[_S.LINK_IDENTIFIERS] = _PAIR.pack(body.local_identifier, body.remote_identifier or 0)
    triplets = [write_tlv(kind, parts[kind]) for kind in sorted(parts)]
    triplets += (write_tlv(kind, value) for kind, value in body.unknown)
    link = write_tlv(LINK_TLV, b"".join(triplets))
    if body.router_address is None:
        return link
    return encode_te_router_address(TeRouterAddress(body.router_address)) + link


def _addresses(addresses: tuple[int, ...]) -> bytes:
    return struct.pack(f">{len(addresses)}I", *addresses)
