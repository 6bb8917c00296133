"""Which complaints about peers are worth a line in the log: one a minute by source and reason.

Sources are easily forged, so that all of them together get a bounded number of lines.
"""

from __future__ import annotations

import enum

_INTERVAL = 60.0
_BURST = 32


class Worth(enum.Enum):
    """What a complaint is worth."""

    NOTHING = enum.auto()
    LINE = enum.auto()
    LAST_LINE = enum.auto()
    """A line, and one more to say that the others of this minute are only counted."""


class Complaints:
    """What has been complained about in this minute."""

    __slots__ = ("_logged", "_since")

    def __init__(self) -> None:
        self._logged: set[tuple[int, str]] = set()
        self._since = float("-inf")

    def weigh(self, source: int, reason: str, now: float) -> Worth:
        """Judge a complaint about ``source`` made at ``now``, seconds."""
        if now - self._since >= _INTERVAL:
            self._logged.clear()
            self._since = now
        if len(self._logged) >= _BURST or (source, reason) in self._logged:
            return Worth.NOTHING
        self._logged.add((source, reason))
        return Worth.LAST_LINE if len(self._logged) == _BURST else Worth.LINE
