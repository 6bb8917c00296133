"""SPF back-off delay algorithm (RFC 8405): fast on a lone event, patient in a storm.

A finite state machine of QUIET, SHORT_WAIT and LONG_WAIT. It owns no clock: every method takes
``now`` and deadlines are read from ``next_deadline``.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackoffSettings:
    """The parameters of RFC 8405 §4, in seconds."""

    initial_delay: float = 0.0
    short_delay: float = 0.05
    long_delay: float = 0.2
    holddown: float = 2.0
    time_to_learn: float = 0.5


class BackoffState(enum.Enum):
    """States of RFC 8405 §5.1."""

    QUIET = "quiet"
    SHORT_WAIT = "short-wait"
    LONG_WAIT = "long-wait"


class SpfBackoff:
    """Decides when the next SPF runs. ``due`` is true once a scheduled run has come up."""

    def __init__(self, settings: BackoffSettings) -> None:
        self.settings = settings
        self.state = BackoffState.QUIET
        self.spf_at: float | None = None
        self._learn_until: float | None = None
        self._holddown_until: float | None = None

    def event(self, now: float) -> None:
        """An IGP event happened: schedule a run unless one is pending (RFC 8405 §5.3)."""
        self._expire(now)
        if self.state is BackoffState.QUIET:
            self._schedule(now, self.settings.initial_delay)
            self._learn_until = now + self.settings.time_to_learn
            self.state = BackoffState.SHORT_WAIT
        elif self.state is BackoffState.SHORT_WAIT:
            self._schedule(now, self.settings.short_delay)
        else:
            self._schedule(now, self.settings.long_delay)
        self._holddown_until = now + self.settings.holddown

    def urgent(self, now: float, not_before: float = 0.0) -> None:
        """A loss that must not wait: run at once, or at ``not_before``, whatever the state."""
        self.event(now)
        at = max(now, not_before)
        self.spf_at = at if self.spf_at is None else min(self.spf_at, at)

    def due(self, now: float) -> bool:
        """Whether a run is to happen now; the caller runs it and calls ``ran``."""
        self._expire(now)
        return self.spf_at is not None and self.spf_at <= now

    def ran(self) -> None:
        """The pending run has happened."""
        self.spf_at = None

    def next_deadline(self) -> float | None:
        """When ``due`` next needs asking: the pending run. State timers need no wake-up."""
        return self.spf_at

    def _schedule(self, now: float, delay: float) -> None:
        if self.spf_at is None:
            self.spf_at = now + delay

    def _expire(self, now: float) -> None:
        """LEARN_TIMER and HOLDDOWN_TIMER, looked at lazily (RFC 8405 §5.3, events 2 and 3)."""
        if self._holddown_until is not None and now >= self._holddown_until:
            self.state = BackoffState.QUIET
            self._learn_until = self._holddown_until = None
        elif (
            self.state is BackoffState.SHORT_WAIT
            and self._learn_until is not None
            and now >= self._learn_until
        ):
            self.state = BackoffState.LONG_WAIT
            self._learn_until = None
