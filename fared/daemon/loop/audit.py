"""Compares the kernel with the expected state, without blocking the loop.

Audits are requested by a timer, by the monitor (another program changed our objects) and after
refusals. One audit runs at a time: the tables are read in slices, and requests that arrive
meanwhile cause one more audit. A reading is discarded and begun again if we wrote meanwhile, or
after a link event, with which the kernel removes next hops. If the kernel cannot be read the audit
is retried with growing pauses, then skipped, which is logged and counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from fared.core.ids import Prefix
from fared.daemon.loop.defence import Defence
from fared.daemon.loop.rate_limited import RateLimitedLog
from fared.kernel.fibdump import FibReading
from fared.paths.fib.model import FibState
from fared.router import events

_ATTEMPTS = 6
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds between attempts to read, doubling."""
GAP, _LONGEST_GAP = 0.01, 1.0
"""Seconds between two audits, doubling while there is drift, which ``repairs`` may have repaired
already."""
PATIENCE = 4
"""The pause after a reading is at least so many times as long as it took."""
_CALM = 5.0
"""Seconds without drift after which the gap is reset."""
REASONS = ("periodic", "foreign-change", "refused", "overflow")
"""Why audits are requested."""


class Table(Protocol):
    """The part of the kernel's FIB that an audit needs (``KernelFib``)."""

    written: int

    @property
    def foreign(self) -> Mapping[Prefix, int | None]:
        """Protocol numbers of routes in our places."""

    async def read(self, expected: dict[Prefix, int] | None = None) -> FibReading:
        """Read all our objects in slices; store no routes if they are ``expected``.

        Raises OSError.
        """

    def accept(self, reading: FibReading) -> FibState:
        """Accept a reading as the present state of the kernel."""


class Auditor:
    """Runs requested audits, from ``start`` to ``stop``.

    ``expected`` returns the routes that the router believes to be in the kernel. ``feed`` receives
    the result; ``drift`` returns how many objects the router has found changed so far; ``poll``
    processes queued link events, and ``links`` changes with them. ``done`` counts audits by reason,
    ``skipped`` those without a reading. ``compared`` is called after each, for what it does not
    read.
    """

    def __init__(
        self,
        table: Table,
        *,
        expected: Callable[[], dict[Prefix, int]],
        feed: Callable[[events.Input], None],
        drift: Callable[[], int],
        poll: Callable[[], None],
        links: Callable[[], int],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        defence: Defence,
        done: Counter[str],
        compared: Callable[[], None] = lambda: None,
    ) -> None:
        self._table = table
        self._expected = expected
        self._feed = feed
        self._drift = drift
        self._poll = poll
        self._links = links
        self._compared = compared
        self._defence = defence
        self._done = done
        self.skipped = 0
        self._reasons: Counter[str] = Counter()
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._gap = GAP
        self._drifted_at = float("-inf")
        self._drift_seen = 0
        self._log_skipped = RateLimitedLog(log.warning, "audit-skipped")

    def start(self) -> None:
        """Start auditing."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Stop auditing."""
        if self._task is not None:
            self._task.cancel()

    def request(self, reason: str) -> None:
        """Request an audit soon."""
        self._reasons[reason] += 1
        self._wanted.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            reasons, self._reasons = self._reasons, Counter()
            begun = loop.time()
            with self._defence.guard("audit"):
                await self._audit(reasons)
            await asyncio.sleep(max(self._gap, PATIENCE * min(loop.time() - begun, _LONGEST_GAP)))

    async def _audit(self, reasons: Counter[str]) -> None:
        pause, error = _FIRST_PAUSE, "the tables change with every attempt"
        for _ in range(_ATTEMPTS):
            before = self._table.written, self._links()
            try:
                reading = await self._table.read(self._expected())
            except OSError as failure:
                error = failure.strerror or str(failure)
            else:
                self._poll()
                if before == (self._table.written, self._links()):
                    self._compare(reading, reasons)
                    return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        self._skip(reasons, error)

    def _compare(self, reading: FibReading, reasons: Counter[str]) -> None:
        """Pass the reading to the router, which repairs, within one turn of the loop."""
        state = self._table.accept(reading)
        self._done.update(dict.fromkeys(reasons, 1))
        self._feed(events.FibAudited(state))
        now, before, self._drift_seen = (
            asyncio.get_running_loop().time(),
            self._drift_seen,
            self._drift(),
        )
        if self._drift_seen != before:
            self._gap = min(2 * self._gap, _LONGEST_GAP)
            self._drifted_at = now
        elif now - self._drifted_at > _CALM:
            self._gap = GAP
        self._compared()

    def _skip(self, reasons: Counter[str], error: str) -> None:
        self.skipped += 1
        self._log_skipped(reasons=sorted(reasons), error=error)
