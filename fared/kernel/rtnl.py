"""Messages about links, addresses, queues and speeds, built and decoded by pyroute2.

Only its message classes are used. Its sockets are dead after one ENOBUFS and its ``Ethtool``
asks for one interface at a time from an event loop of its own, so the bytes travel through the
sockets of ``netlink``. What it does not express (next hops) or is too slow at (routes, counters,
and the state of a link) is packed and read by hand here, in ``fib`` and ``counters``.
Decoding never raises: bytes that make no sense are None.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple

from pyroute2.netlink import CTRL_CMD_GETFAMILY, ctrlmsg, nlmsg, nlmsg_base
from pyroute2.netlink.exceptions import NetlinkDecodeError
from pyroute2.netlink.generic.ethtool import (
    ETHTOOL_GENL_NAME,
    ETHTOOL_GENL_VERSION,
    ETHTOOL_MSG_LINKMODES_GET,
    ethtool_linkmode_msg,
)
from pyroute2.netlink.rtnl import RTM_DELLINK, RTM_NEWLINK
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
from pyroute2.netlink.rtnl.tcmsg import sched_tbf, tcmsg
from pyroute2.netlink.rtnl.tcmsg.common import nla_plus_rtab

from fared.kernel.netlink import HEADER, attributes, u32

_FLAG_COMPACT_BITSETS = 1  # ETHTOOL_FLAG_COMPACT_BITSETS: numbers, not names
_SPEED_UNKNOWN = 0xFFFFFFFF
_MONITOR_GROUP = "monitor"
_MBIT = 1e6 / 8
_ETHERNET = 1  # ARPHRD_ETHER
_LINK_HEAD = struct.Struct("=BxHiI4x")  # struct ifinfomsg
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU = 1, 3, 4
_WORD, _MAC = 4, 6


class LinkMessage(NamedTuple):
    """RTM_NEWLINK or RTM_DELLINK. ``family``: 0, or who else speaks of the interface.

    ``hardware_address``: the MAC address, 0 where the interface has none.
    """

    ifindex: int
    family: int
    flags: int
    name: str
    mtu: int
    hardware_address: int


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


class _TbfOptions(nla_plus_rtab):  # type: ignore[misc]  # pyroute2 has no types
    """With the rates above 34 Gbit/s, which pyroute2 does not know.

    Not derived from pyroute2's own, from which it would inherit the compiled attribute table.
    """

    tbf_parms = sched_tbf.options.tbf_parms
    nla_map = (
        *sched_tbf.options.nla_map,
        ("TCA_TBF_RATE64", "uint64"),
        ("TCA_TBF_PRATE64", "uint64"),
    )


def read_link(kind: int, body: bytes) -> LinkMessage | None:
    """Decode what follows the header of a link message of type ``kind``.

    By hand, in a twentieth of the time: it stands between a lost carrier and its report.
    """
    if kind not in (RTM_NEWLINK, RTM_DELLINK) or len(body) < _LINK_HEAD.size:
        return None
    family, device, ifindex, flags = _LINK_HEAD.unpack_from(body)
    found = attributes(body, _LINK_HEAD.size)
    name, mtu = found.get(_IFLA_IFNAME, b""), found.get(_IFLA_MTU, b"")
    hardware = found.get(_IFLA_ADDRESS, b"") if device == _ETHERNET else b""
    return LinkMessage(
        ifindex,
        family,
        flags,
        name.rstrip(b"\0").decode("utf-8", "replace"),
        u32(mtu) if len(mtu) == _WORD else 0,
        int.from_bytes(hardware, "big") if len(hardware) == _MAC else 0,
    )


def read_address(kind: int, body: bytes) -> AddressMessage | None:
    """Decode what follows the header of an address message of type ``kind``."""
    message = _decode(ifaddrmsg, kind, body)
    if message is None:
        return None
    far = _address(message.get_attr("IFA_ADDRESS"))
    near = _address(message.get_attr("IFA_LOCAL"))
    if near is None:
        near = far
    if near is None:
        return None
    flags = message.get_attr("IFA_FLAGS")
    return AddressMessage(
        message["index"],
        message["family"],
        message["prefixlen"],
        flags if isinstance(flags, int) else message["flags"],
        near,
        far if far != near else None,
    )


def read_queue(kind: int, body: bytes) -> QueueMessage | None:
    """Decode what follows the header of a queue or class message of type ``kind``."""
    message = _decode(tcmsg, kind, body)
    if message is None:
        return None
    discipline = _text(message.get_attr("TCA_KIND"))
    return QueueMessage(
        message["index"],
        message["handle"],
        message["parent"],
        discipline,
        _rate(discipline, message.get_attr("TCA_OPTIONS")),
    )


@lru_cache(maxsize=1024)  # asked every few seconds, and the answer is seldom a new one
def read_speed(kind: int, body: bytes) -> tuple[int, float] | None:
    """Decode an answer about link modes: (ifindex, bytes/s); None if it tells no speed."""
    message = _decode(ethtool_linkmode_msg, kind, body)
    if message is None:
        return None
    header = message.get_attr("ETHTOOL_A_LINKMODES_HEADER")
    speed = message.get_attr("ETHTOOL_A_LINKMODES_SPEED")
    index = (
        header.get_attr("ETHTOOL_A_HEADER_DEV_INDEX") if isinstance(header, nlmsg_base) else None
    )
    if not isinstance(index, int) or not isinstance(speed, int) or speed in (0, _SPEED_UNKNOWN):
        return None
    return index, speed * _MBIT


def read_family(kind: int, body: bytes) -> int | None:
    """Decode the answer to ``ethtool_family``: the message type that ethtool has now."""
    message = _decode(ctrlmsg, kind, body)
    family = message.get_attr("CTRL_ATTR_FAMILY_ID") if message is not None else None
    return family if isinstance(family, int) else None


def read_monitor_group(kind: int, body: bytes) -> int | None:
    """Decode the same answer: the multicast group in which changed settings are told."""
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
    return _encode(ifinfmsg())


def all_addresses() -> bytes:
    """Body of RTM_GETADDR."""
    return _encode(ifaddrmsg())


def queues(ifindex: int = 0) -> bytes:
    """Body of RTM_GETQDISC (of all interfaces) or RTM_GETTCLASS (of one)."""
    message = tcmsg()
    message["index"] = ifindex
    return _encode(message)


def ethtool_family() -> bytes:
    """Body of the question to the controller of generic netlink which message type ethtool has."""
    message = ctrlmsg()
    message["cmd"], message["version"] = CTRL_CMD_GETFAMILY, 1
    message["attrs"] = [("CTRL_ATTR_FAMILY_NAME", ETHTOOL_GENL_NAME)]
    return _encode(message)


def link_modes(ifindex: int | None) -> bytes:
    """Body of the question to ethtool about one interface, or all."""
    header = [("ETHTOOL_A_HEADER_FLAGS", _FLAG_COMPACT_BITSETS)]
    if ifindex is not None:
        header.insert(0, ("ETHTOOL_A_HEADER_DEV_INDEX", ifindex))
    message = ethtool_linkmode_msg()
    message["cmd"], message["version"] = ETHTOOL_MSG_LINKMODES_GET, ETHTOOL_GENL_VERSION
    message["attrs"] = [("ETHTOOL_A_LINKMODES_HEADER", {"attrs": header})]
    return _encode(message)


def _decode(layout: type[nlmsg], kind: int, body: bytes) -> nlmsg | None:
    # pyroute2 decodes whole messages, their attributes only when asked for.
    message = layout(HEADER.pack(HEADER.size + len(body), kind, 0, 0, 0) + body)
    return message if _decoded(message) else None


def _decoded(message: nlmsg_base) -> bool:
    try:
        message.decode()
    except (NetlinkDecodeError, struct.error):
        return False
    return True


def _encode(message: nlmsg) -> bytes:
    message.encode()
    return bytes(message.data[HEADER.size :])


def _text(value: object) -> str:
    """Bytes are what pyroute2 leaves of a name that is not UTF-8."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def _address(text: object) -> int | None:
    return int(ip_address(text)) if isinstance(text, str) else None


def _rate(discipline: str, options: object) -> float | None:
    """Bytes/s: above 34 Gbit/s the 32-bit field is full and another one holds the rate."""
    prefix = {"tbf": "TCA_TBF", "htb": "TCA_HTB"}.get(discipline)
    if prefix is None or not isinstance(options, nlmsg_base):
        return None
    if discipline == "tbf":
        options = _TbfOptions(options.data, offset=options.offset)
        if not _decoded(options):
            return None
    wide = options.get_attr(f"{prefix}_RATE64")
    if isinstance(wide, int):
        return float(wide)
    parameters = options.get_attr(f"{prefix}_PARMS")
    return float(parameters["rate"]) or None if isinstance(parameters, nlmsg_base) else None
