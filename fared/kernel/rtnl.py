"""Builds and decodes messages about links, addresses, queueing disciplines and speeds.

pyroute2's classes serve address and control messages. Its sockets are unusable after one ENOBUFS,
and its ``Ethtool`` queries one interface at a time from an event loop of its own, so the sockets of
``netlink`` carry the bytes. Messages that pyroute2 does not express (next hops), or processes too
slowly (routes, counters, the state of a link), are packed and read by hand, here, in ``fib`` and in
``counters``; so are two attributes each of queueing disciplines and link modes, whose classes would
take 50 ms of start-up to import. Layouts: linux/rtnetlink.h, linux/pkt_sched.h,
linux/ethtool_netlink.h. Decoding never raises: malformed bytes give None.
"""

from __future__ import annotations

import struct
import sys
from functools import lru_cache
from ipaddress import ip_address
from types import MappingProxyType
from typing import NamedTuple

from pyroute2.netlink import CTRL_CMD_GETFAMILY, ctrlmsg, nlmsg
from pyroute2.netlink.exceptions import NetlinkDecodeError
from pyroute2.netlink.rtnl import RTM_DELLINK, RTM_NEWLINK
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg

from fared.kernel.netlink import HEADER, NLA_F_NESTED, attribute, attributes, u32, u32_attribute

_FLAG_COMPACT_BITSETS = 1  # ETHTOOL_FLAG_COMPACT_BITSETS: numbers, not names
_SPEED_UNKNOWN = 0xFFFFFFFF
_MONITOR_GROUP = "monitor"
_MBIT = 1e6 / 8
_ETHERNET = 1  # ARPHRD_ETHER
_LINK_HEAD = struct.Struct("=BxHiI4x")  # struct ifinfomsg
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_CARRIER_DOWN_COUNT = 1, 3, 4, 48
_WORD, _WIDE, _MAC = 4, 8, 6
_TC_HEAD = struct.Struct("=BxxxiIII")  # struct tcmsg
_TCA_KIND, _TCA_OPTIONS = 1, 2
_PARMS = 1  # TCA_TBF_PARMS, TCA_HTB_PARMS: each begins with a struct tc_ratespec
_RATE64 = MappingProxyType({"tbf": 4, "htb": 6})  # TCA_TBF_RATE64, TCA_HTB_RATE64
_RATE = struct.Struct("=8xI")  # struct tc_ratespec
_GENL_HEAD = struct.Struct("=BBxx")  # struct genlmsghdr
_ETHTOOL, _ETHTOOL_VERSION, _LINKMODES_GET = "ethtool", 1, 4
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
    """Decode a link message of type ``kind``, given without its header.

    By hand, in a twentieth of pyroute2's time: this delays the detection of a lost carrier.
    """
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


def read_address(kind: int, body: bytes) -> AddressMessage | None:
    """Decode an address message of type ``kind``, given without its header."""
    message = _decode(ifaddrmsg, kind, body)
    if message is None:
        return None
    # On a point-to-point link IFA_ADDRESS is the far end; IPv6 may leave out IFA_LOCAL.
    far = _address(message.get_attr("IFA_ADDRESS"))
    near = _address(message.get_attr("IFA_LOCAL"))
    if near is None:
        near = far
    if near is None:
        return None
    # The header has 8 bits of flags; IFA_FLAGS has all 32.
    flags = message.get_attr("IFA_FLAGS")
    return AddressMessage(
        message["index"],
        message["family"],
        message["prefixlen"],
        flags if isinstance(flags, int) else message["flags"],
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


def read_family(kind: int, body: bytes) -> int | None:
    """Decode the answer to ``ethtool_family``: the present message type of ethtool."""
    message = _decode(ctrlmsg, kind, body)
    family = message.get_attr("CTRL_ATTR_FAMILY_ID") if message is not None else None
    return family if isinstance(family, int) else None


def read_monitor_group(kind: int, body: bytes) -> int | None:
    """Decode the same answer: the multicast group that notifies changed settings."""
    message = _decode(ctrlmsg, kind, body)
    groups = message.get_attr("CTRL_ATTR_MCAST_GROUPS") if message is not None else None
    for group in groups if isinstance(groups, list) else ():
        found = dict(group["attrs"])
        if found.get("CTRL_ATTR_MCAST_GRP_NAME") == _MONITOR_GROUP:
            number = found.get("CTRL_ATTR_MCAST_GRP_ID")
            return number if isinstance(number, int) else None
    return None


def all_links() -> bytes:
    """Body of RTM_GETLINK."""
    return bytes(_LINK_HEAD.size)


def all_addresses() -> bytes:
    """Body of RTM_GETADDR."""
    return _encode(ifaddrmsg())


def queues(ifindex: int = 0) -> bytes:
    """Body of RTM_GETQDISC (of all interfaces) or RTM_GETTCLASS (of one)."""
    return _TC_HEAD.pack(0, ifindex, 0, 0, 0)


def ethtool_family() -> bytes:
    """Body of the request to generic netlink for the message type of ethtool."""
    message = ctrlmsg()
    message["cmd"], message["version"] = CTRL_CMD_GETFAMILY, 1
    message["attrs"] = [("CTRL_ATTR_FAMILY_NAME", _ETHTOOL)]
    return _encode(message)


def link_modes(ifindex: int | None) -> bytes:
    """Body of the ethtool request about one interface, or all."""
    device = b"" if ifindex is None else u32_attribute(_HEADER_DEV_INDEX, ifindex)
    header = device + u32_attribute(_HEADER_FLAGS, _FLAG_COMPACT_BITSETS)
    asked = attribute(_LINKMODES_HEADER | NLA_F_NESTED, header)
    return _GENL_HEAD.pack(_LINKMODES_GET, _ETHTOOL_VERSION) + asked


def _decode(layout: type[nlmsg], kind: int, body: bytes) -> nlmsg | None:
    # pyroute2 decodes whole messages, but attributes only when accessed.
    message = layout(HEADER.pack(HEADER.size + len(body), kind, 0, 0, 0) + body)
    try:
        message.decode()
    except (NetlinkDecodeError, struct.error):
        return None
    return message


def _encode(message: nlmsg) -> bytes:
    message.encode()
    return bytes(message.data[HEADER.size :])


def _address(text: object) -> int | None:
    return int(ip_address(text)) if isinstance(text, str) else None


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
