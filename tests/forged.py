"""Forged packets of either protocol: what mutates recorded ones."""

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
