"""Scripted BGP neighbors over real TCP: they tell what is prepared, and keep sessions up.

All of them are in one namespace and one thread. What is told is encoded before anything is
measured, so that they cost little of a machine that the device under test shares with them.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterator
from typing import Final

from bench.neighbors.fabric import Fabric
from fared.core.ids import Prefix, dotted, ipv4_prefix
from fared.protocols.bgp.packet.as_path import sequence
from fared.protocols.bgp.packet.attributes import (
    AsPath,
    ExtendedCommunities,
    Origin,
    attributes_of,
)
from fared.protocols.bgp.packet.capabilities import (
    FourOctetAs,
    RouteRefreshCapability,
    multiprotocol,
)
from fared.protocols.bgp.packet.codec import KEEPALIVE, encode_message, encode_open
from fared.protocols.bgp.packet.communities import LinkBandwidth
from fared.protocols.bgp.packet.messages import OpenMessage, RouteGroup, Update
from fared.protocols.bgp.packet.nlri import BgpNextHop
from fared.protocols.bgp.packet.packing import end_of_rib

_SPINE_AS, _LEAF_AS = 65100, 4_200_000_000
_HOLD: Final = 9
_KEEPALIVE: Final = 3.0
_BETWEEN = 0.05


def prefixes(leaf: int, count: int) -> tuple[Prefix, ...]:
    """The prefixes of a leaf."""
    first = (11 << 24) + (leaf * count << 8)
    return tuple([ipv4_prefix(first + (at << 8), 24) for at in range(count)])


def told(
    fabric: Fabric, spine: int, count: int, bandwidth: Callable[[int], float]
) -> Iterator[bytes]:
    """Yield what a spine tells of all other leaves, so many prefixes each."""
    hop = BgpNextHop(4, fabric.addresses((spine, 0))[0])
    for leaf in range(1, fabric.leaves):
        path = AsPath(sequence(_SPINE_AS + spine, _LEAF_AS + leaf))
        community = LinkBandwidth(_SPINE_AS + spine, bandwidth(leaf)).raw
        items = attributes_of([Origin(0), path, ExtendedCommunities((community,))])
        update = Update((), (RouteGroup(hop, prefixes(leaf, count)),), items)
        yield from encode_message(update)


class Neighbor:
    """One session, opened from here."""

    def __init__(self, fabric: Fabric, spine: int) -> None:
        theirs, mine = map(dotted, fabric.addresses((spine, 0)))
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.bind((theirs, 0))
        self.sock.settimeout(5.0)
        self.sock.connect((mine, 179))
        self.sock.setblocking(False)
        self.up, self.received = False, 0
        self._out = bytearray()
        self._in = b""
        capabilities = (
            multiprotocol(4),
            RouteRefreshCapability(),
            FourOctetAs(_SPINE_AS + spine),
        )
        hello = OpenMessage(_SPINE_AS + spine, _HOLD, fabric.spine(spine), capabilities)
        self.send(encode_open(hello) + KEEPALIVE)

    def send(self, data: bytes) -> None:
        """Send bytes, as the device takes them."""
        self._out += data
        self.flush()

    def flush(self) -> None:
        """Send what the device takes."""
        with contextlib.suppress(BlockingIOError):
            while self._out:
                del self._out[: self.sock.send(self._out[:262144])]

    def receive(self) -> bool:
        """Read what has come; False: the session is closed."""
        with contextlib.suppress(BlockingIOError):
            while data := self.sock.recv(262144):
                self.received += len(data)
                if not self.up:
                    self._in += data
                    # the KEEPALIVE behind its OPEN
                    self.up = KEEPALIVE in self._in
            return False
        return True


class Neighbors:
    """All of a device. ``serve`` runs them; what it is given is looked at every 20 ms."""

    def __init__(self, fabric: Fabric) -> None:
        self.all: list[Neighbor] = []
        self._fabric = fabric
        self._poll = select.poll()
        self._by_descriptor: dict[int, Neighbor] = {}
        self._keepalive = time.monotonic() + _KEEPALIVE

    def connect(self, patience: float = 60.0) -> None:
        """Bring all sessions up; the caller is in their namespace. Raises RuntimeError.

        A device may close connections until it is ready for them.
        """
        deadline = time.monotonic() + patience
        self.all = [self._up(spine, deadline) for spine in range(self._fabric.spines)]
        for one in self.all:
            self._by_descriptor[one.sock.fileno()] = one
            self._poll.register(one.sock, select.POLLIN)

    def _up(self, spine: int, deadline: float) -> Neighbor:
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                one = Neighbor(self._fabric, spine)
                while one.receive() and time.monotonic() < deadline:
                    if one.up:
                        return one
                    time.sleep(_BETWEEN / 10)
            time.sleep(_BETWEEN)
        raise RuntimeError(f"no session with spine {spine}")

    def tell(self, messages: list[bytes]) -> None:
        """Have every neighbor send what is prepared for it."""
        for one, data in zip(self.all, messages, strict=True):
            one.send(data + end_of_rib(4))

    def close(self, spine: int) -> None:
        """End a session as a kernel does for a process that died."""
        one = self.all[spine]
        self._poll.unregister(one.sock)
        del self._by_descriptor[one.sock.fileno()]
        one.sock.close()

    def serve(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Run for so long, or until the condition holds; return whether it does."""
        deadline = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            if now >= self._keepalive:
                self._keepalive = now + _KEEPALIVE
                for one in self._by_descriptor.values():
                    one.send(KEEPALIVE)
            for one in self._by_descriptor.values():
                one.flush()
            if until is not None and until():
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            for descriptor, _ in self._poll.poll(min(left, 0.02) * 1e3):
                one = self._by_descriptor[descriptor]
                if not one.receive():
                    raise RuntimeError("a session was closed by the device")
