"""BIER between router and kernel; where nft is missing, this process forwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from fared.daemon.loop.defence import Defence
from fared.daemon.services.table_work import TableEvents, TableWork, words
from fared.kernel.bier import KernelBier, open_bier
from fared.kernel.bier_user import UserBier
from fared.kernel.nft import CounterValue
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
        self._kernel: KernelBier | None = None
        self._user: UserBier | None = None
        self._popper: HeaderPopper | None = None
        names = TableEvents("bier-not-read", "bier-not-removed")
        self._work = TableWork("bier", self._audited, names, feed=feed, log=log, defence=defence)

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
        self._work.watch(self._kernel.watch(self._work.changed_by_others))
        self._work.read(self._adopted, otherwise=events.BierAdopted())

    def clear(self) -> None:
        """Remove what a former process left: this one runs no BIER."""
        kernel = open_bier()
        if kernel is not None:
            self._work.remove(lambda: self._execute(kernel.remove))

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
        kernel = self._kernel
        if kernel is not None:
            self._work.change(
                lambda: self._applied(kernel, request.fib), events.BierApplied("interrupted")
            )
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
        if self._kernel is not None:
            self._work.audit()

    def look_soon(self) -> None:
        """Read soon, because something may have changed."""
        if self._kernel is not None:
            self._work.look_soon()

    async def _adopted(self) -> events.Input:
        assert self._kernel is not None
        return events.BierAdopted(await asyncio.to_thread(self._kernel.adopt))

    async def _audited(self) -> events.Input:
        assert self._kernel is not None
        return events.BierAudited(await asyncio.to_thread(self._kernel.intact))

    async def _applied(self, kernel: KernelBier, fib: BierFib) -> events.Input:
        refused = await self._execute(kernel.write, fib)
        if self._work.disturbed:
            kernel.doubt()
        return events.BierApplied(refused)

    def _execute(self, function: Callable[..., None], *arguments: object) -> Awaitable[str]:
        """Return what was refused."""
        return self._work.execute(asyncio.to_thread(function, *arguments))

    async def stop(self, *, remove: bool) -> None:
        """End after the change in progress; ``remove``: leave nothing in the kernel."""
        if self._popper is not None:
            self._popper.close()
        if self._user is not None:
            self._user.close()
        kernel = self._kernel
        await self._work.end(
            (lambda: self._execute(kernel.remove)) if remove and kernel is not None else None
        )
