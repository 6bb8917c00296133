"""The work at a table of nftables that is ours: one piece at a time, beside the event loop.

nft takes milliseconds, during which packets of neighbors must be processed. What another program
changes in the table is read at once, or after pauses that double while it continues.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

_GAP, _LONGEST_GAP = 0.01, 5.0
"""Seconds between readings after changes of others, doubling."""
_CALM = 10.0
"""Seconds without such changes after which the gap is reset."""


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
        self._gap, self._touched_at = _GAP, 0.0

    @property
    def busy(self) -> bool:
        """Whether a change or a reading is in progress, or waits for its turn."""
        return bool(self._tasks)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin a change or a reading."""
        if self.stopped:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def look_soon(self) -> None:
        """Read soon, because something may have changed; but our own changes are known."""
        if self._changing or self._timer is not None or self.stopped:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._gap = _GAP if now - self._touched_at > _CALM else min(2 * self._gap, _LONGEST_GAP)
        self._touched_at = now
        self._timer = loop.call_later(self._gap, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._tasks:
            self._timer = asyncio.get_running_loop().call_later(self._gap, self._look)
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
