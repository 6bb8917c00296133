"""JSON that something else has written, and that may be anything."""

from __future__ import annotations

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
