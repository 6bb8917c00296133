"""BIER between router and kernel; where nft is missing, this process forwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from fared.daemon.loop.defence import Defence
from fared.daemon.services.table_work import TableWork, words
from fared.kernel.bier import KernelBier, open_bier
from fared.kernel.bier_table import TABLE, CounterValue
from fared.kernel.bier_user import UserBier
from fared.kernel.nft_watch import NftWatch
from fared.router import events

if TYPE_CHECKING:
    from fared.kernel.bier_php import HeaderPopper
    from fared.paths.fib.bier import BierFib


class BierService:
    """Executes ``ApplyBier``; ``feed`` receives the answers."""

    def __init__(
        self,
        feed: Callable[[events.Input], None],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        defence: Defence,
    ) -> None:
        self._feed = feed
        self._log = log
        self._defence = defence
        self._kernel: KernelBier | None = None
        self._user: UserBier | None = None
        self._popper: HeaderPopper | None = None
        self._watch: NftWatch | None = None
        self._work = TableWork(self.audit, self._not_read)

    @property
    def problem(self) -> str:
        """Why the table could not be read."""
        return self._work.unread

    def start(self) -> None:
        """Adopt what a former process left, and watch from now on."""
        self._kernel = open_bier()
        if self._kernel is None:
            self._user = UserBier()
            reason = "nft is missing: install nftables"
            self._log.warning("bier-forwarded-by-the-process", reason=reason)
            self._feed(events.BierAdopted())
            return
        self._watch = NftWatch(self._work.look_soon, TABLE)
        self._watch.start()
        self._work.begin(self._adopt(self._kernel))

    def clear(self) -> None:
        """Remove what a former process left: this one runs no BIER."""
        kernel = open_bier()
        if kernel is not None:
            self._work.begin(self._clear(kernel))

    async def _clear(self, kernel: KernelBier) -> None:
        with self._defence.guard("bier"):
            error = await self._execute(asyncio.to_thread(kernel.remove))
            if error:
                self._log.warning("bier-not-removed", error=error)

    @property
    def counted(self) -> Mapping[str, CounterValue]:
        """Packets and bytes of each counter at the last reading; another one follows."""
        if self._user is not None:
            return self._user.counted
        if self._kernel is None:
            return {}
        self.audit()
        return self._kernel.counted

    def apply(self, request: events.ApplyBier) -> None:
        """Execute a change, and answer."""
        self._pop(request.fib)
        if self._kernel is not None:
            self._work.begin(self._apply(self._kernel, request))
        elif self._user is not None and not self._work.stopped:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._feed, events.BierApplied(self._rewrite(self._user, request)))

    def _pop(self, fib: BierFib) -> None:
        if self._work.stopped or not (fib.popped or self._popper):
            return
        if self._popper is None:
            # Not needed unless hosts are to get payloads without header.
            from fared.kernel.bier_php import HeaderPopper  # noqa: PLC0415

            self._popper = HeaderPopper()
        try:
            self._popper.serve(fib)
        except OSError as error:
            self._log.warning("bier-headers-not-popped", error=words(error))

    def _rewrite(self, user: UserBier, request: events.ApplyBier) -> str:
        """Return what was refused."""
        try:
            user.write(request.fib)
        except OSError as error:
            return words(error)
        return ""

    @property
    def by_process(self) -> bool:
        """Whether this process forwards, since nft is missing."""
        return self._user is not None

    def audit(self) -> None:
        """Read the table, unless a change or another reading is in progress."""
        if self._kernel is not None and not self._work.busy:
            self._work.begin(self._audit(self._kernel))

    def look_soon(self) -> None:
        """Read soon, because something may have changed."""
        self._work.look_soon()

    async def _adopt(self, kernel: KernelBier) -> None:
        with self._defence.guard("bier"):
            highest = 0
            async with self._work.turn:
                try:
                    highest = await asyncio.to_thread(kernel.adopt)
                except OSError as error:
                    self._work.not_read(error)
            self._feed(events.BierAdopted(highest))

    async def _audit(self, kernel: KernelBier) -> None:
        with self._defence.guard("bier"):
            async with self._work.turn:
                try:
                    intact = await asyncio.to_thread(kernel.intact)
                except OSError as error:
                    self._work.not_read(error)
                    return
                self._work.unread = ""
            self._feed(events.BierAudited(intact))

    async def _apply(self, kernel: KernelBier, request: events.ApplyBier) -> None:
        error = "interrupted"
        try:
            with self._defence.guard("bier"):
                async with self._work.turn:
                    error = await self._execute(asyncio.to_thread(kernel.write, request.fib))
        finally:
            self._feed(events.BierApplied(error))

    async def _execute(self, work: Awaitable[None]) -> str:
        """Return what was refused."""
        with self._work.changing(self._discard):
            try:
                await work
            except OSError as error:
                return words(error)
        return ""

    def _discard(self) -> None:
        if self._watch is not None:
            self._watch.discard()

    def _not_read(self, error: str) -> None:
        self._log.warning("bier-not-read", error=error)

    async def stop(self, *, remove: bool) -> None:
        """End after the change in progress; ``remove``: leave nothing in the kernel."""
        self._work.stop()
        if self._watch is not None:
            self._watch.close()
        if self._popper is not None:
            self._popper.close()
        if self._user is not None:
            self._user.close()
        kernel = self._kernel
        if kernel is None:
            return
        async with self._work.turn:
            error = await self._execute(asyncio.to_thread(kernel.remove)) if remove else ""
        if error:
            self._log.warning("bier-not-removed", error=error)
