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
from fared.daemon.services.table_work import TableEvents, TableWork, words
from fared.kernel.spray import KernelSpray
from fared.paths.fib.spray import SprayOperation, SprayState, operations_between
from fared.router import events


class SprayWriter:
    """Applies, reads, watches and removes; ``feed`` receives the results."""

    def __init__(
        self,
        kernel: KernelSpray,
        feed: Callable[[events.Input], None],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        defence: Defence,
    ) -> None:
        self.kernel = kernel
        names = TableEvents("spray-not-read", "spray-not-removed")
        self._work = TableWork("spray", self._audited, names, feed=feed, log=log, defence=defence)
        self._work.watch(kernel.watch(self._work.changed_by_others))
        self.audit, self.look_soon = self._work.audit, self._work.look_soon

    @property
    def unread(self) -> str:
        """Why the kernel could not be read."""
        return self._work.unread

    def adopt(self) -> None:
        """Read what a former process left."""
        self._work.read(self._adopted)

    def apply(self, request: events.ApplySpray) -> None:
        """Execute a change, and answer."""
        self._work.change(
            lambda: self._applied(request.operations), events.SprayApplied("interrupted")
        )

    async def stop(self, *, remove: bool) -> None:
        """End after the change in progress; ``remove``: leave nothing in the kernel."""
        await self._work.end(self._removed if remove else None)

    async def _adopted(self) -> events.Input:
        return events.SprayAdopted(await self._state())

    async def _audited(self) -> events.Input:
        return events.SprayAudited(await self._state())

    async def _applied(self, operations: Sequence[SprayOperation]) -> events.Input:
        error, state = await self._work.execute(self._write(operations)), None
        if error:
            with contextlib.suppress(OSError):
                state = await self._state()
        return events.SprayApplied(error, state)

    async def _removed(self) -> str:
        try:
            state = await self._state()
        except OSError as error:
            return words(error)
        return await self._work.execute(self._write(operations_between(state, SprayState())))

    async def _state(self) -> SprayState:
        found, self.kernel.counted = await asyncio.to_thread(self.kernel.nft.read)
        return self.kernel.join(found)

    async def _write(self, operations: Sequence[SprayOperation]) -> list[str]:
        """Return what was refused. Raises OSError."""
        try:
            refused = self.kernel.begin(operations)
            await asyncio.to_thread(self.kernel.nft.apply, operations)
            return refused + self.kernel.end(operations)
        except OSError:
            # What is in nftables may be wrong for the present routes.
            with contextlib.suppress(OSError):
                self.kernel.lift()
            raise
