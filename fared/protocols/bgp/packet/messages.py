"""BGP messages as values (RFC 4271 §4), and as JSON.

In JSON addresses, identifiers, prefixes, AS paths and communities are text as operators write them;
numbers of the protocol are integers, some with a name beside them; bandwidths are bytes/s, times
seconds; bytes that are not decoded are hexadecimal text.
"""

from __future__ import annotations

import enum

import msgspec

from fared.core.ids import Prefix, dotted
from fared.protocols.bgp.packet.attribute_block import Finding
from fared.protocols.bgp.packet.attributes import PathAttributes
from fared.protocols.bgp.packet.capabilities import FourOctetAs, OpenCapability
from fared.protocols.bgp.packet.coded import Json
from fared.protocols.bgp.packet.nlri import AFIS, BgpNextHop, family_name
from fared.protocols.bgp.packet.notification import Notification

VERSION = 4


class MessageType(enum.IntEnum):
    """Message types (RFC 4271 §4.1, RFC 2918 §3)."""

    OPEN = 1
    UPDATE = 2
    NOTIFICATION = 3
    KEEPALIVE = 4
    ROUTE_REFRESH = 5

    @property
    def label(self) -> str:
        """Its name in RFCs."""
        return self.name.replace("_", "-")


class OpenMessage(msgspec.Struct, frozen=True):
    """OPEN (RFC 4271 §4.2): ``my_as`` has two octets, ``hold_time`` is in seconds."""

    my_as: int
    hold_time: int
    identifier: int
    capabilities: tuple[OpenCapability, ...] = ()
    version: int = VERSION

    @property
    def number(self) -> int:
        """The AS number of the sender, of four octets if it has told it (RFC 6793 §4.1)."""
        for one in self.capabilities:
            if isinstance(one, FourOctetAs):
                return one.number
        return self.my_as

    def has(self, kind: type[OpenCapability]) -> bool:
        """Whether it has a capability of a class."""
        return any(type(one) is kind for one in self.capabilities)

    def document(self) -> Json:
        """Return it as JSON."""
        return {
            "message": "open",
            "version": self.version,
            "as": self.number,
            "my_as": self.my_as,
            "hold_time": self.hold_time,
            "identifier": dotted(self.identifier),
            "capabilities": [{one.label: one.document()} for one in self.capabilities],
        }


class RouteGroup(msgspec.Struct, frozen=True):
    """Prefixes of one family that are reachable by one next hop."""

    next_hop: BgpNextHop
    prefixes: tuple[Prefix, ...]


class Update(msgspec.Struct, frozen=True):
    """UPDATE: what is withdrawn, and routes with common attributes.

    It is the same whether IPv4 prefixes were in their own fields or in those of RFC 4760. There are
    one or two ``routes``, or none. ``end_of_rib`` is a family whose first table is complete
    (RFC 4724 §2). ``findings`` are errors, after which routes were withdrawn or attributes
    discarded.
    """

    withdrawn: tuple[Prefix, ...] = ()
    routes: tuple[RouteGroup, ...] = ()
    attributes: PathAttributes = PathAttributes()
    end_of_rib: int | None = None
    findings: tuple[Finding, ...] = ()

    def document(self) -> Json:
        """Return it as JSON."""
        routes = [
            {"next_hop": str(one.next_hop), "prefixes": list(map(str, one.prefixes))}
            for one in self.routes
        ]
        out: Json = {
            "message": "update",
            "withdrawn": list(map(str, self.withdrawn)),
            "attributes": self.attributes.document(),
            "routes": routes,
        }
        if self.end_of_rib is not None:
            out["end_of_rib"] = family_name(AFIS[self.end_of_rib])
        if self.findings:
            out["findings"] = list(map(str, self.findings))
        return out


class Keepalive(msgspec.Struct, frozen=True):
    """KEEPALIVE (RFC 4271 §4.4)."""

    def document(self) -> Json:
        """Return it as JSON."""
        return {"message": "keepalive"}


class RouteRefresh(msgspec.Struct, frozen=True):
    """ROUTE-REFRESH (RFC 2918 §3); ``subtype`` 0 asks for all routes of a family (RFC 7313)."""

    afi: int
    safi: int
    subtype: int = 0

    def document(self) -> Json:
        """Return it as JSON."""
        family = family_name(self.afi, self.safi)
        return {"message": "route-refresh", "family": family, "subtype": self.subtype}


Message = OpenMessage | Update | Notification | Keepalive | RouteRefresh
