"""SONiC as the platform of a daemon: answers at once, from what was read last."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from fared.core.link_errors import ErrorCounters
from fared.core.link_facts import MANAGEMENT_PORTS, PlatformLink, PlatformLoad
from fared.sonic.databases import SonicDatabase
from fared.sonic.reader import SonicReader
from fared.sonic.values import REASONS

SONIC = "sonic"
_MANAGEMENT = PlatformLink(management=True)
_FIRST = 1.0
"""Seconds that the start waits for the first facts."""


class SonicPlatform:
    """Facts of links from Redis. ``changed`` is called when those of any link are others.

    ``warn`` logs at a limited rate what is wrong in Redis.
    """

    name = SONIC

    def __init__(
        self,
        databases: Mapping[str, SonicDatabase],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        warn: Callable[..., None],
    ) -> None:
        self.databases = databases
        self._log, self._warn = log, warn
        self._report: Callable[[], None] = lambda: None
        self._task: asyncio.Task[None] | None = None
        clock = asyncio.get_running_loop().time
        self.reader = SonicReader(databases, self._changed, self._heard, clock)
        self._wrong = 0
        self.error: str | None = None
        """Why Redis cannot be read now; None: it answers, or has not been asked."""
        self.failures = 0
        """How often it was lost."""

    async def start(self, changed: Callable[[], None]) -> None:
        """Read from now on; wait a moment for the first facts."""
        self._task = asyncio.get_running_loop().create_task(self.reader.run())
        with contextlib.suppress(asyncio.TimeoutError):
            async with asyncio.timeout(_FIRST):
                await self.reader.ready.wait()
        self._report = changed
        changed()

    def stop(self) -> None:
        """End reading, without waiting for Redis."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self.reader.stop()

    def _changed(self) -> None:
        self._report()

    def _heard(self, error: str | None) -> None:
        """Say once that Redis cannot be read, and that it can be again."""
        if error is None:
            self._tell_wrong()
            if self.error is not None:
                self._log.info("sonic-read-again")
        elif self.error is None:
            self.failures += 1
            self._log.warning("sonic-not-read", error=error, effect="the last facts stay")
        self.error = error

    # -- answers ----------------------------------------------------------------------------

    def link(self, name: str) -> PlatformLink | None:
        """Return the facts of a link; a VLAN on a port or LAG has those of what it is on."""
        facts, below = self.reader.facts, name.partition(".")[0]
        if below in MANAGEMENT_PORTS:
            return _MANAGEMENT
        found = facts.get(name)
        return facts.get(below) if found is None else found

    def counts(self, name: str) -> bool:
        """Whether the chip counts the packets of a link."""
        return self.reader.traffic.counts(name)

    def load(self, name: str) -> PlatformLoad | None:
        """Return the last load of such a link; None: it has not been measured."""
        return self.reader.traffic.load(name)

    def errors(self, name: str, *, drops: bool, fec: bool) -> ErrorCounters | None:
        """Return the error counters of such a link; None: they are not known."""
        found = self.reader.traffic.errors(name)
        return None if found is None else found.counters(drops=drops, fec=fec)

    def wrong_values(self) -> Mapping[str, int]:
        """Count the values that were not what they should be, by reason."""
        wrong = self.reader.values.wrong
        return {reason: wrong[reason] for reason in REASONS}

    def _tell_wrong(self) -> None:
        wrong = {reason: n for reason, n in self.wrong_values().items() if n}
        total = sum(wrong.values())
        if total > self._wrong:
            self._wrong = total
            self._warn(**{reason.replace("-", "_"): count for reason, count in wrong.items()})
