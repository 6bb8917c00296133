"""The neighbors that an LSA may be flooded to, by its flooding scope, as bitmaps."""

from __future__ import annotations

from collections.abc import Container

import msgspec

from fared.protocols.ospf.interface import Interface, Neighbor
from fared.protocols.ospf.neighbor import NeighborState


class FloodGroup(msgspec.Struct):
    """The neighbors that an LSA of a flooding scope may be flooded to, as of ``version``.

    ``full``: those in state Full on point-to-point links, ``opaque``: those of them that are opaque
    capable (RFC 5250 §3.1), ``routers``: these by router id. ``exchanging``: those on such links in
    Exchange or Loading, ``exchanging_opaque``: the opaque capable ones. ``lans``: broadcast
    networks with participants.
    """

    version: int
    full: int = 0
    opaque: int = 0
    routers: dict[int, int] = msgspec.field(default_factory=dict)
    exchanging: list[Neighbor] = msgspec.field(default_factory=list)
    exchanging_opaque: int = 0
    lans: list[Interface] = msgspec.field(default_factory=list)

    def add(self, interface: Interface) -> None:
        """Add the participants of an interface."""
        for neighbor in interface.neighbors.values():
            opaque = neighbor.bit if neighbor.opaque_capable else 0
            if neighbor.state < NeighborState.EXCHANGE:
                continue
            if interface.broadcast:
                self.lans.append(interface)
                return
            if neighbor.state is not NeighborState.FULL:
                self.exchanging.append(neighbor)
                self.exchanging_opaque |= opaque
            else:
                self.full |= neighbor.bit
                self.opaque |= opaque
                bits = self.routers.get(neighbor.router_id, 0)
                self.routers[neighbor.router_id] = bits | neighbor.bit

    def among(self, routers: Container[int]) -> int:
        """The Full neighbors on point-to-point links among these routers."""
        bits = 0
        if routers:
            for router_id, bit in self.routers.items():
                if router_id in routers:
                    bits |= bit
        return bits
