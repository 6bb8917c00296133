"""The keys of all documents, and the units of their numbers."""

from __future__ import annotations

from typing import TypedDict

BytesPerSecond = float | None
Seconds = float
UnixTime = float


class JsonDocument(TypedDict):
    """The keys of all documents."""

    format: str
