"""BIER between router and kernel: one change at a time, beside the event loop.

nft takes milliseconds, during which packets of neighbors must be processed. What another program
changes in the table is read at once, or after pauses that double while it continues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from fared.daemon.defence import Defence
from fared.kernel.bier import KernelBier, open_bier
from fared.kernel.bier_table import TABLE, CounterValue
from fared.kernel.bier_user import UserBier
from fared.kernel.nft_watch import NftWatch
from fared.router import events

if TYPE_CHECKING:
    from fared.fib.bier import BierFib
    from fared.kernel.bier_php import HeaderPopper

_GAP, _LONGEST_GAP = 0.01, 5.0
"""Seconds between readings after changes of others, doubling."""
_CALM = 10.0
"""Seconds without such changes after which the gap is reset."""


class BierService:
    """Executes ``ApplyBier``; ``feed`` receives the answers."""

    def __init__(
        self,
        feed: Callable[[events.Input], None],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        defence: Defence,
    ) -> None:
        self.problem = ""
        """Why no packets are forwarded: nft is missing, or the table could not be read."""
        self._feed = feed
        self._log = log
        self._defence = defence
        self._kernel: KernelBier | None = None
        self._user: UserBier | None = None
        self._popper: HeaderPopper | None = None
        self._watch: NftWatch | None = None
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = self._changing = False
        self._gap, self._touched_at = _GAP, 0.0

    def start(self) -> None:
        """Adopt what a former process left, and watch from now on."""
        self._kernel = open_bier()
        if self._kernel is None:
            self._user = UserBier()
            reason = "nft is missing: install nftables"
            self._log.warning("bier-forwarded-by-the-process", reason=reason)
            self._feed(events.BierAdopted())
            return
        self._watch = NftWatch(self.look_soon, TABLE)
        self._watch.start()
        self._begin(self._adopt(self._kernel))

    def clear(self) -> None:
        """Remove what a former process left: this one runs no BIER."""
        kernel = open_bier()
        if kernel is not None:
            self._begin(self._clear(kernel))

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
            self._begin(self._apply(self._kernel, request))
        elif self._user is not None and not self._stopped:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._feed, events.BierApplied(self._rewrite(self._user, request)))

    def _pop(self, fib: BierFib) -> None:
        if self._stopped or not (fib.popped or self._popper):
            return
        if self._popper is None:
            # Not needed unless hosts are to get payloads without header.
            from fared.kernel.bier_php import HeaderPopper  # noqa: PLC0415

            self._popper = HeaderPopper()
        try:
            self._popper.serve(fib)
        except OSError as error:
            self._log.warning("bier-headers-not-popped", error=_words(error))

    def _rewrite(self, user: UserBier, request: events.ApplyBier) -> str:
        """Return what was refused."""
        try:
            user.write(request.fib)
        except OSError as error:
            return _words(error)
        return ""

    @property
    def by_process(self) -> bool:
        """Whether this process forwards, since nft is missing."""
        return self._user is not None

    def audit(self) -> None:
        """Read the table, unless a change or another reading is in progress."""
        if self._kernel is not None and not self._tasks:
            self._begin(self._audit(self._kernel))

    def look_soon(self) -> None:
        """Read soon, because something may have changed; but our own changes are known."""
        if self._changing or self._timer is not None or self._stopped:
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
            self.audit()

    def _begin(self, work: Any) -> None:  # noqa: ANN401 - a coroutine
        if self._stopped:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _adopt(self, kernel: KernelBier) -> None:
        with self._defence.guard("bier"):
            highest = 0
            async with self._turn:
                try:
                    highest = await asyncio.to_thread(kernel.adopt)
                except OSError as error:
                    self._not_read(error)
            self._feed(events.BierAdopted(highest))

    def _not_read(self, error: OSError) -> None:
        """Try again later; each error is logged once."""
        if _words(error) != self.problem:
            self._log.warning("bier-not-read", error=_words(error))
        self.problem = _words(error)
        if self._timer is None and not self._stopped:
            self._timer = asyncio.get_running_loop().call_later(_LONGEST_GAP, self._look)

    async def _audit(self, kernel: KernelBier) -> None:
        with self._defence.guard("bier"):
            async with self._turn:
                try:
                    intact = await asyncio.to_thread(kernel.intact)
                except OSError as error:
                    self._not_read(error)
                    return
                self.problem = ""
            self._feed(events.BierAudited(intact))

    async def _apply(self, kernel: KernelBier, request: events.ApplyBier) -> None:
        error = "interrupted"
        try:
            with self._defence.guard("bier"):
                async with self._turn:
                    error = await self._execute(asyncio.to_thread(kernel.write, request.fib))
        finally:
            self._feed(events.BierApplied(error))

    async def _execute(self, work: Awaitable[None]) -> str:
        """Return what was refused."""
        self._changing = True
        try:
            await work
        except OSError as error:
            return _words(error)
        finally:
            if self._watch is not None:
                self._watch.discard()
            self._changing = False
            # What others changed during a repair was taken for our own change.
            if self._touched_at and asyncio.get_running_loop().time() - self._touched_at < _CALM:
                self.look_soon()
        return ""

    async def stop(self, *, remove: bool) -> None:
        """End after the change in progress; ``remove``: leave nothing in the kernel."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.close()
        if self._popper is not None:
            self._popper.close()
        if self._user is not None:
            self._user.close()
        kernel = self._kernel
        if kernel is None:
            return
        async with self._turn:
            error = await self._execute(asyncio.to_thread(kernel.remove)) if remove else ""
        if error:
            self._log.warning("bier-not-removed", error=error)


def _words(error: OSError) -> str:
    return error.strerror or str(error)
