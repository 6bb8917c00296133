"""Traffic engineering LSAs: router address and link TLVs (RFC 3630, 4203, 7471).

Floats are decoded as sent, NaN and infinities included: ``TeAttributes`` judges them where
they are used, so that a capture can be shown as it is.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import replace
from typing import Final

from fared.core.wire import DecodeError
from fared.ospf.packet.opaque import TeLink, TeRouterAddress
from fared.ospf.packet.tlv import read_tlvs, write_tlv
from fared.te.attributes import TeAttributes

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
_WORD = struct.Struct(">I")
_PAIR = struct.Struct(">II")
_FLOAT = struct.Struct(">f")
_FLOATS = struct.Struct(">8f")
# Sub-TLVs of one fixed shape; the two address lists have any multiple of four bytes.
_SHAPES: dict[int, struct.Struct] = {
    _S.LINK_TYPE: _LINK_TYPE,
    _S.LINK_ID: _WORD,
    _S.TE_METRIC: _WORD,
    _S.MAX_BANDWIDTH: _FLOAT,
    _S.MAX_RESERVABLE_BANDWIDTH: _FLOAT,
    _S.UNRESERVED_BANDWIDTH: _FLOATS,
    _S.ADMIN_GROUP: _WORD,
    _S.LINK_IDENTIFIERS: _PAIR,
    _S.DELAY: _WORD,
    _S.MIN_MAX_DELAY: _PAIR,
    _S.DELAY_VARIATION: _WORD,
    _S.LOSS: _WORD,
    _S.RESIDUAL_BANDWIDTH: _FLOAT,
    _S.AVAILABLE_BANDWIDTH: _FLOAT,
    _S.UTILIZED_BANDWIDTH: _FLOAT,
}
_ADDRESS_LISTS = (_S.LOCAL_ADDRESS, _S.REMOTE_ADDRESS)
_WITH_A_BIT = (_S.DELAY, _S.MIN_MAX_DELAY, _S.LOSS)
_A_BIT: Final = 0x80000000
_24_BITS: Final = 0xFFFFFF
_LOSS_UNIT: Final = 0.000003  # per cent (RFC 7471 §4.4)

_Fields = dict[int, tuple[float, ...]]


def decode_te(data: bytes, start: int) -> TeRouterAddress | TeLink | None:
    """Decode a TE LSA; None if it has neither TLV.

    RFC 3630 §2.4 allows one top-level TLV. FRR puts its router address in front of each link,
    so both are taken, the first of each. Raises DecodeError ``tlv``.
    """
    address: int | None = None
    link: TeLink | None = None
    for kind, value, end in read_tlvs(data, start, len(data)):
        if kind == _ROUTER_ADDRESS and address is None:
            if end - value != _WORD.size:
                raise DecodeError("tlv", value, f"router address of {end - value} bytes")
            (address,) = _WORD.unpack_from(data, value)
        elif kind == LINK_TLV and link is None:
            link = _decode_link(data, value, end)
    if link is not None:
        return link if address is None else replace(link, router_address=address)
    return None if address is None else TeRouterAddress(address)


def _decode_link(data: bytes, first: int, last: int) -> TeLink:
    """A sub-TLV that comes twice counts once, the first time."""
    fields: _Fields = {}
    unknown: list[tuple[int, bytes]] = []
    for kind, start, end in read_tlvs(data, first, last):
        shape = _SHAPES.get(kind)
        if shape is not None:
            if end - start != shape.size:
                raise DecodeError("tlv", start, f"link sub-TLV {kind} of {end - start} bytes")
            fields.setdefault(kind, shape.unpack_from(data, start))
        elif kind in _ADDRESS_LISTS:
            if (end - start) % 4:
                raise DecodeError("tlv", start, f"addresses of {end - start} bytes")
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
        local_addresses=tuple(map(int, fields.get(_S.LOCAL_ADDRESS, ()))),
        remote_addresses=tuple(map(int, fields.get(_S.REMOTE_ADDRESS, ()))),
        local_identifier=local,
        remote_identifier=remote,
        attributes=_make_attributes(fields),
        anomalous=tuple(int(k) for k in _WITH_A_BIT if k in fields and int(fields[k][0]) & _A_BIT),
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
        delay=_low_24(_integer(fields, _S.DELAY)),
        min_max_delay=delays and (delays[0] & _24_BITS, delays[1] & _24_BITS),
        delay_variation=_low_24(_integer(fields, _S.DELAY_VARIATION)),
        loss=None if loss is None else (loss & _24_BITS) * _LOSS_UNIT,
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


def _low_24(value: int | None) -> int | None:
    return None if value is None else value & _24_BITS


def encode_te_router_address(body: TeRouterAddress) -> bytes:
    """Encode a TE LSA body with the router address TLV (RFC 3630 §2.4.1)."""
    return write_tlv(_ROUTER_ADDRESS, _WORD.pack(body.address))


def encode_te_link(body: TeLink) -> bytes:
    """Encode a TE LSA body with one link TLV, sub-TLVs in the order of their types.

    The router address TLV goes in front if ``router_address`` is set, as FRR does it.

    Delays beyond 24 bits and losses beyond 50.33 % are clipped to the largest value that can
    be said (RFC 7471 §4.1.3, §4.4.3).
    """
    parts: dict[int, bytes] = {}
    if body.link_type is not None:
        parts[_S.LINK_TYPE] = _LINK_TYPE.pack(body.link_type)
    if body.link_id is not None:
        parts[_S.LINK_ID] = _WORD.pack(body.link_id)
    if body.local_addresses:
        parts[_S.LOCAL_ADDRESS] = _addresses(body.local_addresses)
    if body.remote_addresses:
        parts[_S.REMOTE_ADDRESS] = _addresses(body.remote_addresses)
    if body.local_identifier is not None:
        identifiers = body.local_identifier, body.remote_identifier or 0
        parts[_S.LINK_IDENTIFIERS] = _PAIR.pack(*identifiers)
    anomalous = dict.fromkeys(body.anomalous, _A_BIT)
    parts |= _encode_static(body.attributes)
    parts |= _encode_measured(body.attributes, anomalous)
    triplets = [write_tlv(kind, parts[kind]) for kind in sorted(parts)]
    triplets += (write_tlv(kind, value) for kind, value in body.unknown)
    link = write_tlv(LINK_TLV, b"".join(triplets))
    if body.router_address is None:
        return link
    return encode_te_router_address(TeRouterAddress(body.router_address)) + link


def _addresses(addresses: tuple[int, ...]) -> bytes:
    return struct.pack(f">{len(addresses)}I", *addresses)


def _encode_static(attributes: TeAttributes) -> dict[int, bytes]:
    """What RFC 3630 knows."""
    parts: dict[int, bytes] = {}
    if attributes.te_metric is not None:
        parts[_S.TE_METRIC] = _WORD.pack(attributes.te_metric)
    if attributes.max_bandwidth is not None:
        parts[_S.MAX_BANDWIDTH] = _FLOAT.pack(attributes.max_bandwidth)
    if attributes.max_reservable_bandwidth is not None:
        parts[_S.MAX_RESERVABLE_BANDWIDTH] = _FLOAT.pack(attributes.max_reservable_bandwidth)
    if attributes.unreserved_bandwidth is not None:
        parts[_S.UNRESERVED_BANDWIDTH] = _FLOATS.pack(*attributes.unreserved_bandwidth)
    if attributes.admin_group is not None:
        parts[_S.ADMIN_GROUP] = _WORD.pack(attributes.admin_group)
    return parts


def _encode_measured(attributes: TeAttributes, anomalous: dict[int, int]) -> dict[int, bytes]:
    """What RFC 7471 adds; ``anomalous`` gives the A bit by sub-TLV type."""
    parts: dict[int, bytes] = {}
    if attributes.delay is not None:
        delay = min(attributes.delay, _24_BITS)
        parts[_S.DELAY] = _WORD.pack(anomalous.get(_S.DELAY, 0) | delay)
    if attributes.min_max_delay is not None:
        low, high = (min(delay, _24_BITS) for delay in attributes.min_max_delay)
        parts[_S.MIN_MAX_DELAY] = _PAIR.pack(anomalous.get(_S.MIN_MAX_DELAY, 0) | low, high)
    if attributes.delay_variation is not None:
        parts[_S.DELAY_VARIATION] = _WORD.pack(min(attributes.delay_variation, _24_BITS))
    if attributes.loss is not None:
        loss = min(round(attributes.loss / _LOSS_UNIT), _24_BITS)
        parts[_S.LOSS] = _WORD.pack(anomalous.get(_S.LOSS, 0) | loss)
    for kind, value in (
        (_S.RESIDUAL_BANDWIDTH, attributes.residual_bandwidth),
        (_S.AVAILABLE_BANDWIDTH, attributes.available_bandwidth),
        (_S.UTILIZED_BANDWIDTH, attributes.utilized_bandwidth),
    ):
        if value is not None:
            parts[kind] = _FLOAT.pack(value)
    return parts
