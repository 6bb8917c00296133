"""Which of its subnets an interface speaks in: that of its neighbors.

RFC 2328 §9 has an interface for each subnet of a link, as FRR and BIRD have; here a link has one
interface, which speaks in one subnet at a time, at first in that of the primary address. While it
has no two-way neighbor, it follows a neighbor into another subnet. If both ends are in two subnets,
each in another one, only one of them may follow: that with the lower router id does at once, the
other one after a while, in which it would have been answered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fared.core.ids import dotted, length_mask
from fared.core.links import InterfaceAddress
from fared.protocols.ospf.instance import Instance
from fared.protocols.ospf.interface import Interface
from fared.protocols.ospf.neighbor import NeighborState
from fared.protocols.ospf.packet.packets import Hello

_ANSWERED = 1.0
"""Seconds within which a router that accepts our hellos answers, if it is fared; FRR and BIRD
speak in all subnets, so that they may be followed into any."""


class Subnets:
    """Follows neighbors into other subnets.

    ``move`` lets an interface speak from another of its addresses, and form its adjacencies anew.
    """

    def __init__(
        self, instance: Instance, move: Callable[[Interface, InterfaceAddress], None]
    ) -> None:
        self._instance = instance
        self._process = instance.process
        self._move = move

    def review(self, interface: Interface, source: int, router_id: int, hello: Hello) -> bool:
        """Process the source of a hello; return whether the interface speaks in its subnet.

        On point-to-point links any subnet will do: the neighbor may accept ours.
        """
        if len(interface.addresses) <= 1:
            return True
        own, other = interface.own, interface.facing(source)
        if own is None or other is None or own.contains(source):
            return True
        if self._free(interface, router_id) and _fits(interface, other, hello):
            us = self._instance.router_id
            if us in hello.neighbors or us < router_id:
                self._follow(interface, other, source)
                return True
            if interface.move_timer is None:
                interface.move_timer = self._process.timers.arm(
                    self._process.now + _ANSWERED,
                    partial(self._unanswered, interface, other, source, router_id),
                )
        return not interface.broadcast

    def _free(self, interface: Interface, router_id: int) -> bool:
        """Whether nobody else is spoken with in the present subnet."""
        return not any(
            neighbor.state >= NeighborState.TWO_WAY
            or (neighbor.router_id != router_id and interface.facing(neighbor.address))
            for neighbor in interface.neighbors.values()
        )

    def _unanswered(
        self, interface: Interface, other: InterfaceAddress, source: int, router_id: int
    ) -> None:
        interface.move_timer = None
        present = interface.is_active and interface.facing(source) == other != interface.own
        if present and self._free(interface, router_id):
            self._follow(interface, other, source)

    def _follow(self, interface: Interface, other: InterfaceAddress, source: int) -> None:
        self._process.log(
            "info",
            "ospf-subnet-chosen",
            interface=interface.name,
            address=dotted(other.address),
            neighbor=dotted(source),
        )
        self._move(interface, other)


def _fits(interface: Interface, other: InterfaceAddress, hello: Hello) -> bool:
    """Whether the mask matches (RFC 2328 §10.5); ignored on point-to-point links."""
    return not interface.broadcast or hello.network_mask == length_mask(other.prefix_length)
