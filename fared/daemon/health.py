"""What happens by the clock: load, speeds, audits of the kernel, loop lag and the watchdog."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from fared.api.views.context import Runtime
from fared.core.events import LoadMeasured
from fared.daemon.notify import Notifier
from fared.daemon.runner import Runner
from fared.kernel.counters import LoadSource
from fared.kernel.monitor import KernelMonitor

SPEED_INTERVAL = 5.0
AUDIT_INTERVAL = 30.0
LAG_INTERVAL = 1.0
CLOCK_INTERVAL = 10.0
MAX_LAG = 5.0
"""A loop later than this is not healthy: the watchdog goes unfed."""


class Host(Protocol):
    """What the periodic work needs of the daemon."""

    monitor: KernelMonitor
    runner: Runner
    runtime: Runtime
    notifier: Notifier
    log: Any  # structlog's filtering logger has no public type

    def audit(self, reason: str) -> None:
        """Compare the kernel with what should be there, and repair."""

    def check_clock(self) -> None:
        """Follow a wall clock that was set."""


class Health:
    """Runs the periodic work from ``start`` to ``stop``."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._loads = LoadSource()
        self._load_period: float | None = None
        self._load_error: str | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._lag_due = 0.0

    def start(self) -> None:
        """Begin."""
        loop = asyncio.get_running_loop()
        self._lag_due = loop.time() + LAG_INTERVAL
        self._measure_every(self._period())
        self._every(SPEED_INTERVAL, "speed", self._host.monitor.refresh)
        self._every(AUDIT_INTERVAL, "audit", lambda: self._host.audit("periodic"))
        self._every(LAG_INTERVAL, "lag", self._measure_lag)
        self._every(CLOCK_INTERVAL, "clock", self._host.check_clock)
        watchdog = self._host.notifier.watchdog_interval
        if watchdog is not None:
            self._every(watchdog, "watchdog", self._feed_watchdog)

    def stop(self) -> None:
        """No more."""
        for timer in self._timers.values():
            timer.cancel()
        self._loads.close()

    def reconfigured(self) -> None:
        """The router has other settings."""
        period = self._period()
        if self._load_period not in (None, period):
            self._timers["load"].cancel()
            self._measure_every(period)

    def _period(self) -> float:
        return self._host.runner.router.settings.solver.adaptation.measure_period

    def _measure_every(self, period: float) -> None:
        self._load_period = period
        self._every(period, "load", self.measure_load)

    def _every(self, interval: float, name: str, action: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()

        def fire() -> None:
            self._timers[name] = loop.call_later(interval, fire)
            action()

        self._timers[name] = loop.call_later(interval, fire)

    def measure_load(self) -> None:
        """Turn counters into loads and tell the router, also of loads that are too old."""
        now, host = asyncio.get_running_loop().time(), self._host
        stale_after = host.runner.router.settings.solver.adaptation.stale_after
        loads: dict[int, float] = {}
        error = None
        try:
            loads = host.runtime.utilized = self._loads.measure(now)
        except OSError as failure:
            error = str(failure)
        events = [LoadMeasured(ifindex, load) for ifindex, load in loads.items()]
        for ifindex in self._loads.expired(now, stale_after):
            host.runtime.utilized.pop(ifindex, None)
            events.append(LoadMeasured(ifindex, None))
        host.runtime.load_samples["ok" if error is None else "failed"] += 1
        if (error is None) is not (self._load_error is None):
            self._log_measuring(error)
        host.runner.feed_all(events)

    def _log_measuring(self, error: str | None) -> None:
        """Tell that measuring began to fail, or works again."""
        self._load_error = error
        if error is None:
            self._host.log.info("load-measured-again")
        else:
            self._host.log.warning("load-not-measured", error=error)

    def _measure_lag(self) -> None:
        now = asyncio.get_running_loop().time()
        self._host.runtime.event_loop_lag = max(0.0, now - self._lag_due)
        self._lag_due = now + LAG_INTERVAL

    def _feed_watchdog(self) -> None:
        if self._host.runtime.event_loop_lag < MAX_LAG:
            self._host.notifier.alive()
