"""PDUs and TLVs as values: what the codec makes of bytes, and bytes of.

A TLV of a known type is one of the classes below; one of an unknown type, or of a type that is
carried on without being read, is an ``UnknownTlv``. Order is kept, so encoding what was decoded
gives the same bytes wherever the sender packed its TLVs the usual way.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeVar

from fared.core.ids import Prefix
from fared.isis.ids import LevelSet, LspId, Snpa
from fared.te.attributes import NO_ATTRIBUTES, TeAttributes


class PduType(enum.IntEnum):
    """PDU types (ISO 10589 §9)."""

    L1_LAN_HELLO = 15
    L2_LAN_HELLO = 16
    P2P_HELLO = 17
    L1_LSP = 18
    L2_LSP = 20
    L1_CSNP = 24
    L2_CSNP = 25
    L1_PSNP = 26
    L2_PSNP = 27

    @property
    def label(self) -> str:
        """The name in counters and JSON: ``l2-lsp``."""
        return self.name.lower().replace("_", "-")

    @property
    def level(self) -> int:
        """1 or 2; 0 for the point-to-point hello, which serves both."""
        return {15: 1, 16: 2, 17: 0, 18: 1, 20: 2, 24: 1, 25: 2, 26: 1, 27: 2}[self]


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
    EXTENDED_IS_REACHABILITY = 22
    IP_INTERNAL_REACHABILITY = 128
    PROTOCOLS_SUPPORTED = 129
    IP_EXTERNAL_REACHABILITY = 130
    IP_INTERFACE_ADDRESSES = 132
    TE_ROUTER_ID = 134
    EXTENDED_IP_REACHABILITY = 135
    HOSTNAME = 137
    MT_IS_REACHABILITY = 222
    MULTI_TOPOLOGY = 229
    IPV6_INTERFACE_ADDRESSES = 232
    MT_IP_REACHABILITY = 235
    IPV6_REACHABILITY = 236
    MT_IPV6_REACHABILITY = 237
    THREE_WAY = 240


NLPID_IPV4 = 0xCC
NLPID_IPV6 = 0x8E
MT_IPV4 = 0
MT_IPV6 = 2


@dataclass(frozen=True, slots=True)
class UnknownTlv:
    """A TLV carried as bytes."""

    type: int
    value: bytes


@dataclass(frozen=True, slots=True)
class AreaAddresses:
    """TLV 1: area addresses of 1 to 13 bytes."""

    addresses: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class IsNeighbors:
    """TLV 6: MAC addresses heard on the LAN."""

    snpas: tuple[Snpa, ...]


@dataclass(frozen=True, slots=True)
class Padding:
    """TLV 8: that many zero bytes (0..255)."""

    size: int


@dataclass(frozen=True, slots=True)
class LspEntry:
    """One LSP as SNPs list it; ``sequence_number`` 0 asks for it."""

    lsp_id: LspId
    sequence_number: int
    remaining_lifetime: int
    checksum: int


@dataclass(frozen=True, slots=True)
class LspEntries:
    """TLV 9."""

    entries: tuple[LspEntry, ...]


@dataclass(frozen=True, slots=True)
class Authentication:
    """TLV 10: ``kind`` 1 clear text, 54 HMAC-MD5 (RFC 5304), 3 generic (RFC 5310).

    ``value`` is the password, the digest, or key id (2 bytes) and digest.
    """

    kind: int
    value: bytes


@dataclass(frozen=True, slots=True)
class PurgeOriginator:
    """TLV 13 (RFC 6232): who purged, and from whom it was received (None: purged it itself)."""

    system_id: int
    received_from: int | None = None


@dataclass(frozen=True, slots=True)
class LspBufferSize:
    """TLV 14."""

    size: int


@dataclass(frozen=True, slots=True)
class NarrowNeighbor:
    """One entry of TLV 2. ``neighbor`` is system id << 8 | pseudonode, 56 bits."""

    neighbor: int
    metric: int


@dataclass(frozen=True, slots=True)
class NarrowIsReachability:
    """TLV 2. ``virtual`` is its first byte."""

    neighbors: tuple[NarrowNeighbor, ...]
    virtual: int = 0


@dataclass(frozen=True, slots=True)
class IsNeighbor:
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


@dataclass(frozen=True, slots=True)
class IsReachability:
    """TLV 22, or TLV 222 where ``topology`` is not None."""

    neighbors: tuple[IsNeighbor, ...]
    topology: int | None = None


@dataclass(frozen=True, slots=True)
class IpReach:
    """A reachable prefix: an entry of TLV 135, 235, 236 or 237 (RFC 5305 §4, 5308, 5120).

    ``down`` is the up/down bit. ``external`` is the X bit of the IPv6 TLVs. ``tags`` are 32-bit
    administrative tags (RFC 5130), ``flags`` the prefix attribute flags byte (RFC 7794; None:
    not sent), ``capacity`` the path capacity, bytes/s, where the experimental sub-TLV is there.
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


@dataclass(frozen=True, slots=True)
class IpReachability:
    """TLV 135 or 236 by ``family``; TLV 235 or 237 where ``topology`` is not None."""

    family: int
    prefixes: tuple[IpReach, ...]
    topology: int | None = None


@dataclass(frozen=True, slots=True)
class NarrowIpReach:
    """One entry of TLV 128 or 130 (RFC 1195). ``metric_external`` is the I/E bit."""

    prefix: Prefix
    metric: int
    down: bool = False
    metric_external: bool = False


@dataclass(frozen=True, slots=True)
class NarrowIpReachability:
    """TLV 128, or 130 where ``external``."""

    prefixes: tuple[NarrowIpReach, ...]
    external: bool = False


@dataclass(frozen=True, slots=True)
class ProtocolsSupported:
    """TLV 129: NLPIDs."""

    nlpids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InterfaceAddresses:
    """TLV 132 or 232 by ``family``."""

    family: int
    addresses: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TeRouterId:
    """TLV 134: an IPv4 address."""

    address: int


@dataclass(frozen=True, slots=True)
class Hostname:
    """TLV 137 (RFC 5301)."""

    name: str


@dataclass(frozen=True, slots=True)
class Topology:
    """One entry of TLV 229 (RFC 5120 §7.1)."""

    topology: int
    overload: bool = False
    attached: bool = False


@dataclass(frozen=True, slots=True)
class MultiTopology:
    """TLV 229."""

    topologies: tuple[Topology, ...]


class ThreeWayState(enum.IntEnum):
    """Adjacency three-way states (RFC 5303 §3.1)."""

    UP = 0
    INITIALIZING = 1
    DOWN = 2


@dataclass(frozen=True, slots=True)
class ThreeWay:
    """TLV 240 (RFC 5303); the last three None where the short form was sent."""

    state: int
    extended_local_circuit_id: int | None = None
    neighbor_system_id: int | None = None
    neighbor_extended_local_circuit_id: int | None = None


Tlv = (
    UnknownTlv
    | AreaAddresses
    | IsNeighbors
    | Padding
    | LspEntries
    | Authentication
    | PurgeOriginator
    | LspBufferSize
    | NarrowIsReachability
    | IsReachability
    | IpReachability
    | NarrowIpReachability
    | ProtocolsSupported
    | InterfaceAddresses
    | TeRouterId
    | Hostname
    | MultiTopology
    | ThreeWay
)

_T = TypeVar("_T")


def of_type(tlvs: tuple[Tlv, ...], kind: type[_T]) -> tuple[_T, ...]:
    """The TLVs of one class, in order."""
    return tuple(tlv for tlv in tlvs if isinstance(tlv, kind))


@dataclass(frozen=True, slots=True)
class LanHello:
    """LAN IS to IS hello (ISO 10589 §9.5, §9.6). ``lan_id`` is system id << 8 | pseudonode."""

    level: int
    circuit_type: LevelSet
    source_id: int
    holding_time: int
    priority: int
    lan_id: int
    tlvs: tuple[Tlv, ...] = ()


@dataclass(frozen=True, slots=True)
class P2pHello:
    """Point-to-point IS to IS hello (ISO 10589 §9.7)."""

    circuit_type: LevelSet
    source_id: int
    holding_time: int
    local_circuit_id: int
    tlvs: tuple[Tlv, ...] = ()


@dataclass(frozen=True, slots=True)
class Lsp:
    """Link state PDU (ISO 10589 §9.8, §9.9). ``attached`` is the default-metric bit.

    ``is_type`` has the bits of LevelSet (1 or 3). A purge has remaining lifetime 0 and its
    checksum is not looked at.
    """

    level: int
    lsp_id: LspId
    sequence_number: int
    remaining_lifetime: int
    checksum: int = 0
    partition_repair: bool = False
    attached: bool = False
    overload: bool = False
    is_type: int = 3
    tlvs: tuple[Tlv, ...] = ()


@dataclass(frozen=True, slots=True)
class Csnp:
    """Complete sequence numbers PDU (ISO 10589 §9.10, §9.11). ``source_id``: system id << 8."""

    level: int
    source_id: int
    start: LspId
    end: LspId
    tlvs: tuple[Tlv, ...] = ()


@dataclass(frozen=True, slots=True)
class Psnp:
    """Partial sequence numbers PDU (ISO 10589 §9.12, §9.13). ``source_id``: system id << 8."""

    level: int
    source_id: int
    tlvs: tuple[Tlv, ...] = ()


Pdu = LanHello | P2pHello | Lsp | Csnp | Psnp
