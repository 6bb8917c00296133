"""LSA bodies of RFC 2328: router, network, summary and AS-external (§A.4.2 to §A.4.5)."""

from __future__ import annotations

import enum
from typing import NamedTuple

import msgspec

from fared.core.ids import dotted
from fared.core.text import type_name
from fared.protocols.ospf.packet.tlv import Json


class RouterLinkType(enum.IntEnum):
    """Link types in a router LSA (RFC 2328 §A.4.2)."""

    POINT_TO_POINT = 1
    TRANSIT = 2
    STUB = 3
    VIRTUAL = 4


TO_ROUTERS = (RouterLinkType.POINT_TO_POINT, RouterLinkType.VIRTUAL)
"""A virtual link is an unnumbered point-to-point link of the backbone (RFC 2328 §15)."""
TO_VERTICES = (*TO_ROUTERS, RouterLinkType.TRANSIT)
"""Links that paths may cross (RFC 2328 §16.1 (2)): all but those to stub networks."""


class RouterLink(NamedTuple):
    """One link of a router LSA. §12.4.1 defines ``link_id`` and ``link_data`` by type.

    A tuple, which is fast to create: a large fabric has a hundred thousand links.
    """

    link_type: int
    link_id: int
    link_data: int
    metric: int

    def document(self) -> Json:
        """Return the fields, and the name of the type."""
        return {
            "type": self.link_type,
            "type_name": type_name(RouterLinkType, self.link_type),
            "id": dotted(self.link_id),
            "data": dotted(self.link_data),
            "metric": self.metric,
        }


B_BIT, E_BIT, V_BIT = 0x01, 0x02, 0x04
"""Flags of a router LSA (RFC 2328 §A.4.2)."""
_FLAGS = (("B", B_BIT), ("E", E_BIT), ("V", V_BIT))


class RouterLsa(msgspec.Struct, frozen=True):
    """Router LSA body; ``flags``: border router, AS boundary router, end of a virtual link."""

    flags: int
    links: tuple[RouterLink, ...]

    def document(self) -> Json:
        """Return flags and links."""
        return {
            "flags": self.flags,
            "flags_names": [name for name, bit in _FLAGS if self.flags & bit],
            "links": [link.document() for link in self.links],
        }


class NetworkLsa(msgspec.Struct, frozen=True):
    """Network LSA body (RFC 2328 §A.4.3)."""

    network_mask: int
    attached_routers: tuple[int, ...]

    def document(self) -> Json:
        """Return mask and routers."""
        return {
            "network_mask": dotted(self.network_mask),
            "attached_routers": [*map(dotted, self.attached_routers)],
        }


class SummaryLsa(msgspec.Struct, frozen=True):
    """Summary LSA body, types 3 and 4 (RFC 2328 §A.4.4)."""

    network_mask: int
    metric: int

    def document(self) -> Json:
        """Return mask and metric."""
        return {"network_mask": dotted(self.network_mask), "metric": self.metric}


class AsExternalLsa(msgspec.Struct, frozen=True):
    """AS-external LSA body, types 5 and 7, TOS 0 only (RFC 2328 §A.4.5)."""

    network_mask: int
    type_2: bool
    metric: int
    forwarding_address: int
    external_route_tag: int

    def document(self) -> Json:
        """Return the fields."""
        return {
            "network_mask": dotted(self.network_mask),
            "metric_type": 2 if self.type_2 else 1,
            "metric": self.metric,
            "forwarding_address": dotted(self.forwarding_address),
            "tag": self.external_route_tag,
        }
