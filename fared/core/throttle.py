"""Exponential back-off of originating one LSA or LSP.

RFC 2328's fixed MinLSInterval of 5 s makes the second of two failures wait. Here the first
origination is free and the gaps then double up to the configured maximum, so single events are
flooded at once and a flapping link still costs a bounded number of LSAs. Events a second apart
are single events; a link that flaps faster has to be quiet for twice the gap it has earned.
"""

from __future__ import annotations

from dataclasses import dataclass

ADJACENCY_SOON = 0.5
"""Seconds within which a link that came up mostly has a full adjacency.

What is said of it before that would use up the free origination just before the news that matters.
"""


@dataclass(frozen=True, slots=True)
class ThrottleSettings:
    """How gaps grow, in seconds: the first origination is free, then they double.

    RFC 2328's fixed MinLSInterval of 5 s is what makes repeated flaps slow; the long-term rate
    stays bounded by ``maximum``. Quiet for ``reset`` seconds, and for twice the present gap,
    returns to a free first origination.
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
        """Go on under other settings."""
        self._settings = settings

    def _quiet(self, requested: float) -> bool:
        return requested >= self.quiet_at()

    def quiet_at(self) -> float:
        """From when on this is no different from a new one."""
        if self._last is None:
            return float("-inf")
        return self._last + max(self._settings.reset, 2 * self._gap)

    def due(self, requested: float) -> float:
        """When an origination asked for at ``requested`` may go out."""
        if self._last is None or self._quiet(requested):
            return requested + self._settings.initial
        return self._last + self._gap

    def sent(self, requested: float, now: float) -> None:
        """Note an origination, asked for at ``requested``, and lengthen the gap to the next."""
        if self._quiet(requested):
            self._gap = self._settings.minimum
        else:
            self._gap = min(max(self._gap * 2, self._settings.minimum), self._settings.maximum)
        self._last = now
