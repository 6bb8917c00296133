"""TLVs as values, decoded from bytes and encoded to bytes.

A TLV of a known type is one of the classes below; one of an unknown type, or with malformed
contents, is an ``UnknownTlv``. Order is kept, so a decoded PDU is encoded to the same bytes if its
sender packed its TLVs as the encoder does.

Values hold numbers, bytes and each other, never what holds them: the collector skips them, and each
takes 16 bytes less.
"""

from __future__ import annotations

import enum
from typing import TypeVar

import msgspec

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, Prefix
from fared.paths.te.attributes import NO_ATTRIBUTES, TeAttributes
from fared.protocols.isis.ids import LspId, Snpa
from fared.protocols.isis.pdu.flooding_parameters import FloodingParameters


class TlvType(enum.IntEnum):
    """TLV types that are read or written."""

    AREA_ADDRESSES = 1
    IS_REACHABILITY = 2
    IS_NEIGHBORS = 6
    PADDING = 8
    LSP_ENTRIES = 9
    AUTHENTICATION = 10
    LSP_BUFFER_SIZE = 14
    PURGE_ORIGINATOR = 13
    FLOODING_PARAMETERS = 21
    EXTENDED_IS_REACHABILITY = 22
    IP_INTERNAL_REACHABILITY = 128
    PROTOCOLS_SUPPORTED = 129
    IP_EXTERNAL_REACHABILITY = 130
    IP_INTERFACE_ADDRESSES = 132
    TE_ROUTER_ID = 134
    EXTENDED_IP_REACHABILITY = 135
    HOSTNAME = 137
    BFD_ENABLED = 148
    RESTART = 211
    MT_IS_REACHABILITY = 222
    MULTI_TOPOLOGY = 229
    IPV6_INTERFACE_ADDRESSES = 232
    MT_IP_REACHABILITY = 235
    IPV6_REACHABILITY = 236
    MT_IPV6_REACHABILITY = 237
    THREE_WAY = 240


NLPID_IPV4 = 0xCC
NLPID_IPV6 = 0x8E
NLPIDS = {FAMILY_IPV4: NLPID_IPV4, FAMILY_IPV6: NLPID_IPV6}
FLAG_EXTERNAL = 0x80
FLAG_READVERTISED = 0x40
FLAG_NODE = 0x20
"""Prefix attribute flags X, R, N (RFC 7794 §2.1)."""
MT_IPV4 = 0
MT_IPV6 = 2
TOPOLOGIES = {FAMILY_IPV4: MT_IPV4, FAMILY_IPV6: MT_IPV6}
"""The MT id of each family (RFC 5120 §7.5)."""


class UnknownTlv(msgspec.Struct, frozen=True, gc=False):
    """A TLV carried as bytes."""

    type: int
    value: bytes


class AreaAddresses(msgspec.Struct, frozen=True, gc=False):
    """TLV 1: area addresses of 1 to 13 bytes."""

    addresses: tuple[bytes, ...]


class IsNeighbors(msgspec.Struct, frozen=True, gc=False):
    """TLV 6: MAC addresses of the neighbors received on the LAN."""

    snpas: tuple[Snpa, ...]


class Padding(msgspec.Struct, frozen=True, gc=False):
    """TLV 8: that many zero bytes (0..255)."""

    size: int


class LspEntry(msgspec.Struct, frozen=True, gc=False):
    """One LSP in an SNP; ``sequence_number`` 0 requests it."""

    lsp_id: LspId
    sequence_number: int
    remaining_lifetime: int
    checksum: int


class LspEntries(msgspec.Struct, frozen=True, gc=False):
    """TLV 9. ``packed``: encoded entries that follow ``entries`` (``lsp_entries``)."""

    entries: tuple[LspEntry, ...]
    packed: bytes = b""


class Authentication(msgspec.Struct, frozen=True, gc=False):
    """TLV 10: ``kind`` 1 clear text, 54 HMAC-MD5 (RFC 5304), 3 generic (RFC 5310).

    ``value`` is the password, the digest, or key id (2 bytes) and digest.
    """

    kind: int
    value: bytes


class PurgeOriginator(msgspec.Struct, frozen=True, gc=False):
    """TLV 13 (RFC 6232): the system that purged the LSP.

    If another system adds the TLV, ``system_id`` is that system and ``received_from`` its neighbor.
    """

    system_id: int
    received_from: int | None = None


class LspBufferSize(msgspec.Struct, frozen=True, gc=False):
    """TLV 14."""

    size: int


class NarrowNeighbor(msgspec.Struct, frozen=True, gc=False):
    """One entry of TLV 2. ``neighbor`` is system id << 8 | pseudonode, 56 bits."""

    neighbor: int
    metric: int


class NarrowIsReachability(msgspec.Struct, frozen=True, gc=False):
    """TLV 2. ``virtual`` is its first byte."""

    neighbors: tuple[NarrowNeighbor, ...]
    virtual: int = 0


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


class IsReachability(msgspec.Struct, frozen=True, gc=False):
    """TLV 22, or TLV 222 where ``topology`` is not None."""

    neighbors: tuple[IsNeighbor, ...]
    topology: int | None = None


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


class IpReachability(msgspec.Struct, frozen=True, gc=False):
    """TLV 135 or 236 by ``family``; TLV 235 or 237 where ``topology`` is not None."""

    family: int
    prefixes: tuple[IpReach, ...]
    topology: int | None = None


class NarrowIpReach(msgspec.Struct, frozen=True, gc=False):
    """One entry of TLV 128 or 130 (RFC 1195). ``metric_external`` is the I/E bit."""

    prefix: Prefix
    metric: int
    down: bool = False
    metric_external: bool = False


class NarrowIpReachability(msgspec.Struct, frozen=True, gc=False):
    """TLV 128, or 130 where ``external``."""

    prefixes: tuple[NarrowIpReach, ...]
    external: bool = False


class ProtocolsSupported(msgspec.Struct, frozen=True, gc=False):
    """TLV 129: NLPIDs."""

    nlpids: tuple[int, ...]


class InterfaceAddresses(msgspec.Struct, frozen=True, gc=False):
    """TLV 132 or 232 by ``family``."""

    family: int
    addresses: tuple[int, ...]


class TeRouterId(msgspec.Struct, frozen=True, gc=False):
    """TLV 134: an IPv4 address."""

    address: int


class Hostname(msgspec.Struct, frozen=True, gc=False):
    """TLV 137 (RFC 5301)."""

    name: str


class Topology(msgspec.Struct, frozen=True, gc=False):
    """One entry of TLV 229 (RFC 5120 §7.1)."""

    topology: int
    overload: bool = False
    attached: bool = False


class MultiTopology(msgspec.Struct, frozen=True, gc=False):
    """TLV 229."""

    topologies: tuple[Topology, ...]


class BfdEnabled(msgspec.Struct, frozen=True, gc=False):
    """TLV 148 (RFC 6213 §2): pairs of topology and NLPID for which BFD is in use."""

    protocols: tuple[tuple[int, int], ...]


class ThreeWayState(enum.IntEnum):
    """Adjacency three-way states (RFC 5303 §3.1)."""

    UP = 0
    INITIALIZING = 1
    DOWN = 2


class ThreeWay(msgspec.Struct, frozen=True, gc=False):
    """TLV 240 (RFC 5303); the last three None where the short form was sent."""

    state: int
    extended_local_circuit_id: int | None = None
    neighbor_system_id: int | None = None
    neighbor_extended_local_circuit_id: int | None = None


class RestartFlag(enum.IntFlag):
    """Flags of TLV 211 (RFC 8706 §3.1)."""

    RR = 0x01
    RA = 0x02
    SA = 0x04
    PR = 0x08
    PA = 0x10


class Restart(msgspec.Struct, frozen=True, gc=False):
    """TLV 211 (RFC 8706); ``system_id`` is that of the neighbor that an answer is for, on a LAN."""

    flags: int
    remaining_time: int | None = None
    system_id: int | None = None


Tlv = (
    UnknownTlv
    | AreaAddresses
    | IsNeighbors
    | Padding
    | LspEntries
    | Authentication
    | PurgeOriginator
    | LspBufferSize
    | FloodingParameters
    | NarrowIsReachability
    | IsReachability
    | IpReachability
    | NarrowIpReachability
    | ProtocolsSupported
    | InterfaceAddresses
    | TeRouterId
    | Hostname
    | MultiTopology
    | BfdEnabled
    | ThreeWay
    | Restart
)

_T = TypeVar("_T")


def of_type(tlvs: tuple[Tlv, ...], kind: type[_T]) -> tuple[_T, ...]:
    """The TLVs of one class, in order."""
    return tuple([tlv for tlv in tlvs if isinstance(tlv, kind)])
