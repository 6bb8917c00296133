"""A local link as the kernel describes it: the value that all packages share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from fared.core.ids import ADDRESS_BITS, Prefix, ipv4_prefix, is_link_local
from fared.core.routes import is_martian


class InterfaceAddress(msgspec.Struct, frozen=True):
    """One address of an interface. ``peer`` is the far end where the kernel knows it.

    ``routed``: the kernel has a route to the network of the address, as it has unless the address
    was added with ``noprefixroute``.
    """

    family: int
    address: int
    prefix_length: int
    peer: int | None = None
    routed: bool = True

    @property
    def host(self) -> bool:
        """Whether it has no network: neither other addresses beside it, nor a far end."""
        return self.peer is None and self.prefix_length == ADDRESS_BITS[self.family]

    @property
    def network(self) -> int:
        """An address in its network: that of the far end where the kernel knows it."""
        return self.address if self.peer is None else self.peer

    @property
    def prefix(self) -> Prefix:
        """Its network, as a prefix."""
        width = ADDRESS_BITS[self.family] - self.prefix_length
        return Prefix(self.family, self.network >> width << width, self.prefix_length)

    @property
    def link_local(self) -> bool:
        """Whether it is in fe80::/10, as on every IPv6 link."""
        return is_link_local(self.family, self.address)

    def contains(self, far: int) -> bool:
        """Whether an address of the same family is in its network."""
        return not (self.network ^ far) >> (ADDRESS_BITS[self.family] - self.prefix_length)

    @property
    def broadcast(self) -> int | None:
        """The directed broadcast address of an IPv4 network; None: it has none (RFC 3021)."""
        width = ADDRESS_BITS[self.family] - self.prefix_length
        return self.network | (1 << width) - 1 if width > 1 else None


def needs_onlink(own: Iterable[InterfaceAddress], gateway: int) -> bool:
    """Whether the kernel takes an IPv4 next hop only with the onlink flag: it has no route to it.

    ``own``: the IPv4 addresses of the interface.
    """
    return not any(address.routed and address.contains(gateway) for address in own)


class OwnAddresses:
    """The IPv4 addresses of all interfaces, those included on which a protocol does not run."""

    def __init__(self) -> None:
        self._by_interface: dict[int, tuple[InterfaceAddress, ...]] = {}
        self._refused: Counter[int] = Counter()

    def put(self, ifindex: int, addresses: tuple[InterfaceAddress, ...]) -> bool:
        """Store the addresses of an interface; return whether they were others before."""
        before = self._by_interface.pop(ifindex, ())
        if addresses:
            self._by_interface[ifindex] = addresses
        if before == addresses:
            return False
        self._refused.subtract(_refused(before))
        self._refused.update(_refused(addresses))
        self._refused = +self._refused if before else self._refused
        return True

    def can_be_next_hop(self, address: int) -> bool:
        """Whether the kernel takes an IPv4 address as a gateway, onlink or not.

        It refuses martians, its own addresses, and directed broadcasts.
        """
        return address not in self._refused and not is_martian(ipv4_prefix(address, 32))


def _refused(addresses: Iterable[InterfaceAddress]) -> list[int]:
    """The IPv4 addresses that the kernel refuses as gateways where it has these itself."""
    broadcasts = [address.broadcast for address in addresses]
    found = [*(address.address for address in addresses), *broadcasts]
    return [address for address in found if address is not None]


class Link(msgspec.Struct, frozen=True):
    """The state of one network interface.

    ``up`` means administratively up with carrier. ``speed`` is that of the hardware, ``shaped`` the
    rate of a root tbf/htb queue, both in bytes/s and None where unknown. ``addresses`` are those
    that packets may be sent from now: an IPv6 address appears after duplicate address detection.
    ``hardware_address`` is the MAC address, which IS-IS calls SNPA, as 48 bits; 0 where there is
    none. ``carrier_losses`` counts losses of the carrier: of several within a second the kernel
    reports the last state only (``linkwatch``). ``enabled``: administratively up.
    ``management``: a port of the switch itself, on which protocols run only if the file names it.
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
    carrier_losses: int = 0
    enabled: bool = True
    management: bool = False

    def ipv4(self) -> tuple[InterfaceAddress, ...]:
        """The IPv4 addresses, primary first."""
        return tuple([a for a in self.addresses if a.family == 4])

    def link_local(self) -> InterfaceAddress | None:
        """The oldest IPv6 link-local address (fe80::/10): the next hop that neighbors use."""
        for address in self.addresses:
            if address.link_local:
                return address
        return None

    @property
    def capacity(self) -> float | None:
        """Capacity of the link: the lower of speed and shaper, bytes/s."""
        known = [v for v in (self.speed, self.shaped) if v is not None]
        return min(known) if known else None


class PresentLink(msgspec.Struct, frozen=True):
    """A link, and what tells people what it is for.

    ``kind`` is what ``ip -d link`` prints, empty for hardware. ``member``: it belongs to a bridge,
    bond or VRF. ``default_route``: a default route that people or DHCP made leaves through it.
    """

    link: Link
    kind: str = ""
    member: bool = False
    default_route: bool = False
