"""Link capacity from the kernel: the speed of the interface, and the shaper at its root.

The kernel notifies a changed tbf or htb rate at once (RTNLGRP_TC). It notifies speeds set through
ethtool netlink, but not those changed by a driver or a bond, so speeds are polled as well. Ethtool
netlink follows the namespace of the socket; the files in /sys follow the mount.
"""

from __future__ import annotations

import contextlib
import errno

import msgspec
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
from fared.kernel.requests import RequestSocket
from fared.kernel.rtnl import QueueMessage

_NO_SPEED = (errno.ENODEV, errno.EOPNOTSUPP, errno.EINVAL)
"""Errors for an interface that was removed, or whose kind has no speed."""
TC_MESSAGES = frozenset((RTM_NEWQDISC, RTM_DELQDISC, RTM_NEWTCLASS, RTM_DELTCLASS))


class _Root(msgspec.Struct):
    """The queueing discipline at the root of one interface; rates in bytes/s."""

    handle: int
    kind: str
    rate: float | None = None
    classes: dict[int, float] = msgspec.field(default_factory=dict)


class Shapers:
    """Root shaper rates by ifindex, kept current from TC messages.

    For tbf its rate; for htb the sum of the rates of its top classes, which cannot borrow. Other
    queueing disciplines do not limit capacity.
    """

    def __init__(self) -> None:
        self._roots: dict[int, _Root] = {}

    def rate(self, ifindex: int) -> float | None:
        """Return the shaped rate in bytes/s; None without a shaper."""
        root = self._roots.get(ifindex)
        if root is None:
            return None
        return sum(root.classes.values()) if root.classes else root.rate

    def forget(self, ifindex: int) -> None:
        """Forget a removed interface."""
        self._roots.pop(ifindex, None)

    def take(self, kind: int, body: bytes) -> int | None:
        """Process one TC message; return the ifindex whose rate may have changed."""
        message = rtnl.read_queue(body)
        if message is None or message.parent != TC_H_ROOT:
            return None
        ifindex, handle = message.ifindex, message.handle
        root = self._roots.get(ifindex)
        if kind == RTM_NEWQDISC:
            self._new_root(message)
        elif kind == RTM_DELQDISC:
            # The message may be about a discipline that another has replaced already.
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
        """Read the present state. Raises OSError."""
        self._roots.clear()
        for kind, body in request.dump(RTM_GETQDISC, rtnl.queues()):
            if kind == RTM_NEWQDISC:
                self.take(kind, body)
        # The kernel dumps the classes of one interface at a time.
        for ifindex in [i for i, root in self._roots.items() if root.kind == "htb"]:
            for kind, body in _classes(request, ifindex):
                if kind == RTM_NEWTCLASS:
                    self.take(kind, body)


def _classes(request: RequestSocket, ifindex: int) -> list[tuple[int, bytes]]:
    try:
        return request.dump(RTM_GETTCLASS, rtnl.queues(ifindex))
    except NetlinkError as error:
        if error.errno != errno.ENODEV:
            raise
        return []  # the interface was removed after the dump of disciplines


class LinkSpeeds:
    """Queries speeds over ethtool netlink; without kernel support all speeds are unknown."""

    def __init__(self) -> None:
        self._netlink = RequestSocket(netlink.NETLINK_GENERIC)
        self._family: int | None = None
        self.monitor_group: int | None = None
        """The generic netlink group that notifies changed settings; None: there is none."""
        self._resolved = False
        with contextlib.suppress(OSError):  # ``all`` tries again
            self._resolve()

    def close(self) -> None:
        """Close the socket."""
        self._netlink.close()

    def all(self) -> dict[int, float]:
        """Speeds of all interfaces that report one, bytes/s by ifindex.

        Raises OSError if the kernel does not answer; the previous speeds remain then.
        """
        self._resolve()
        if self._family is None:
            return {}
        return _speeds(self._netlink.dump(self._family, rtnl.link_modes(None)))

    def of(self, ifindex: int) -> float | None:
        """Return the speed of an interface, bytes/s, or None. Raises OSError as ``all`` does."""
        if self._family is None:
            return None
        try:
            answers = self._netlink.query(self._family, rtnl.link_modes(ifindex))
        except NetlinkError as error:
            if error.errno in _NO_SPEED:
                return None
            raise
        return _speeds(answers).get(ifindex)

    def _resolve(self) -> None:
        """Resolve the message type of ethtool, once. Raises OSError, but not if there is none."""
        if self._resolved:
            return
        try:
            for kind, body in self._netlink.query(GENL_ID_CTRL, rtnl.ethtool_family()):
                self._family = rtnl.read_family(kind, body) or self._family
                self.monitor_group = rtnl.read_monitor_group(kind, body) or self.monitor_group
        except NetlinkError as error:
            # ENOENT: the kernel has no ethtool netlink (before Linux 5.6).
            if error.errno != errno.ENOENT:
                raise
        self._resolved = True


def _speeds(answers: list[tuple[int, bytes]]) -> dict[int, float]:
    found = (rtnl.read_speed(body) for _, body in answers)
    return dict(speed for speed in found if speed is not None)
