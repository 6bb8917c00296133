"""Periodic jobs, in few wakeups.

A job may run a little early: with another job, or when the router has fired a timer. So a daemon
with a hello interval of one second wakes up once for its hellos and for all jobs.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial

from fared.core.timers import Timer, TimerQueue
from fared.daemon.loop.defence import Guard

EARLY = 0.1
"""Part of its interval by which a job may run early."""
_ROUNDING = 1e-6
"""Part of an interval by which a timer may fire early: its clock has a resolution."""


class Periodic:
    """Runs jobs by name, each in a guard of its own."""

    def __init__(self, guard: Callable[[str], Guard]) -> None:
        self._loop = asyncio.get_running_loop()
        self._make_guard = guard
        self._queue = TimerQueue()
        self._timers: dict[str, Timer] = {}
        self._handle: asyncio.TimerHandle | None = None
        self._now = 0.0
        """The time of the present wakeup."""

    def every(self, interval: float, name: str, action: Callable[[], None]) -> None:
        """Run a job every ``interval`` seconds from now on, in place of one of the same name."""
        self._queue.cancel(self._timers.get(name))
        guard = self._make_guard(name)

        def run() -> None:
            now = self._now
            begun = min(now, self._timers[name].deadline)
            missed = math.floor((now - begun) / interval + _ROUNDING)
            arm(begun + (missed + 1) * interval)
            with guard:
                action()

        def arm(due: float) -> None:
            self._timers[name] = self._queue.arm(due, run, due - EARLY * interval)

        arm(self._loop.time() + interval)
        self._wait()

    def due(self, name: str) -> float:
        """Return when a job runs next at the latest."""
        return self._timers[name].deadline

    def share(self, now: float) -> None:
        """Run the jobs that may run at ``now``, when the loop woke up.

        Hellos and jobs that ran in one wakeup count their intervals from the same time. If jobs
        counted from a moment later, the earliest next hello would come just before they may run,
        and they would have wakeups of their own until both meet again.
        """
        self._now = now
        if self._queue.fire_early(now):
            self._wait()

    def stop(self) -> None:
        """Cancel all jobs."""
        self._queue.clear()
        self._wait()

    def _wait(self) -> None:
        """Keep one timer of the loop, at the next deadline."""
        due = self._queue.next_deadline()
        if self._handle is not None:
            if self._handle.when() == due:
                return
            self._handle.cancel()
        self._handle = None if due is None else self._loop.call_at(due, partial(self._fire, due))

    def _fire(self, due: float) -> None:
        self._handle = None
        self._now = max(due, self._loop.time())
        self._queue.fire(self._now)
        self._wait()
