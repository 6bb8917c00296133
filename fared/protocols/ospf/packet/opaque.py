"""Opaque types, and the bodies of TE LSAs (RFC 3630, 4203, 7471)."""

from __future__ import annotations

import enum

import msgspec

from fared.core.ids import dotted
from fared.core.json_text import unknown_document
from fared.paths.te.attributes import TeAttributes
from fared.protocols.ospf.packet.tlv import Json


class OpaqueType(enum.IntEnum):
    """Opaque types (RFC 5250 §3, IANA)."""

    TRAFFIC_ENGINEERING = 1
    GRACE = 3
    ROUTER_INFORMATION = 4
    EXTENDED_PREFIX = 7


class TeRouterAddress(msgspec.Struct, frozen=True):
    """TE LSA with the router address TLV (RFC 3630 §2.4.1)."""

    address: int

    def document(self) -> Json:
        """Return the address."""
        return {"te_router_address": dotted(self.address)}


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

    def document(self) -> Json:
        """Return the fields, None where not sent; with the router address if there is one."""
        address = None if self.router_address is None else dotted(self.router_address)
        return {
            **({} if address is None else {"te_router_address": address}),
            "te_link": {
                "link_type": self.link_type,
                "link_id": None if self.link_id is None else dotted(self.link_id),
                "local_addresses": [*map(dotted, self.local_addresses)],
                "remote_addresses": [*map(dotted, self.remote_addresses)],
                "local_identifier": self.local_identifier,
                "remote_identifier": self.remote_identifier,
                **dict.fromkeys(self.attributes.__struct_fields__),
                **self.attributes.sent(),
                "anomalous": list(self.anomalous),
                "unknown": unknown_document(self.unknown),
            },
        }
