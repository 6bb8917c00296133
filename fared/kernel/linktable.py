"""Turns rtnetlink messages about interfaces, addresses and shapers into ``Link`` values.

Holds the parts each ``Link`` is made of, so that one message costs one small rebuild. Reads no
socket: what arrives is handed in, which makes it testable with any bytes.
Layouts: linux/if_link.h, linux/if_addr.h.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6
from fared.core.links import InterfaceAddress, Link
from fared.kernel.capacity import TC_MESSAGES, Shapers
from fared.kernel.netlink import attributes, u32

RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK = 16, 17, 18
RTM_NEWADDR, RTM_DELADDR, RTM_GETADDR = 20, 21, 22

_IFINFOMSG = struct.Struct("=BBHiII")
_IFADDRMSG = struct.Struct("=BBBBI")
_IFLA_IFNAME, _IFLA_MTU = 3, 4
_IFA_ADDRESS, _IFA_LOCAL, _IFA_FLAGS = 1, 2, 8
_IFF_UP, _IFF_LOOPBACK, _IFF_RUNNING, _IFF_LOWER_UP = 0x1, 0x8, 0x40, 0x10000
_WORKING = _IFF_UP | _IFF_RUNNING | _IFF_LOWER_UP
_IFA_F_SECONDARY, _IFA_F_OPTIMISTIC, _IFA_F_DADFAILED, _IFA_F_TENTATIVE = 0x01, 0x04, 0x08, 0x40
_AF_INET, _AF_INET6 = 2, 10
_FAMILY = {_AF_INET: FAMILY_IPV4, _AF_INET6: FAMILY_IPV6}

_AddressKey = tuple[int, int, int]


@dataclass(slots=True)
class _Parts:
    """What is known of one interface; ``addresses`` hold whether each is a secondary one."""

    name: str
    flags: int
    mtu: int
    addresses: dict[_AddressKey, tuple[bool, InterfaceAddress]] = field(default_factory=dict)
    speed: float | None = None


class LinkTable:
    """All interfaces of a namespace, by ifindex, in ``links``."""

    def __init__(self) -> None:
        self.links: dict[int, Link] = {}
        self.shapers = Shapers()
        self._parts: dict[int, _Parts] = {}

    def take(self, kind: int, body: bytes) -> int | None:
        """Take in one message; return the ifindex it was about, None if it meant nothing."""
        if kind in (RTM_NEWLINK, RTM_DELLINK):
            ifindex = self._take_link(kind, body)
        elif kind in (RTM_NEWADDR, RTM_DELADDR):
            ifindex = self._take_address(kind, body)
        elif kind in TC_MESSAGES:
            ifindex = self.shapers.take(kind, body)
        else:
            return None
        if ifindex is not None:
            self._rebuild(ifindex)
        return ifindex

    def set_speed(self, ifindex: int, speed: float | None) -> None:
        """Set what ethtool says, bytes/s."""
        parts = self._parts.get(ifindex)
        if parts is not None:
            parts.speed = speed
            self._rebuild(ifindex)

    def _rebuild(self, ifindex: int) -> None:
        parts = self._parts.get(ifindex)
        if parts is None:
            self.links.pop(ifindex, None)
            return
        # Stable: the kernel lists addresses in order of age.
        addresses = sorted(parts.addresses.values(), key=lambda entry: entry[0])
        self.links[ifindex] = Link(
            ifindex=ifindex,
            name=parts.name,
            up=parts.flags & _WORKING == _WORKING,
            mtu=parts.mtu,
            addresses=tuple(address for _, address in addresses),
            loopback=bool(parts.flags & _IFF_LOOPBACK),
            speed=parts.speed,
            shaped=self.shapers.rate(ifindex),
        )

    def _take_link(self, kind: int, body: bytes) -> int | None:
        if len(body) < _IFINFOMSG.size:
            return None
        family, _, _, ifindex, flags, _ = _IFINFOMSG.unpack_from(body)
        if family:
            return None  # a bridge's view of its port
        if kind == RTM_DELLINK:
            self._parts.pop(ifindex, None)
            self.shapers.forget(ifindex)
            return int(ifindex)
        found = attributes(body, _IFINFOMSG.size)
        name = found.get(_IFLA_IFNAME, b"").rstrip(b"\0").decode("utf-8", "replace")
        mtu = u32(found.get(_IFLA_MTU, b""))
        parts = self._parts.get(ifindex)
        if parts is None:
            self._parts[ifindex] = _Parts(name, flags, mtu)
        else:
            parts.name, parts.flags, parts.mtu = name, flags, mtu
        return int(ifindex)

    def _take_address(self, kind: int, body: bytes) -> int | None:
        if len(body) < _IFADDRMSG.size:
            return None
        af, length, flags, _, ifindex = _IFADDRMSG.unpack_from(body)
        found = attributes(body, _IFADDRMSG.size)
        family, parts = _FAMILY.get(af), self._parts.get(ifindex)
        far = found.get(_IFA_ADDRESS)
        near = found.get(_IFA_LOCAL, far)
        if family is None or parts is None or near is None:
            return None
        flags = u32(found[_IFA_FLAGS]) if _IFA_FLAGS in found else flags
        address = int.from_bytes(near, "big")
        key = (family, address, length)
        if kind == RTM_DELADDR or not _usable(family, flags):
            parts.addresses.pop(key, None)
            return int(ifindex)
        peer = int.from_bytes(far, "big") if far is not None and far != near else None
        secondary = family == FAMILY_IPV4 and bool(flags & _IFA_F_SECONDARY)
        parts.addresses[key] = (secondary, InterfaceAddress(family, address, length, peer))
        return int(ifindex)


def _usable(family: int, flags: int) -> bool:
    """Whether packets may be sent from the address: duplicate detection is over (RFC 4862 §5.4)."""
    if family == FAMILY_IPV4 or flags & _IFA_F_OPTIMISTIC:
        return True
    return not flags & (_IFA_F_TENTATIVE | _IFA_F_DADFAILED)
