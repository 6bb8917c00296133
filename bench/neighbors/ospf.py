"""Emulated neighbors over OSPF: spines of a fabric, as far as a device under test can tell.

A speaker is the slave of the database exchange and offers a database, answers requests and
acknowledges. It has no database of its own, drops nothing, never flaps, and has no timers: whoever
runs it calls ``hello`` and ``push``. A scripted neighbor also sends what its script announces, as
RFC 2328 asks of a neighbor, and counts: acknowledgments within a second, hellos that came late,
adjacencies that the device gave up.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

from bench.neighbors.lsas import Content, LsaContents, Lsas, content, description, packet, updates
from bench.neighbors.script import HELLO, Script, Send
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, Lsa, LsType
from fared.protocols.ospf.packet.packets import DdFlags, Options, PacketType

_HEADER = 24
_HELLO = struct.Struct(">IHBBIII")
_INSTANCES = struct.Struct("2x18s")
_WORD = struct.Struct(">I")
_LINK = struct.Struct(">IIBBH")
_MOST_QUEUED = 256
"""Packets that wait to be sent; more are dropped, as a router drops what its queue cannot hold."""


class OspfSpeaker:
    """A spine on one link; its router id is lower than the device's, so it is the slave."""

    portion = 6
    """Updates that ``push`` sends: no more than a default socket buffer holds."""

    def __init__(
        self, router_id: int, device: int, send: Send, lsas: Lsas, *, hello: int = HELLO
    ) -> None:
        self.router_id = router_id
        self.silent = True
        """While true, it sends nothing."""
        self.full = False
        """Whether each has described its database to the other."""
        self.heard_at = 0.0
        """When the last hello of the device came; 0: never."""
        self._lsas, self._send, self._interval = lsas, send, hello
        self._own, self._device = _WORD.pack(router_id), _WORD.pack(device)
        self._sequence: int | None = None
        self._described: list[bytes] = []
        self._part = 0
        self._last: bytes = b""
        self._waiting: deque[Content] = deque()
        self._wanted: dict[bytes, None] = {}
        """Keys of LSAs that the device has requested: once each, as often as it asks."""
        self._receivers: dict[int, Callable[[bytes], None]] = {
            PacketType.HELLO: self._hello,
            PacketType.DATABASE_DESCRIPTION: self._describe,
            PacketType.LS_REQUEST: self._serve,
            PacketType.LS_UPDATE: self._update,
            PacketType.LS_ACK: self._acknowledged,
        }

    # Sending

    def hello(self) -> None:
        """Send a hello, due once in a hello interval."""
        interval = self._interval
        fixed = _HELLO.pack(0xFFFFFFFE, interval, Options.E, 1, 4 * interval, 0, 0)
        self.say(content(PacketType.HELLO, fixed + (self._device if self.heard_at else b"")))

    def restart(self) -> None:
        """Forget the router, and say so."""
        self.heard_at, self._sequence, self.full = 0.0, None, False
        self.hello()

    def say(self, body: Content) -> None:
        """Send a packet."""
        if not self.silent:
            self._send(packet(self.router_id, body))

    def flood(self, lsas: Iterable[Lsa]) -> Callable[[], None]:
        """Prepare updates with these LSAs; the returned function sends them."""
        prepared = [packet(self.router_id, body) for body in updates(lsa.raw for lsa in lsas)]

        def send() -> None:
            for raw in prepared:
                self._send(raw)

        return send

    @property
    def pending(self) -> bool:
        """Whether ``push`` has something to send."""
        return bool(self._waiting or self._wanted)

    def push(self) -> None:
        """Send some of what waits, and of the requested LSAs."""
        for _ in range(self.portion):
            if self._waiting:
                self.say(self._waiting.popleft())
            elif self._wanted:
                self.say(self._lsas.answer(self._wanted))

    # Receiving

    def receive(self, payload: bytes) -> None:
        """Process a packet."""
        self._receivers[payload[1]](payload[_HEADER:])

    def burst_over(self) -> None:
        """All that arrived together has been received."""

    def _hello(self, _body: bytes) -> None:
        before, self.heard_at = self.heard_at, time.monotonic()
        if not before:
            self.hello()

    def _describe(self, body: bytes) -> None:
        """Answer a description (RFC 2328 §10.6), as the slave."""
        flags, sequence = body[3], _WORD.unpack_from(body, 4)[0]
        if sequence != self._sequence:
            if flags & DdFlags.I:  # what was requested in a former exchange is not wanted any more
                self._described, self._part = self._lsas.described(), 0
                self._wanted.clear()
                self._waiting.clear()
            parts = self._described
            headers = parts[self._part] if self._part < len(parts) else b""
            self._part += 1
            self._sequence, more = sequence, self._part < len(parts)
            self._last = packet(self.router_id, description(sequence, headers, more=more))
            self.full = not more and not flags & DdFlags.M
            self._request(body[8:])
        if not self.silent:
            self._send(self._last)  # again, if it is a duplicate

    def _request(self, headers: bytes) -> None:
        """Request the LSAs of the device itself."""
        keys = [
            b"\0\0\0" + headers[at + 3 : at + 12]
            for at in range(0, len(headers), LSA_HEADER_SIZE)
            if headers[at + 8 : at + 12] == self._device
        ]
        if keys:
            self.say(content(PacketType.LS_REQUEST, b"".join(keys)))

    def _serve(self, body: bytes) -> None:
        self._wanted.update(dict.fromkeys(self._lsas.requested(body)))

    def _update(self, body: bytes) -> None:
        """Acknowledge what is not itself an acknowledgment (RFC 2328 §13.5)."""
        at, headers = 4, []
        while at < len(body):
            length = int.from_bytes(body[at + 18 : at + 20], "big")
            if not self._comes_back(body[at : at + length]):
                headers.append(body[at : at + LSA_HEADER_SIZE])
            at += length
        if headers:
            self.say(content(PacketType.LS_ACK, b"".join(headers)))

    def _comes_back(self, lsa: bytes) -> bool:  # noqa: ARG002 - it has sent none
        """Whether this neighbor has sent the LSA, and awaits an acknowledgment."""
        return False

    def _acknowledged(self, body: bytes) -> None:
        """Process an acknowledgment; what the device has is of no interest."""


class OspfNeighbor(OspfSpeaker):
    """A speaker that announces what a script says, and counts what the device answers."""

    portion = 1

    def __init__(self, script: Script, contents: LsaContents, router_id: int, send: Send) -> None:
        super().__init__(router_id, script.device, send, contents, hello=script.hello)
        self.script = script
        self.bit = 1 << len(script.neighbors)
        self._listed = False
        script.neighbors.append(self)

    def queue(self, bodies: Iterable[Content]) -> None:
        """Send updates when ``push`` is called."""
        self._waiting.extend(islice(bodies, max(0, _MOST_QUEUED - len(self._waiting))))

    def receive(self, payload: bytes) -> None:
        """Process a packet."""
        self.script.received += 1
        super().receive(payload)

    def _hello(self, body: bytes) -> None:
        before, was_listed = self.heard_at, self._listed
        self._listed = self._own in [body[at : at + 4] for at in range(20, len(body), 4)]
        super()._hello(body)
        self.script.heard(self, before, lost=was_listed and not self._listed)

    def _comes_back(self, lsa: bytes) -> bool:
        script = self.script
        if script.acknowledged(lsa[2:LSA_HEADER_SIZE], self.bit):
            return True
        if lsa[3] == LsType.ROUTER and lsa[8:12] == self._device:
            script.links = _adjacencies(lsa[LSA_HEADER_SIZE:])
        return False

    def _acknowledged(self, body: bytes) -> None:
        acknowledged, bit = self.script.acknowledged, self.bit
        for (instance,) in _INSTANCES.iter_unpack(body):
            acknowledged(instance, bit)


def _adjacencies(body: bytes) -> int:
    """Count the point-to-point links of a router LSA without TOS metrics."""
    return sum(kind == 1 for _, _, kind, _, _ in _LINK.iter_unpack(body[4:]))
