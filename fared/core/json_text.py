"""JSON that something else has written; JSON of numbers and bytes that it has no form for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

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


def unknown_document(triplets: Iterable[tuple[int, bytes]]) -> list[dict[str, Any]]:
    """Return TLVs that are not decoded, type and value, as JSON."""
    return [{"type": kind, "hex": value.hex()} for kind, value in triplets]
