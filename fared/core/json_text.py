"""JSON that something else has written, and that may be anything; numbers that JSON lacks."""

from __future__ import annotations

import math
from typing import TypeVar

import msgspec

T = TypeVar("T")


def decode_json(text: bytes | str, kind: type[T]) -> T:
    """Return a value of a type. Raises ValueError for whatever else the text is.

    Values nested too deep, for which Python raises RecursionError, are no exception.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except RecursionError:
        raise ValueError("nested too deep") from None


def render_number(value: float) -> float | str:
    """Return a number, or as text if JSON has none of it: ``NaN``, ``Infinity``, ``-Infinity``."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
