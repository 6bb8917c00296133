"""Narrow metrics: TLV 2 (ISO 10589 §9.8) and TLVs 128 and 130 (RFC 1195, RFC 5302).

Delay, expense and error metrics are not read; sent, they are marked as not supported (RFC 1195
§5.3). Bit 8 of the default metric is the up/down bit (RFC 5302 §2), bit 7 the I/E bit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from fared.core.ids import ipv4_prefix, length_mask, mask_length
from fared.core.wire import DecodeError
from fared.protocols.isis.pdu.tlvs import NarrowIpReach, NarrowNeighbor

_METRIC: Final = 0x3F
_UP_DOWN: Final = 0x80
_EXTERNAL: Final = 0x40
_UNSUPPORTED: Final = b"\x80\x80\x80"
NEIGHBOR = struct.Struct(">B3s7s")
"""Default metric, the other three, neighbor."""
PREFIX = struct.Struct(">B3sII")
"""Default metric, the other three, address, mask."""


def decode_narrow_neighbors(data: bytes, start: int, end: int) -> Iterator[NarrowNeighbor]:
    """Decode entries of TLV 2 behind its first byte."""
    for metric, _, neighbor in NEIGHBOR.iter_unpack(data[start:end]):
        yield NarrowNeighbor(int.from_bytes(neighbor, "big"), metric & _METRIC)


def encode_narrow_neighbor(neighbor: NarrowNeighbor) -> bytes:
    """Encode one entry of TLV 2, the metric clipped at 63."""
    metric = min(neighbor.metric, _METRIC)
    return NEIGHBOR.pack(metric, _UNSUPPORTED, neighbor.neighbor.to_bytes(7, "big"))


def decode_narrow_prefixes(data: bytes, start: int, end: int) -> Iterator[NarrowIpReach]:
    """Decode entries of TLV 128 or 130. Raises DecodeError ``tlv`` for non-contiguous masks."""
    for metric, _, address, mask in PREFIX.iter_unpack(data[start:end]):
        length = mask_length(mask)
        if length is None:
            raise DecodeError("tlv", start, f"mask {mask:#010x} is not contiguous")
        yield NarrowIpReach(
            ipv4_prefix(address, length),
            metric & _METRIC,
            bool(metric & _UP_DOWN),
            bool(metric & _EXTERNAL),
        )


def encode_narrow_prefix(reach: NarrowIpReach) -> bytes:
    """Encode one entry of TLV 128 or 130, the metric clipped at 63."""
    metric = min(reach.metric, _METRIC)
    metric |= reach.down * _UP_DOWN | reach.metric_external * _EXTERNAL
    return PREFIX.pack(metric, _UNSUPPORTED, reach.prefix.network, length_mask(reach.prefix.length))
