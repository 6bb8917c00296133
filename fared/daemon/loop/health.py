"""Periodic work: load, speeds, audits of the kernel, loop lag and the watchdog."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from fared.core.link_facts import LinkPlatform
from fared.daemon.loop.after_flood import LOOK_INTERVAL
from fared.daemon.loop.audit import Auditor
from fared.daemon.loop.notify import Notifier
from fared.daemon.loop.periodic import Periodic
from fared.daemon.loop.platform_loads import Loads, PlatformLoads
from fared.daemon.loop.runner import Runner
from fared.daemon.loop.runtime import Runtime
from fared.daemon.loop.sysctls import SettingsGuard
from fared.kernel.counters import LoadSource
from fared.kernel.monitor import KernelMonitor
from fared.protocols.igp.events import LoadsMeasured

SPEED_INTERVAL = 5.0
AUDIT_INTERVAL = 30.0
LOST_LINKS_INTERVAL = 30.0
CHANGES_INTERVAL = 1.0
LAG_INTERVAL = 1.0
CLOCK_INTERVAL = 10.0
LINK_INTERVAL = 1.0
"""Seconds between two judgments of the links that are watched."""
MAX_LAG = 5.0
"""Above this lag, in seconds, the watchdog is not fed."""


class LinkJudge(Protocol):
    """What judges links (``operation``)."""

    @property
    def watches_links(self) -> bool:
        """Whether any is watched."""

    def check_links(self) -> None:
        """Judge the links that are watched."""

    def check_clock(self) -> None:
        """Pass on a wall clock that was set."""


class Health:
    """Runs the periodic work from ``start`` to ``stop``."""

    def __init__(
        self,
        runner: Runner,
        runtime: Runtime,
        operation: LinkJudge,
        *,
        jobs: Periodic,
        monitor: KernelMonitor,
        sysctls: SettingsGuard,
        auditor: Auditor,
        notifier: Notifier,
        look_for_floods: Callable[[], None],
        keep_lost_links: Callable[[], None],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        platform: LinkPlatform | None = None,
    ) -> None:
        """``platform``: what knows more of links than the kernel; None: nothing does."""
        self._runner, self._runtime, self._operation = runner, runtime, operation
        self._jobs, self._monitor, self._sysctls, self._auditor = jobs, monitor, sysctls, auditor
        self._notifier, self._look_for_floods, self._log = notifier, look_for_floods, log
        self._keep_lost_links = keep_lost_links
        self._loads: Loads = LoadSource()
        if platform is not None:
            self._loads = PlatformLoads(self._loads, platform, lambda: monitor.links)
        self._load_period: float | None = None
        self._load_error: str | None = None
        self._lag_due = 0.0
        self._watching = False

    def start(self) -> None:
        """Start."""
        every = self._jobs.every
        self._measure_every(self._period())
        every(SPEED_INTERVAL, "speed", self._monitor.refresh)
        every(AUDIT_INTERVAL, "audit", lambda: self._auditor.request("periodic"))
        # The kernel notifies changes of some settings only.
        every(AUDIT_INTERVAL, "sysctls", self._sysctls.check)
        every(LAG_INTERVAL, "lag", self._measure_lag)
        self._lag_due = self._jobs.due("lag")
        every(CLOCK_INTERVAL, "clock", self._operation.check_clock)
        every(LOOK_INTERVAL, "after-flood", self._look_for_floods)
        # what waits to be compared holds the former blocks of routers
        every(CHANGES_INTERVAL, "changes", self._compare_changes)
        every(LOST_LINKS_INTERVAL, "lost-links", self._keep_lost_links)
        self._watch_links()
        watchdog = self._notifier.watchdog_interval
        if watchdog is not None:
            self._feed_watchdog()  # the process before this one fed it last
            every(watchdog, "watchdog", self._feed_watchdog)

    def _compare_changes(self) -> None:
        self._runner.router.changes.settle()

    def stop(self) -> None:
        """Stop."""
        self._jobs.stop()
        self._loads.close()

    def _watch_links(self) -> None:
        """Judge links periodically, from the first one that is to be watched on."""
        if self._operation.watches_links and not self._watching:
            self._watching = True
            self._jobs.every(LINK_INTERVAL, "link-health", self._operation.check_links)

    def reconfigured(self) -> None:
        """Apply changed settings of the router; before the start there is nothing to do."""
        if self._load_period is None:
            return
        self._watch_links()
        if (period := self._period()) != self._load_period:
            self._measure_every(period)

    def _period(self) -> float:
        return self._runner.router.settings.solver.adaptation.measure_period

    def _measure_every(self, period: float) -> None:
        self._load_period = period
        self._jobs.every(period, "load", self.measure_load)

    def measure_load(self) -> None:
        """Compute loads from counters; pass them, and those that became too old, to the router."""
        now, runtime = asyncio.get_running_loop().time(), self._runtime
        stale_after = self._runner.router.settings.solver.adaptation.stale_after
        loads: dict[int, float] = {}
        error = None
        try:
            loads = runtime.utilized = self._loads.measure(now)
            runtime.load_history.add(now, loads)
        except OSError as failure:
            error = str(failure)
        told: dict[int, float | None] = dict(loads)
        for ifindex in self._loads.expired(now, stale_after):
            runtime.utilized.pop(ifindex, None)
            told[ifindex] = None
        runtime.load_samples["ok" if error is None else "failed"] += 1
        if (error is None) is not (self._load_error is None):
            self._log_measuring(error)
        if told:
            self._runner.feed(LoadsMeasured(told))

    def _log_measuring(self, error: str | None) -> None:
        """Log that measurements fail, or work again."""
        self._load_error = error
        if error is None:
            self._log.info("load-measured-again")
        else:
            self._log.warning("load-not-measured", error=error)

    def _measure_lag(self) -> None:
        now = asyncio.get_running_loop().time()
        runtime = self._runtime
        runtime.event_loop_lag = max(0.0, now - self._lag_due)
        runtime.recent_lags.append(runtime.event_loop_lag)
        self._lag_due = self._jobs.due("lag")

    def _feed_watchdog(self) -> None:
        if self._runtime.event_loop_lag < MAX_LAG:
            self._notifier.alive()
