"""OSPF packets of capture files: Ethernet, raw IP or Linux cooked; IP fragments are reassembled."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from fared.core.wire import DecodeError
from fared.extensions.offline.pcap import (
    ETHERTYPE_IPV4,
    ETHERTYPE_IPV6,
    LINK_TYPES,
    frames,
    network_layer,
)

OSPF_PROTOCOL: Final = 89
_GRE: Final = 47
_IPV4 = struct.Struct(">BBHHHBBHII")
_MORE_FRAGMENTS: Final = 0x2000
_OFFSET_MASK: Final = 0x1FFF


class Datagram(msgspec.Struct, frozen=True):
    """The payload of one IPv4 datagram; addresses are integers.

    ``offset`` is the length of the IP header; ``frame`` and ``time`` are those of the last frame of
    the datagram in the capture.
    """

    source: int
    destination: int
    protocol: int
    payload: bytes
    offset: int
    frame: int = 0
    time: float = 0.0


class _IpFragment(msgspec.Struct, frozen=True):
    key: tuple[int, int, int, int]
    start: int
    last: bool


def is_ipv4(data: bytes) -> bool:
    """Whether the first byte is that of an IPv4 header; that of OSPF is the version, 2."""
    return bool(data) and data[0] >> 4 == 4


def parse_ipv4(data: bytes) -> Datagram:
    """Remove the IPv4 header. Raises DecodeError (truncated, length), also for a fragment."""
    datagram, fragment = _split_ipv4(data)
    if fragment is not None:
        raise DecodeError("truncated", 6, "a fragment of an IP datagram, not a whole one")
    return datagram


def _split_ipv4(data: bytes) -> tuple[Datagram, _IpFragment | None]:
    if len(data) < _IPV4.size:
        raise DecodeError("truncated", len(data), "an IPv4 header takes 20 bytes")
    first, _, total, ident, flags, _, protocol, _, source, destination = _IPV4.unpack_from(data)
    header = (first & 15) * 4
    if header < _IPV4.size or (total and total < header):
        raise DecodeError("length", 0, f"IPv4 header of {header} bytes in a datagram of {total}")
    payload = data[header : total or None]
    datagram = Datagram(source, destination, protocol, payload, header)
    if not flags & (_MORE_FRAGMENTS | _OFFSET_MASK):
        return datagram, None
    key = (source, destination, protocol, ident)
    last = not flags & _MORE_FRAGMENTS
    return datagram, _IpFragment(key, (flags & _OFFSET_MASK) * 8, last)


def read_capture(path: Path) -> Iterator[Datagram]:
    """The OSPF datagrams of a capture, in order. Raises CaptureError."""
    pending: dict[tuple[int, int, int, int], list[tuple[_IpFragment, Datagram]]] = {}
    for frame, time, packet in _ip_packets(path):
        try:
            datagram, fragment = _split_ipv4(packet)
        except DecodeError:
            continue
        if datagram.protocol != OSPF_PROTOCOL:
            continue
        payload: bytes | None = datagram.payload
        if fragment is not None:
            parts = pending.setdefault(fragment.key, [])
            parts.append((fragment, datagram))
            payload = _join(parts)
            if payload is not None:
                del pending[fragment.key]
        if payload is not None:
            yield Datagram(
                datagram.source,
                datagram.destination,
                datagram.protocol,
                payload,
                datagram.offset,
                frame,
                time,
            )


def others(path: Path) -> Counter[str]:
    """Count the packets of a capture that hold OSPF in a form that is not read."""
    found: Counter[str] = Counter()
    for _, _, link_type, data in frames(path, LINK_TYPES):
        kind, start = network_layer(link_type, data)
        packet = data[start:]
        if kind == ETHERTYPE_IPV6 and packet[6:7] == bytes([OSPF_PROTOCOL]):
            found["OSPFv3: fared reads OSPFv2"] += 1
        elif kind == ETHERTYPE_IPV4 and packet[9:10] == bytes([_GRE]):
            found["GRE: capture on the tunnel itself"] += 1
    return found


def _join(parts: list[tuple[_IpFragment, Datagram]]) -> bytes | None:
    """The payload once all fragments have arrived, else None."""
    payload = b""
    for fragment, datagram in sorted(parts, key=lambda part: part[0].start):
        if fragment.start > len(payload):
            return None
        payload = payload[: fragment.start] + datagram.payload
        if fragment.last:
            return payload
    return None


def _ip_packets(path: Path) -> Iterator[tuple[int, float, bytes]]:
    """The number, time and IPv4 datagram of each frame that holds one."""
    for number, time, link_type, data in frames(path, LINK_TYPES):
        start = _ip_offset(link_type, data)
        if start is not None and is_ipv4(data[start:]):
            yield number, time, data[start:]


def _ip_offset(link_type: int, data: bytes) -> int | None:
    kind, start = network_layer(link_type, data)
    return start if kind == ETHERTYPE_IPV4 else None
