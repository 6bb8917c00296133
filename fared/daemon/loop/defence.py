"""Unexpected exceptions are counted and logged, and the daemon continues.

An exception at the edge costs one event. The router itself may be left with a half-processed input,
so if it fails without a success for as long as a dead interval, the process ends: its routes stay
in the kernel, and the next process adopts them. Without memory it ends at once.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from fared.daemon.loop.errors import end_out_of_memory
from fared.daemon.loop.rate_limited import RateLimitedLog

HOPELESS_AFTER = 10.0
HOPELESS_TIMES = 20
"""The daemon ends after so many failures of the router, over so many seconds, without success."""

_Kind = tuple[str, type[BaseException]]
"""Place and type of an error: each is logged once a minute."""


class Guard:
    """A ``with`` block that contains exceptions and passes them to ``report``.

    ``raised`` is the exception that ended the last block, None if it ended normally.
    """

    def __init__(self, report: Callable[[Exception], None]) -> None:
        self.raised: Exception | None = None
        self._report = report

    def __enter__(self) -> Self:
        self.raised = None
        return self

    def __exit__(
        self, _kind: object, error: BaseException | None, _traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.contain(error)
        return True

    def contain(self, error: Exception) -> None:
        """Contain an exception that the block would have raised."""
        self.raised = error
        self._report(error)


class Defence:
    """Handles unexpected exceptions; ``counts`` has them by place.

    ``give_up`` is called once, with the last exception of a router that fails all the time;
    ``out_of_memory`` ends the process.
    """

    def __init__(
        self,
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        give_up: Callable[[BaseException], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        out_of_memory: Callable[[], None] = end_out_of_memory,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._log = log
        self._give_up = give_up
        self._out_of_memory = out_of_memory
        self._clock = clock
        self._lines: dict[_Kind, RateLimitedLog] = {}
        self._failing_since: float | None = None
        self.failures = 0
        """Failures of the router since its last success."""
        self._given_up = False

    def guard(self, where: str) -> Guard:
        """Guard the code of ``where``, once or many times."""
        return Guard(lambda error: self.caught(where, error))

    def caught(self, where: str, error: BaseException, message: str | None = None) -> None:
        """Count and log an unexpected exception that ``where`` raised."""
        if isinstance(error, MemoryError):
            self._out_of_memory()
        self.counts[where] += 1
        kind = (where, type(error))
        line = self._lines.get(kind)
        if line is None:
            line = self._lines[kind] = RateLimitedLog(
                self._log.error, "internal-error", self._clock
            )
        line(where=where, message=message, exc_info=error)

    def router_failed(self, where: str, error: BaseException) -> None:
        """The same for the router; calls ``give_up`` if it fails all the time."""
        self.caught(where, error)
        now = self._clock()
        if self._failing_since is None:
            self._failing_since = now
        self.failures += 1
        lasts = now - self._failing_since >= HOPELESS_AFTER and self.failures >= HOPELESS_TIMES
        if lasts and not self._given_up:
            self._given_up = True
            self._give_up(error)

    def router_worked(self) -> None:
        """Record a success of the router."""
        self._failing_since, self.failures = None, 0
