"""Communities (RFC 1997, 4360, 8092), and the Link Bandwidth extended community (RFC 10005).

A bandwidth is bytes/s. Several of one route count as the lowest; a negative one, and what is no
number, is ignored, zero is not (RFC 10005 §4). The AS number in it means nothing.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from fared.core.ids import dotted
from fared.core.json_text import render_number
from fared.core.wire import U32, Format
from fared.protocols.bgp.packet.coded import AS_TRANS, MAX_TWO_OCTET_AS, Json

_WELL_KNOWN: Final = {
    0xFFFF0000: "graceful-shutdown",
    0xFFFF0001: "accept-own",
    0xFFFF0002: "route-filter-translated-v4",
    0xFFFF0003: "route-filter-v4",
    0xFFFF0004: "route-filter-translated-v6",
    0xFFFF0005: "route-filter-v6",
    0xFFFF0006: "llgr-stale",
    0xFFFF0007: "no-llgr",
    0xFFFF0008: "accept-own-nexthop",
    0xFFFF0009: "standby-pe",
    0xFFFF029A: "blackhole",
    0xFFFFFF01: "no-export",
    0xFFFFFF02: "no-advertise",
    0xFFFFFF03: "local-AS",
    0xFFFFFF04: "no-peer",
}
GRACEFUL_SHUTDOWN: Final = 0xFFFF0000
"""RFC 8326: this route will soon be withdrawn."""
_SUB_TYPE: Final = 0x04
_NON_TRANSITIVE: Final = 0x40
_ROLES: Final = {2: "RT", 3: "SoO"}
_ADMINISTRATORS: Final[Mapping[int, tuple[int, Callable[[int], str]]]] = MappingProxyType(
    {0: (2, str), 1: (4, dotted), 2: (4, str)}
)
"""By type (RFC 4360 §3, RFC 5668): octets of the administrator, and how it is written."""
_BANDWIDTH = struct.Struct(">BBHf")
_AVAILABLE: Final = b"\xc0FAR"


def community_text(value: int) -> str:
    """Write a community: ``65001:100``, or its name (RFC 1997 and others)."""
    return _WELL_KNOWN.get(value, f"{value >> 16}:{value & 0xFFFF}")


class LargeCommunity(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Three numbers (RFC 8092 §3)."""

    administrator: int
    first: int
    second: int

    def __str__(self) -> str:
        return f"{self.administrator}:{self.first}:{self.second}"


class LinkBandwidth(msgspec.Struct, frozen=True, gc=False):
    """The Link Bandwidth community (RFC 10005 §2), in bytes/s, of either type."""

    number: int
    bandwidth: float
    transitive: bool = True

    @property
    def raw(self) -> bytes:
        """Its eight octets. Raises OverflowError for a bandwidth beyond single precision."""
        kind = 0 if self.transitive else _NON_TRANSITIVE
        # RFC 10005 §2: AS_TRANS for a number of four octets
        number = self.number if self.number <= MAX_TWO_OCTET_AS else AS_TRANS
        return _BANDWIDTH.pack(kind, _SUB_TYPE, number, self.bandwidth)

    @property
    def valid(self) -> bool:
        """Whether it counts (RFC 10005 §4)."""
        return math.isfinite(self.bandwidth) and self.bandwidth >= 0


def read_link_bandwidth(raw: bytes) -> LinkBandwidth | None:
    """Return the Link Bandwidth community that eight octets are, of either type; else None."""
    if raw[1] != _SUB_TYPE or raw[0] not in (0, _NON_TRANSITIVE):
        return None
    kind, _, number, bandwidth = _BANDWIDTH.unpack(raw)
    return LinkBandwidth(number, bandwidth, kind != _NON_TRANSITIVE)


class AvailableBandwidth(msgspec.Struct, frozen=True, gc=False):
    """What load leaves of a path, bytes/s: beside Link Bandwidth, between routers of ours.

    Of a type for experiments that nobody passes on (RFC 4360 §6, §7), so that it always is the word
    of the neighbor itself; behind the type three octets that others do not use.
    """

    bandwidth: float

    @property
    def raw(self) -> bytes:
        """Its eight octets. Raises OverflowError for a bandwidth beyond single precision."""
        return _AVAILABLE + struct.pack(">f", self.bandwidth)


def available_bandwidth(communities: Iterable[bytes]) -> float | None:
    """Return what load leaves of a path, bytes/s: the lowest valid value; None without one."""
    found = [struct.unpack_from(">f", raw, 4)[0] for raw in communities if _is_available(raw)]
    return min([one for one in found if math.isfinite(one) and one >= 0], default=None)


def _is_available(raw: bytes) -> bool:
    return raw.startswith(_AVAILABLE)


def link_bandwidth(communities: Iterable[bytes]) -> float | None:
    """Return the bandwidth of a route, bytes/s: the lowest valid one; None without one."""
    found = [one for one in map(read_link_bandwidth, communities) if one is not None and one.valid]
    return min([one.bandwidth for one in found], default=None)


def with_link_bandwidth(
    communities: Iterable[bytes], *own: LinkBandwidth | AvailableBandwidth
) -> tuple[bytes, ...]:
    """Return the communities with these instead of any Link Bandwidth, as RFC 10005 §3.3 allows."""
    others = [
        raw for raw in communities if read_link_bandwidth(raw) is None and not _is_available(raw)
    ]
    return (*others, *[one.raw for one in own])


def extended_text(raw: bytes) -> str:
    """Write an extended community: ``RT:65001:7``, ``SoO:10.0.0.1:7``, or its hex digits.

    Route targets and origins (RFC 4360 §4, §5; RFC 5668) have names; their numbers are of an AS, an
    AS of four octets, or an address.
    """
    kind, name = raw[0] & ~_NON_TRANSITIVE, _ROLES.get(raw[1])
    if name is None or kind not in _ADMINISTRATORS:
        return f"0x{raw.hex()}"
    size, show = _ADMINISTRATORS[kind]
    administrator = int.from_bytes(raw[2 : 2 + size], "big")
    return f"{name}:{show(administrator)}:{int.from_bytes(raw[2 + size :], 'big')}"


def _extended_document(raw: bytes) -> Json:
    found = read_link_bandwidth(raw)
    if _is_available(raw):
        (free,) = struct.unpack_from(">f", raw, 4)
        return {"hex": raw.hex(), "available_bandwidth": render_number(free)}
    if found is None:
        return {"hex": raw.hex()}
    return {
        "hex": raw.hex(),
        "link_bandwidth": render_number(found.bandwidth),
        "as": found.number,
        "transitive": found.transitive,
    }


class SharedLimit(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A router that all paths of a route pass through: AS, identifier, what it carries in bytes/s.

    ``reach``: what its sender carries to there, whatever that router carries on; infinite: it is
    the sender itself. Not a community, but beside Link Bandwidth: ``attributes.SharedLimits``.
    """

    number: int
    identifier: int
    bandwidth: float
    reach: float = math.inf

    @property
    def speaker(self) -> tuple[int, int]:
        """The router (RFC 6286 §2.1)."""
        return self.number, self.identifier

    @property
    def valid(self) -> bool:
        """Whether it limits anything."""
        return math.isfinite(self.bandwidth) and self.bandwidth >= 0 and self.reach >= 0


def _limit_document(limit: SharedLimit) -> Json:
    return {
        "as": limit.number,
        "router_id": dotted(limit.identifier),
        "bandwidth": render_number(limit.bandwidth),
        "reach": render_number(limit.reach) if math.isfinite(limit.reach) else None,
    }


SHARED_LIMIT: Final = Format(
    "16s",
    lambda raw: SharedLimit(*struct.unpack(">IIff", raw)),
    lambda one: struct.pack(">IIff", one.number, one.identifier, one.bandwidth, one.reach),
    _limit_document,
)
COMMUNITY: Final = U32.shown(community_text)
EXTENDED_COMMUNITY: Final = Format("8s", text=_extended_document)
LARGE_COMMUNITY: Final = Format(
    "12s",
    lambda raw: LargeCommunity(*struct.unpack(">III", raw)),
    lambda one: struct.pack(">III", one.administrator, one.first, one.second),
    str,
)
