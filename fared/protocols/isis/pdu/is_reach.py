"""Extended IS reachability, TLVs 22 and 222 (RFC 5305 §3, RFC 5120, 5307, 6119, 8570).

The level-2 database of a large fabric holds an entry with ten sub-TLVs for each direction of each
link, and most of the decoding time is spent on them. Links of one router mostly carry the same
sub-TLVs in the same order: an order is compiled once into a ``struct`` that reads the whole block,
and used as long as the type and length bytes are the same. Equal attributes become one object, so
that a database of equal links takes little memory.

Floats are decoded as sent, NaN and infinities included; ``TeAttributes`` validates them.
"""

from __future__ import annotations

import enum
import functools
import operator
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, format_address
from fared.core.json_text import unknown_document
from fared.core.wire import DecodeError
from fared.paths.te.attributes import ISIS_TE, NO_ATTRIBUTES, TeAttributes
from fared.paths.te.sub_tlvs import MAX_24_BITS, Layout
from fared.protocols.isis.pdu.tlv import (
    TOPOLOGY,
    Decoder,
    Json,
    Tlv,
    format_neighbor,
    read_topology,
)
from fared.protocols.isis.pdu.triplet import (
    HEADER,
    MAX_VALUE,
    DecodeOptions,
    pack_entries,
    read_triplets,
    write_triplet,
)


class IsNeighbor(msgspec.Struct, frozen=True, gc=False):
    """One entry of TLV 22 or 222 (RFC 5305 §3). ``neighbor`` is system id << 8 | pseudonode.

    ``local_id`` and ``remote_id`` are the link identifiers (RFC 5307 §1.1), None where not
    sent; addresses are those of sub-TLVs 6 and 8 (IPv4) and 12 and 13 (IPv6, RFC 6119).
    ``unknown`` are other sub-TLVs as (type, bytes), in order; ``anomalous`` are the types of
    sub-TLVs with the A bit (RFC 8570 §4.1).
    """

    neighbor: int
    metric: int
    attributes: TeAttributes = NO_ATTRIBUTES
    local_addresses: tuple[int, ...] = ()
    remote_addresses: tuple[int, ...] = ()
    local_addresses6: tuple[int, ...] = ()
    remote_addresses6: tuple[int, ...] = ()
    local_id: int | None = None
    remote_id: int | None = None
    unknown: tuple[tuple[int, bytes], ...] = ()
    anomalous: tuple[int, ...] = ()

    def document(self) -> Json:
        """Return neighbor, metric, and the sub-TLVs that were sent by the names of OSPF."""
        sub: Json = {}
        for name, family, addresses in (
            ("local_addresses", FAMILY_IPV4, self.local_addresses),
            ("remote_addresses", FAMILY_IPV4, self.remote_addresses),
            ("local_addresses6", FAMILY_IPV6, self.local_addresses6),
            ("remote_addresses6", FAMILY_IPV6, self.remote_addresses6),
        ):
            if addresses:
                sub[name] = [format_address(family, address) for address in addresses]
        if self.local_id is not None:
            sub |= {"local_identifier": self.local_id, "remote_identifier": self.remote_id}
        sub |= self.attributes.sent()
        if self.anomalous:
            sub["anomalous"] = list(self.anomalous)
        if self.unknown:
            sub["unknown"] = unknown_document(self.unknown)
        return {"neighbor": format_neighbor(self.neighbor), "metric": self.metric, "sub": sub}


_PLAIN: Final = 22
_MULTI_TOPOLOGY: Final = 222


class IsReachability(Tlv, frozen=True, gc=False):
    """TLV 22, or TLV 222 where ``topology`` is not None."""

    codes = (_PLAIN, _MULTI_TOPOLOGY)
    neighbors: tuple[IsNeighbor, ...]
    topology: int | None = None

    @classmethod
    def decoder(cls, code: int, /) -> Decoder:
        """Return what decodes the neighbors, of TLV 222 after the topology."""
        return cls.decode if code == _PLAIN else cls._decode_of_topology

    @classmethod
    def decode(cls, data: bytes, start: int, end: int, options: DecodeOptions, /) -> Tlv:
        """Decode the neighbors of TLV 22."""
        return cls(decode_neighbors(data, start, end, options))

    @classmethod
    def _decode_of_topology(cls, data: bytes, start: int, end: int, options: DecodeOptions) -> Tlv:
        topology = read_topology(data, start, end)
        return cls(decode_neighbors(data, start + TOPOLOGY.size, end, options), topology)

    def encode(self, _: int | None, /) -> bytes:
        """Encode the neighbors, in several TLVs if need be."""
        entries = map(encode_neighbor, self.neighbors)
        if self.topology is None:
            return pack_entries(_PLAIN, entries)
        return pack_entries(_MULTI_TOPOLOGY, entries, TOPOLOGY.dump(self.topology))

    def document(self) -> Json:
        """Return the neighbors, of TLV 222 each with the topology."""
        entries = [neighbor.document() for neighbor in self.neighbors]
        if self.topology is None:
            return {"ext_is_reach": entries}
        return {"mt_is_reach": [{"topology": self.topology, **entry} for entry in entries]}


class LinkSubTlv(enum.IntEnum):
    """Sub-TLVs that identify a link (RFC 5305 §3; 4: RFC 5307 §1.1; 12 and 13: RFC 6119)."""

    LINK_IDENTIFIERS = 4
    LOCAL_ADDRESS = 6
    REMOTE_ADDRESS = 8
    LOCAL_ADDRESS6 = 12
    REMOTE_ADDRESS6 = 13


_S = LinkSubTlv
_IDENTITY: Final[dict[int, str]] = {
    _S.LINK_IDENTIFIERS: "II",
    _S.LOCAL_ADDRESS: "I",
    _S.REMOTE_ADDRESS: "I",
    _S.LOCAL_ADDRESS6: "16s",
    _S.REMOTE_ADDRESS6: "16s",
}
"""How struct reads them."""
_ROWS: Final = ISIS_TE.rows
_SIZES: Final[dict[int, int]] = {
    **{kind: struct.calcsize(f">{items}") for kind, items in _IDENTITY.items()},
    **{kind: row.format.size for kind, row in _ROWS.items()},
}
_PAIR = struct.Struct(">II")
_ENTRY = struct.Struct(">QHB")
"""Neighbor (56 bits) and metric (24 bits), cut as struct can read it; length of the sub-TLVs."""
MAX_METRIC: Final = MAX_24_BITS
_MAX_SUB_TLVS: Final = MAX_VALUE - _ENTRY.size


_Values = tuple[Any, ...]
_Pick = Callable[[_Values], _Values]


class _NeighborLayout(Layout):
    """One order of sub-TLVs, compiled: how to recognise such a block, and to read its values.

    ``identity`` reads the values that differ from link to link, ``attributes`` the attributes, from
    the part ``span`` of the block that contains them all.
    """

    __slots__ = (
        "anomalies",
        "attributes",
        "conversions",
        "fields",
        "identifiers",
        "identity",
        "ipv6",
        "local",
        "local6",
        "remote",
        "remote6",
        "span",
        "unknown",
    )

    def __init__(self, shape: tuple[tuple[int, int], ...]) -> None:
        super().__init__((bytes(header), header[1]) for header in shape)
        at: dict[int, list[int]] = {kind: [] for kind in _IDENTITY}
        found: dict[int, int] = {}
        unknown: list[tuple[int, int]] = []
        form = [">"]
        count = offset = 0
        for kind, size in shape:
            known = _SIZES.get(kind) == size and kind not in found
            if known and kind in _ROWS:
                found[kind] = offset
                form.append(f"{HEADER + size}x")
            elif known and (kind != _S.LINK_IDENTIFIERS or not at[kind]):
                form.append("2x" + _IDENTITY[kind])
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
            shape = _ROWS[kind].format
            form.append(f"{offset + HEADER - end}x{shape.item}")
            end = offset + HEADER + shape.size
        self.span = slice(first, end)
        self.attributes = struct.Struct("".join(form)).unpack
        order = {kind: position for position, kind in enumerate(found)}
        # A field that was not sent has the position after the last value, where None is appended.
        self.fields = operator.itemgetter(*[order.get(kind, len(order)) for kind in _ROWS])
        self.conversions = tuple(
            [
                (position, row.format.read)
                for position, (kind, row) in enumerate(_ROWS.items())
                if kind in found and row.format.read is not None
            ]
        )
        self.anomalies = tuple(
            [(kind, found[kind] + HEADER - first) for kind in ISIS_TE.a_bits if kind in found]
        )


_NOTHING: Final = operator.itemgetter(slice(0))


def _picker(positions: list[int]) -> _Pick:
    """A function that takes the values at these positions out of a tuple, as a tuple."""
    if not positions:
        return _NOTHING
    if len(positions) == 1:
        return operator.itemgetter(slice(positions[0], positions[0] + 1))
    return operator.itemgetter(*positions)


@functools.lru_cache(maxsize=32)
def _compile(shape: tuple[tuple[int, int], ...]) -> _NeighborLayout:
    return _NeighborLayout(shape)


def _shape(data: bytes, start: int, end: int, *, strict: bool) -> tuple[tuple[int, int], ...]:
    """Types and sizes of the sub-TLVs. Raises DecodeError ``tlv``."""
    shape = []
    if not strict:
        at = start
        while at + HEADER <= end:
            size = data[at + 1]
            shape.append((data[at], size))
            at += HEADER + size
        if at == end:
            return tuple(shape)
        shape.clear()  # what is malformed is found again, with its error
    for kind, first, last in read_triplets(data, start, end):
        if strict and _SIZES.get(kind, last - first) != last - first:
            raise DecodeError("tlv", first, f"link sub-TLV {kind} of {last - first} bytes")
        shape.append((kind, last - first))
    return tuple(shape)


def decode_neighbors(
    data: bytes, start: int, end: int, options: DecodeOptions
) -> tuple[IsNeighbor, ...]:
    """Decode the entries of TLV 22 or 222. Raises DecodeError ``tlv``.

    Of a sub-TLV that occurs twice the first one counts (RFC 5305 §3: it should not), of addresses
    all (§3.2, §3.3). Those that do not count are kept among the unknown ones.
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
        if not layout.fits(block):
            layout = _compile(_shape(data, first, start, strict=options.strict))
        neighbors.append(_make(layout, high >> 8, (high & 0xFF) << 16 | low, block))
    return tuple(neighbors)


def _make(layout: _NeighborLayout, neighbor: int, metric: int, block: bytes) -> IsNeighbor:
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
        (*map(_address6, layout.local6(values)),) if layout.ipv6 else (),
        (*map(_address6, layout.remote6(values)),) if layout.ipv6 else (),
        local_id,
        remote_id,
        tuple([(kind, values[at]) for kind, at in layout.unknown]) if layout.unknown else (),
        anomalous,
    )


def _address6(value: bytes) -> int:
    return int.from_bytes(value, "big")


@functools.lru_cache(maxsize=128)
def _attributes(layout: _NeighborLayout, span: bytes) -> tuple[TeAttributes, tuple[int, ...]]:
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
    """Encode one entry, with the sub-TLVs in the order of FRR.

    Metrics beyond 24 bits are clipped to the largest value, which SPF does not use (RFC 5305 §3).
    Raises ValueError if the sub-TLVs do not fit into a TLV.
    """
    parts = [*_identity(neighbor)]
    low = 0
    for kind, value in ISIS_TE.encode(neighbor.attributes, neighbor.anomalous).items():
        if kind < _S.LINK_IDENTIFIERS:
            parts.insert(low, write_triplet(kind, value))
            low += 1
        else:
            parts.append(write_triplet(kind, value))
    parts += (write_triplet(kind, value) for kind, value in neighbor.unknown)
    block = b"".join(parts)
    if len(block) > _MAX_SUB_TLVS:
        raise ValueError(f"{len(block)} bytes of link sub-TLVs")
    metric = min(neighbor.metric, MAX_METRIC)
    head = _ENTRY.pack(neighbor.neighbor << 8 | metric >> 16, metric & 0xFFFF, len(block))
    return head + block


def _identity(neighbor: IsNeighbor) -> Iterator[bytes]:
    """The sub-TLVs that identify a link."""
    if neighbor.local_id is not None:
        pair = _PAIR.pack(neighbor.local_id, neighbor.remote_id or 0)
        yield write_triplet(_S.LINK_IDENTIFIERS, pair)
    for kind, addresses, size in (
        (_S.LOCAL_ADDRESS, neighbor.local_addresses, 4),
        (_S.REMOTE_ADDRESS, neighbor.remote_addresses, 4),
        (_S.LOCAL_ADDRESS6, neighbor.local_addresses6, 16),
        (_S.REMOTE_ADDRESS6, neighbor.remote_addresses6, 16),
    ):
        for address in addresses:
            yield write_triplet(kind, address.to_bytes(size, "big"))
