"""The last records of the log, for ``show log`` and for those who follow the events from before."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from typing import Any


class LogRing:
    """Records of the log, the oldest first: ``time``, ``level``, ``event`` and ``fields``.

    They are kept as JSON: as objects they would take twice the memory.
    """

    def __init__(self, most: int) -> None:
        self._lines: deque[str] = deque(maxlen=most)
        self._encode = json.JSONEncoder(default=str, skipkeys=True).encode

    def append(self, record: dict[str, Any]) -> None:
        """Add a record; the oldest makes room."""
        self._lines.append(self._encode(record))

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(json.loads, self._lines)
