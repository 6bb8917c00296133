"""When LSAs are refreshed or reach MaxAge: one timer for all that are due within the same second.

RFC 2328 §14 increments ages by the second, so none of these times needs to be more exact, and a
timer for each LSA would take more memory than a small LSA.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from fared.core.timers import Timer, TimerQueue
from fared.ospf.lsdb import LsaEntry


class _Second(msgspec.Struct):
    """The LSAs that are due in one second."""

    timer: Timer
    entries: dict[LsaEntry, None] = msgspec.field(default_factory=dict)


class Aging:
    """Calls ``due`` for each LSA, up to a second late."""

    __slots__ = ("_due", "_seconds", "_timers")

    def __init__(self, timers: TimerQueue, due: Callable[[LsaEntry], None]) -> None:
        self._timers = timers
        self._due = due
        self._seconds: dict[int, _Second] = {}

    def arm(self, entry: LsaEntry, deadline: float) -> None:
        """Await the deadline of an LSA."""
        at = entry.due_second = math.ceil(deadline)
        second = self._seconds.get(at)
        if second is None:
            timer = self._timers.arm(float(at), lambda: self._fire(at))
            second = self._seconds[at] = _Second(timer)
        second.entries[entry] = None

    def cancel(self, entry: LsaEntry) -> None:
        """No longer await the deadline of an LSA."""
        second = self._seconds.get(entry.due_second)
        if second is None or entry not in second.entries:
            return
        del second.entries[entry]
        if not second.entries:
            self._timers.cancel(second.timer)
            del self._seconds[entry.due_second]

    def _fire(self, at: int) -> None:
        second = self._seconds.pop(at)
        for entry in second.entries:
            if entry.current:
                self._due(entry)
