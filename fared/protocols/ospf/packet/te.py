"""Traffic engineering LSAs: router address and link TLVs (RFC 3630, 4203, 7471).

Floats are decoded as received, also NaN and infinities, so that captures are shown unchanged.
``TeAttributes`` rejects such values where they are used.
"""

from __future__ import annotations

import enum
import struct
from typing import Final

from msgspec.structs import replace

from fared.core.wire import DecodeError
from fared.paths.te.attributes import TeAttributes
from fared.paths.te.sub_tlvs import (
    A_BIT,
    EIGHT_FLOATS,
    FLOAT,
    PAIR,
    WORD,
    bandwidths,
    delay_of,
    loss_of,
    measured,
)
from fared.protocols.ospf.packet.opaque import TeLink, TeRouterAddress
from fared.protocols.ospf.packet.tlv import read_tlvs, write_tlv

_ROUTER_ADDRESS: Final = 1
LINK_TLV: Final = 2


class LinkSubTlv(enum.IntEnum):
    """Sub-TLVs of the link TLV (RFC 3630 §2.5, RFC 4203 §1.1, RFC 7471 §4)."""

    LINK_TYPE = 1
    LINK_ID = 2
    LOCAL_ADDRESS = 3
    REMOTE_ADDRESS = 4
    TE_METRIC = 5
    MAX_BANDWIDTH = 6
    MAX_RESERVABLE_BANDWIDTH = 7
    UNRESERVED_BANDWIDTH = 8
    ADMIN_GROUP = 9
    LINK_IDENTIFIERS = 11
    DELAY = 27
    MIN_MAX_DELAY = 28
    DELAY_VARIATION = 29
    LOSS = 30
    RESIDUAL_BANDWIDTH = 31
    AVAILABLE_BANDWIDTH = 32
    UTILIZED_BANDWIDTH = 33


_S = LinkSubTlv
_LINK_TYPE = struct.Struct(">B")
# Sub-TLVs of one fixed shape; the two address lists have any multiple of four bytes.
_SHAPES: dict[int, struct.Struct] = {
    _S.LINK_TYPE: _LINK_TYPE,
    _S.LINK_ID: WORD,
    _S.TE_METRIC: WORD,
    _S.MAX_BANDWIDTH: FLOAT,
    _S.MAX_RESERVABLE_BANDWIDTH: FLOAT,
    _S.UNRESERVED_BANDWIDTH: EIGHT_FLOATS,
    _S.ADMIN_GROUP: WORD,
    _S.LINK_IDENTIFIERS: PAIR,
    _S.DELAY: WORD,
    _S.MIN_MAX_DELAY: PAIR,
    _S.DELAY_VARIATION: WORD,
    _S.LOSS: WORD,
    _S.RESIDUAL_BANDWIDTH: FLOAT,
    _S.AVAILABLE_BANDWIDTH: FLOAT,
    _S.UTILIZED_BANDWIDTH: FLOAT,
}
_ADDRESS_LISTS = (_S.LOCAL_ADDRESS, _S.REMOTE_ADDRESS)
_WITH_A_BIT = (_S.DELAY, _S.MIN_MAX_DELAY, _S.LOSS)

_Fields = dict[int, tuple[float, ...]]


def decode_te(data: bytes, start: int) -> TeRouterAddress | TeLink | None:
    """Decode a TE LSA; None if it has neither TLV.

    RFC 3630 §2.4 allows one top-level TLV. FRR sends its router address before each link, so the
    first TLV of each type is used. Raises DecodeError ``tlv``.
    """
    address: int | None = None
    link: TeLink | None = None
    for kind, value, end in read_tlvs(data, start, len(data)):
        if kind == _ROUTER_ADDRESS and address is None:
            if end - value != WORD.size:
                raise DecodeError(
                    "tlv", value, f"router address of {end - value} bytes, expected 4"
                )
            (address,) = WORD.unpack_from(data, value)
        elif kind == LINK_TLV and link is None:
            link = _decode_link(data, value, end)
    if link is not None:
        return link if address is None else replace(link, router_address=address)
    return None if address is None else TeRouterAddress(address)


def _decode_link(data: bytes, first: int, last: int) -> TeLink:
    """Decode a link TLV (RFC 3630 §2.4.2); of several sub-TLVs of one type the first counts."""
    fields: _Fields = {}
    unknown: list[tuple[int, bytes]] = []
    for kind, start, end in read_tlvs(data, first, last):
        shape = _SHAPES.get(kind)
        if shape is not None:
            if end - start != shape.size:
                raise DecodeError(
                    "tlv",
                    start,
                    f"link sub-TLV {kind} of {end - start} bytes, expected {shape.size}",
                )
            fields.setdefault(kind, shape.unpack_from(data, start))
        elif kind in _ADDRESS_LISTS:
            if (end - start) % 4:
                raise DecodeError(
                    "tlv", start, f"addresses of {end - start} bytes, not a multiple of 4"
                )
            addresses = struct.unpack_from(f">{(end - start) // 4}I", data, start)
            fields.setdefault(kind, addresses)
        else:
            unknown.append((kind, data[start:end]))
    return _make_link(fields, tuple(unknown))


def _make_link(fields: _Fields, unknown: tuple[tuple[int, bytes], ...]) -> TeLink:
    link_type = _integer(fields, _S.LINK_TYPE)
    local, remote = _pair(fields, _S.LINK_IDENTIFIERS) or (None, None)
    return TeLink(
        link_type=link_type,
        link_id=_integer(fields, _S.LINK_ID),
        local_addresses=(*map(int, fields.get(_S.LOCAL_ADDRESS, ())),),
        remote_addresses=(*map(int, fields.get(_S.REMOTE_ADDRESS, ())),),
        local_identifier=local,
        remote_identifier=remote,
        attributes=_make_attributes(fields),
        anomalous=tuple([int(k) for k in _WITH_A_BIT if k in fields and int(fields[k][0]) & A_BIT]),
        unknown=unknown,
    )


def _make_attributes(fields: _Fields) -> TeAttributes:
    loss = _integer(fields, _S.LOSS)
    delays = _pair(fields, _S.MIN_MAX_DELAY)
    return TeAttributes(
        te_metric=_integer(fields, _S.TE_METRIC),
        max_bandwidth=_number(fields, _S.MAX_BANDWIDTH),
        max_reservable_bandwidth=_number(fields, _S.MAX_RESERVABLE_BANDWIDTH),
        unreserved_bandwidth=fields.get(_S.UNRESERVED_BANDWIDTH),
        admin_group=_integer(fields, _S.ADMIN_GROUP),
        delay=_delay(fields, _S.DELAY),
        min_max_delay=delays and (delay_of(delays[0]), delay_of(delays[1])),
        delay_variation=_delay(fields, _S.DELAY_VARIATION),
        loss=None if loss is None else loss_of(loss),
        residual_bandwidth=_number(fields, _S.RESIDUAL_BANDWIDTH),
        available_bandwidth=_number(fields, _S.AVAILABLE_BANDWIDTH),
        utilized_bandwidth=_number(fields, _S.UTILIZED_BANDWIDTH),
    )


def _number(fields: _Fields, kind: int) -> float | None:
    values = fields.get(kind)
    return None if values is None else values[0]


def _integer(fields: _Fields, kind: int) -> int | None:
    values = fields.get(kind)
    return None if values is None else int(values[0])


def _pair(fields: _Fields, kind: int) -> tuple[int, int] | None:
    values = fields.get(kind)
    return None if values is None else (int(values[0]), int(values[1]))


def _delay(fields: _Fields, kind: int) -> int | None:
    value = _integer(fields, kind)
    return None if value is None else delay_of(value)


def encode_te_router_address(body: TeRouterAddress) -> bytes:
    """Encode a TE LSA body with the router address TLV (RFC 3630 §2.4.1)."""
    return write_tlv(_ROUTER_ADDRESS, WORD.pack(body.address))


def encode_te_link(body: TeLink) -> bytes:
    """Encode a TE LSA body with one link TLV, sub-TLVs in the order of their types.

    If ``router_address`` is set, its TLV precedes the link TLV, as FRR sends it.
    """
    parts: dict[int, bytes] = {}
    if body.link_type is not None:
        parts[_S.LINK_TYPE] = _LINK_TYPE.pack(body.link_type)
    if body.link_id is not None:
        parts[_S.LINK_ID] = WORD.pack(body.link_id)
    if body.local_addresses:
        parts[_S.LOCAL_ADDRESS] = _addresses(body.local_addresses)
    if body.remote_addresses:
        parts[_S.REMOTE_ADDRESS] = _addresses(body.remote_addresses)
    if body.local_identifier is not None:
        identifiers = body.local_identifier, body.remote_identifier or 0
        parts[_S.LINK_IDENTIFIERS] = PAIR.pack(*identifiers)
    attributes = body.attributes
    if attributes.te_metric is not None:
        parts[_S.TE_METRIC] = WORD.pack(attributes.te_metric)
    if attributes.admin_group is not None:
        parts[_S.ADMIN_GROUP] = WORD.pack(attributes.admin_group)
    parts.update(bandwidths(attributes, _S.MAX_BANDWIDTH))
    parts.update(measured(attributes, body.anomalous, _S.DELAY))
    triplets = [write_tlv(kind, parts[kind]) for kind in sorted(parts)]
    triplets += (write_tlv(kind, value) for kind, value in body.unknown)
    link = write_tlv(LINK_TLV, b"".join(triplets))
    if body.router_address is None:
        return link
    return encode_te_router_address(TeRouterAddress(body.router_address)) + link


def _addresses(addresses: tuple[int, ...]) -> bytes:
    return struct.pack(f">{len(addresses)}I", *addresses)
