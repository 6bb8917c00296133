"""When LSAs are refreshed or reach MaxAge: one timer for all that are due within the same second.

RFC 2328 §14 increments ages by the second, so none of these times needs to be more exact, and a
timer for each LSA would take more memory than a small LSA.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from fared.core.timers import BoundAction, Timer, TimerQueue
from fared.protocols.ospf.lsdb import LsaEntry

_KEPT_OF = 4
"""One cancelled LSA of so many may stay in its list."""


class _Second(msgspec.Struct):
    """The LSAs that are due in one second, and how many of them have been cancelled."""

    at: int
    timer: Timer
    entries: list[LsaEntry] = msgspec.field(default_factory=list)
    cancelled: int = 0


class Aging:
    """Calls ``due`` for each LSA, up to a second late."""

    __slots__ = ("_due", "_seconds", "_timers")

    def __init__(self, timers: TimerQueue, due: Callable[[LsaEntry], None]) -> None:
        self._timers = timers
        self._due = due
        self._seconds: dict[int, _Second] = {}

    def arm(self, entry: LsaEntry, deadline: float) -> None:
        """Await the deadline of an LSA."""
        at = math.ceil(deadline)
        second = self._seconds.get(at)
        if second is None:
            timer = self._timers.arm(float(at), BoundAction(Aging._fire, self, at))
            second = self._seconds[at] = _Second(at, timer)
        entry.due_second = second.at  # one object for all of its LSAs
        second.entries.append(entry)

    def cancel(self, entry: LsaEntry) -> None:
        """No longer await the deadline of an LSA."""
        second = self._seconds.get(entry.due_second)
        if second is None:
            return
        entry.due_second = 0
        second.cancelled += 1
        if second.cancelled == len(second.entries):
            self._timers.cancel(second.timer)
            del self._seconds[second.at]
        elif second.cancelled * _KEPT_OF > len(second.entries):
            second.entries = [entry for entry in second.entries if entry.due_second == second.at]
            second.cancelled = 0

    def _fire(self, at: int) -> None:
        second = self._seconds.pop(at)
        due = [entry for entry in second.entries if entry.due_second == at]
        for entry in due:
            entry.due_second = 0
        for entry in due:
            if entry.current:
                self._due(entry)
