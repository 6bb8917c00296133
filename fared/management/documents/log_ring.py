"""The last records of the log, for ``show log`` and for those who follow the events from before."""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

_BLOCK: Final = 32
"""Records that are compressed together."""
_WINDOW_BITS, _MEMORY_LEVEL = 12, 5
"""Of zlib: with these it takes 32 kB while it compresses, by default 256."""


class LogRing:
    """Records of the log, the oldest first: ``time``, ``level``, ``event`` and ``fields``.

    They are kept as JSON, all but the newest compressed: as objects they would take ten times the
    memory.
    """

    def __init__(self, most: int, before_reading: Callable[[], object] = lambda: None) -> None:
        """``before_reading`` adds the records of lines that wait."""
        self._most = most
        self._before_reading = before_reading
        self._blocks: deque[bytes] = deque()
        self._skipped = 0
        """Records of the first block that have made room."""
        self._newest: list[str] = []
        self._encode = json.JSONEncoder(default=str, skipkeys=True).encode

    def append(self, record: dict[str, Any]) -> None:
        """Add a record; the oldest makes room."""
        self._newest.append(self._encode(record))
        if len(self._newest) > _BLOCK:
            self._blocks.append(_compressed(self._newest[:_BLOCK]))
            del self._newest[:_BLOCK]
        if len(self) > self._most:
            self._drop()

    def _drop(self) -> None:
        """Remove the oldest record."""
        if not self._blocks:
            del self._newest[0]
            return
        self._skipped += 1
        if self._skipped == _BLOCK:
            self._blocks.popleft()
            self._skipped = 0

    def __len__(self) -> int:
        return len(self._blocks) * _BLOCK - self._skipped + len(self._newest)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._before_reading()
        skipped, newest = self._skipped, [*self._newest]
        for block in [*self._blocks]:
            yield from map(json.loads, zlib.decompress(block).decode().split("\n")[skipped:])
            skipped = 0
        yield from map(json.loads, newest)


def _compressed(lines: list[str]) -> bytes:
    """Compress lines of JSON, in which there are no line breaks."""
    packer = zlib.compressobj(wbits=_WINDOW_BITS, memLevel=_MEMORY_LEVEL)
    return packer.compress("\n".join(lines).encode()) + packer.flush()
