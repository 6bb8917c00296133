"""OSPF out of capture files: pcap or pcapng, Ethernet, raw IP or Linux cooked, fragments joined."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import dpkt

from fared.core.wire import DecodeError

OSPF_PROTOCOL: Final = 89
_ETHERTYPE_IPV4: Final = 0x0800
_VLAN_TAGS: Final = (0x8100, 0x88A8)
_IPV4 = struct.Struct(">BBHHHBBHII")
_MORE_FRAGMENTS: Final = 0x2000
_OFFSET_MASK: Final = 0x1FFF
_RAW_IP: Final = (12, 14, 101, 228)
_ETHERNET: Final = 1
_COOKED: Final = {113: (14, 16), 276: (0, 20)}  # link type: offsets of the protocol and of IP


class CaptureError(ValueError):
    """A file that is no capture, or of a link type nobody runs OSPF over."""


@dataclass(frozen=True, slots=True)
class Datagram:
    """The payload of one IPv4 datagram; addresses as integers.

    ``offset`` counts the bytes of IP header in front of it; ``frame`` and ``time`` say where
    in the capture it ended.
    """

    source: int
    destination: int
    protocol: int
    payload: bytes
    offset: int
    frame: int = 0
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class _Fragment:
    key: tuple[int, int, int, int]
    start: int
    last: bool


def is_ipv4(data: bytes) -> bool:
    """Whether the bytes begin like an IPv4 header rather than OSPF version 2."""
    return bool(data) and data[0] >> 4 == 4


def parse_ipv4(data: bytes) -> Datagram:
    """Take an IPv4 header off. Raises DecodeError (truncated, length), also for fragments."""
    datagram, fragment = _split_ipv4(data)
    if fragment is not None:
        raise DecodeError("truncated", 6, "a fragment of an IP datagram, not a whole one")
    return datagram


def _split_ipv4(data: bytes) -> tuple[Datagram, _Fragment | None]:
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
    return datagram, _Fragment(key, (flags & _OFFSET_MASK) * 8, last)


def read_capture(path: Path) -> Iterator[Datagram]:
    """The OSPF datagrams of a capture, in order. Raises CaptureError."""
    pending: dict[tuple[int, int, int, int], list[tuple[_Fragment, Datagram]]] = {}
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


def _join(parts: list[tuple[_Fragment, Datagram]]) -> bytes | None:
    """The whole payload once the fragments leave no hole, else None."""
    payload = b""
    for fragment, datagram in sorted(parts, key=lambda part: part[0].start):
        if fragment.start > len(payload):
            return None
        payload = payload[: fragment.start] + datagram.payload
        if fragment.last:
            return payload
    return None


def _ip_packets(path: Path) -> Iterator[tuple[int, float, bytes]]:
    """Frame number, time and IPv4 bytes of each frame that holds IPv4."""
    with path.open("rb") as file:
        try:
            reader = dpkt.pcap.UniversalReader(file)
            link_type = reader.datalink()
            if link_type not in (_ETHERNET, *_RAW_IP, *_COOKED):
                raise CaptureError(f"{path}: link type {link_type} is not supported")
            for number, (time, data) in enumerate(reader, start=1):
                start = _ip_offset(link_type, data)
                if start is not None and is_ipv4(data[start:]):
                    yield number, float(time), bytes(data[start:])
        except (ValueError, dpkt.Error, struct.error) as error:
            if isinstance(error, CaptureError):
                raise
            raise CaptureError(f"{path}: not a pcap or pcapng file ({error})") from error


def _ip_offset(link_type: int, data: bytes) -> int | None:
    if link_type in _RAW_IP:
        return 0
    at, start = (12, 14) if link_type == _ETHERNET else _COOKED[link_type]
    kind = int.from_bytes(data[at : at + 2], "big")
    while link_type == _ETHERNET and kind in _VLAN_TAGS:
        start += 4
        kind = int.from_bytes(data[start - 2 : start], "big")
    return start if kind == _ETHERTYPE_IPV4 else None
