"""The frames of capture files (pcap or pcapng)."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import dpkt

ETHERNET: Final = 1
VLAN_TAGS: Final = (0x8100, 0x88A8)
COOKED: Final = {113: (14, 16), 276: (0, 20)}
"""Linux cooked captures: offsets of the protocol and of the payload by link type."""
ETHERTYPE_IPV4: Final = 0x0800
ETHERTYPE_IPV6: Final = 0x86DD
_RAW_IP: Final = (12, 14, 101, 228)
LINK_TYPES: Final = (ETHERNET, *_RAW_IP, *COOKED)
"""Those of captures of IP."""


class CaptureError(ValueError):
    """The file is not a capture, or its link type is not supported."""


class Captured(NamedTuple):
    """A frame of a capture: ``number`` counts from 1, ``time`` is Unix time in seconds."""

    number: int
    time: float
    link_type: int
    data: bytes


def frames(path: Path, link_types: Collection[int]) -> Iterator[Captured]:
    """All frames of a capture, in order. Raises CaptureError."""
    with path.open("rb") as file:
        try:
            reader = dpkt.pcap.UniversalReader(file)
            link_type = reader.datalink()
            if link_type not in link_types:
                raise CaptureError(f"{path}: link type {link_type} is not supported")
            for number, (time, data) in enumerate(reader, start=1):
                yield Captured(number, float(time), link_type, bytes(data))
        except (ValueError, dpkt.Error, struct.error) as error:
            if isinstance(error, CaptureError):
                raise
            raise CaptureError(f"{path}: not a pcap or pcapng file ({error})") from error


def network_layer(link_type: int, data: bytes) -> tuple[int, int]:
    """Return the EtherType of a frame, and where its payload begins."""
    if link_type in _RAW_IP:
        return ETHERTYPE_IPV6 if data[:1] and data[0] >> 4 == 6 else ETHERTYPE_IPV4, 0
    at, start = (12, 14) if link_type == ETHERNET else COOKED[link_type]
    kind = int.from_bytes(data[at : at + 2], "big")
    while link_type == ETHERNET and kind in VLAN_TAGS:
        start += 4
        kind = int.from_bytes(data[start - 2 : start], "big")
    return kind, start
