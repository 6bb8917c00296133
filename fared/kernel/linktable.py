"""Turns rtnetlink messages about interfaces, addresses and shapers into ``Link`` values.

``KernelMonitor`` passes messages in. The table stores the parts of each ``Link``, so that a message
rebuilds one link only. It reads no socket, so tests can pass any bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
from pyroute2.netlink.rtnl import RTM_DELADDR, RTM_DELLINK, RTM_NEWADDR, RTM_NEWLINK
from pyroute2.netlink.rtnl.ifaddrmsg import (
    IFA_F_DADFAILED,
    IFA_F_NOPREFIXROUTE,
    IFA_F_OPTIMISTIC,
    IFA_F_SECONDARY,
    IFA_F_TENTATIVE,
)

from fared.core.ids import FAMILY_IPV4
from fared.core.link_facts import KERNEL_PLATFORM, PlatformLink
from fared.core.links import InterfaceAddress, Link
from fared.kernel.capacity import TC_MESSAGES, Shapers
from fared.kernel.rtnetlink import BYTES, FAMILY
from fared.kernel.rtnl import read_address, read_link

IFF_UP, IFF_LOOPBACK, IFF_RUNNING, IFF_LOWER_UP = 0x1, 0x8, 0x40, 0x10000  # linux/if.h
_WORKING = IFF_UP | IFF_RUNNING | IFF_LOWER_UP

_AddressKey = tuple[int, int, int]


class _Parts(msgspec.Struct):
    """State of one interface; each address with whether it is a secondary one."""

    name: str
    flags: int
    mtu: int
    hardware_address: int
    carrier_losses: int
    addresses: dict[_AddressKey, tuple[bool, InterfaceAddress]] = msgspec.field(
        default_factory=dict
    )
    speed: float | None = None


class Taken(NamedTuple):
    """The interface of a message, and its link before; None if unknown then."""

    ifindex: int
    previous: Link | None


class LinkTable:
    """All interfaces of a namespace, by ifindex, in ``links``.

    ``facts`` tells by name what a platform knows of a link beside the kernel.
    """

    def __init__(self, facts: Callable[[str], PlatformLink | None] = KERNEL_PLATFORM.link) -> None:
        self._facts = facts
        self.links: dict[int, Link] = {}
        self.shapers = Shapers()
        self._parts: dict[int, _Parts] = {}

    def take(self, kind: int, body: bytes) -> Taken | None:
        """Process one message; None if it had no effect."""
        if kind in (RTM_NEWLINK, RTM_DELLINK):
            ifindex = self._take_link(kind, body)
        elif kind in (RTM_NEWADDR, RTM_DELADDR):
            ifindex = self._take_address(kind, body)
        elif kind in TC_MESSAGES:
            ifindex = self.shapers.take(kind, body)
        else:
            return None
        if ifindex is None:
            return None
        previous = self.links.get(ifindex)
        self._rebuild(ifindex)
        return Taken(ifindex, previous)

    def set_speed(self, ifindex: int, speed: float | None) -> None:
        """Set the speed by ethtool, bytes/s."""
        parts = self._parts.get(ifindex)
        if parts is not None and parts.speed != speed:
            parts.speed = speed
            self._rebuild(ifindex)

    def rebuild(self) -> list[Taken]:
        """Make all links anew, since the platform's facts changed; return those that are others."""
        before = dict(self.links)
        for ifindex in before:
            self._rebuild(ifindex)
        return [Taken(i, link) for i, link in before.items() if self.links[i] != link]

    def _rebuild(self, ifindex: int) -> None:
        """Make the link anew from what messages have told of it so far."""
        parts = self._parts.get(ifindex)
        if parts is None:
            self.links.pop(ifindex, None)
            return
        # The sort is stable: the kernel lists addresses in order of age.
        addresses = sorted(parts.addresses.values(), key=lambda entry: entry[0])
        facts = self._facts(parts.name)
        self.links[ifindex] = Link(
            ifindex=ifindex,
            name=parts.name,
            up=parts.flags & _WORKING == _WORKING and not (facts and facts.down),
            mtu=parts.mtu,
            addresses=tuple(address for _, address in addresses),
            loopback=bool(parts.flags & IFF_LOOPBACK),
            speed=parts.speed if facts is None or facts.speed is None else facts.speed,
            shaped=self.shapers.rate(ifindex),
            hardware_address=parts.hardware_address,
            carrier_losses=parts.carrier_losses,
            enabled=bool(parts.flags & IFF_UP),
            management=facts is not None and facts.management,
        )

    def _take_link(self, kind: int, body: bytes) -> int | None:
        """Take a message of a link; return its ifindex, None for other messages."""
        message = read_link(kind, body)
        if message is None or message.family:
            return None  # AF_BRIDGE: a bridge reports its port, with flags of its own
        ifindex, _, flags, name, mtu, hardware, losses = message
        if kind == RTM_DELLINK:
            self._parts.pop(ifindex, None)
            self.shapers.forget(ifindex)
            return ifindex
        parts = self._parts.get(ifindex)
        if parts is None:
            self._parts[ifindex] = _Parts(name, flags, mtu, hardware, losses)
        else:
            parts.name, parts.flags, parts.mtu = name, flags, mtu
            parts.hardware_address, parts.carrier_losses = hardware, losses
        return ifindex

    def _take_address(self, kind: int, body: bytes) -> int | None:
        message = read_address(kind, body)
        if message is None:
            return None
        ifindex, af, length, flags, address, peer = message
        family, parts = FAMILY.get(af), self._parts.get(ifindex)
        if family is None or parts is None or length > 8 * BYTES[family]:
            return None
        key = (family, address, length)
        if kind == RTM_DELADDR or not _usable(family, flags):
            parts.addresses.pop(key, None)
            return ifindex
        secondary = family == FAMILY_IPV4 and bool(flags & IFA_F_SECONDARY)
        routed = not flags & IFA_F_NOPREFIXROUTE
        found = InterfaceAddress(family, address, length, peer, routed)
        parts.addresses[key] = (secondary, found)
        return ifindex


def _usable(family: int, flags: int) -> bool:
    """Whether packets may be sent from the address: it has passed DAD (RFC 4862 §5.4)."""
    if family == FAMILY_IPV4 or flags & IFA_F_OPTIMISTIC:
        return True
    return not flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)
