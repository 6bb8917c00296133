"""Opaque LSA bodies: TE (RFC 3630, 4203, 7471) and router information (RFC 7770, 5642)."""

from __future__ import annotations

import enum

import msgspec

from fared.paths.te.attributes import TeAttributes


class OpaqueType(enum.IntEnum):
    """Opaque types (RFC 5250 §3, IANA)."""

    TRAFFIC_ENGINEERING = 1
    GRACE = 3
    ROUTER_INFORMATION = 4
    EXTENDED_PREFIX = 7


class TeRouterAddress(msgspec.Struct, frozen=True):
    """TE LSA with the router address TLV (RFC 3630 §2.4.1)."""

    address: int


class TeLink(msgspec.Struct, frozen=True):
    """TE LSA with one link TLV (RFC 3630 §2.4.2); identifiers are those of RFC 4203 §1.1.

    ``anomalous`` lists the sub-TLV types (27, 28, 30) with the A bit of RFC 7471 set.
    ``router_address`` is that of a router address TLV in the same LSA: RFC 3630 §2.4 allows one TLV
    for each LSA, but FRR sends both.
    """

    link_type: int | None
    link_id: int | None
    local_addresses: tuple[int, ...] = ()
    remote_addresses: tuple[int, ...] = ()
    local_identifier: int | None = None
    remote_identifier: int | None = None
    attributes: TeAttributes = TeAttributes()
    anomalous: tuple[int, ...] = ()
    unknown: tuple[tuple[int, bytes], ...] = ()
    router_address: int | None = None


class AreaLeader(msgspec.Struct, frozen=True):
    """Eligibility as area leader, and the flooding algorithm it would demand (RFC 9667 §5.2.1)."""

    priority: int
    algorithm: int


class RouterInformation(msgspec.Struct, frozen=True):
    """Router information LSA (RFC 7770): capabilities and the dynamic hostname (RFC 5642).

    ``dynamic_flooding`` lists the flooding algorithms that are supported (RFC 9667 §5.2.2).
    """

    capabilities: int | None = None
    hostname: str | None = None
    area_leader: AreaLeader | None = None
    dynamic_flooding: tuple[int, ...] | None = None
    unknown: tuple[tuple[int, bytes], ...] = ()
