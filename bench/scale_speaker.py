"""Scripted neighbors of ``scale``: the spines of a fabric, in one process with one loop.

A neighbor is the slave of the database exchange and offers the whole database, answers requests,
acknowledges, and sends what the script announces: every LSA over every link. As far as cost is
concerned it does what RFC 2328 asks of a neighbor, and counts: acknowledgments within a second,
hellos that came late, adjacencies that the device gave up. It has no database of its own, drops
nothing, and never flaps.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice

from bench.scale_fabric import Content, LsaContents, content, description, packet
from bench.scale_script import Script
from fared.protocols.ospf.packet.lsa import LSA_HEADER_SIZE, LsType
from fared.protocols.ospf.packet.packets import Options, PacketType

_HELLO = struct.Struct(">IHBBIII")
_INSTANCES = struct.Struct("2x18s")
_WORD = struct.Struct(">I")
_LINK = struct.Struct(">IIBBH")
_BURST = 64
_MOST_QUEUED = 256
"""Packets that wait to be sent; more are dropped, as a router drops what its queue cannot hold."""


class OspfNeighbor:
    """A spine on one link; its router id is lower than the device's, so it is the slave."""

    def __init__(
        self, script: Script, contents: LsaContents, router_id: int, sock: socket.socket
    ) -> None:
        self.script = script
        self._contents = contents
        self.router_id = router_id
        self.bit = 1 << len(script.neighbors)
        self.silent = True
        self.heard_at = 0.0
        """When the last hello of the device came; 0: never."""
        self._socket = sock
        self._own = _WORD.pack(router_id)
        self._listed = False
        self._sequence: int | None = None
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
        script.neighbors.append(self)

    # Sending

    def hello(self) -> None:
        """Send a hello, due once in a hello interval."""
        interval = self.script.hello
        fixed = _HELLO.pack(0xFFFFFFFE, interval, Options.E, 1, 4 * interval, 0, 0)
        heard = _WORD.pack(self.script.device) if self.heard_at else b""
        self.say(content(PacketType.HELLO, fixed + heard))

    def say(self, body: Content) -> None:
        """Send a packet."""
        if not self.silent:
            self._send(packet(self.router_id, body))

    def _send(self, raw: bytes) -> None:
        with contextlib.suppress(BlockingIOError):  # as a full queue: it will be retransmitted
            self._socket.sendto(raw, ("224.0.0.5", 0))

    def queue(self, bodies: Iterable[Content]) -> None:
        """Send updates when ``push`` is called."""
        self._waiting.extend(islice(bodies, max(0, _MOST_QUEUED - len(self._waiting))))

    @property
    def pending(self) -> bool:
        """Whether ``push`` has something to send."""
        return bool(self._waiting or self._wanted)

    def push(self) -> None:
        """Send one queued update, or one with requested LSAs."""
        if self._waiting:
            self.say(self._waiting.popleft())
        else:
            self.say(self._contents.answer(self._wanted))

    # Receiving

    def receive(self) -> None:
        """Read and process the packets that have arrived."""
        for _ in range(_BURST):
            try:
                data = self._socket.recv(65536)
            except BlockingIOError:
                return
            start = (data[0] & 0xF) * 4
            end = start + int.from_bytes(data[start + 2 : start + 4], "big")
            self.script.received += 1
            self._receivers[data[start + 1]](data[start + 24 : end])

    def _hello(self, body: bytes) -> None:
        now, before = time.monotonic(), self.heard_at
        self.heard_at = now
        if before:
            self.script.lapse = max(self.script.lapse, now - before)
        listed = self._own in [body[at : at + 4] for at in range(20, len(body), 4)]
        if self._listed and not listed:
            self.script.lost += 1
        self._listed = listed
        if not before:
            self.hello()

    def _describe(self, body: bytes) -> None:
        """Answer a description (RFC 2328 §10.6), as the slave."""
        flags, sequence = body[3], _WORD.unpack_from(body, 4)[0]
        if sequence == self._sequence:
            self._send(self._last)  # a duplicate: repeat the last response
            return
        if flags & 4:  # a new exchange: what was requested in a former one is not wanted any more
            self._part = 0
            self._wanted.clear()
            self._waiting.clear()
        parts = self._contents.descriptions
        headers = parts[self._part] if self._part < len(parts) else b""
        self._part += 1
        self._sequence = sequence
        self._last = packet(
            self.router_id, description(sequence, headers, more=self._part < len(parts))
        )
        if not self.silent:
            self._send(self._last)
        self._request(body[8:])

    def _request(self, headers: bytes) -> None:
        """Request the LSAs of the device itself."""
        own = _WORD.pack(self.script.device)
        keys = [
            b"\0\0\0" + headers[at + 3 : at + 12]
            for at in range(0, len(headers), LSA_HEADER_SIZE)
            if headers[at + 8 : at + 12] == own
        ]
        if keys:
            self.say(content(PacketType.LS_REQUEST, b"".join(keys)))

    def _serve(self, body: bytes) -> None:
        self._wanted.update(dict.fromkeys(self._contents.requested(body)))

    def _update(self, body: bytes) -> None:
        """Acknowledge what is not itself an acknowledgment (RFC 2328 §13.5)."""
        script, at, headers = self.script, 4, []
        own = _WORD.pack(script.device)
        while at < len(body):
            length = int.from_bytes(body[at + 18 : at + 20], "big")
            if not script.acknowledged(body[at + 2 : at + LSA_HEADER_SIZE], self.bit):
                headers.append(body[at : at + LSA_HEADER_SIZE])
                if body[at + 3] == LsType.ROUTER and body[at + 8 : at + 12] == own:
                    script.links = _adjacencies(body[at + LSA_HEADER_SIZE : at + length])
            at += length
        if headers:
            self.say(content(PacketType.LS_ACK, b"".join(headers)))

    def _acknowledged(self, body: bytes) -> None:
        acknowledged, bit = self.script.acknowledged, self.bit
        for (instance,) in _INSTANCES.iter_unpack(body):
            acknowledged(instance, bit)


def _adjacencies(body: bytes) -> int:
    """Count the point-to-point links of a router LSA without TOS metrics."""
    return sum(kind == 1 for _, _, kind, _, _ in _LINK.iter_unpack(body[4:]))
