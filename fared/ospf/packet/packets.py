"""The five OSPF packets (RFC 2328 §A.3). LSAs inside an update stay undecoded ``Lsa`` envelopes."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from fared.ospf.packet.lsa import Lsa, LsaHeader, LsaKey


class PacketType(enum.IntEnum):
    """OSPF packet types."""

    HELLO = 1
    DATABASE_DESCRIPTION = 2
    LS_REQUEST = 3
    LS_UPDATE = 4
    LS_ACK = 5

    @property
    def label(self) -> str:
        """The name promised in JSON and metrics."""
        return self.name.lower().replace("_", "-")


class AuType(enum.IntEnum):
    """Authentication types of the packet header (RFC 2328 §D, RFC 7474 §3)."""

    NULL = 0
    SIMPLE = 1
    CRYPTOGRAPHIC = 2
    CRYPTOGRAPHIC_EXTENDED = 3


class Options(enum.IntFlag):
    """The options byte of hellos, database descriptions and LSAs (RFC 2328 §A.2, RFC 5250)."""

    E = 0x02
    MC = 0x04
    NP = 0x08
    DC = 0x20
    O = 0x40  # noqa: E741 - the RFC's name


class DdFlags(enum.IntFlag):
    """Flags of a database description (RFC 2328 §A.3.3)."""

    MS = 0x01
    M = 0x02
    I = 0x04  # noqa: E741 - the RFC's name


@dataclass(frozen=True, slots=True)
class Hello:
    """Hello packet (RFC 2328 §A.3.2)."""

    network_mask: int
    hello_interval: int
    options: int
    router_priority: int
    router_dead_interval: int
    designated_router: int
    backup_designated_router: int
    neighbors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DatabaseDescription:
    """Database description packet (RFC 2328 §A.3.3).

    ``packed`` are headers that are bytes already, behind the others: only a sender has such.
    """

    interface_mtu: int
    options: int
    flags: int
    dd_sequence_number: int
    lsa_headers: tuple[LsaHeader, ...] = ()
    packed: bytes = b""


@dataclass(frozen=True, slots=True)
class LsRequest:
    """Link state request packet (RFC 2328 §A.3.4)."""

    requests: tuple[LsaKey, ...]


@dataclass(frozen=True, slots=True)
class LsUpdate:
    """Link state update packet (RFC 2328 §A.3.5)."""

    lsas: tuple[Lsa, ...]


@dataclass(frozen=True, slots=True)
class LsAck:
    """Link state acknowledgment packet (RFC 2328 §A.3.6)."""

    lsa_headers: tuple[LsaHeader, ...]


PacketBody = Hello | DatabaseDescription | LsRequest | LsUpdate | LsAck


@dataclass(frozen=True, slots=True)
class Packet:
    """A whole OSPF packet. ``authentication`` is the header's 64-bit field as it stands."""

    packet_type: PacketType
    router_id: int
    area_id: int
    au_type: int
    authentication: bytes
    body: PacketBody
