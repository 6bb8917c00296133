"""Encodes large documents as JSON text without delaying the event loop.

``slices`` encodes a document for a few milliseconds at a time and builds ``Rows`` meanwhile. The
caller (``respond``) returns to the loop between slices, so that hellos do not wait for a table of
routes, and the whole table never exists at once. msgspec encodes; values that it refuses (integers
beyond 64 bits, text that is not UTF-8) are left to the standard library. NaN and infinity become
null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from fared.management.documents.rows import Rows, Shared

SLICE = 0.004
"""Seconds of building and encoding in one turn of the loop."""
PIECE = 1 << 16
"""Bytes of one piece, about: what a socket takes at once, and memory that is freed whole."""
_NESTED = (dict, list, Rows, msgspec.Raw, msgspec.Struct)
BLOCK = 32
"""Rows that are encoded at a time."""


def encode(value: object) -> bytes:
    """Encode a value at once. Raises TypeError or ValueError if it is not JSON."""
    try:
        return _ENCODER.encode(value)
    except (OverflowError, UnicodeEncodeError):
        text = json.dumps(value, separators=(",", ":"), allow_nan=False, default=_plain)
        return text.encode()


def slices(value: object, clock: Callable[[], float]) -> Iterator[bytes]:
    """Yield JSON text whose concatenation is ``value``.

    Each piece is ``SLICE`` seconds of work or ``PIECE`` bytes, whichever is less. Raises TypeError
    or ValueError if the value is not JSON.
    """
    parts: list[bytes] = []
    size, end = 0, clock() + SLICE

    def late() -> bool:
        return clock() >= end

    for part in _parts(value, late):
        parts.append(part)
        size += len(part)
        if size >= PIECE or late():
            yield b"".join(parts)
            parts.clear()
            size, end = 0, clock() + SLICE
    if parts:
        yield b"".join(parts)


def _parts(value: object, late: Callable[[], bool]) -> Iterator[bytes]:
    """Yield the encoding in parts: nested values one by one, long lists in blocks."""
    if isinstance(value, msgspec.Raw):  # JSON text, which another process has made
        text = bytes(value)
        yield from (text[at : at + PIECE] for at in range(0, len(text), PIECE))
    elif (items := _items(value)) and any(isinstance(entry, _NESTED) for _, entry in items):
        opening = b"{"
        for key, entry in items:
            yield opening + encode(key) + b":"
            yield from _parts(entry, late)
            opening = b","
        yield b"}"
    elif isinstance(value, Rows) or (isinstance(value, list) and len(value) > BLOCK):
        yield from _blocks(iter(value), late)
    elif isinstance(value, list) and value:
        opening = b"["
        for entry in value:
            yield opening
            yield from _parts(entry, late)
            opening = b","
        yield b"]"
    else:
        yield encode(value)


def _blocks(rows: Iterator[object], late: Callable[[], bool]) -> Iterator[bytes]:
    """Encode a long list, ``BLOCK`` rows at a time, or fewer if they take long to build."""
    opening = b"["
    while block := _block(rows, late):
        yield opening + encode(block)[1:-1]
        opening = b","
    yield b"[]" if opening == b"[" else b"]"


def _block(rows: Iterator[object], late: Callable[[], bool]) -> list[object]:
    block: list[object] = []
    for row in islice(rows, BLOCK):
        block.append(row)
        if late():
            break
    return block


def _items(value: object) -> list[tuple[str, object]]:
    """Return the keys and values of a mapping or struct; nothing of any other value."""
    if isinstance(value, msgspec.Struct):
        tagged = value.__struct_config__
        tag = [] if tagged.tag is None else [(str(tagged.tag_field), tagged.tag)]
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        found = [(key, getattr(value, name)) for key, name in names]
        return tag + [item for item in found if item[1] is not msgspec.UNSET]
    return [(str(key), entry) for key, entry in value.items()] if isinstance(value, dict) else []


def _plain(value: object) -> object:
    """Convert values unknown to the encoders: rows inside a block."""
    if isinstance(value, Shared):
        value.json = value.json or msgspec.Raw(encode(list(value)))
        return value.json
    if isinstance(value, Rows):
        return list(value)
    if isinstance(value, msgspec.Struct):
        return dict(_items(value))
    raise TypeError(f"{type(value).__name__} is not JSON")


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)
