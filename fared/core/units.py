"""Units: bytes/s on the wire and inside, bits/s for people. Only this module converts them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

BytesPerSecond = float

_SUFFIXES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BANDWIDTH = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:bit(?:/s)?|bps)?\s*$", re.IGNORECASE)
_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(us|ms|s|m|h)?\s*$", re.IGNORECASE)
_PERCENT = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*%\s*$")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}

MIN_CAPACITY = 1e3 / 8
MAX_CAPACITY = 1e16 / 8
"""1 kbit/s to 10 Pbit/s: a capacity outside of this is an error of its advertiser."""


def parse_bandwidth(text: str | float) -> BytesPerSecond:
    """Parse bits/s, a number or text such as ``400G``; return bytes/s. Raises ValueError."""
    if isinstance(text, str):
        match = _BANDWIDTH.match(text)
        if match is None:
            raise ValueError(f"{text!r} is not a bandwidth: a number with K, M, G or T, in bits/s")
        bits = float(match[1]) * _SUFFIXES[match[2].upper()]
    else:
        bits = float(text)
    if sane_capacity(bits / 8) is None:
        raise ValueError(f"bandwidth {text!r} is outside 1 kbit/s .. 10 Pbit/s")
    return bits / 8


def format_bandwidth(value: BytesPerSecond | None) -> str:
    """Format bytes/s as bits/s with a suffix: 50e9 is ``400G``; unknown is ``-``."""
    if value is None or math.isnan(value):
        return "-"
    bits = value * 8
    for suffix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if bits >= size * 0.99995 and not (suffix == "T" and bits < 10e12):
            return f"{float(f'{bits / size:.4g}'):g}{suffix}"
    return f"{bits:.0f}"


def parse_duration(text: str | float) -> float:
    """Parse seconds, a number or text such as ``50ms``, ``20s``, ``5m``. Raises ValueError."""
    if isinstance(text, int | float):
        if not math.isfinite(text) or text < 0:
            raise ValueError(f"{text!r} is not a duration")
        return float(text)
    match = _DURATION.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration: a number with us, ms, s, m or h")
    return float(match[1]) * _SECONDS[(match[2] or "s").lower()]


def parse_percent(
    text: str,
    accepts: Callable[[float], bool] = lambda ratio: ratio <= 1,
    expected: str = "a percentage such as 25%",
) -> float:
    """Parse ``25%`` as a ratio that ``accepts`` allows. ValueError: TEXT is not EXPECTED."""
    match = _PERCENT.match(text)
    ratio = round(float(match[1]) / 100, 9) if match else -1.0
    if match is None or not accepts(ratio):
        raise ValueError(f"{text!r} is not {expected}")
    return ratio


def sane_capacity(value: BytesPerSecond | None) -> BytesPerSecond | None:
    """Return the value if a link could have that capacity, else None (unknown).

    Peers may send NaN, infinities, negative and absurd floats; none may reach a weight.
    """
    if value is None or not MIN_CAPACITY <= value <= MAX_CAPACITY:
        return None
    return value


def sane_load(value: BytesPerSecond | None) -> BytesPerSecond | None:
    """Like sane_capacity, for available or utilized bandwidth, which may be zero."""
    if value is None or not 0.0 <= value <= MAX_CAPACITY:
        return None
    return value
