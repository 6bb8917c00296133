"""Executes the operations of sprayed packets, one change at a time, beside the event loop.

Rules and routes are written in the loop, because they use the socket whose echoes the monitor
ignores; nft runs beside it (``table_work``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from fared.daemon.loop.defence import Defence
from fared.daemon.services.table_work import TableWork, words
from fared.kernel.spray import KernelSpray
from fared.paths.fib.spray import SprayOperation, SprayState, operations_between
from fared.router import events


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
        self._work = TableWork(self.audit, self._not_read)
        self._watch = kernel.watch(self.look_soon)

    @property
    def unread(self) -> str:
        """Why the kernel could not be read."""
        return self._work.unread

    def adopt(self) -> None:
        """Read what a former process left, and watch from now on."""
        self._watch.start()
        self._work.begin(self._read(events.SprayAdopted))

    def audit(self) -> None:
        """Read again, unless a change or another reading is in progress."""
        if not self._work.busy:
            self._work.begin(self._read(events.SprayAudited))

    def look_soon(self) -> None:
        """Read soon, because something may have changed; but our own changes are known."""
        self._work.look_soon()

    def apply(self, request: events.ApplySpray) -> None:
        """Execute a change, and answer."""
        self._work.begin(self._apply(request.operations))

    async def _read(self, report: Callable[[SprayState], events.Input]) -> None:
        with self._defence.guard("spray"):
            async with self._work.turn:
                try:
                    state = await self._state()
                except OSError as error:
                    self._work.not_read(error)
                    return
                self._work.unread = ""
            self._feed(report(state))

    async def _state(self) -> SprayState:
        found, self.kernel.counted = await asyncio.to_thread(self.kernel.nft.read)
        return self.kernel.join(found)

    async def _apply(self, operations: Sequence[SprayOperation]) -> None:
        error, state = "interrupted", None
        try:
            with self._defence.guard("spray"):
                async with self._work.turn:
                    error = await self._execute(operations)
                    if error:
                        state = await self._state_if_known()
        finally:
            self._feed(events.SprayApplied(error, state))

    async def _execute(self, operations: Sequence[SprayOperation]) -> str:
        """Return what was refused."""
        with self._work.changing(self._watch.discard):
            try:
                refused = self.kernel.begin(operations)
                await asyncio.to_thread(self.kernel.nft.apply, operations)
                refused += self.kernel.end(operations)
            except OSError as error:
                # What is in nftables may be wrong for the present routes.
                with contextlib.suppress(OSError):
                    self.kernel.lift()
                return words(error)
        return refused[0] if refused else ""

    async def _state_if_known(self) -> SprayState | None:
        try:
            return await self._state()
        except OSError:
            return None

    def _not_read(self, error: str) -> None:
        self._log.warning("spray-not-read", error=error)

    async def stop(self, *, remove: bool) -> None:
        """End after the change in progress; ``remove``: leave nothing in the kernel."""
        self._work.stop()
        self._watch.close()
        async with self._work.turn:
            if not remove:
                return
            try:
                state = await self._state()
                error = await self._execute(operations_between(state, SprayState()))
            except OSError as failure:
                error = words(failure)
        if error:
            self._log.warning("spray-not-removed", error=error)
