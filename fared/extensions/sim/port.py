"""Interfaces of simulated routers, and the lower layer of each protocol between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import msgspec

from fared.core.links import InterfaceAddress, Link
from fared.router.protocols import BGP, ISIS, OSPF, PROTOCOLS, RoutingProtocol

LOCAL_MAC = 0x0200_0000_0000
"""A locally administered MAC address with room for node and port in its last four bytes."""
_LINK_LOCAL = 0xFE80 << 112


class Port(msgspec.Struct):
    """One end of a wire, or a port on a shared segment.

    ``settings`` are by name of the protocols that run on it. ``address`` 0: no IPv4
    address. ``global6`` is an IPv6 address beside the link-local one. What arrives here takes
    ``delay`` seconds; None: as long as on any wire of the network.
    """

    node: str
    ifindex: int
    name: str
    address: int
    prefix_length: int
    settings: dict[str, Any]
    capacity: float | None
    peer: Port | None = None
    admin_up: bool = True
    loopback: bool = False
    segment: list[Port] = msgspec.field(default_factory=list)
    global6: InterfaceAddress | None = None
    mac: int = 0
    delay: float | None = None

    @property
    def far(self) -> tuple[Port, ...]:
        """The ports that receive its frames."""
        if self.peer is not None:
            return (self.peer,)
        return tuple(port for port in self.segment if port is not self)

    @property
    def up(self) -> bool:
        """Administratively up, with carrier: the far end is up as well."""
        return self.admin_up and (self.peer is None or self.peer.admin_up)

    def link(self) -> Link:
        """The kernel's description of this interface."""
        return Link(
            ifindex=self.ifindex,
            name=self.name,
            up=self.up,
            mtu=1500,
            addresses=self._addresses(),
            loopback=self.loopback,
            speed=self.capacity,
            hardware_address=0 if self.loopback else self.mac,
        )

    @property
    def link_local(self) -> int:
        """The IPv6 link-local address, the next hop of neighbors."""
        return _LINK_LOCAL | self.mac

    def _addresses(self) -> tuple[InterfaceAddress, ...]:
        found = []
        if self.address:
            peer = None if self.peer is None else self.peer.address
            found.append(InterfaceAddress(4, self.address, self.prefix_length, peer))
        if not self.loopback:
            found.append(InterfaceAddress(6, self.link_local, 64))
        if self.global6 is not None:
            found.append(self.global6)
        return tuple(found)


class Layer(msgspec.Struct, frozen=True):
    """The layer below a protocol: addresses of ports and groups, and the cost of a port."""

    protocol: RoutingProtocol
    address: Callable[[Port], int]
    is_group: Callable[[int], bool]
    cost: Callable[[Any], int]


def over_ipv4(protocol: RoutingProtocol, cost: Callable[[Any], int]) -> Layer:
    """Return the layer of a protocol whose packets are IPv4 datagrams."""
    return Layer(protocol, attrgetter("address"), lambda to: to >> 28 == 0xE, cost)


def over_ethernet(protocol: RoutingProtocol, cost: Callable[[Any], int]) -> Layer:
    """Return the layer of a protocol whose packets are Ethernet frames."""
    return Layer(protocol, attrgetter("mac"), lambda to: bool(to >> 40 & 1), cost)


LAYERS: Mapping[str, Layer] = MappingProxyType(
    {
        OSPF: over_ipv4(PROTOCOLS[OSPF], attrgetter("cost")),
        ISIS: over_ethernet(PROTOCOLS[ISIS], attrgetter("metric")),
        BGP: over_ipv4(PROTOCOLS[BGP], lambda _: 1),
    }
)
"""By protocol."""
