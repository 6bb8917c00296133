"""Builds and decodes messages about links, addresses, queueing disciplines and speeds.

Only the few attributes that fared needs are packed and read: pyroute2's classes, which know all,
take 3 ms and 0.5 MB to import for addresses alone, and delay the detection of a lost carrier. The
sockets of ``netlink`` carry the bytes. Layouts: linux/rtnetlink.h, linux/if_addr.h,
linux/pkt_sched.h, linux/genetlink.h, linux/ethtool_netlink.h. Decoding never raises: malformed
bytes give None.
"""

from __future__ import annotations

import struct
import sys
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from fared.kernel.netlink import NLA_F_NESTED, attribute, attributes, u32, u32_attribute
from fared.kernel.rtnetlink import BYTES, FAMILY, RTM_DELLINK, RTM_NEWLINK

_FLAG_COMPACT_BITSETS = 1  # ETHTOOL_FLAG_COMPACT_BITSETS: numbers, not names
_SPEED_UNKNOWN = 0xFFFFFFFF
_MONITOR_GROUP = b"monitor"
_MBIT = 1e6 / 8
_ETHERNET = 1  # ARPHRD_ETHER
_LINK_HEAD = struct.Struct("=BxHiI4x")  # struct ifinfomsg
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_CARRIER_DOWN_COUNT = 1, 3, 4, 48
_HALF, _WORD, _WIDE, _MAC = 2, 4, 8, 6
_ADDRESS_HEAD = struct.Struct("=BBBxI")  # struct ifaddrmsg
_IFA_ADDRESS, _IFA_LOCAL, _IFA_FLAGS = 1, 2, 8
_TC_HEAD = struct.Struct("=BxxxiIII")  # struct tcmsg
_TCA_KIND, _TCA_OPTIONS = 1, 2
_PARMS = 1  # TCA_TBF_PARMS, TCA_HTB_PARMS: each begins with a struct tc_ratespec
_RATE64 = MappingProxyType({"tbf": 4, "htb": 6})  # TCA_TBF_RATE64, TCA_HTB_RATE64
_RATE = struct.Struct("=8xI")  # struct tc_ratespec
_GENL_HEAD = struct.Struct("=BBxx")  # struct genlmsghdr
_CTRL_GETFAMILY, _CTRL_VERSION = 3, 1
_FAMILY_ID, _FAMILY_NAME, _MCAST_GROUPS = 1, 2, 7  # CTRL_ATTR_...
_GROUP_NAME, _GROUP_ID = 1, 2  # CTRL_ATTR_MCAST_GRP_...
_ETHTOOL, _ETHTOOL_VERSION, _LINKMODES_GET = b"ethtool", 1, 4
_LINKMODES_HEADER, _LINKMODES_SPEED = 1, 5
_HEADER_DEV_INDEX, _HEADER_FLAGS = 1, 3


class LinkMessage(NamedTuple):
    """RTM_NEWLINK or RTM_DELLINK. ``family``: 0, or AF_BRIDGE for a bridge's view of a port.

    ``hardware_address``: the MAC address, 0 if the interface has none. ``carrier_losses``: how
    often the carrier was lost, 0 if the kernel does not count.
    """

    ifindex: int
    family: int
    flags: int
    name: str
    mtu: int
    hardware_address: int
    carrier_losses: int


class AddressMessage(NamedTuple):
    """RTM_NEWADDR or RTM_DELADDR. ``family`` is an AF; ``peer`` the far end of a point-to-point."""

    ifindex: int
    family: int
    prefix_length: int
    flags: int
    address: int
    peer: int | None


class QueueMessage(NamedTuple):
    """RTM_*QDISC or RTM_*TCLASS. ``rate``: bytes/s of a tbf queue or htb class."""

    ifindex: int
    handle: int
    parent: int
    kind: str
    rate: float | None


def read_link(kind: int, body: bytes) -> LinkMessage | None:
    """Decode a link message of type ``kind``, given without its header."""
    if kind not in (RTM_NEWLINK, RTM_DELLINK) or len(body) < _LINK_HEAD.size:
        return None
    family, device, ifindex, flags = _LINK_HEAD.unpack_from(body)
    found = attributes(body, _LINK_HEAD.size)
    name, mtu = found.get(_IFLA_IFNAME, b""), found.get(_IFLA_MTU, b"")
    hardware = found.get(_IFLA_ADDRESS, b"") if device == _ETHERNET else b""
    losses = found.get(_IFLA_CARRIER_DOWN_COUNT, b"")
    return LinkMessage(
        ifindex,
        family,
        flags,
        name.rstrip(b"\0").decode("utf-8", "replace"),
        u32(mtu) if len(mtu) == _WORD else 0,
        int.from_bytes(hardware, "big") if len(hardware) == _MAC else 0,
        u32(losses) if len(losses) == _WORD else 0,
    )


def read_address(body: bytes) -> AddressMessage | None:
    """Decode an address message, given without its header."""
    if len(body) < _ADDRESS_HEAD.size:
        return None
    af, length, flags, ifindex = _ADDRESS_HEAD.unpack_from(body)
    found = attributes(body, _ADDRESS_HEAD.size)
    # On a point-to-point link IFA_ADDRESS is the far end; IPv6 may leave out IFA_LOCAL.
    far, near = (_address(found.get(kind), af) for kind in (_IFA_ADDRESS, _IFA_LOCAL))
    if near is None:
        near = far
    if near is None:
        return None
    # The header has 8 bits of flags; IFA_FLAGS has all 32.
    wide = found.get(_IFA_FLAGS, b"")
    return AddressMessage(
        ifindex,
        af,
        length,
        u32(wide) if len(wide) == _WORD else flags,
        near,
        far if far != near else None,
    )


def read_queue(body: bytes) -> QueueMessage | None:
    """Decode a message about a queueing discipline or class, given without its header."""
    if len(body) < _TC_HEAD.size:
        return None
    _, ifindex, handle, parent, _ = _TC_HEAD.unpack_from(body)
    found = attributes(body, _TC_HEAD.size)
    discipline = found.get(_TCA_KIND, b"").rstrip(b"\0").decode("utf-8", "replace")
    rate = _rate(discipline, found.get(_TCA_OPTIONS, b""))
    return QueueMessage(ifindex, handle, parent, discipline, rate)


@lru_cache(maxsize=1024)  # polled every few seconds, and answers rarely change
def read_speed(body: bytes) -> tuple[int, float] | None:
    """Decode an answer about link modes: (ifindex, bytes/s); None without a speed."""
    found = attributes(body, _GENL_HEAD.size)
    header = attributes(found.get(_LINKMODES_HEADER, b""))
    index, speed = header.get(_HEADER_DEV_INDEX, b""), found.get(_LINKMODES_SPEED, b"")
    if len(index) != _WORD or len(speed) != _WORD or u32(speed) in (0, _SPEED_UNKNOWN):
        return None
    return u32(index), u32(speed) * _MBIT


def read_family(body: bytes) -> int | None:
    """Decode the answer to ``ethtool_family``: the present message type of ethtool."""
    family = attributes(body, _GENL_HEAD.size).get(_FAMILY_ID, b"")
    return int.from_bytes(family, sys.byteorder) if len(family) == _HALF else None


def read_monitor_group(body: bytes) -> int | None:
    """Decode the same answer: the multicast group that notifies changed settings."""
    groups = attributes(attributes(body, _GENL_HEAD.size).get(_MCAST_GROUPS, b""))
    for group in map(attributes, groups.values()):
        number = group.get(_GROUP_ID, b"")
        if group.get(_GROUP_NAME, b"").rstrip(b"\0") == _MONITOR_GROUP:
            return u32(number) if len(number) == _WORD else None
    return None


def all_links() -> bytes:
    """Body of RTM_GETLINK."""
    return bytes(_LINK_HEAD.size)


def all_addresses() -> bytes:
    """Body of RTM_GETADDR."""
    return bytes(_ADDRESS_HEAD.size)


def queues(ifindex: int = 0) -> bytes:
    """Body of RTM_GETQDISC (of all interfaces) or RTM_GETTCLASS (of one)."""
    return _TC_HEAD.pack(0, ifindex, 0, 0, 0)


def ethtool_family() -> bytes:
    """Body of the request to generic netlink for the message type of ethtool."""
    name = attribute(_FAMILY_NAME, _ETHTOOL + b"\0")
    return _GENL_HEAD.pack(_CTRL_GETFAMILY, _CTRL_VERSION) + name


def link_modes(ifindex: int | None) -> bytes:
    """Body of the ethtool request about one interface, or all."""
    device = b"" if ifindex is None else u32_attribute(_HEADER_DEV_INDEX, ifindex)
    header = device + u32_attribute(_HEADER_FLAGS, _FLAG_COMPACT_BITSETS)
    asked = attribute(_LINKMODES_HEADER | NLA_F_NESTED, header)
    return _GENL_HEAD.pack(_LINKMODES_GET, _ETHTOOL_VERSION) + asked


def _address(payload: bytes | None, af: int) -> int | None:
    size = BYTES.get(FAMILY.get(af, 0))
    return int.from_bytes(payload, "big") if payload is not None and len(payload) == size else None


def _rate(discipline: str, options: bytes) -> float | None:
    """Return the rate, bytes/s: above 34 Gbit/s only the 64-bit attribute holds it."""
    wide = _RATE64.get(discipline)
    if wide is None:
        return None
    found = attributes(options)
    if len(rate := found.get(wide, b"")) == _WIDE:
        return float(int.from_bytes(rate, sys.byteorder))
    parameters = found.get(_PARMS, b"")
    if len(parameters) < _RATE.size:
        return None
    return float(_RATE.unpack_from(parameters)[0]) or None
