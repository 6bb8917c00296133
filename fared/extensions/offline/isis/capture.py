"""IS-IS PDUs of capture files: 802.3 frames with an LLC header, also VLAN-tagged, or cooked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from fared.extensions.offline.pcap import COOKED, ETHERNET, VLAN_TAGS, frames

_LLC: Final = b"\xfe\xfe\x03"
_JUMBO: Final = 0x8870
"""EtherType of frames that exceed the 802.3 length field; an LLC header follows."""
_MAX_LENGTH: Final = 1500
_MAC: Final = 6
_COOKED_LLC: Final = 4


class Frame(msgspec.Struct, frozen=True):
    """The PDU of one frame; MAC addresses are integers, None if the capture has none.

    ``offset`` is the number of bytes before the PDU; ``number`` and ``time`` are those of the frame
    in the capture.
    """

    source: int | None
    destination: int | None
    payload: bytes
    offset: int
    number: int = 0
    time: float = 0.0


def strip_llc(data: bytes) -> tuple[bytes, int]:
    """Remove the LLC header, or the 802.3 and LLC headers, before a PDU, if there are any.

    Returns the PDU and the number of bytes before it.
    """
    if data.startswith(_LLC):
        return data[len(_LLC) :], len(_LLC)
    frame = parse_ethernet(data)
    return (data, 0) if frame is None else (frame.payload, frame.offset)


def parse_ethernet(data: bytes) -> Frame | None:
    """The PDU of an Ethernet frame, without padding; None for a frame of another protocol."""
    at = 2 * _MAC
    kind = int.from_bytes(data[at : at + 2], "big")
    while kind in VLAN_TAGS:
        at += 4
        kind = int.from_bytes(data[at : at + 2], "big")
    start = at + 2
    if (kind > _MAX_LENGTH and kind != _JUMBO) or data[start : start + len(_LLC)] != _LLC:
        return None
    end = len(data) if kind == _JUMBO else start + kind
    offset = start + len(_LLC)
    destination, source = data[:_MAC], data[_MAC : 2 * _MAC]
    return Frame(
        int.from_bytes(source, "big"), int.from_bytes(destination, "big"), data[offset:end], offset
    )


def _parse_cooked(data: bytes, link_type: int) -> Frame | None:
    at, start = COOKED[link_type]
    llc = int.from_bytes(data[at : at + 2], "big") == _COOKED_LLC
    if not llc or data[start : start + len(_LLC)] != _LLC:
        return None
    offset = start + len(_LLC)
    return Frame(None, None, data[offset:], offset)


def read_isis_capture(path: Path) -> Iterator[Frame]:
    """The IS-IS PDUs of a capture, in order. Raises CaptureError."""
    for number, time, link_type, data in frames(path, (ETHERNET, *COOKED)):
        frame = _parse_cooked(data, link_type) if link_type in COOKED else parse_ethernet(data)
        if frame is not None:
            yield replace(frame, number=number, time=time)
