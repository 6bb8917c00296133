"""BGP messages of captures: TCP streams are put together, in either family.

A capture may begin inside a stream, miss segments, or hold them twice and out of order. What is
missing is skipped: the next message begins at a marker, 16 octets of ones.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from fared.core.ids import FAMILY_IPV4, FAMILY_IPV6, format_address
from fared.core.streams import BGP_PORT
from fared.extensions.offline.pcap import (
    ETHERTYPE_IPV4,
    ETHERTYPE_IPV6,
    LINK_TYPES,
    frames,
    network_layer,
)
from fared.protocols.bgp.packet.framing import HEADER, MARKER, MAX_EXTENDED, check_header
from fared.protocols.bgp.packet.notification import MessageError

_TCP: Final = 6
_IPV6_HEADER: Final = 40
_PORTS = struct.Struct(">HHI")
_SYN: Final = 0x02
_MOST_WAITING: Final = 1 << 20
"""Bytes kept behind a gap, before it is taken for a loss."""
_SEQUENCES: Final = 1 << 32


class CapturedEnd(NamedTuple):
    """One end of a connection."""

    family: int
    address: int
    port: int

    def __str__(self) -> str:
        text = format_address(self.family, self.address)
        return f"[{text}]:{self.port}" if self.family == FAMILY_IPV6 else f"{text}:{self.port}"


class CapturedMessage(NamedTuple):
    """A message, or bytes that are none, with the frame that completed it."""

    source: CapturedEnd
    destination: CapturedEnd
    data: bytes
    frame: int
    time: float


class _CapturedSegment(NamedTuple):
    source: CapturedEnd
    destination: CapturedEnd
    sequence: int
    syn: bool
    payload: bytes


class _CapturedStream:
    """One direction of a connection."""

    def __init__(self) -> None:
        self._next: int | None = None
        self._aligned = False
        self._waiting: dict[int, bytes] = {}
        self._buffer = bytearray()

    def take(self, segment: _CapturedSegment) -> None:
        """Append what comes next; keep what is ahead of a gap."""
        sequence, payload = segment.sequence, segment.payload
        if segment.syn:
            self._waiting, self._buffer = {}, bytearray()
            self._next = (sequence + 1) % _SEQUENCES
            self._aligned = True
            return
        if not payload:
            return
        if self._next is None:
            self._next = sequence
        ahead = (sequence - self._next) % _SEQUENCES
        if ahead >= _SEQUENCES // 2:
            known = _SEQUENCES - ahead
            if known >= len(payload):
                return  # all of it came before
            sequence, payload = self._next, payload[known:]
        self._waiting[sequence] = payload
        self._advance()
        if sum(map(len, self._waiting.values())) > _MOST_WAITING:
            base = self._next
            self._next = min(self._waiting, key=lambda at: (at - base) % _SEQUENCES)
            self._buffer.clear()
            self._aligned = False
            self._advance()

    def _advance(self) -> None:
        assert self._next is not None
        while True:
            payload = self._waiting.pop(self._next, None)
            if payload is None:
                # a segment sent again may begin before what is next
                for at in list(self._waiting):
                    known = (self._next - at) % _SEQUENCES
                    if 0 < known < _SEQUENCES // 2:
                        rest = self._waiting.pop(at)[known:]
                        if rest:
                            self._waiting[self._next] = rest
                            break
                else:
                    return
                continue
            self._buffer += payload
            self._next = (self._next + len(payload)) % _SEQUENCES

    def messages(self) -> Iterator[bytes]:
        """Yield the messages that are complete, and bytes between them that are none."""
        buffer = self._buffer
        if not self._aligned:
            at = buffer.find(MARKER)
            self._aligned = at >= 0
            del buffer[: at if at >= 0 else max(0, len(buffer) - len(MARKER) + 1)]
        while len(buffer) >= HEADER:
            try:
                _, length = check_header(buffer[:HEADER], MAX_EXTENDED)
            except MessageError:
                at = buffer.find(MARKER, 1)
                length = at if at > 0 else len(buffer) - len(MARKER) + 1
                if at < 0 and length < HEADER:
                    return
            if len(buffer) < length:
                return
            yield bytes(buffer[:length])
            del buffer[:length]


def read_messages(path: Path) -> Iterator[CapturedMessage]:
    """The BGP messages of a capture, in order. Raises CaptureError."""
    streams: dict[tuple[CapturedEnd, CapturedEnd], _CapturedStream] = {}
    for number, time, link_type, data in frames(path, LINK_TYPES):
        kind, start = network_layer(link_type, data)
        segment = _segment(kind, data[start:])
        if segment is None or BGP_PORT not in (segment.source.port, segment.destination.port):
            continue
        stream = streams.setdefault((segment.source, segment.destination), _CapturedStream())
        stream.take(segment)
        for message in stream.messages():
            yield CapturedMessage(segment.source, segment.destination, message, number, time)


def _segment(kind: int, packet: bytes) -> _CapturedSegment | None:
    """Return the TCP segment of an IP packet; None: it has none, or is a fragment of one."""
    if kind == ETHERTYPE_IPV4 and len(packet) >= 20 and packet[9] == _TCP:
        header, total = (packet[0] & 15) * 4, int.from_bytes(packet[2:4], "big")
        if int.from_bytes(packet[6:8], "big") & 0x3FFF:
            return None
        source, destination = packet[12:16], packet[16:20]
        family, tcp = FAMILY_IPV4, packet[header : total or None]
    elif kind == ETHERTYPE_IPV6 and len(packet) >= _IPV6_HEADER and packet[6] == _TCP:
        length = int.from_bytes(packet[4:6], "big")
        source, destination = packet[8:24], packet[24:40]
        family, tcp = FAMILY_IPV6, packet[_IPV6_HEADER : _IPV6_HEADER + length]
    else:
        return None
    if len(tcp) < 20:
        return None
    near, far, sequence = _PORTS.unpack_from(tcp)
    return _CapturedSegment(
        CapturedEnd(family, int.from_bytes(source, "big"), near),
        CapturedEnd(family, int.from_bytes(destination, "big"), far),
        sequence,
        bool(tcp[13] & _SYN),
        tcp[(tcp[12] >> 4) * 4 :],
    )
