"""What all documents have in common, and the units of their numbers."""

from __future__ import annotations

from typing import TypedDict

BytesPerSecond = float | None
Seconds = float
UnixTime = float


class Document(TypedDict):
    """What all have in common."""

    format: str
