"""Rate limit of log lines about bad input: one a minute for each source and reason.

The total number of lines is limited as well, since sources are easily forged.
"""

from __future__ import annotations

import enum

_INTERVAL = 60.0
_BURST = 32


class Verdict(enum.Enum):
    """Whether to log an event."""

    SUPPRESS = enum.auto()
    LOG = enum.auto()
    LOG_LAST = enum.auto()
    """Log the event, and that further ones of this minute are only counted."""


class LogRateLimiter:
    """The sources and reasons logged in the present minute."""

    __slots__ = ("_began", "_logged", "_since")

    def __init__(self) -> None:
        self._logged: set[tuple[int, str]] = set()
        self._began: dict[tuple[int, str], float] = {}
        """When an event began that is logged if it lasts."""
        self._since = float("-inf")

    def judge(self, source: int, reason: str, now: float) -> Verdict:
        """Return whether to log an event of ``source`` at ``now`` (seconds)."""
        if now - self._since >= _INTERVAL:
            self._begin_minute(now)
        if len(self._logged) >= _BURST or (source, reason) in self._logged:
            return Verdict.SUPPRESS
        self._logged.add((source, reason))
        return Verdict.LOG_LAST if len(self._logged) == _BURST else Verdict.LOG

    def lasts(self, source: int, reason: str, now: float, patience: float) -> bool:
        """Whether an event has been coming for ``patience`` seconds of this minute."""
        if now - self._since >= _INTERVAL:
            self._begin_minute(now)
        if len(self._began) >= _BURST:
            return True
        return now - self._began.setdefault((source, reason), now) >= patience

    def _begin_minute(self, now: float) -> None:
        self._logged.clear()
        self._began.clear()
        self._since = now
