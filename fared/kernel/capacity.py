"""What a link can carry by the kernel's account: its speed, and the shaper at its root.

The kernel announces a changed tbf or htb rate at once (RTNLGRP_TC), but never a changed speed:
that is polled. Speeds come by ethtool netlink, which follows the namespace of the socket; the
files in /sys follow the mount. Layouts: linux/pkt_sched.h, linux/ethtool_netlink.h.
"""

from __future__ import annotations

import contextlib
import struct
from dataclasses import dataclass, field

from fared.kernel import netlink
from fared.kernel.errors import NetlinkError
from fared.kernel.netlink import RequestSocket, attribute, attributes, u32, u32_attribute

RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
RTM_NEWTCLASS, RTM_DELTCLASS, RTM_GETTCLASS = 40, 41, 42
TC_MESSAGES = frozenset((RTM_NEWQDISC, RTM_DELQDISC, RTM_NEWTCLASS, RTM_DELTCLASS))

_TCMSG = struct.Struct("=BBHiIII")
_ROOT = 0xFFFFFFFF
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TCA_TBF_PARMS, _TCA_TBF_RATE64 = 1, 4
_TCA_HTB_PARMS, _TCA_HTB_RATE64 = 1, 6
_RATE_OFFSET = 8  # of the rate in a tc_ratespec, which both parameter blocks begin with

_GENL_ID_CTRL, _CTRL_CMD_GETFAMILY = 16, 3
_CTRL_ATTR_FAMILY_ID, _CTRL_ATTR_FAMILY_NAME = 1, 2
_ETHTOOL_MSG_LINKMODES_GET = 4
_HEADER, _HEADER_DEV_INDEX, _HEADER_FLAGS = 1, 1, 3
_FLAG_COMPACT_BITSETS = 1
_LINKMODES_SPEED = 5
_SPEED_UNKNOWN = 0xFFFFFFFF
_MBIT = 1e6 / 8


@dataclass(slots=True)
class _Root:
    """The queue at the root of one interface; rates in bytes/s."""

    handle: int
    kind: str
    rate: float | None = None
    classes: dict[int, float] = field(default_factory=dict)


class Shapers:
    """Root shaper rates by ifindex, kept current from TC messages.

    Of tbf the rate; of htb the sum of the rates of the classes at the top, which have nobody
    to borrow from. Other kinds of queue say nothing about capacity.
    """

    def __init__(self) -> None:
        self._roots: dict[int, _Root] = {}

    def rate(self, ifindex: int) -> float | None:
        """The shaped rate in bytes/s; None where nothing shapes."""
        root = self._roots.get(ifindex)
        if root is None:
            return None
        return sum(root.classes.values()) if root.classes else root.rate

    def forget(self, ifindex: int) -> None:
        """The interface is gone."""
        self._roots.pop(ifindex, None)

    def take(self, kind: int, body: bytes) -> int | None:
        """Take in one TC message; return the ifindex whose rate it may have changed."""
        if len(body) < _TCMSG.size:
            return None
        _, _, _, ifindex, handle, parent, _ = _TCMSG.unpack_from(body)
        if parent != _ROOT:
            return None
        root = self._roots.get(ifindex)
        if kind == RTM_NEWQDISC:
            self._new_root(ifindex, handle, attributes(body, _TCMSG.size))
        elif kind == RTM_DELQDISC:
            if root is not None and root.handle == handle:
                del self._roots[ifindex]
        elif root is not None and root.kind == "htb":
            if kind == RTM_DELTCLASS:
                root.classes.pop(handle, None)
            else:
                rate = _htb_rate(attributes(body, _TCMSG.size))
                if rate is not None:
                    root.classes[handle] = rate
        return int(ifindex)

    def _new_root(self, ifindex: int, handle: int, found: dict[int, bytes]) -> None:
        name = found.get(_TCA_KIND, b"").rstrip(b"\0").decode("ascii", "replace")
        root = self._roots.get(ifindex)
        if root is None or root.handle != handle or root.kind != name:
            root = self._roots[ifindex] = _Root(handle, name)
        if name == "tbf":
            options = attributes(found.get(_TCA_OPTIONS, b""))
            root.rate = _rate(options, _TCA_TBF_PARMS, _TCA_TBF_RATE64)

    def load(self, request: RequestSocket) -> None:
        """Read what is there now."""
        self._roots.clear()
        for kind, body in request.dump(RTM_GETQDISC, bytes(_TCMSG.size)):
            if kind == RTM_NEWQDISC:
                self.take(kind, body)
        for ifindex in [i for i, root in self._roots.items() if root.kind == "htb"]:
            with contextlib.suppress(NetlinkError):  # the interface may be gone meanwhile
                for kind, body in request.dump(
                    RTM_GETTCLASS, _TCMSG.pack(0, 0, 0, ifindex, 0, 0, 0)
                ):
                    if kind == RTM_NEWTCLASS:
                        self.take(kind, body)


def _htb_rate(found: dict[int, bytes]) -> float | None:
    options = attributes(found.get(_TCA_OPTIONS, b""))
    return _rate(options, _TCA_HTB_PARMS, _TCA_HTB_RATE64)


def _rate(options: dict[int, bytes], parameters: int, rate64: int) -> float | None:
    """Bytes/s: above 34 Gbit/s the 32-bit field is full and another one holds the rate."""
    if len(options.get(rate64, b"")) >= 8:
        return float(struct.unpack_from("=Q", options[rate64])[0])
    block = options.get(parameters, b"")
    if len(block) < _RATE_OFFSET + 4:
        return None
    return float(u32(block[_RATE_OFFSET:])) or None


class LinkSpeeds:
    """Asks ethtool netlink for speeds; where the kernel lacks it, all are unknown."""

    def __init__(self) -> None:
        self._netlink = RequestSocket(netlink.NETLINK_GENERIC)
        self._family = self._resolve()

    def close(self) -> None:
        """Close the socket."""
        self._netlink.close()

    def all(self) -> dict[int, float]:
        """Speeds of all interfaces that tell one, bytes/s by ifindex."""
        if self._family is None:
            return {}
        try:
            answers = self._netlink.dump(self._family, _linkmodes_request(None))
        except NetlinkError:
            return {}
        return dict(found for _, body in answers if (found := _read_speed(body)) is not None)

    def of(self, ifindex: int) -> float | None:
        """Speed of one interface, bytes/s; None where unknown."""
        if self._family is None:
            return None
        try:
            answers = self._netlink.query(self._family, _linkmodes_request(ifindex))
        except NetlinkError:
            return None
        speeds = dict(found for _, body in answers if (found := _read_speed(body)) is not None)
        return speeds.get(ifindex)

    def _resolve(self) -> int | None:
        body = struct.pack("=BBH", _CTRL_CMD_GETFAMILY, 1, 0)
        body += attribute(_CTRL_ATTR_FAMILY_NAME, b"ethtool\0")
        try:
            answers = self._netlink.query(_GENL_ID_CTRL, body)
        except NetlinkError:
            return None
        for _, answer in answers:
            family = attributes(answer, 4).get(_CTRL_ATTR_FAMILY_ID)
            if family is not None:
                return u32(family)
        return None


def _linkmodes_request(ifindex: int | None) -> bytes:
    nested = u32_attribute(_HEADER_FLAGS, _FLAG_COMPACT_BITSETS)
    if ifindex is not None:
        nested = u32_attribute(_HEADER_DEV_INDEX, ifindex) + nested
    header = attribute(_HEADER | netlink.NLA_F_NESTED, nested)
    return struct.pack("=BBH", _ETHTOOL_MSG_LINKMODES_GET, 1, 0) + header


def _read_speed(body: bytes) -> tuple[int, float] | None:
    found = attributes(body, 4)
    index = attributes(found.get(_HEADER, b"")).get(_HEADER_DEV_INDEX)
    speed = u32(found.get(_LINKMODES_SPEED, b""))
    if index is None or speed in (0, _SPEED_UNKNOWN):
        return None
    return u32(index), speed * _MBIT
