"""Log lines at a limited rate: events that may occur a thousand times a second."""

from __future__ import annotations

import time
from collections.abc import Callable

INTERVAL = 60.0


class RateLimitedLog:
    """Writes an event at most once in ``INTERVAL`` seconds.

    ``suppressed`` in the next line counts the events not written since the last one.
    """

    def __init__(
        self,
        write: Callable[..., object],
        event: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._event = event
        self._clock = clock
        self._next = float("-inf")
        self._suppressed = 0

    def __call__(self, **fields: object) -> None:
        """Write the event with its fields, or count it."""
        now = self._clock()
        if now < self._next:
            self._suppressed += 1
            return
        self._next = now + INTERVAL
        if self._suppressed:
            fields["suppressed"] = self._suppressed
            self._suppressed = 0
        self._write(self._event, **fields)
