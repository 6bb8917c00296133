"""Type, length, value: one byte, one byte, up to 255 bytes. The same for TLVs and sub-TLVs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fared.core.wire import DecodeError
from fared.protocols.isis.ids import PATH_CAPACITY

MAX_VALUE: Final = 255
HEADER: Final = 2


class DecodeOptions(NamedTuple):
    """How to read malformed contents, and the code point of the path capacity sub-TLV or None.

    ``strict``: a known sub-TLV of a wrong size is an error. Otherwise it is kept among the unknown
    ones, so that the other attributes of the link still count. ``keep_malformed``: a known TLV
    with malformed contents becomes an ``UnknownTlv`` instead of an error. ``packed``: entries of
    SNPs stay bytes.
    """

    strict: bool = False
    capacity_code: int | None = PATH_CAPACITY
    keep_malformed: bool = False
    packed: bool = False


def read_triplets(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Type, start and end of the value of each triplet between two offsets.

    Raises DecodeError ``tlv`` for one that exceeds the end.
    """
    while start < end:
        if end - start < HEADER:
            raise DecodeError("tlv", start, "TLV type without a length")
        first = start + HEADER
        last = first + data[start + 1]
        if last > end:
            raise DecodeError(
                "tlv", start, f"TLV {data[start]} of {last - first} bytes, {end - first} left"
            )
        yield data[start], first, last
        start = last


def write_triplet(kind: int, value: bytes) -> bytes:
    """Encode one triplet. Raises ValueError if the value is longer than 255 bytes."""
    if len(value) > MAX_VALUE:
        raise ValueError(f"TLV {kind} of {len(value)} bytes")
    return bytes((kind, len(value))) + value


def pack_entries(kind: int, entries: Iterable[bytes], head: bytes = b"") -> bytes:
    """Encode entries into as few TLVs as their order allows; ``head`` begins each of them.

    No entries make one empty TLV. Raises ValueError if an entry alone is too long.
    """
    out: list[bytes] = []
    value = head
    for entry in entries:
        if len(value) + len(entry) > MAX_VALUE and len(value) > len(head):
            out.append(write_triplet(kind, value))
            value = head
        value += entry
    out.append(write_triplet(kind, value))
    return b"".join(out)


def packed_size(sizes: Iterable[int], head: int = 0) -> int:
    """Bytes that ``pack_entries`` makes of entries of these sizes; 0 if there are none."""
    total = 0
    room = 0
    for size in sizes:
        if size > room:
            total += HEADER + head
            room = MAX_VALUE - head
        total += size
        room -= size
    return total


def check_multiple(start: int, end: int, size: int, what: str) -> None:
    """Raise DecodeError ``tlv`` unless the bytes divide into entries of ``size``."""
    if (end - start) % size:
        raise DecodeError("tlv", start, f"{what} of {size} bytes each in {end - start} bytes")
