"""Extended IS reachability, TLVs 22 and 222 (RFC 5305 §3, RFC 5120, 5307, 6119, 8570).

The level-2 database of a large fabric holds an entry with ten sub-TLVs for each direction of
each link, so this is where decoding spends its time. Links of one router mostly carry the same
sub-TLVs in the same order: the order met is compiled once into a ``struct`` that reads the whole
block, type and length bytes included, and used for as long as those bytes are the same again.
Equal attributes become one object, so that a database of equal links takes little memory.

Floats are decoded as sent, NaN and infinities included: ``TeAttributes`` judges them.
"""

from __future__ import annotations

import enum
import functools
import operator
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

from fared.core.wire import DecodeError
from fared.isis.pdu.model import IsNeighbor
from fared.isis.pdu.triplet import MAX_VALUE, Reading, read_triplets, write_triplet
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
_ADDRESSES: Final = (_S.LOCAL_ADDRESS, _S.REMOTE_ADDRESS, _S.LOCAL_ADDRESS6, _S.REMOTE_ADDRESS6)
_FLOATS: Final[dict[int, str]] = {
    _S.MAX_BANDWIDTH: "max_bandwidth",
    _S.MAX_RESERVABLE_BANDWIDTH: "max_reservable_bandwidth",
    _S.RESIDUAL_BANDWIDTH: "residual_bandwidth",
    _S.AVAILABLE_BANDWIDTH: "available_bandwidth",
    _S.UTILIZED_BANDWIDTH: "utilized_bandwidth",
}
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
_WORD_SIZE: Final = 4
MAX_METRIC: Final = _24_BITS

_Values = tuple[Any, ...]
_Pick = Callable[[_Values], _Values]


class _Layout:
    """One order of sub-TLVs, compiled: how to read such a block and where its values go."""

    __slots__ = (
        "attributes",
        "headers",
        "identifiers",
        "kinds",
        "local",
        "local6",
        "remote",
        "remote6",
        "size",
        "unknown",
        "unpack",
    )

    def __init__(self, shape: tuple[tuple[int, int], ...]) -> None:
        at: dict[int, list[int]] = {kind: [] for kind in _ADDRESSES}
        once: dict[int, int] = {}
        unknown: list[tuple[int, int]] = []
        form = [">"]
        for position, (kind, size) in enumerate(shape):
            known = _SIZES.get(kind) == size and kind not in once
            if kind in at and known:
                at[kind].append(position)
            elif known:
                once[kind] = position
            else:
                unknown.append((kind, position))
            form.append("HI" if known and size == _WORD_SIZE else f"H{size}s")
        compiled = struct.Struct("".join(form))
        self.unpack = compiled.unpack_from
        self.size = compiled.size
        self.headers = tuple(kind << 8 | size for kind, size in shape)
        self.identifiers = once.pop(_S.LINK_IDENTIFIERS, None)
        self.kinds = tuple(once)
        self.attributes = _picker(list(once.values()))
        self.local = _picker(at[_S.LOCAL_ADDRESS])
        self.remote = _picker(at[_S.REMOTE_ADDRESS])
        self.local6 = _picker(at[_S.LOCAL_ADDRESS6], _ipv6)
        self.remote6 = _picker(at[_S.REMOTE_ADDRESS6], _ipv6)
        self.unknown = tuple(unknown)


def _picker(positions: list[int], convert: Callable[[bytes], int] | None = None) -> _Pick:
    """A function that takes the values at these positions out of a tuple, as a tuple."""
    if not positions:
        return lambda _: ()
    if convert is not None:
        return lambda values: tuple(convert(values[position]) for position in positions)
    if len(positions) == 1:
        (only,) = positions
        return lambda values: (values[only],)
    return operator.itemgetter(*positions)


def _ipv6(value: bytes) -> int:
    return int.from_bytes(value, "big")


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


def decode_neighbors(data: bytes, start: int, end: int, reading: Reading) -> Iterator[IsNeighbor]:
    """Decode the entries of TLV 22 or 222. Raises DecodeError ``tlv``.

    A sub-TLV that comes twice counts once, the first time; addresses count each time (RFC 5305
    §3.2). What does not count is kept among the unknown ones.
    """
    layout = _compile(())
    while start < end:
        if end - start < _ENTRY.size:
            raise DecodeError("tlv", start, f"{end - start} bytes left for a neighbor")
        high, low, size = _ENTRY.unpack_from(data, start)
        first = start + _ENTRY.size
        start = first + size
        if start > end:
            raise DecodeError("tlv", first, f"{size} bytes of sub-TLVs, {end - first} left")
        if size == layout.size:
            fields = layout.unpack(data, first)
        if size != layout.size or fields[::2] != layout.headers:
            layout = _compile(_shape(data, first, start, strict=reading.strict))
            fields = layout.unpack(data, first)
        yield _make(layout, high >> 8, (high & 0xFF) << 16 | low, fields[1::2])


def _make(layout: _Layout, neighbor: int, metric: int, values: _Values) -> IsNeighbor:
    local_id = remote_id = None
    if layout.identifiers is not None:
        local_id, remote_id = _PAIR.unpack(values[layout.identifiers])
    attributes, anomalous = _attributes(layout.kinds, layout.attributes(values))
    return IsNeighbor(
        neighbor,
        metric,
        attributes,
        layout.local(values),
        layout.remote(values),
        layout.local6(values),
        layout.remote6(values),
        local_id,
        remote_id,
        tuple([(kind, values[at]) for kind, at in layout.unknown]) if layout.unknown else (),
        anomalous,
    )


@functools.lru_cache(maxsize=16384)
def _attributes(kinds: tuple[int, ...], raw: _Values) -> tuple[TeAttributes, tuple[int, ...]]:
    """Attributes and which of them are anomalous, from 32-bit words and longer bytes."""
    found: dict[str, Any] = {}
    anomalous: list[int] = []
    for kind, value in zip(kinds, raw, strict=True):
        name = _FLOATS.get(kind)
        if name is not None:
            (found[name],) = _FLOAT.unpack(_WORD.pack(value))
            continue
        if kind == _S.ADMIN_GROUP:
            found["admin_group"] = value
        elif kind == _S.UNRESERVED_BANDWIDTH:
            found["unreserved_bandwidth"] = _EIGHT.unpack(value)
        elif kind == _S.TE_METRIC:
            found["te_metric"] = int.from_bytes(value, "big")
        else:
            found |= _performance(kind, value, anomalous)
    return TeAttributes(**found), tuple(anomalous)


def _performance(kind: int, value: Any, anomalous: list[int]) -> dict[str, Any]:  # noqa: ANN401
    """Delays and loss (RFC 8570 §4.1-4.4)."""
    first, second = _PAIR.unpack(value) if kind == _S.MIN_MAX_DELAY else (value, 0)
    if kind in _WITH_A_BIT and first & _A_BIT:
        anomalous.append(int(kind))
    low = first & _24_BITS
    match kind:
        case _S.DELAY:
            return {"delay": low}
        case _S.MIN_MAX_DELAY:
            return {"min_max_delay": (low, second & _24_BITS)}
        case _S.DELAY_VARIATION:
            return {"delay_variation": low}
        case _:
            return {"loss": low * _LOSS_UNIT}


def encode_neighbor(neighbor: IsNeighbor) -> bytes:
    """Encode one entry, sub-TLVs in the order FRR has them.

    Metrics, delays and losses beyond what 24 bits can say are clipped to the largest value (RFC
    8570 §4.1). Raises ValueError if the sub-TLVs do not fit into a TLV.
    """
    parts = [_identity(neighbor), _static(neighbor.attributes)]
    parts.append(_measured(neighbor.attributes, neighbor.anomalous))
    parts += (write_triplet(kind, value) for kind, value in neighbor.unknown)
    sub_tlvs = b"".join(parts)
    if len(sub_tlvs) > MAX_VALUE - _ENTRY.size:
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
