"""AS paths, with numbers of two or four octets (RFC 4271 §4.3, RFC 6793)."""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from fared.core.wire import DecodeError
from fared.protocols.bgp.packet.coded import AS_TRANS, MAX_TWO_OCTET_AS

_MOST: Final = 255
"""Numbers of a segment at most."""
_ITEMS: Final = {2: "H", 4: "I"}


class SegmentType(enum.IntEnum):
    """Types of segments (RFC 4271 §4.3); confederations (RFC 5065) are not supported."""

    AS_SET = 1
    AS_SEQUENCE = 2


class AsSegment(NamedTuple):
    """Numbers, in order or as a set."""

    kind: int
    numbers: tuple[int, ...]


Path = tuple[AsSegment, ...]


def sequence(*numbers: int) -> Path:
    """Return a path of these numbers."""
    return (AsSegment(SegmentType.AS_SEQUENCE, numbers),) if numbers else ()


def decode_path(value: bytes, size: int) -> Path:
    """Decode segments of numbers of so many octets. Raises DecodeError ``type``, ``length``."""
    at, end, found = 0, len(value), []
    while at < end:
        if end - at < 2:
            raise DecodeError("length", at, "AS path segment without a length")
        kind, count = value[at], value[at + 1]
        first = at + 2
        at = first + count * size
        # RFC 7606 §7.2: unrecognized type, overrun, no numbers
        if kind not in (SegmentType.AS_SET, SegmentType.AS_SEQUENCE):
            raise DecodeError("type", first - 2, f"AS path segment of type {kind}")
        if not count or at > end:
            raise DecodeError("length", first - 1, f"AS path segment of {count} numbers")
        numbers = struct.unpack_from(f">{count}{_ITEMS[size]}", value, first)
        # RFC 7607 §2
        if 0 in numbers:
            raise DecodeError("type", first, "AS path with AS 0")
        found.append(AsSegment(kind, numbers))
    return tuple(found)


def encode_path(path: Path, size: int) -> bytes:
    """Encode segments, long ones as several; numbers that need four octets as AS_TRANS in two."""
    parts = []
    for kind, numbers in path:
        for at in range(0, len(numbers), _MOST):
            some = numbers[at : at + _MOST]
            if size == 2:
                some = tuple([n if n <= MAX_TWO_OCTET_AS else AS_TRANS for n in some])
            parts += [bytes((kind, len(some))), struct.pack(f">{len(some)}{_ITEMS[size]}", *some)]
    return b"".join(parts)


def path_length(path: Path) -> int:
    """Return the length of a path for the decision (RFC 4271 §9.1.2.2 (a)): a set counts once."""
    return sum([1 if one.kind == SegmentType.AS_SET else len(one.numbers) for one in path])


def is_wide(path: Path) -> bool:
    """Whether a number of a path needs four octets."""
    return any(number > MAX_TWO_OCTET_AS for one in path for number in one.numbers)


def merge_paths(path: Path, four: Path) -> Path:
    """Return AS_PATH with the numbers of AS4_PATH, from a neighbor of two octets (RFC 6793 §4.2.3).

    An AS4_PATH that is longer is ignored: somebody has shortened AS_PATH since.
    """
    more = path_length(path) - path_length(four)
    return path if more < 0 else join_paths(tuple(_leading(path, more)), four)


def _leading(path: Path, count: int) -> Iterator[AsSegment]:
    """Yield the beginning of a path that has this length."""
    for kind, numbers in path:
        if count <= 0:
            return
        if kind == SegmentType.AS_SET:
            count -= 1
            yield AsSegment(kind, numbers)
        else:
            yield AsSegment(kind, numbers[:count])
            count -= len(numbers)


def join_paths(before: Path, after: Path) -> Path:
    """Return one path of two: sequences that meet become one."""
    if before and after and before[-1].kind == after[0].kind == SegmentType.AS_SEQUENCE:
        middle = AsSegment(before[-1].kind, before[-1].numbers + after[0].numbers)
        return (*before[:-1], middle, *after[1:])
    return before + after


def path_text(path: Iterable[AsSegment]) -> str:
    """Write a path as an operator does: ``65001 65002 {65010,65011}``."""
    parts = []
    for kind, numbers in path:
        if kind == SegmentType.AS_SET:
            parts.append("{" + ",".join(map(str, numbers)) + "}")
        else:
            parts += map(str, numbers)
    return " ".join(parts)
