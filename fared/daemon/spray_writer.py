"""Executes the operations of sprayed packets, one change at a time, beside the event loop.

nft takes milliseconds, during which packets of neighbors must be processed. Rules and routes are
written in the loop, because they use the socket whose echoes the monitor ignores. What another
program changes is read at once, or after pauses that double while it continues.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from fared.daemon.defence import Defence
from fared.fib.spray import SprayOperation, SprayState, operations_between
from fared.kernel.spray import KernelSpray
from fared.router import events

_GAP, _LONGEST_GAP = 0.01, 5.0
"""Seconds between readings after changes of others, doubling."""
_CALM = 10.0
"""Seconds without such changes after which the gap is reset."""


class SprayWriter:
    """Applies, reads and removes; ``feed`` receives the results."""

    def __init__(
        self,
        kernel: KernelSpray,
        feed: Callable[[events.Input], None],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        defence: Defence,
    ) -> None:
        self.kernel = kernel
        self._feed = feed
        self._log = log
        self._defence = defence
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = self._changing = False
        self._watch = kernel.watch(self.look_soon)
        self._timer: asyncio.TimerHandle | None = None
        self.unread = ""
        """Why the kernel could not be read."""
        self._gap = _GAP
        self._touched_at = 0.0

    def adopt(self) -> None:
        """Read what a former process left, and watch from now on."""
        self._watch.start()
        self._begin(self._read(events.SprayAdopted))

    def audit(self) -> None:
        """Read again, unless a change or another reading is in progress."""
        if not self._tasks:
            self._begin(self._read(events.SprayAudited))

    def look_soon(self) -> None:
        """Read soon, because something may have changed; but our own changes are known."""
        if self._changing or self._timer is not None or self._stopped:
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._gap = _GAP if now - self._touched_at > _CALM else min(2 * self._gap, _LONGEST_GAP)
        self._touched_at = now
        self._timer = loop.call_later(self._gap, self._look)

    def _look_again(self) -> None:
        """Read after a repair: what others changed during it was taken for our own change."""
        if self._touched_at and asyncio.get_running_loop().time() - self._touched_at < _CALM:
            self.look_soon()

    def _look(self) -> None:
        self._timer = None
        if self._tasks:
            self._timer = asyncio.get_running_loop().call_later(self._gap, self._look)
        else:
            self.audit()

    def apply(self, request: events.ApplySpray) -> None:
        """Execute a change, and answer."""
        self._begin(self._apply(request.operations))

    def _begin(self, work: Any) -> None:  # noqa: ANN401 - a coroutine
        if self._stopped:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self, report: Callable[[SprayState], events.Input]) -> None:
        with self._defence.guard("spray"):
            async with self._turn:
                try:
                    state = await self._state()
                except OSError as error:
                    self._not_read(_words(error))
                    return
                self.unread = ""
            self._feed(report(state))

    def _not_read(self, error: str) -> None:
        """Try again later; each error is logged once."""
        if error != self.unread:
            self._log.warning("spray-not-read", error=error)
        self.unread = error
        if self._timer is None and not self._stopped:
            self._timer = asyncio.get_running_loop().call_later(_LONGEST_GAP, self._look)

    async def _state(self) -> SprayState:
        found, self.kernel.counted = await asyncio.to_thread(self.kernel.nft.read)
        return self.kernel.join(found)

    async def _apply(self, operations: Sequence[SprayOperation]) -> None:
        error, state = "interrupted", None
        try:
            with self._defence.guard("spray"):
                async with self._turn:
                    error = await self._execute(operations)
                    if error:
                        state = await self._state_if_known()
        finally:
            self._feed(events.SprayApplied(error, state))

    async def _execute(self, operations: Sequence[SprayOperation]) -> str:
        """Return what was refused."""
        self._changing = True
        try:
            refused = self.kernel.begin(operations)
            await asyncio.to_thread(self.kernel.nft.apply, operations)
            refused += self.kernel.end(operations)
        except OSError as error:
            # What is in nftables may be wrong for the present routes.
            with contextlib.suppress(OSError):
                self.kernel.lift()
            return _words(error)
        finally:
            self._watch.discard()
            self._changing = False
            self._look_again()
        return refused[0] if refused else ""

    async def _state_if_known(self) -> SprayState | None:
        try:
            return await self._state()
        except OSError:
            return None

    async def stop(self, *, remove: bool) -> None:
        """End after the change in progress; ``remove``: leave nothing in the kernel."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self._watch.close()
        async with self._turn:
            if not remove:
                return
            try:
                state = await self._state()
                error = await self._execute(operations_between(state, SprayState()))
            except OSError as failure:
                error = _words(failure)
        if error:
            self._log.warning("spray-not-removed", error=error)


def _words(error: OSError) -> str:
    return error.strerror or str(error)
