"""When a neighbor is told of a route of which only the bandwidth is another (RFC 10005 §7.2).

A change below the threshold waits, and so do changes beyond the budget: a bandwidth multiplies by
prefixes, neighbors and hops. What waits is looked at again each second; every ten seconds
small changes are told, too. Losses, and routes that carry nothing any more, do not come here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fared.core.timers import Timer, TimerQueue
from fared.paths.te.advertise import AdvertiseSettings, damped
from fared.paths.te.budget import AnnounceBudget

_AGAIN: Final = 1.0
"""Seconds until what waits is looked at again."""
_STABLE: Final = 10
"""So many looks later, small changes are told, too."""


class NeighborBudget(AnnounceBudget):
    """The announcements of one neighbor: they are not shared, since it alone receives them."""

    def share(self, now: float) -> float:
        """Return how many announcements a second may be made."""
        del now
        return self.budget


class AnnouncePacing:
    """Decides for one neighbor; ``again`` looks at what waits."""

    def __init__(
        self,
        timers: TimerQueue,
        now: Callable[[], float],
        settings: Callable[[], AdvertiseSettings],
        again: Callable[[], bool],
    ) -> None:
        """``again`` returns whether anything waits."""
        self._timers, self._now, self._settings, self._again = timers, now, settings, again
        rules = settings()
        self.budget = NeighborBudget(rules.budget, rules.path_threshold)
        self._timer: Timer | None = None
        self._looks = 0
        self._exact_until = 0.0

    def announces(self, old: float | None, new: float | None) -> bool:
        """Whether to tell a bandwidth now instead of another, both bytes/s, None for none."""
        rules, now, budget = self._settings(), self._now(), self.budget
        small = None not in (old, new) and damped(old, new, rules) != new
        if small and now >= self._exact_until:
            return self._wait(now)
        budget.budget = rules.budget
        budget.advance(now)
        if not budget.ready:
            return self._wait(now)
        budget.spend()
        return True

    def stop(self) -> None:
        """The session is down."""
        self._timers.cancel(self._timer)

    def _wait(self, now: float) -> bool:
        if self._timer is None or not self._timer.active:
            self._timer = self._timers.arm(now + _AGAIN, self._look)
        return False

    def _look(self) -> None:
        self._looks += 1
        if self._looks >= _STABLE:
            self._exact_until = self._now() + _AGAIN / 2
        if not self._again() or self._looks >= _STABLE:
            self._looks = 0
