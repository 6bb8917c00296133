"""The work at a table of nftables that is ours: one piece at a time, beside the event loop.

nft takes milliseconds, during which packets of neighbors must be processed. What another program
changes in the table is read and repaired at once; while it continues, after pauses of some times as
long as that takes, as routes are (``loop.audit``). Spraying and BIER say how their table is read
and changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, Protocol

from fared.daemon.loop.audit import GAP, PATIENCE
from fared.daemon.loop.defence import Defence
from fared.router import events

_LONGEST_GAP = 5.0
"""Seconds of the longest pause until the table is read again, also after a failure."""


class TableWatch(Protocol):
    """Notifications of changes that others make."""

    def start(self) -> None:
        """Report from now on."""

    def close(self) -> None:
        """Stop."""

    def settle(self) -> None:
        """Report what has changed until now, after a change of our own."""


class TableEvents(NamedTuple):
    """The names of events in the log."""

    not_read: str
    not_removed: str


class TableWork:
    """The tasks of one table, whose results go to ``feed``; ``where`` names them in the log.

    ``reading`` reads the table for ``audit``, and may raise OSError.
    """

    def __init__(
        self,
        where: str,
        reading: Callable[[], Awaitable[events.Input]],
        names: TableEvents,
        *,
        feed: Callable[[events.Input], None],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        defence: Defence,
    ) -> None:
        self.stopped = False
        self.unread = ""
        """Why the table could not be read."""
        self.disturbed = False
        """Whether others have changed the table since a reading began."""
        self._where, self._reading, self._names = where, reading, names
        self._feed, self._log, self._defence = feed, log, defence
        self._turn = asyncio.Lock()
        """Held while the table is read or written."""
        self._watch: TableWatch | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._begun = self._rests_until = 0.0

    @property
    def busy(self) -> bool:
        """Whether a change or a reading is in progress, or waits for its turn."""
        return bool(self._tasks)

    def watch(self, watch: TableWatch) -> None:
        """Watch the table from now on; ``changed_by_others`` is called with each change."""
        self._watch = watch
        watch.start()

    def audit(self) -> None:
        """Read the table, unless a change or another reading is in progress."""
        if not self._tasks:
            self.read(self._reading)

    def read(
        self, reading: Callable[[], Awaitable[events.Input]], otherwise: events.Input | None = None
    ) -> None:
        """Begin a reading, and feed its result, or ``otherwise`` if the table cannot be read."""
        self._begin(self._read(reading, otherwise))

    def change(
        self, changing: Callable[[], Awaitable[events.Input]], interrupted: events.Input
    ) -> None:
        """Begin a change, and feed its result, or ``interrupted``: it is answered in any case."""
        self._begin(self._change(changing, interrupted))

    def remove(self, removing: Callable[[], Awaitable[str]]) -> None:
        """Begin to remove the table."""
        self._begin(self._remove(removing))

    async def end(self, removing: Callable[[], Awaitable[str]] | None) -> None:
        """Begin nothing any more; after the change in progress remove the table, if wanted."""
        self.stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.close()
        await self._remove(removing)

    def changed_by_others(self) -> None:
        """Read soon, also if that was during a change of our own, which may not have undone it."""
        self.disturbed = True
        self.look_soon()

    def look_soon(self) -> None:
        """Read soon, because something may have changed."""
        if self._timer is not None or self.stopped:
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(max(loop.time() + GAP, self._rests_until), self._look)

    async def execute(self, work: Awaitable[list[str] | None]) -> str:
        """Change the table, in its turn; return what was refused, when ``disturbed`` is known."""
        try:
            refused = await work
        except OSError as error:
            return words(error)
        finally:
            if self._watch is not None:
                self._watch.settle()
        return refused[0] if refused else ""

    # -- tasks ----------------------------------------------------------------------------------

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
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
        self._rests_until = now + min(PATIENCE * (now - self._begun), _LONGEST_GAP)

    async def _read(
        self, reading: Callable[[], Awaitable[events.Input]], otherwise: events.Input | None
    ) -> None:
        with self._defence.guard(self._where):
            async with self._turn:
                self.disturbed = False
                try:
                    found: events.Input | None = await reading()
                    self.unread = ""
                except OSError as error:
                    found, self.disturbed = otherwise, True
                    self._not_read(words(error))
            if found is not None:
                self._feed(found)

    async def _change(
        self, changing: Callable[[], Awaitable[events.Input]], answer: events.Input
    ) -> None:
        try:
            with self._defence.guard(self._where):
                async with self._turn:
                    answer = await changing()
        finally:
            self._feed(answer)

    async def _remove(self, removing: Callable[[], Awaitable[str]] | None) -> None:
        with self._defence.guard(self._where):
            async with self._turn:
                error = "" if removing is None else await removing()
            if error:
                self._log.warning(self._names.not_removed, error=error)

    def _not_read(self, error: str) -> None:
        """Try again later; each error is logged once."""
        if error != self.unread:
            self._log.warning(self._names.not_read, error=error)
        self.unread = error
        if self._timer is None and not self.stopped:
            self._timer = asyncio.get_running_loop().call_later(_LONGEST_GAP, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._tasks:
            self._timer = asyncio.get_running_loop().call_later(GAP, self._look)
        else:
            self.audit()


def words(error: OSError) -> str:
    """Return what an error says, without its number."""
    return error.strerror or str(error)
