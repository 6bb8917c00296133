"""Reachable prefixes: TLVs 135, 235, 236 and 237 (RFC 5305 §4, 5308, 5120, 5130, 7794).

The path capacity of a leaked prefix is a sub-TLV of our own, a float in bytes/s under a
configurable code point; one of another size is of another protocol and kept as unknown.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from fared.core.ids import ADDRESS_BITS, FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.core.json_text import render_number, unknown_document
from fared.core.wire import DecodeError
from fared.protocols.isis.pdu.tlv import (
    TOPOLOGY,
    Decoder,
    Json,
    Tlv,
    read_topology,
)
from fared.protocols.isis.pdu.triplet import (
    MAX_VALUE,
    DecodeOptions,
    pack_entries,
    read_triplets,
    write_triplet,
)

_TAG: Final = 1
_ATTRIBUTE_FLAGS: Final = 4
_BIER: Final = 32
"""The BIER info sub-TLV of a prefix: ``fared.protocols.isis.pdu.bier``."""

_DOWN: Final = 0x80
_IPV4_SUB_TLVS: Final = 0x40
_IPV4_LENGTH: Final = 0x3F
_IPV6_EXTERNAL: Final = 0x40
_IPV6_SUB_TLVS: Final = 0x20
_MAX_METRIC: Final = 0xFFFFFFFF
_FLOAT = struct.Struct(">f")
_WORD = struct.Struct(">I")
_IPV4_HEAD = struct.Struct(">IB")
_IPV6_HEAD = struct.Struct(">IBB")


class IpReach(msgspec.Struct, frozen=True, gc=False):
    """A reachable prefix: an entry of TLV 135, 235, 236 or 237 (RFC 5305 §4, 5308, 5120).

    ``down`` is the up/down bit. ``external`` is the X bit of the IPv6 TLVs. ``tags`` are 32-bit
    administrative tags (RFC 5130), ``flags`` the prefix attribute flags byte (RFC 7794; None:
    not sent), ``capacity`` the path capacity, bytes/s, if the experimental sub-TLV was sent.
    ``unknown`` are other sub-TLVs as (type, bytes), in order.
    """

    prefix: Prefix
    metric: int
    down: bool = False
    external: bool = False
    tags: tuple[int, ...] = ()
    flags: int | None = None
    capacity: float | None = None
    unknown: tuple[tuple[int, bytes], ...] = ()

    def document(self) -> Json:
        """Return the prefix, and what was sent with it."""
        out: Json = {"prefix": str(self.prefix), "metric": self.metric, "down": self.down}
        if self.prefix.family != FAMILY_IPV4:
            out["external"] = self.external
        if self.tags:
            out["tags"] = list(self.tags)
        if self.flags is not None:
            out["flags"] = self.flags
        if self.capacity is not None:
            out["capacity"] = render_number(self.capacity)
        if self.unknown:
            out |= _bier(self.unknown)
            out["unknown"] = unknown_document(self.unknown)
        return out


def _bier(sub_tlvs: tuple[tuple[int, bytes], ...]) -> Json:
    """The BIER info sub-TLVs (RFC 8401), if there are any; their codec is loaded for them only."""
    if all(kind != _BIER for kind, _ in sub_tlvs):
        return {}
    from fared.protocols.isis.pdu.bier import read_bier  # noqa: PLC0415

    return {"bier": [info.document() for info in read_bier(sub_tlvs)]}


_CODES: Final = {
    135: (FAMILY_IPV4, False, "ext_ip_reach"),
    235: (FAMILY_IPV4, True, "mt_ip_reach"),
    236: (FAMILY_IPV6, False, "ipv6_reach"),
    237: (FAMILY_IPV6, True, "mt_ipv6_reach"),
}
"""Family, whether there is a topology, and the name in JSON."""
_NAMES: Final = {(family, mt): (code, name) for code, (family, mt, name) in _CODES.items()}


class IpReachability(Tlv, frozen=True, gc=False):
    """TLV 135 or 236 by ``family``; TLV 235 or 237 where ``topology`` is not None."""

    codes = tuple(_CODES)
    family: int
    prefixes: tuple[IpReach, ...]
    topology: int | None = None

    @classmethod
    def decoder(cls, code: int, /) -> Decoder:
        """Return what decodes the prefixes, after the topology if there is one."""
        family, of_topology, _ = _CODES[code]

        def decode(data: bytes, start: int, end: int, options: DecodeOptions, /) -> Tlv:
            topology = read_topology(data, start, end) if of_topology else None
            first = start + TOPOLOGY.size * of_topology
            return cls(family, (*decode_prefixes(data, first, end, family, options),), topology)

        return decode

    def encode(self, capacity_code: int | None, /) -> bytes:
        """Encode the prefixes, in several TLVs if need be."""
        code, _ = _NAMES[self.family, self.topology is not None]
        head = b"" if self.topology is None else TOPOLOGY.dump(self.topology)
        entries = (encode_prefix(reach, capacity_code) for reach in self.prefixes)
        return pack_entries(code, entries, head)

    def document(self) -> Json:
        """Return the prefixes, each with the topology if there is one."""
        _, name = _NAMES[self.family, self.topology is not None]
        head = {} if self.topology is None else {"topology": self.topology}
        return {name: [{**head, **reach.document()} for reach in self.prefixes]}


def decode_prefixes(
    data: bytes, start: int, end: int, family: int, options: DecodeOptions
) -> Iterator[IpReach]:
    """Decode the entries of one TLV, host bits cleared. Raises DecodeError ``tlv``.

    RFC 5305 §4 for IPv4, RFC 5308 §2 for IPv6.
    """
    bits = ADDRESS_BITS[family]
    head = _IPV4_HEAD if family == FAMILY_IPV4 else _IPV6_HEAD
    while start < end:
        if end - start < head.size:
            raise DecodeError("tlv", start, f"{end - start} bytes left for a prefix")
        if family == FAMILY_IPV4:
            metric, control = _IPV4_HEAD.unpack_from(data, start)
            length = control & _IPV4_LENGTH
            external, has_sub_tlvs = False, bool(control & _IPV4_SUB_TLVS)
        else:
            metric, control, length = _IPV6_HEAD.unpack_from(data, start)
            external = bool(control & _IPV6_EXTERNAL)
            has_sub_tlvs = bool(control & _IPV6_SUB_TLVS)
        first = start + head.size
        start = first + (length + 7 >> 3)
        if length > bits or start > end:
            raise DecodeError("tlv", first, f"prefix of {length} bits in {end - first} bytes")
        # RFC 5305 §4: bits beyond the prefix length are ignored
        shift = bits - length
        network = int.from_bytes(data[first:start], "big") << bits - 8 * (start - first)
        prefix = Prefix(family, network >> shift << shift, length)
        down = bool(control & _DOWN)
        if not has_sub_tlvs:
            yield IpReach(prefix, metric, down, external)
            continue
        last = _sub_tlvs_end(data, start, end)
        tags, flags, capacity, unknown = _read_sub_tlvs(data, start + 1, last, options)
        yield IpReach(prefix, metric, down, external, tags, flags, capacity, unknown)
        start = last


def _sub_tlvs_end(data: bytes, at: int, end: int) -> int:
    last = at + 1 + data[at] if at < end else end + 1
    if last > end:
        raise DecodeError("tlv", at, f"sub-TLVs of a prefix exceed its TLV by {last - end}")
    return last


_SubTlvs = tuple[tuple[int, ...], int | None, float | None, tuple[tuple[int, bytes], ...]]


def _read_sub_tlvs(data: bytes, start: int, end: int, options: DecodeOptions) -> _SubTlvs:
    """Tags (RFC 5130 §3.1), attribute flags (RFC 7794 §2.1), capacity, and unknown sub-TLVs."""
    tags: tuple[int, ...] = ()
    flags: int | None = None
    capacity: float | None = None
    unknown: list[tuple[int, bytes]] = []
    for kind, first, last in read_triplets(data, start, end):
        size = last - first
        if kind == _TAG and size and size % _WORD.size == 0:
            tags += struct.unpack_from(f">{size // _WORD.size}I", data, first)
        elif kind == _ATTRIBUTE_FLAGS and size == 1 and flags is None:
            flags = data[first]
        elif kind == options.capacity_code and size == _FLOAT.size and capacity is None:
            (capacity,) = _FLOAT.unpack_from(data, first)
        elif options.strict and (
            (kind == _TAG and size % _WORD.size) or (kind in (_TAG, _ATTRIBUTE_FLAGS) and not size)
        ):
            raise DecodeError("tlv", first, f"prefix sub-TLV {kind} of {size} bytes")
        else:
            unknown.append((kind, data[first:last]))
    return tags, flags, capacity, tuple(unknown)


def encode_prefix(reach: IpReach, capacity_code: int | None) -> bytes:
    """Encode one entry. Raises ValueError if its sub-TLVs do not fit into a TLV."""
    parts = []
    if reach.tags:
        parts.append(write_triplet(_TAG, struct.pack(f">{len(reach.tags)}I", *reach.tags)))
    if reach.flags is not None:
        parts.append(write_triplet(_ATTRIBUTE_FLAGS, bytes((reach.flags,))))
    parts += (write_triplet(kind, value) for kind, value in reach.unknown)
    if reach.capacity is not None and capacity_code is not None:
        parts.append(write_triplet(capacity_code, _FLOAT.pack(reach.capacity)))
    sub_tlvs = b"".join(parts)
    prefix = reach.prefix
    metric = min(reach.metric, _MAX_METRIC)
    control = reach.down * _DOWN
    if prefix.family == FAMILY_IPV4:
        control |= bool(sub_tlvs) * _IPV4_SUB_TLVS | prefix.length
        head = _IPV4_HEAD.pack(metric, control)
    else:
        control |= reach.external * _IPV6_EXTERNAL | bool(sub_tlvs) * _IPV6_SUB_TLVS
        head = _IPV6_HEAD.pack(metric, control, prefix.length)
    size = prefix.length + 7 >> 3
    head += prefix.network.to_bytes(ADDRESS_BITS[prefix.family] >> 3, "big")[:size]
    if not sub_tlvs:
        return head
    if len(head) + 1 + len(sub_tlvs) > MAX_VALUE:
        raise ValueError(f"{len(sub_tlvs)} bytes of prefix sub-TLVs")
    return head + bytes((len(sub_tlvs),)) + sub_tlvs
