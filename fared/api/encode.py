"""JSON text of large documents without holding up the event loop.

A table of ten thousand routes takes longer to write than a neighbor may be kept waiting, so
documents are encoded entry by entry and the loop gets its turn in between.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

_SLICE = 0.004
_BIG = 16


def pieces(value: object) -> Iterator[str]:
    """Yield JSON text whose concatenation is ``value``. Raises ValueError on NaN and infinity."""
    if isinstance(value, dict) and any(isinstance(v, dict | list) for v in value.values()):
        opening = "{"
        for key, entry in value.items():
            yield f"{opening}{json.dumps(str(key))}:"
            yield from pieces(entry)
            opening = ","
        yield "}"
    elif isinstance(value, list) and len(value) > _BIG:
        opening = "["
        for entry in value:
            yield opening
            yield from pieces(entry)
            opening = ","
        yield "]"
    else:
        yield json.dumps(value, separators=(",", ":"), allow_nan=False)


async def encode(document: object) -> bytes:
    """Encode a document, giving way to other tasks every few milliseconds."""
    parts: list[str] = []
    turn = time.monotonic()
    for part in pieces(document):
        parts.append(part)
        if time.monotonic() - turn > _SLICE:
            await asyncio.sleep(0)
            turn = time.monotonic()
    return "".join(parts).encode()
