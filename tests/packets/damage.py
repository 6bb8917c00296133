"""Mutated packets, and the one error that a decoder may raise for them: DecodeError."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from fared.core.wire import DecodeError

CODES = {"truncated", "length", "checksum", "version", "type", "tlv", "auth", "message"}
_BYTES = (0, 1, 0x7F, 0x80, 0xFF)


def attempt(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the value, or None after a DecodeError with a known code and an offset in the data."""
    try:
        return function(*arguments, **options)
    except DecodeError as error:
        refusal = error
    assert refusal.code in CODES
    assert refusal.offset >= 0
    return None


def mutate(payload: bytes, rng: random.Random, length_at: int) -> bytes:
    """Replace bytes, flip bits, cut, extend, or duplicate or remove a block.

    In half of the cases the length field, two bytes at ``length_at``, is corrected.
    """
    data = bytearray(payload)
    kind = rng.randrange(6)
    at = rng.randrange(len(data))
    if kind == 0:
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.choice((*_BYTES, rng.randrange(256)))
    elif kind == 1:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 2:
        del data[at:]
    elif kind == 3:
        data += rng.randbytes(rng.randint(1, 40))
    elif kind == 4:
        data[at:at] = data[at : at + rng.randint(1, 24)]
    else:
        del data[at : at + rng.randint(1, 24)]
    if rng.random() < 0.5 and len(data) >= length_at + 2:
        data[length_at : length_at + 2] = len(data).to_bytes(2, "big")
    return bytes(data)
