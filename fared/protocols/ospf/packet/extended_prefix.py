"""Extended prefix LSA (RFC 7684 §2): attributes of prefixes, among them their path capacity.

The path capacity is a sub-TLV of fared in the experimental range. Its code point is configurable,
so a body keeps all sub-TLVs as received. ``docs/path-capacity-sub-tlv.md`` specifies it.
"""

from __future__ import annotations

import enum
import math
import struct
from typing import Final

import msgspec

from fared.core.ids import Prefix, ipv4_prefix
from fared.core.json_text import unknown_document
from fared.core.text import type_name
from fared.core.wire import DecodeError
from fared.protocols.ospf.packet.tlv import Json, read_tlvs, write_tlv

PATH_CAPACITY: Final = 32768
"""Default code point of the path capacity sub-TLV: the first of 32768-33023 (experimental)."""
_EXTENDED_PREFIX: Final = 1
_IPV4_UNICAST: Final = 0
_BIER: Final = 9
"""The BIER sub-TLV of a prefix: ``fared.protocols.ospf.packet.bier``."""
_MAX_LENGTH: Final = 32
_HEAD = struct.Struct(">BBBB")
_FLOAT = struct.Struct(">f")


class RouteType(enum.IntEnum):
    """The route type of the prefix (RFC 7684 §2.1)."""

    UNSPECIFIED = 0
    INTRA_AREA = 1
    INTER_AREA = 3
    AS_EXTERNAL = 5
    NSSA_EXTERNAL = 7


class PrefixFacts(msgspec.Struct, frozen=True):
    """One extended prefix TLV; ``flags`` are the A (0x80) and N (0x40) bits."""

    route_type: int
    prefix: Prefix
    flags: int = 0
    sub_tlvs: tuple[tuple[int, bytes], ...] = ()

    def capacity(self, code_point: int) -> float | None:
        """Path capacity with this code point, bytes/s; None if missing or invalid."""
        for kind, value in self.sub_tlvs:
            if kind == code_point and len(value) == _FLOAT.size:
                capacity = float(_FLOAT.unpack(value)[0])
                return capacity if math.isfinite(capacity) and capacity >= 0 else None
        return None

    def document(self) -> Json:
        """Return the fields and all sub-TLVs; ``path_capacity`` is that of the default code."""
        return {
            "route_type": self.route_type,
            "route_type_name": type_name(RouteType, self.route_type),
            "prefix": str(self.prefix),
            "flags": self.flags,
            "path_capacity": self.capacity(PATH_CAPACITY),
            **_bier(self.sub_tlvs),
            "sub_tlvs": unknown_document(self.sub_tlvs),
        }


def _bier(sub_tlvs: tuple[tuple[int, bytes], ...]) -> Json:
    """The BIER sub-TLVs (RFC 8444), if there are any; their codec is loaded for them only."""
    if all(kind != _BIER for kind, _ in sub_tlvs):
        return {}
    from fared.protocols.ospf.packet.bier import read_bier  # noqa: PLC0415

    return {"bier": [info.document() for info in read_bier(sub_tlvs)]}


class ExtendedPrefixLsa(msgspec.Struct, frozen=True):
    """Extended prefix opaque LSA body: IPv4 unicast prefixes, other TLVs as received."""

    prefixes: tuple[PrefixFacts, ...]
    unknown: tuple[tuple[int, bytes], ...] = ()

    def document(self) -> Json:
        """Return the prefixes."""
        return {
            "prefixes": [facts.document() for facts in self.prefixes],
            "unknown": unknown_document(self.unknown),
        }


def capacity_sub_tlv(capacity: float, code_point: int) -> tuple[int, bytes]:
    """The path capacity as a sub-TLV; bytes/s as an IEEE single."""
    return code_point, _FLOAT.pack(capacity)


def decode_extended_prefix(data: bytes, start: int) -> ExtendedPrefixLsa:
    """Decode the TLVs from ``start`` to the end of ``data``. Raises DecodeError ``tlv``."""
    prefixes: list[PrefixFacts] = []
    unknown: list[tuple[int, bytes]] = []
    for kind, first, last in read_tlvs(data, start, len(data)):
        facts = None
        if kind == _EXTENDED_PREFIX:
            facts = _decode_prefix(data, first, last)
        if facts is None:
            unknown.append((kind, data[first:last]))
        else:
            prefixes.append(facts)
    return ExtendedPrefixLsa(tuple(prefixes), tuple(unknown))


def _decode_prefix(data: bytes, first: int, last: int) -> PrefixFacts | None:
    """Decode an extended prefix TLV (RFC 7684 §2.1); None if it is not IPv4 unicast."""
    if last - first < _HEAD.size:
        raise DecodeError("tlv", first, f"extended prefix of {last - first} bytes, below 4")
    route_type, length, family, flags = _HEAD.unpack_from(data, first)
    if family != _IPV4_UNICAST:
        return None
    if length > _MAX_LENGTH:
        raise DecodeError("tlv", first + 1, f"prefix length {length}, above 32")
    address = first + _HEAD.size
    after = address + 4 * bool(length)
    if after > last:
        raise DecodeError("tlv", address, "extended prefix ends within its address")
    network = int.from_bytes(data[address:after], "big")
    sub_tlvs = tuple([(kind, data[a:b]) for kind, a, b in read_tlvs(data, after, last)])
    return PrefixFacts(route_type, ipv4_prefix(network, length), flags, sub_tlvs)


def encode_extended_prefix(body: ExtendedPrefixLsa) -> bytes:
    """Encode the body."""
    parts = [write_tlv(_EXTENDED_PREFIX, _encode_prefix(facts)) for facts in body.prefixes]
    parts += (write_tlv(kind, value) for kind, value in body.unknown)
    return b"".join(parts)


def _encode_prefix(facts: PrefixFacts) -> bytes:
    prefix = facts.prefix
    head = _HEAD.pack(facts.route_type, prefix.length, _IPV4_UNICAST, facts.flags)
    address = prefix.network.to_bytes(4, "big") if prefix.length else b""
    subs = b"".join(write_tlv(kind, value) for kind, value in facts.sub_tlvs)
    return head + address + subs
