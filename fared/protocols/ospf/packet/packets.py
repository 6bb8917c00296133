"""The five OSPF packets (RFC 2328 §A.3). LSAs in an update are not decoded (``Lsa``)."""

from __future__ import annotations

import enum

import msgspec

from fared.protocols.ospf.packet.lsa import Lsa, LsaHeader, LsaKey


class PacketType(enum.IntEnum):
    """OSPF packet types (RFC 2328 §A.3.1)."""

    HELLO = 1
    DATABASE_DESCRIPTION = 2
    LS_REQUEST = 3
    LS_UPDATE = 4
    LS_ACK = 5

    @property
    def label(self) -> str:
        """The name used in JSON and metrics."""
        return _LABELS[self]


_LABELS = ("", "hello", "database-description", "ls-request", "ls-update", "ls-ack")


class AuType(enum.IntEnum):
    """Authentication types (RFC 2328 appendix D, RFC 7474 §3)."""

    NULL = 0
    SIMPLE = 1
    CRYPTOGRAPHIC = 2
    CRYPTOGRAPHIC_EXTENDED = 3


class Options(enum.IntFlag):
    """The options of hellos, database descriptions and LSAs (RFC 2328 §A.2; ``O``: RFC 5250).

    ``L``: an LLS data block follows the packet (RFC 5613), which is ignored.
    """

    E = 0x02
    MC = 0x04
    NP = 0x08
    L = 0x10
    DC = 0x20
    O = 0x40  # noqa: E741 - the RFC's name


class DdFlags(enum.IntFlag):
    """Flags of a database description (RFC 2328 §A.3.3)."""

    MS = 0x01
    M = 0x02
    I = 0x04  # noqa: E741 - the RFC's name


class Hello(msgspec.Struct, frozen=True):
    """Hello packet (RFC 2328 §A.3.2)."""

    network_mask: int
    hello_interval: int
    options: int
    router_priority: int
    router_dead_interval: int
    designated_router: int
    backup_designated_router: int
    neighbors: tuple[int, ...]


class DatabaseDescription(msgspec.Struct, frozen=True):
    """Database description packet (RFC 2328 §A.3.3).

    ``packed``: encoded headers that follow ``lsa_headers``.
    """

    interface_mtu: int
    options: int
    flags: int
    dd_sequence_number: int
    lsa_headers: tuple[LsaHeader, ...] = ()
    packed: bytes = b""


class LsRequest(msgspec.Struct, frozen=True):
    """Link state request packet (RFC 2328 §A.3.4)."""

    requests: tuple[LsaKey, ...]


class LsUpdate(msgspec.Struct, frozen=True):
    """Link state update packet (RFC 2328 §A.3.5). ``packed``: LSAs as bytes, after ``lsas``."""

    lsas: tuple[Lsa, ...]
    packed: tuple[bytes, ...] = ()


class LsAck(msgspec.Struct, frozen=True):
    """Link state acknowledgment packet (RFC 2328 §A.3.6).

    ``packed``: encoded headers that follow ``lsa_headers``.
    """

    lsa_headers: tuple[LsaHeader, ...]
    packed: bytes = b""


PacketBody = Hello | DatabaseDescription | LsRequest | LsUpdate | LsAck


class Packet(msgspec.Struct, frozen=True):
    """An OSPF packet (RFC 2328 §A.3.1). ``authentication`` is the 64-bit field of its header."""

    packet_type: PacketType
    router_id: int
    area_id: int
    au_type: int
    authentication: bytes
    body: PacketBody
