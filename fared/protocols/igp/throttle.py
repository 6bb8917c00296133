"""Exponential back-off of originating one LSA or LSP.

RFC 2328's fixed MinLSInterval of 5 s delays the second of two failures. Here the first origination
is not delayed, and the gaps then double up to the configured maximum: single events are flooded at
once, and a flapping link costs a bounded number of LSAs. Events a second apart count as single; a
link that flaps faster must be quiet for twice its present gap.
"""

from __future__ import annotations

import msgspec

ADJACENCY_SOON = 0.5
"""Seconds within which a link that came up usually has a full adjacency.

An origination before that would delay the one that advertises the adjacency.
"""


class ThrottleSettings(msgspec.Struct, frozen=True):
    """How gaps grow, in seconds: the first origination waits ``initial``, then gaps double.

    ``maximum`` limits the gap, and so the long-term rate. After ``reset`` quiet seconds, and at
    least twice the present gap, the next origination counts as the first.
    """

    initial: float = 0.0
    minimum: float = 0.05
    maximum: float = 5.0
    reset: float = 1.0


class Throttle:
    """The gap state of one LSA or LSP; times in seconds."""

    __slots__ = ("_gap", "_last", "_settings")

    def __init__(self, settings: ThrottleSettings) -> None:
        self._settings = settings
        self._last: float | None = None
        self._gap = 0.0

    def configure(self, settings: ThrottleSettings) -> None:
        """Change the settings."""
        self._settings = settings

    def quiet_at(self) -> float:
        """Return when the next origination counts as the first."""
        if self._last is None:
            return float("-inf")
        return self._last + max(self._settings.reset, 2 * self._gap)

    def due(self, requested: float) -> float:
        """Return when to make an origination that is requested at ``requested``."""
        if self._last is None or requested >= self.quiet_at():
            return requested + self._settings.initial
        return self._last + self._gap

    def sent(self, requested: float, now: float) -> None:
        """Record an origination, requested at ``requested``, and lengthen the gap to the next."""
        if requested >= self.quiet_at():
            self._gap = self._settings.minimum
        else:
            self._gap = min(max(self._gap * 2, self._settings.minimum), self._settings.maximum)
        self._last = now
