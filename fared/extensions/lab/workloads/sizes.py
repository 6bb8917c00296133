"""Sizes of what ranks send: equal blocks of a message, or uneven ones; pure.

A mixture of experts sends each token to the expert that a router chose. Some experts are chosen
more often, so that an all-to-all is uneven: with ``skew`` the busiest one gets so many times the
mean, and each other one a constant part of the one before it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

from fared.extensions.lab.workloads.collectives import Send

Sizes = Callable[[Send], int]
"""Returns the bytes of a send."""

_HALVINGS = 100
_TEXT = re.compile(r"^(\d+(?:\.\d+)?)([KMG]?)(i?)B?$", re.IGNORECASE)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3}


def parse_size(text: str) -> int:
    """Parse bytes: a number with K, M or G, powers of 1000, or Ki, Mi, Gi, of 1024.

    Raises ValueError.
    """
    match = _TEXT.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 16M or 64KiB")
    base = 1024.0 if match[3] else 1000.0
    power = _POWERS[match[2].upper()]
    return round(float(match[1]) * base**power)


def format_bytes(size: float) -> str:
    """Format bytes with a suffix, powers of 1000, three digits: ``256M``."""
    for suffix, unit in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if size >= unit:
            return f"{size / unit:.3g}{suffix}"
    return f"{size:.0f}"


def equal(ranks: int, message: int) -> Sizes:
    """Return the sizes of sends of equal blocks of a message."""
    return lambda send: send.size(ranks, message)


def whole(message: int) -> Sizes:
    """Return the sizes of sends that all are one message."""
    return lambda _: message


def dispatch(parts: Sequence[int]) -> Sizes:
    """Return the sizes of an all-to-all in which each rank sends rank t the bytes ``parts[t]``."""
    return lambda send: parts[send.target]


def combine(parts: Sequence[int]) -> Sizes:
    """Return the sizes of the answers: of what ``dispatch`` sent, back to where it came from."""
    return lambda send: parts[send.source]


def shares(count: int, skew: float) -> tuple[float, ...]:
    """Return the parts of ``count`` experts, which add up to 1, the largest first.

    The first is ``skew`` times the mean. Raises ValueError unless 1 <= skew < count, or both are 1.
    """
    if not (1.0 <= skew < count or skew == count == 1):
        raise ValueError(f"a skew of {count} is from 1 to below {count}")
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        ratio = (low + high) / 2
        series = sum(ratio**n for n in range(count))
        low, high = (ratio, high) if count / series > skew else (low, ratio)
    each = [high**n for n in range(count)]
    return tuple(one / sum(each) for one in each)


def split(message: int, parts: Sequence[float]) -> tuple[int, ...]:
    """Divide bytes by parts that add up to 1; no byte is lost."""
    ends = [round(message * part) for part in itertools.accumulate(parts)]
    ends[-1] = message
    return tuple(end - begin for begin, end in itertools.pairwise([0, *ends]))
