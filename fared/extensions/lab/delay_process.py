"""The process that delays frames: ``python -m fared.extensions.lab.delay_process PLAN READY``.

A delayed link is a TAP device in the namespace of each end. This process holds them, all of a lab;
what one sends, the other receives after the delay of the link. Rates are shaped at the devices, as
on other links: what arrives here has waited in their queues already. TCP segments pass in one
piece, as through a veth (``IFF_VNET_HDR``): at 1 Gbit/s these are 2,000 reads a second and not
83,000. As on a veth, an end loses carrier while the other is down, and what is under way is lost.

With the process its devices go, so nothing remains of a lab that was killed. It needs no kernel
module but tun, and no privilege but that over the namespaces.
"""

from __future__ import annotations

import array
import errno
import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from fared.extensions.lab.namespaces import Netns

_TUNSETIFF: Final = 0x400454CA
_TUNSETIFINDEX: Final = 0x400454DA
_TUNSETOFFLOAD: Final = 0x400454D0
_TUNSETCARRIER: Final = 0x400454E2
_FLAGS: Final = 0x0002 | 0x1000 | 0x4000
"""IFF_TAP, IFF_NO_PI, IFF_VNET_HDR."""
_OFFLOADS: Final = 0x01 | 0x02 | 0x04 | 0x08
"""TUN_F_CSUM, TSO4, TSO6, TSO_ECN."""
_LARGEST: Final = 10 + 14 + 4 + (1 << 16)
"""Header of virtio-net, Ethernet, a VLAN tag, the largest packet."""
_MOST_BYTES: Final = 64 << 20
"""What may be under way in one direction: half a second of 1 Gbit/s."""
_BATCH: Final = 64
"""Frames that are read from one device before others have their turn."""
_NEWLINK, _DELLINK, _GROUP_LINK = 16, 17, 1
_MESSAGE: Final = struct.Struct("=IHHII")
_LINK: Final = struct.Struct("=BxHiII")
_IFF_UP: Final = 1
_INBOX: Final = 1 << 16
_ALL_LINKS: Final = _MESSAGE.pack(32, 18, 0x301, 1, 0) + bytes(16)
"""RTM_GETLINK with NLM_F_REQUEST and NLM_F_DUMP."""
_AGAIN: Final = (errno.EAGAIN, errno.EIO, errno.ENOBUFS, errno.EINVAL)
"""A device that is down, or refuses one frame: the frame is lost, as on a wire."""


class End:
    """One end of a link: its device, and what is under way to the other end."""

    def __init__(self, plan: Mapping[str, Any], delay: float) -> None:
        self.index: int = plan["index"]
        self.delay = delay
        self.far: End
        self.up = False
        self.lost = 0
        self._under_way: deque[tuple[float, bytes]] = deque()
        self._bytes = 0
        with Netns(plan["netns"]).entered():
            self.device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            fcntl.ioctl(self.device, _TUNSETIFINDEX, struct.pack("I", self.index))
            request = struct.pack("16sH22x", plan["name"].encode(), _FLAGS)
            fcntl.ioctl(self.device, _TUNSETIFF, request)
        fcntl.ioctl(self.device, _TUNSETOFFLOAD, _OFFLOADS)

    def read(self) -> None:
        """Take what the device has sent. Beyond the limit it is lost, as in a full queue."""
        for _ in range(_BATCH):
            try:
                frame = os.read(self.device, _LARGEST)
            except OSError as error:
                if error.errno not in _AGAIN:
                    raise
                return
            if self._bytes + len(frame) > _MOST_BYTES:
                self.lost += 1
                continue
            self._bytes += len(frame)
            self._under_way.append((time.monotonic() + self.delay, frame))

    def deliver(self, now: float) -> float | None:
        """Pass on what is due; return when the next frame is, None: nothing is under way."""
        waiting, device = self._under_way, self.far.device
        while waiting and waiting[0][0] <= now:
            _, frame = waiting.popleft()
            self._bytes -= len(frame)
            try:
                os.write(device, frame)
            except OSError as error:
                if error.errno not in _AGAIN:
                    raise
                self.lost += 1
        return waiting[0][0] if waiting else None

    def set_up(self, up: bool) -> None:  # noqa: FBT001 - of a message
        """The device is up or down: the far end gains or loses carrier."""
        if up == self.up:
            return
        self.up = up
        self.far.set_carrier(up)
        if not up:
            for end in (self, self.far):
                end.drop()

    def set_carrier(self, present: bool) -> None:  # noqa: FBT001 - of a message
        """Set whether the device has carrier."""
        with suppress(OSError):  # removed meanwhile
            fcntl.ioctl(self.device, _TUNSETCARRIER, array.array("I", [present]), False)

    def drop(self) -> None:
        """Lose what is under way."""
        self._under_way.clear()
        self._bytes = 0


class CarrierWatch:
    """A netlink socket in a namespace, which tells whether its devices are up."""

    def __init__(self, netns: str) -> None:
        self.ends: dict[int, End] = {}
        with Netns(netns).entered():
            self.socket = socket.socket(
                socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.NETLINK_ROUTE
            )
        self.socket.bind((0, _GROUP_LINK))

    def read(self) -> None:
        """Apply what the kernel tells of links."""
        try:
            data = self.socket.recv(_INBOX)
        except OSError as error:
            if error.errno == errno.ENOBUFS:  # messages were lost: ask for all links
                self.socket.send(_ALL_LINKS)
            return
        for kind, body in _messages(data):
            _, _, index, flags, _ = _LINK.unpack_from(body)
            if index in self.ends:
                self.ends[index].set_up(kind == _NEWLINK and bool(flags & _IFF_UP))


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _MESSAGE.size <= len(data):
        size, kind, *_ = _MESSAGE.unpack_from(data, at)
        if kind in (_NEWLINK, _DELLINK):
            yield kind, data[at + _MESSAGE.size : at + size]
        at += (size + 3) & ~3 or len(data)


def run(plans: list[dict[str, Any]], ready: Path) -> None:
    """Make the devices of all links, create ``ready``, and forward until SIGTERM."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    ends: list[End] = []
    watches: dict[str, CarrierWatch] = {}
    for plan in plans:
        a, b = (End(end, plan["delay"]) for end in plan["ends"])
        a.far, b.far = b, a
        ends += a, b
        for end, told in zip((a, b), plan["ends"], strict=True):
            name = told["netns"]
            watches.setdefault(name, CarrierWatch(name)).ends[end.index] = end
            end.set_carrier(present=False)
    ready.touch()
    readers: dict[int, End | CarrierWatch] = {end.device: end for end in ends}
    readers |= {watch.socket.fileno(): watch for watch in watches.values()}
    poller = select.epoll()
    for descriptor in readers:
        poller.register(descriptor, select.EPOLLIN)
    timeout: float | None = None
    while True:
        # of epoll alone the timeout is in milliseconds, select alone takes 1024 descriptors
        select.select((poller,), (), (), timeout)
        for found, _ in poller.poll(0):
            readers[found].read()
        now = time.monotonic()
        due = [at for end in ends if (at := end.deliver(now)) is not None]
        timeout = max(0.0, min(due) - time.monotonic()) if due else None


def main() -> None:
    """Read the plan: a list of links, each with ``delay`` (seconds) and two ``ends``."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    plan, ready = map(Path, sys.argv[1:])
    run(json.loads(plan.read_text("utf-8")), ready)


if __name__ == "__main__":
    main()
