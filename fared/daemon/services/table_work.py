"""The work at a table of nftables that is ours: one piece at a time, beside the event loop.

nft takes milliseconds, during which packets of neighbors must be processed. What another program
changes in the table is read and repaired at once; while it continues, after pauses of some times as
long as that takes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

_GAP, _LONGEST_GAP = 0.01, 5.0
"""Seconds from a change of others until it is read, and the longest pause, also after a failure."""
_PATIENCE = 4
"""A pause is so many times as long as the last reading or change took."""
_CALM = 10.0
"""Seconds for which a repair is followed by another reading, after a change of others."""


class TableWork:
    """The tasks of one table; ``audit`` begins to read it, ``unreadable`` logs why it failed."""

    def __init__(self, audit: Callable[[], None], unreadable: Callable[[str], None]) -> None:
        self.turn = asyncio.Lock()
        """Held while the table is read or written."""
        self.stopped = False
        self.unread = ""
        """Why the table could not be read."""
        self._audit = audit
        self._unreadable = unreadable
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._changing = False
        self._touched_at = self._begun = self._rests_until = 0.0

    @property
    def busy(self) -> bool:
        """Whether a change or a reading is in progress, or waits for its turn."""
        return bool(self._tasks)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin a change or a reading."""
        if self.stopped:
            work.close()
            return
        loop = asyncio.get_running_loop()
        if not self._tasks:
            self._begun = loop.time()
        task = loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        now = asyncio.get_running_loop().time()
        self._rests_until = now + min(_PATIENCE * (now - self._begun), _LONGEST_GAP)

    def look_soon(self) -> None:
        """Read soon, because something may have changed; but our own changes are known."""
        if self._changing or self._timer is not None or self.stopped:
            return
        loop = asyncio.get_running_loop()
        self._touched_at = now = loop.time()
        self._timer = loop.call_at(max(now + _GAP, self._rests_until), self._look)

    def _look(self) -> None:
        self._timer = None
        if self._tasks:
            self._timer = asyncio.get_running_loop().call_later(_GAP, self._look)
        else:
            self._audit()

    @contextlib.contextmanager
    def changing(self, discard: Callable[[], object]) -> Iterator[None]:
        """Change the table; ``discard`` takes the notifications of that at the end."""
        self._changing = True
        try:
            yield
        finally:
            discard()
            self._changing = False
            # What others changed during a repair was taken for our own change.
            if self._touched_at and asyncio.get_running_loop().time() - self._touched_at < _CALM:
                self.look_soon()

    def not_read(self, error: OSError) -> None:
        """Try again later; each error is logged once."""
        if words(error) != self.unread:
            self._unreadable(words(error))
        self.unread = words(error)
        if self._timer is None and not self.stopped:
            self._timer = asyncio.get_running_loop().call_later(_LONGEST_GAP, self._look)

    def stop(self) -> None:
        """Begin nothing any more."""
        self.stopped = True
        if self._timer is not None:
            self._timer.cancel()


def words(error: OSError) -> str:
    """Return what an error says, without its number."""
    return error.strerror or str(error)
