"""Extended IS reachability, TLVs 22 and 222 (RFC 5305 §3, RFC 5120, 5307, 6119, 8570).

The level-2 database of a large fabric holds an entry with ten sub-TLVs for each direction of
each link, so this is where decoding spends its time. Links of one router mostly carry the same
sub-TLVs in the same order: the order met is compiled once into a ``struct`` that reads the whole
block, and used for as long as the type and length bytes are the same again.
Equal attributes become one object, so that a database of equal links takes little memory.

Floats are decoded as sent, NaN and infinities included: ``TeAttributes`` judges them.
"""

from __future__ import annotations

import enum
import functools
import operator
import struct
from collections.abc import Callable
from typing import Any, Final

from fared.core.wire import DecodeError
from fared.isis.pdu.model import IsNeighbor
from fared.isis.pdu.triplet import HEADER, MAX_VALUE, Reading, read_triplets, write_triplet
from fared.te.attributes import TeAttributes


class LinkSubTlv(enum.IntEnum):
    """Sub-TLVs of TLVs 22 and 222."""

    ADMIN_GROUP = 3
    LINK_IDENTIFIERS = 4
    LOCAL_ADDRESS = 6
    REMOTE_ADDRESS = 8
    MAX_BANDWIDTH = 9
    MAX_RESERVABLE_BANDWIDTH = 10
    UNRESERVED_BANDWIDTH = 11
    LOCAL_ADDRESS6 = 12
    REMOTE_ADDRESS6 = 13
    TE_METRIC = 18
    DELAY = 33
    MIN_MAX_DELAY = 34
    DELAY_VARIATION = 35
    LOSS = 36
    RESIDUAL_BANDWIDTH = 37
    AVAILABLE_BANDWIDTH = 38
    UTILIZED_BANDWIDTH = 39


_S = LinkSubTlv
_SIZES: Final[dict[int, int]] = {
    _S.ADMIN_GROUP: 4,
    _S.LINK_IDENTIFIERS: 8,
    _S.LOCAL_ADDRESS: 4,
    _S.REMOTE_ADDRESS: 4,
    _S.MAX_BANDWIDTH: 4,
    _S.MAX_RESERVABLE_BANDWIDTH: 4,
    _S.UNRESERVED_BANDWIDTH: 32,
    _S.LOCAL_ADDRESS6: 16,
    _S.REMOTE_ADDRESS6: 16,
    _S.TE_METRIC: 3,
    _S.DELAY: 4,
    _S.MIN_MAX_DELAY: 8,
    _S.DELAY_VARIATION: 4,
    _S.LOSS: 4,
    _S.RESIDUAL_BANDWIDTH: 4,
    _S.AVAILABLE_BANDWIDTH: 4,
    _S.UTILIZED_BANDWIDTH: 4,
}
_FIELDS: Final = (
    _S.TE_METRIC,
    _S.MAX_BANDWIDTH,
    _S.MAX_RESERVABLE_BANDWIDTH,
    _S.UNRESERVED_BANDWIDTH,
    _S.ADMIN_GROUP,
    _S.DELAY,
    _S.MIN_MAX_DELAY,
    _S.DELAY_VARIATION,
    _S.LOSS,
    _S.RESIDUAL_BANDWIDTH,
    _S.AVAILABLE_BANDWIDTH,
    _S.UTILIZED_BANDWIDTH,
)
"""The sub-TLV of each field of TeAttributes, in their order."""
_IDENTITY: Final = (
    _S.LINK_IDENTIFIERS,
    _S.LOCAL_ADDRESS,
    _S.REMOTE_ADDRESS,
    _S.LOCAL_ADDRESS6,
    _S.REMOTE_ADDRESS6,
)
_FORMATS: Final[dict[int, str]] = {
    _S.ADMIN_GROUP: "I",
    _S.LINK_IDENTIFIERS: "II",
    _S.LOCAL_ADDRESS: "I",
    _S.REMOTE_ADDRESS: "I",
    _S.MAX_BANDWIDTH: "f",
    _S.MAX_RESERVABLE_BANDWIDTH: "f",
    _S.DELAY: "I",
    _S.DELAY_VARIATION: "I",
    _S.LOSS: "I",
    _S.RESIDUAL_BANDWIDTH: "f",
    _S.AVAILABLE_BANDWIDTH: "f",
    _S.UTILIZED_BANDWIDTH: "f",
}
"""How struct reads what is not left as bytes."""
_WITH_A_BIT: Final = (_S.DELAY, _S.MIN_MAX_DELAY, _S.LOSS)
_A_BIT: Final = 0x80000000
_24_BITS: Final = 0xFFFFFF
_LOSS_UNIT: Final = 0.000003  # per cent (RFC 8570 §4.4)

_WORD = struct.Struct(">I")
_PAIR = struct.Struct(">II")
_FLOAT = struct.Struct(">f")
_EIGHT = struct.Struct(">8f")
_ENTRY = struct.Struct(">QHB")
"""Neighbor (56 bits) and metric (24 bits), cut as struct can read it; length of the sub-TLVs."""
MAX_METRIC: Final = _24_BITS
_MAX_SUB_TLVS: Final = MAX_VALUE - _ENTRY.size


def _integer(value: bytes) -> int:
    return int.from_bytes(value, "big")


def _delay(value: int) -> int:
    return value & _24_BITS


def _delays(value: bytes) -> tuple[int, int]:
    low, high = _PAIR.unpack(value)
    return low & _24_BITS, high & _24_BITS


def _loss(value: int) -> float:
    return (value & _24_BITS) * _LOSS_UNIT


_CONVERSIONS: Final[dict[int, Callable[[Any], Any]]] = {
    _S.TE_METRIC: _integer,
    _S.UNRESERVED_BANDWIDTH: _EIGHT.unpack,
    _S.DELAY: _delay,
    _S.MIN_MAX_DELAY: _delays,
    _S.DELAY_VARIATION: _delay,
    _S.LOSS: _loss,
}
_Values = tuple[Any, ...]
_Pick = Callable[[_Values], _Values]


class _Layout:
    """One order of sub-TLVs, compiled: how to recognise such a block and where its values go.

    A block has this layout if it has this size and, under ``mask``, is ``headers``. Values that
    differ from link to link are read by ``identity``; the attributes by ``attributes``, out of
    the part of the block ``span`` that has them all.
    """

    __slots__ = (
        "anomalies",
        "attributes",
        "conversions",
        "fields",
        "headers",
        "identifiers",
        "identity",
        "ipv6",
        "local",
        "local6",
        "mask",
        "remote",
        "remote6",
        "size",
        "span",
        "unknown",
    )

    def __init__(self, shape: tuple[tuple[int, int], ...]) -> None:
        mask = b"".join(b"\xff\xff" + bytes(size) for _, size in shape)
        headers = b"".join(bytes((kind, size)) + bytes(size) for kind, size in shape)
        self.size = len(mask)
        self.mask = int.from_bytes(mask, "big")
        self.headers = int.from_bytes(headers, "big")
        at: dict[int, list[int]] = {kind: [] for kind in _IDENTITY}
        found: dict[int, int] = {}
        unknown: list[tuple[int, int]] = []
        form = [">"]
        count = offset = 0
        for kind, size in shape:
            known = _SIZES.get(kind) == size and kind not in found
            if known and kind in _FIELDS:
                found[kind] = offset
                form.append(f"{HEADER + size}x")
            elif known and (kind != _S.LINK_IDENTIFIERS or not at[kind]):
                form.append("2x" + _FORMATS.get(kind, f"{size}s"))
                at[kind].append(count)
                count += 1 + (kind == _S.LINK_IDENTIFIERS)
            else:
                form.append(f"2x{size}s")
                unknown.append((kind, count))
                count += 1
            offset += HEADER + size
        self.identity = struct.Struct("".join(form)).unpack
        self.identifiers = at[_S.LINK_IDENTIFIERS][0] if at[_S.LINK_IDENTIFIERS] else None
        self.local = _picker(at[_S.LOCAL_ADDRESS])
        self.remote = _picker(at[_S.REMOTE_ADDRESS])
        self.local6 = _picker(at[_S.LOCAL_ADDRESS6])
        self.remote6 = _picker(at[_S.REMOTE_ADDRESS6])
        self.ipv6 = bool(at[_S.LOCAL_ADDRESS6] or at[_S.REMOTE_ADDRESS6])
        self.unknown = tuple(unknown)
        self._find_attributes(found)

    def _find_attributes(self, found: dict[int, int]) -> None:
        """Compile what reads the attributes, whose sub-TLVs begin at these offsets."""
        first = min(found.values(), default=0)
        end = first
        form = [">"]
        for kind, offset in found.items():
            form.append(f"{offset + HEADER - end}x" + _FORMATS.get(kind, f"{_SIZES[kind]}s"))
            end = offset + HEADER + _SIZES[kind]
        self.span = slice(first, end)
        self.attributes = struct.Struct("".join(form)).unpack
        order = {kind: position for position, kind in enumerate(found)}
        # The value behind the last one, None, is that of all fields that were not sent.
        self.fields = operator.itemgetter(*(order.get(kind, len(order)) for kind in _FIELDS))
        self.conversions = tuple(
            (position, _CONVERSIONS[kind])
            for position, kind in enumerate(_FIELDS)
            if kind in found and kind in _CONVERSIONS
        )
        self.anomalies = tuple(
            (int(kind), found[kind] + HEADER - first) for kind in _WITH_A_BIT if kind in found
        )


def _picker(positions: list[int]) -> _Pick:
    """A function that takes the values at these positions out of a tuple, as a tuple."""
    if not positions:
        return operator.itemgetter(slice(0))
    if len(positions) == 1:
        return operator.itemgetter(slice(positions[0], positions[0] + 1))
    return operator.itemgetter(*positions)


@functools.lru_cache(maxsize=512)
def _compile(shape: tuple[tuple[int, int], ...]) -> _Layout:
    return _Layout(shape)


def _shape(data: bytes, start: int, end: int, *, strict: bool) -> tuple[tuple[int, int], ...]:
    """Types and sizes of the sub-TLVs. Raises DecodeError ``tlv``."""
    shape = []
    for kind, first, last in read_triplets(data, start, end):
        if strict and _SIZES.get(kind, last - first) != last - first:
            raise DecodeError("tlv", first, f"link sub-TLV {kind} of {last - first} bytes")
        shape.append((kind, last - first))
    return tuple(shape)


def decode_neighbors(data: bytes, start: int, end: int, reading: Reading) -> tuple[IsNeighbor, ...]:
    """Decode the entries of TLV 22 or 222. Raises DecodeError ``tlv``.

    A sub-TLV that comes twice counts once, the first time; addresses count each time (RFC 5305
    §3.2). What does not count is kept among the unknown ones.
    """
    neighbors = []
    layout = _compile(())
    while start < end:
        if end - start < _ENTRY.size:
            raise DecodeError("tlv", start, f"{end - start} bytes left for a neighbor")
        high, low, size = _ENTRY.unpack_from(data, start)
        first = start + _ENTRY.size
        start = first + size
        if start > end:
            raise DecodeError("tlv", first, f"{size} bytes of sub-TLVs, {end - first} left")
        block = data[first:start]
        if size != layout.size or int.from_bytes(block, "big") & layout.mask != layout.headers:
            layout = _compile(_shape(data, first, start, strict=reading.strict))
        neighbors.append(_make(layout, high >> 8, (high & 0xFF) << 16 | low, block))
    return tuple(neighbors)


def _make(layout: _Layout, neighbor: int, metric: int, block: bytes) -> IsNeighbor:
    values = layout.identity(block)
    attributes, anomalous = _attributes(layout, block[layout.span])
    local_id = remote_id = None
    if layout.identifiers is not None:
        local_id = values[layout.identifiers]
        remote_id = values[layout.identifiers + 1]
    return IsNeighbor(
        neighbor,
        metric,
        attributes,
        layout.local(values),
        layout.remote(values),
        tuple(map(_integer, layout.local6(values))) if layout.ipv6 else (),
        tuple(map(_integer, layout.remote6(values))) if layout.ipv6 else (),
        local_id,
        remote_id,
        tuple([(kind, values[at]) for kind, at in layout.unknown]) if layout.unknown else (),
        anomalous,
    )


@functools.lru_cache(maxsize=4096)
def _attributes(layout: _Layout, span: bytes) -> tuple[TeAttributes, tuple[int, ...]]:
    """Attributes and which of them are anomalous."""
    fields = layout.fields((*layout.attributes(span), None))
    if layout.conversions:
        converted = list(fields)
        for position, convert in layout.conversions:
            converted[position] = convert(converted[position])
        fields = tuple(converted)
    anomalous = tuple([kind for kind, offset in layout.anomalies if span[offset] & 0x80])
    return TeAttributes(*fields), anomalous


def encode_neighbor(neighbor: IsNeighbor) -> bytes:
    """Encode one entry, sub-TLVs in the order FRR has them.

    Metrics, delays and losses beyond what 24 bits can say are clipped to the largest value (RFC
    8570 §4.1). Raises ValueError if the sub-TLVs do not fit into a TLV.
    """
    parts = [_identity(neighbor), _static(neighbor.attributes)]
    parts.append(_measured(neighbor.attributes, neighbor.anomalous))
    parts += (write_triplet(kind, value) for kind, value in neighbor.unknown)
    sub_tlvs = b"".join(parts)
    if len(sub_tlvs) > _MAX_SUB_TLVS:
        raise ValueError(f"{len(sub_tlvs)} bytes of link sub-TLVs")
    metric = min(neighbor.metric, MAX_METRIC)
    head = _ENTRY.pack(neighbor.neighbor << 8 | metric >> 16, metric & 0xFFFF, len(sub_tlvs))
    return head + sub_tlvs


def _identity(neighbor: IsNeighbor) -> bytes:
    """What tells parallel links apart; the admin group comes first, by its type."""
    out = b""
    if neighbor.attributes.admin_group is not None:
        out = _word(_S.ADMIN_GROUP, neighbor.attributes.admin_group)
    if neighbor.local_id is not None:
        pair = _PAIR.pack(neighbor.local_id, neighbor.remote_id or 0)
        out += write_triplet(_S.LINK_IDENTIFIERS, pair)
    for kind, addresses in (
        (_S.LOCAL_ADDRESS, neighbor.local_addresses),
        (_S.REMOTE_ADDRESS, neighbor.remote_addresses),
    ):
        out += b"".join(_word(kind, address) for address in addresses)
    for kind, addresses in (
        (_S.LOCAL_ADDRESS6, neighbor.local_addresses6),
        (_S.REMOTE_ADDRESS6, neighbor.remote_addresses6),
    ):
        out += b"".join(write_triplet(kind, address.to_bytes(16, "big")) for address in addresses)
    return out


def _word(kind: int, value: int) -> bytes:
    return write_triplet(kind, _WORD.pack(value))


def _float(kind: int, value: float) -> bytes:
    return write_triplet(kind, _FLOAT.pack(value))


def _static(attributes: TeAttributes) -> bytes:
    """What RFC 5305 knows, but for the admin group."""
    out = b""
    if attributes.max_bandwidth is not None:
        out += _float(_S.MAX_BANDWIDTH, attributes.max_bandwidth)
    if attributes.max_reservable_bandwidth is not None:
        out += _float(_S.MAX_RESERVABLE_BANDWIDTH, attributes.max_reservable_bandwidth)
    if attributes.unreserved_bandwidth is not None:
        out += write_triplet(_S.UNRESERVED_BANDWIDTH, _EIGHT.pack(*attributes.unreserved_bandwidth))
    if attributes.te_metric is not None:
        te_metric = min(attributes.te_metric, _24_BITS)
        out += write_triplet(_S.TE_METRIC, te_metric.to_bytes(3, "big"))
    return out


def _measured(attributes: TeAttributes, anomalous: tuple[int, ...]) -> bytes:
    """What RFC 8570 adds; ``anomalous`` lists the sub-TLVs with the A bit."""
    out = b""
    bits = dict.fromkeys(anomalous, _A_BIT)
    if attributes.delay is not None:
        out += _word(_S.DELAY, bits.get(_S.DELAY, 0) | min(attributes.delay, _24_BITS))
    if attributes.min_max_delay is not None:
        low, high = (min(delay, _24_BITS) for delay in attributes.min_max_delay)
        pair = _PAIR.pack(bits.get(_S.MIN_MAX_DELAY, 0) | low, high)
        out += write_triplet(_S.MIN_MAX_DELAY, pair)
    if attributes.delay_variation is not None:
        out += _word(_S.DELAY_VARIATION, min(attributes.delay_variation, _24_BITS))
    if attributes.loss is not None:
        loss = min(round(attributes.loss / _LOSS_UNIT), _24_BITS)
        out += _word(_S.LOSS, bits.get(_S.LOSS, 0) | loss)
    for kind, value in (
        (_S.RESIDUAL_BANDWIDTH, attributes.residual_bandwidth),
        (_S.AVAILABLE_BANDWIDTH, attributes.available_bandwidth),
        (_S.UTILIZED_BANDWIDTH, attributes.utilized_bandwidth),
    ):
        if value is not None:
            out += _float(kind, value)
    return out
