"""A local link as the kernel describes it: the value that all rooms share."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

_LINK_LOCAL = 0xFE80 >> 6


class InterfaceAddress(msgspec.Struct, frozen=True):
    """One address of an interface. ``peer`` is the far end where the kernel knows it."""

    family: int
    address: int
    prefix_length: int
    peer: int | None = None


class Link(msgspec.Struct, frozen=True):
    """The state of one network interface.

    ``up`` means administratively up with carrier. ``speed`` is that of the hardware, ``shaped`` the
    rate of a root tbf/htb queue, both in bytes/s and None where unknown. ``addresses`` are those
    that packets may be sent from now: an IPv6 address appears after duplicate address detection.
    ``hardware_address`` is the MAC address, which IS-IS calls SNPA, as 48 bits; 0 where there is
    none.
    """

    ifindex: int
    name: str
    up: bool
    mtu: int
    addresses: tuple[InterfaceAddress, ...] = ()
    loopback: bool = False
    speed: float | None = None
    shaped: float | None = None
    hardware_address: int = 0

    def ipv4(self) -> tuple[InterfaceAddress, ...]:
        """The IPv4 addresses, primary first."""
        return tuple([a for a in self.addresses if a.family == 4])

    def link_local(self) -> InterfaceAddress | None:
        """The oldest IPv6 link-local address (fe80::/10): the next hop that neighbors use."""
        for address in self.addresses:
            if address.family == 6 and address.address >> 118 == _LINK_LOCAL:
                return address
        return None

    @property
    def capacity(self) -> float | None:
        """Capacity of the link: the lower of speed and shaper, bytes/s."""
        known = [v for v in (self.speed, self.shaped) if v is not None]
        return min(known) if known else None


class PresentLink(NamedTuple):
    """A link, and what tells people what it is for.

    ``kind`` is what ``ip -d link`` prints, empty for hardware. ``member``: it belongs to a bridge,
    bond or VRF. ``default_route``: a default route that people or DHCP made leaves through it.
    """

    link: Link
    kind: str = ""
    member: bool = False
    default_route: bool = False
