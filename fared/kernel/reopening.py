"""Retries opening the sockets of an interface until it works or the interface is closed.

The engine opens an interface once, when it comes up. If descriptors or memory are short at that
moment, it would not try again until the link goes down and up.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable

FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0
"""Seconds before the first retry; the delay doubles up to the maximum."""
_FOR_GOOD = frozenset((errno.EPROTONOSUPPORT,))

Report = Callable[[int, OSError | None], None]
"""``(ifindex, error)``: the first attempt failed; ``(ifindex, None)``: a retry succeeded."""


class Reopening:
    """The interfaces whose sockets could not be opened; ``attempt`` is called to retry each."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, attempt: Callable[[int], None], report: Report
    ) -> None:
        self._loop = loop
        self._attempt = attempt
        self._report = report
        self._delays: dict[int, float] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def failed(self, ifindex: int, error: OSError) -> None:
        """Record a failed attempt; schedule the next unless the error is permanent."""
        delay = self._delays.get(ifindex)
        if delay is None:
            self._report(ifindex, error)
        if error.errno in _FOR_GOOD:
            return
        self._stop_timer(ifindex)
        delay = FIRST_DELAY if delay is None else min(delay * 2, LONGEST_DELAY)
        self._delays[ifindex] = delay
        self._timers[ifindex] = self._loop.call_later(delay, self._attempt, ifindex)

    def opened(self, ifindex: int) -> None:
        """Record a successful attempt."""
        if ifindex in self._delays:
            self.forget(ifindex)
            self._report(ifindex, None)

    def forget(self, ifindex: int) -> None:
        """Stop the attempts for a closed interface."""
        self._delays.pop(ifindex, None)
        self._stop_timer(ifindex)

    def forget_all(self) -> None:
        """Stop the attempts for all interfaces."""
        for ifindex in list(self._delays):
            self.forget(ifindex)

    def _stop_timer(self, ifindex: int) -> None:
        timer = self._timers.pop(ifindex, None)
        if timer is not None:
            timer.cancel()


def ignore(_ifindex: int, _error: OSError | None) -> None:
    """Report nothing."""
