"""What happens by the clock: load, speeds, audits of the kernel, loop lag and the watchdog."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from fared.api.views.context import Runtime
from fared.daemon.notify import Notifier
from fared.daemon.runner import Runner
from fared.kernel.counters import LinkCounters, LoadMeter
from fared.kernel.monitor import KernelMonitor
from fared.ospf import events as ospf

LOAD_INTERVAL = 1.0
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

    def audit(self, reason: str) -> None:
        """Compare the kernel with what should be there, and repair."""

    def check_clock(self) -> None:
        """Follow a wall clock that was set."""


class Health:
    """Runs the periodic work from ``start`` to ``stop``."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._counters = LinkCounters()
        self._meter = LoadMeter()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._lag_due = 0.0

    def start(self) -> None:
        """Begin."""
        loop = asyncio.get_running_loop()
        self._lag_due = loop.time() + LAG_INTERVAL
        self._every(LOAD_INTERVAL, "load", self.measure_load)
        self._every(SPEED_INTERVAL, "speed", self._host.monitor.refresh_speeds)
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
        self._counters.close()

    def _every(self, interval: float, name: str, action: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()

        def fire() -> None:
            self._timers[name] = loop.call_later(interval, fire)
            action()

        self._timers[name] = loop.call_later(interval, fire)

    def measure_load(self) -> None:
        """Turn counters into loads and tell the router."""
        host = self._host
        sample = self._counters.sample(asyncio.get_running_loop().time())
        limits = {
            ifindex: link.capacity
            for ifindex, link in host.monitor.links.items()
            if link.capacity is not None
        }
        loads = self._meter.update(sample, limits)
        known = {i: load.sent for i, load in loads.items() if load.sent is not None}
        host.runtime.utilized = known
        host.runner.feed_all([ospf.LoadMeasured(i, sent) for i, sent in known.items()])

    def _measure_lag(self) -> None:
        now = asyncio.get_running_loop().time()
        self._host.runtime.event_loop_lag = max(0.0, now - self._lag_due)
        self._lag_due = now + LAG_INTERVAL

    def _feed_watchdog(self) -> None:
        if self._host.runtime.event_loop_lag < MAX_LAG:
            self._host.notifier.alive()
