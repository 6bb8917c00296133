"""What a link can carry by the kernel's account: its speed, and the shaper at its root.

The kernel announces a changed tbf or htb rate at once (RTNLGRP_TC). Of speeds it announces by
ethtool netlink what an operator sets, but not what a driver or a bond comes to by itself: so they
are polled as well. Ethtool netlink follows the namespace of the socket; the files in /sys follow
the mount.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

from pyroute2.netlink import GENL_ID_CTRL
from pyroute2.netlink.rtnl import (
    RTM_DELQDISC,
    RTM_DELTCLASS,
    RTM_GETQDISC,
    RTM_GETTCLASS,
    RTM_NEWQDISC,
    RTM_NEWTCLASS,
    TC_H_ROOT,
)

from fared.kernel import netlink, rtnl
from fared.kernel.errors import NetlinkError
from fared.kernel.netlink import RequestSocket
from fared.kernel.rtnl import QueueMessage

TC_MESSAGES = frozenset((RTM_NEWQDISC, RTM_DELQDISC, RTM_NEWTCLASS, RTM_DELTCLASS))


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
        message = rtnl.read_queue(kind, body)
        if message is None or message.parent != TC_H_ROOT:
            return None
        ifindex, handle = message.ifindex, message.handle
        root = self._roots.get(ifindex)
        if kind == RTM_NEWQDISC:
            self._new_root(message)
        elif kind == RTM_DELQDISC:
            if root is not None and root.handle == handle:
                del self._roots[ifindex]
        elif root is not None and root.kind == "htb":
            if kind == RTM_DELTCLASS:
                root.classes.pop(handle, None)
            elif message.rate is not None:
                root.classes[handle] = message.rate
        return ifindex

    def _new_root(self, message: QueueMessage) -> None:
        root = self._roots.get(message.ifindex)
        if root is None or root.handle != message.handle or root.kind != message.kind:
            root = self._roots[message.ifindex] = _Root(message.handle, message.kind)
        root.rate = message.rate

    def load(self, request: RequestSocket) -> None:
        """Read what is there now."""
        self._roots.clear()
        for kind, body in request.dump(RTM_GETQDISC, rtnl.queues()):
            if kind == RTM_NEWQDISC:
                self.take(kind, body)
        for ifindex in [i for i, root in self._roots.items() if root.kind == "htb"]:
            with contextlib.suppress(NetlinkError):  # the interface may be gone meanwhile
                for kind, body in request.dump(RTM_GETTCLASS, rtnl.queues(ifindex)):
                    if kind == RTM_NEWTCLASS:
                        self.take(kind, body)


class LinkSpeeds:
    """Asks ethtool netlink for speeds; where the kernel lacks it, all are unknown."""

    def __init__(self) -> None:
        self._netlink = RequestSocket(netlink.NETLINK_GENERIC)
        self._family: int | None = None
        self.monitor_group: int | None = None
        """The group of generic netlink in which changed settings are told; None: there is none."""
        self._resolve()

    def close(self) -> None:
        """Close the socket."""
        self._netlink.close()

    def all(self) -> dict[int, float]:
        """Speeds of all interfaces that tell one, bytes/s by ifindex."""
        if self._family is None:
            return {}
        try:
            return _speeds(self._netlink.dump(self._family, rtnl.link_modes(None)))
        except NetlinkError:
            return {}

    def of(self, ifindex: int) -> float | None:
        """Speed of one interface, bytes/s; None where unknown."""
        if self._family is None:
            return None
        try:
            answers = self._netlink.query(self._family, rtnl.link_modes(ifindex))
        except NetlinkError:
            return None
        return _speeds(answers).get(ifindex)

    def _resolve(self) -> None:
        with contextlib.suppress(NetlinkError):
            for kind, body in self._netlink.query(GENL_ID_CTRL, rtnl.ethtool_family()):
                self._family = rtnl.read_family(kind, body) or self._family
                self.monitor_group = rtnl.read_monitor_group(kind, body) or self.monitor_group


def _speeds(answers: list[tuple[int, bytes]]) -> dict[int, float]:
    found = (rtnl.read_speed(kind, body) for kind, body in answers)
    return dict(speed for speed in found if speed is not None)
