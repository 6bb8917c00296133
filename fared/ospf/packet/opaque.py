"""Opaque LSA bodies: TE (RFC 3630, 4203, 7471) and router information (RFC 7770, 5642)."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from fared.te.attributes import TeAttributes


class OpaqueType(enum.IntEnum):
    """The high byte of an opaque LSA's link state id (IANA)."""

    TRAFFIC_ENGINEERING = 1
    ROUTER_INFORMATION = 4
    EXTENDED_PREFIX = 7


@dataclass(frozen=True, slots=True)
class TeRouterAddress:
    """TE LSA with the router address TLV (RFC 3630 §2.4.1)."""

    address: int


@dataclass(frozen=True, slots=True)
class TeLink:
    """TE LSA with one link TLV (RFC 3630 §2.4.2); ids are those of RFC 4203 §1.1.

    ``anomalous`` lists the sub-TLV types (27, 28, 30) that came with the A bit of RFC 7471 set.
    ``router_address`` is that of a router address TLV in the same LSA: RFC 3630 §2.4 wants one
    TLV an LSA, FRR sends both.
    """

    link_type: int | None
    link_id: int | None
    local_addresses: tuple[int, ...] = ()
    remote_addresses: tuple[int, ...] = ()
    local_identifier: int | None = None
    remote_identifier: int | None = None
    attributes: TeAttributes = field(default_factory=TeAttributes)
    anomalous: tuple[int, ...] = ()
    unknown: tuple[tuple[int, bytes], ...] = ()
    router_address: int | None = None


@dataclass(frozen=True, slots=True)
class RouterInformation:
    """Router information LSA (RFC 7770): capabilities and the dynamic hostname (RFC 5642)."""

    capabilities: int | None = None
    hostname: str | None = None
    unknown: tuple[tuple[int, bytes], ...] = ()
