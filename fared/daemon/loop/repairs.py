"""Writes again what other programs delete, as soon as the kernel notifies it.

Reading the kernel's tables is rationed (``audit``), this is not: whoever deletes again and again
would otherwise have our routes away for longer and longer. It may take ``_SHARE`` of a processor,
beyond which what was deleted meanwhile is repaired together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from fared.paths.fib.model import ForeignChanges
from fared.router import events

_SHARE = 0.2
"""Of the time."""
_SAVED = 0.5
"""Seconds of work that are done at once, after a pause."""


class Repairs:
    """``take`` returns what was deleted or changed since; ``feed`` has it repaired."""

    def __init__(
        self,
        take: Callable[[], ForeignChanges | None],
        feed: Callable[[events.Input], None],
        work: Callable[[], float] = time.thread_time,
    ) -> None:
        self._take = take
        self._feed = feed
        self._work = work
        self._credit, self._at = _SAVED, 0.0
        self._timer: asyncio.TimerHandle | None = None

    def noticed(self) -> None:
        """Repair what was notified, now or when there is time for it."""
        if self._timer is None:
            self._repair()

    def stop(self) -> None:
        """Repair nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _repair(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        now, begun = loop.time(), self._work()
        self._credit = min(_SAVED, self._credit + (now - self._at) * _SHARE)
        self._at = now
        if self._credit > 0.0:
            changes = self._take()
            if changes is None:
                return
            self._feed(events.FibDamaged(changes))
            self._credit -= self._work() - begun
        # what has come meanwhile, or did not fit into this turn of the loop
        self._timer = loop.call_later(max(0.0, -self._credit / _SHARE), self._repair)
