"""Forged packets of either protocol: mutations of recorded ones, and bodies of LSAs and LSPs."""

from __future__ import annotations

import random


def mutate(rng: random.Random, corpus: list[bytes]) -> bytes:
    """Change bytes, cut, extend, splice, or several of these."""
    data = bytearray(rng.choice(corpus))
    for _ in range(rng.choice((1, 1, 2, 3))):
        match rng.randrange(5):
            case 0:
                for _ in range(rng.choice((1, 2, 8))):
                    data[rng.randrange(len(data))] = rng.randrange(256)
            case 1:
                del data[rng.randrange(1, len(data) + 1) :]
            case 2:
                data += rng.randbytes(rng.choice((1, 4, 20, 200)))
            case 3:
                other = rng.choice(corpus)
                at = rng.randrange(len(data) + 1)
                data[at:] = other[rng.randrange(len(other)) :]
            case _:
                offset = rng.randrange(0, len(data), 4)
                data[offset : offset + 4] = rng.choice((bytes(4), b"\xff\xff\xff\xff", b"\0\0\0\1"))
        data = data or bytearray(1)
    return bytes(data[:1400])


def other_body(
    rng: random.Random, data: bytes | bytearray, others: list[bytes], header: int
) -> bytes:
    """A body for an LSA or LSP after its header: none, a part of it, another's, or a wrong byte."""
    match rng.randrange(4):
        case 0:
            return b""
        case 1:
            return bytes(data[header : rng.randrange(header, len(data) + 1)])
        case 2:
            return rng.choice(others)[header:]
    body = bytearray(data[header:])
    if body:
        body[rng.randrange(len(body))] = rng.randrange(256)
    return bytes(body)
