"""IS-IS out of capture files: 802.3 frames with an LLC header, VLAN tags tolerated, or cooked."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import dpkt

from fared.cli.capture import CaptureError

_LLC: Final = b"\xfe\xfe\x03"
_VLAN_TAGS: Final = (0x8100, 0x88A8)
_JUMBO: Final = 0x8870
"""Where 802.3 cannot write the length of a long frame, this type says that LLC follows."""
_MAX_LENGTH: Final = 1500
_MAC: Final = 6
_ETHERNET: Final = 1
_COOKED: Final = {113: (14, 16), 276: (0, 20)}  # link type: offsets of the protocol and of LLC
_COOKED_LLC: Final = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """The PDU in one frame; MAC addresses as integers, None where the capture lacks them.

    ``offset`` counts the bytes in front of the PDU; ``number`` and ``time`` say where in the
    capture it is.
    """

    source: int | None
    destination: int | None
    payload: bytes
    offset: int
    number: int = 0
    time: float = 0.0


def strip_llc(data: bytes) -> tuple[bytes, int]:
    """Take off what stands in front of a PDU: nothing, an LLC header, or a whole 802.3 header.

    Returns the PDU and how many bytes were in front of it.
    """
    if data.startswith(_LLC):
        return data[len(_LLC) :], len(_LLC)
    frame = parse_ethernet(data)
    return (data, 0) if frame is None else (frame.payload, frame.offset)


def parse_ethernet(data: bytes) -> Frame | None:
    """The PDU of an Ethernet frame, padding cut off; None if the frame holds something else."""
    at = 2 * _MAC
    kind = int.from_bytes(data[at : at + 2], "big")
    while kind in _VLAN_TAGS:
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
    at, start = _COOKED[link_type]
    llc = int.from_bytes(data[at : at + 2], "big") == _COOKED_LLC
    if not llc or data[start : start + len(_LLC)] != _LLC:
        return None
    offset = start + len(_LLC)
    return Frame(None, None, data[offset:], offset)


def read_isis_capture(path: Path) -> Iterator[Frame]:
    """The IS-IS PDUs of a capture, in order. Raises CaptureError."""
    with path.open("rb") as file:
        try:
            reader = dpkt.pcap.UniversalReader(file)
            link_type = reader.datalink()
            if link_type != _ETHERNET and link_type not in _COOKED:
                raise CaptureError(f"{path}: link type {link_type} is not supported")
            for number, (time, packet) in enumerate(reader, start=1):
                data = bytes(packet)
                cooked = link_type != _ETHERNET
                frame = _parse_cooked(data, link_type) if cooked else parse_ethernet(data)
                if frame is not None:
                    yield Frame(
                        frame.source,
                        frame.destination,
                        frame.payload,
                        frame.offset,
                        number,
                        float(time),
                    )
        except (ValueError, dpkt.Error, struct.error) as error:
            if isinstance(error, CaptureError):
                raise
            raise CaptureError(f"{path}: not a pcap or pcapng file ({error})") from error
