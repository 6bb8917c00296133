"""Narrow metrics: TLV 2 (ISO 10589 §9.8) and TLVs 128 and 130 (RFC 1195, RFC 5302).

Delay, expense and error metrics are not read; sent, they are marked as not supported (RFC 1195
§5.3). Bit 8 of the default metric is the up/down bit (RFC 5302 §2), bit 7 the I/E bit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from fared.core.ids import Prefix, ipv4_prefix, length_mask, mask_length
from fared.core.wire import DecodeError
from fared.protocols.isis.pdu.tlv import Decoder, Json, Tlv, format_neighbor
from fared.protocols.isis.pdu.triplet import DecodeOptions, check_multiple, pack_entries

_METRIC: Final = 0x3F
_UP_DOWN: Final = 0x80
_IE_BIT: Final = 0x40
_UNSUPPORTED: Final = b"\x80\x80\x80"
_NEIGHBOR = struct.Struct(">B3s7s")
"""Default metric, the other three, neighbor."""
_PREFIX = struct.Struct(">B3sII")
"""Default metric, the other three, address, mask."""


class NarrowNeighbor(msgspec.Struct, frozen=True, gc=False):
    """One entry of TLV 2. ``neighbor`` is system id << 8 | pseudonode, 56 bits."""

    neighbor: int
    metric: int


class NarrowIsReachability(Tlv, frozen=True, gc=False):
    """TLV 2. ``virtual`` is its first byte."""

    code, label = 2, "is_reach"
    neighbors: tuple[NarrowNeighbor, ...]
    virtual: int = 0

    @classmethod
    def decode(cls, data: bytes, start: int, end: int, _: DecodeOptions, /) -> Tlv:
        """Decode the virtual flag and the neighbors."""
        if start == end:
            raise DecodeError("tlv", start, "IS reachability without the virtual flag")
        check_multiple(start + 1, end, _NEIGHBOR.size, "neighbors")
        neighbors = [
            NarrowNeighbor(int.from_bytes(neighbor, "big"), metric & _METRIC)
            for metric, _, neighbor in _NEIGHBOR.iter_unpack(data[start + 1 : end])
        ]
        return cls(tuple(neighbors), data[start])

    def encode(self, _: int | None, /) -> bytes:
        """Encode the neighbors, metrics clipped at 63."""
        entries = (
            _NEIGHBOR.pack(min(n.metric, _METRIC), _UNSUPPORTED, n.neighbor.to_bytes(7, "big"))
            for n in self.neighbors
        )
        return pack_entries(self.code, entries, bytes((self.virtual,)))

    def document(self) -> Json:
        """Return the neighbors."""
        return {
            self.label: [
                {"neighbor": format_neighbor(n.neighbor), "metric": n.metric}
                for n in self.neighbors
            ]
        }


class NarrowIpReach(msgspec.Struct, frozen=True, gc=False):
    """One entry of TLV 128 or 130 (RFC 1195). ``metric_external`` is the I/E bit."""

    prefix: Prefix
    metric: int
    down: bool = False
    metric_external: bool = False


_INTERNAL: Final = 128
_EXTERNAL: Final = 130


class NarrowIpReachability(Tlv, frozen=True, gc=False):
    """TLV 128, or 130 where ``external``."""

    codes = (_INTERNAL, _EXTERNAL)
    prefixes: tuple[NarrowIpReach, ...]
    external: bool = False

    @classmethod
    def decoder(cls, code: int, /) -> Decoder:
        """Return what decodes prefixes of this kind."""

        def decode(data: bytes, start: int, end: int, _: DecodeOptions, /) -> Tlv:
            return cls((*_decode_prefixes(data, start, end),), code == _EXTERNAL)

        return decode

    def encode(self, _: int | None, /) -> bytes:
        """Encode the prefixes, metrics clipped at 63."""
        return pack_entries(
            _EXTERNAL if self.external else _INTERNAL, map(_encode_prefix, self.prefixes)
        )

    def document(self) -> Json:
        """Return the prefixes."""
        return {
            "ip_external_reach" if self.external else "ip_internal_reach": [
                {
                    "prefix": str(reach.prefix),
                    "metric": reach.metric,
                    "down": reach.down,
                    "metric_external": reach.metric_external,
                }
                for reach in self.prefixes
            ]
        }


def _decode_prefixes(data: bytes, start: int, end: int) -> Iterator[NarrowIpReach]:
    check_multiple(start, end, _PREFIX.size, "prefixes")
    for metric, _, address, mask in _PREFIX.iter_unpack(data[start:end]):
        length = mask_length(mask)
        if length is None:
            raise DecodeError("tlv", start, f"mask {mask:#010x} is not contiguous")
        prefix = ipv4_prefix(address, length)
        flags = bool(metric & _UP_DOWN), bool(metric & _IE_BIT)
        yield NarrowIpReach(prefix, metric & _METRIC, *flags)


def _encode_prefix(reach: NarrowIpReach) -> bytes:
    metric = min(reach.metric, _METRIC)
    metric |= reach.down * _UP_DOWN | reach.metric_external * _IE_BIT
    mask = length_mask(reach.prefix.length)
    return _PREFIX.pack(metric, _UNSUPPORTED, reach.prefix.network, mask)
