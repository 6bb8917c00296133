"""SPF back-off delay algorithm (RFC 8405): a single event runs SPF at once, a series of them later.

``router.schedule`` reports IGP events and runs SPF when ``due`` is true. The state machine has the
states QUIET, SHORT_WAIT and LONG_WAIT and no clock: every method takes ``now``, and
``next_deadline`` returns when to call ``due``. Times are seconds.
"""

from __future__ import annotations

import enum

import msgspec


class BackoffSettings(msgspec.Struct, frozen=True):
    """The parameters of RFC 8405 §3, in seconds."""

    initial_delay: float = 0.0
    short_delay: float = 0.05
    long_delay: float = 0.2
    holddown: float = 2.0
    time_to_learn: float = 0.5


class BackoffState(enum.Enum):
    """States of RFC 8405 §5."""

    QUIET = "quiet"
    SHORT_WAIT = "short-wait"
    LONG_WAIT = "long-wait"


class SpfBackoff:
    """Decides when the next SPF runs; ``due`` is true from then on until ``ran``."""

    def __init__(self, settings: BackoffSettings) -> None:
        self.settings = settings
        self.state = BackoffState.QUIET
        self.spf_at: float | None = None
        self._learn_until: float | None = None
        self._holddown_until: float | None = None

    def event(self, now: float) -> None:
        """Schedule a run for an IGP event unless one is pending (RFC 8405 §5)."""
        self._expire(now)
        # RFC 8405 §5, transition 1
        if self.state is BackoffState.QUIET:
            self._schedule(now, self.settings.initial_delay)
            self._learn_until = now + self.settings.time_to_learn
            self.state = BackoffState.SHORT_WAIT
        # transition 2
        elif self.state is BackoffState.SHORT_WAIT:
            self._schedule(now, self.settings.short_delay)
        # transition 4
        else:
            self._schedule(now, self.settings.long_delay)
        # transitions 1, 2 and 4: reset HOLDDOWN_TIMER
        self._holddown_until = now + self.settings.holddown

    def urgent(self, now: float, not_before: float = 0.0) -> None:
        """Schedule a run for a loss: now, or at ``not_before``, in any state."""
        # Not in RFC 8405: the state changes as with any event, only SPF_TIMER ends earlier.
        self.event(now)
        at = max(now, not_before)
        self.spf_at = at if self.spf_at is None else min(self.spf_at, at)

    def due(self, now: float) -> bool:
        """Whether a run is due; the caller runs SPF and calls ``ran``."""
        self._expire(now)
        return self.spf_at is not None and self.spf_at <= now

    def ran(self) -> None:
        """Record that the pending run has been made."""
        self.spf_at = None

    def next_deadline(self) -> float | None:
        """Return when the pending run is due. The state timers need no wake-up."""
        return self.spf_at

    def _schedule(self, now: float, delay: float) -> None:
        # transitions 1, 2 and 4: a running SPF_TIMER is left as it is
        if self.spf_at is None:
            self.spf_at = now + delay

    def _expire(self, now: float) -> None:
        """Let LEARN_TIMER and HOLDDOWN_TIMER expire, lazily (RFC 8405 §5)."""
        # transitions 5 and 6; HOLDDOWN_TIMER comes first, since both end in QUIET
        if self._holddown_until is not None and now >= self._holddown_until:
            self.state = BackoffState.QUIET
            self._learn_until = self._holddown_until = None
        # transition 3
        elif (
            self.state is BackoffState.SHORT_WAIT
            and self._learn_until is not None
            and now >= self._learn_until
        ):
            self.state = BackoffState.LONG_WAIT
            self._learn_until = None
