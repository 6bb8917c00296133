"""The settings of the whole router: those of the file, drained or not, and the wall clock.

Engines use the time of the event loop; key lifetimes and saved sequence numbers are of the wall
clock, which may be set. So the settings contain the wall clock's offset, and the boot count of the
router (RFC 7474 §3).
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Protocol

from fared.config import Config
from fared.core import igp
from fared.daemon.boot_count import BootCount
from fared.daemon.health import Health
from fared.daemon.machine import system_hostname
from fared.daemon.runner import Runner
from fared.daemon.settings import counts_boots, router_settings
from fared.router import events
from fared.router.settings import RouterSettings

CLOCK_TOLERANCE = 1.0
"""Seconds of drift between wall clock and loop clock after which the engines get a new offset."""


class OperationHost(Protocol):
    """The parts of the daemon that the settings come from and go to."""

    config: Config
    runner: Runner
    health: Health
    log: Any  # structlog's filtering logger has no public type


class Operation:
    """Passes the router its settings after any change.

    ``router_id`` is the one that the daemon resolved, 0 if none is needed.
    """

    def __init__(self, host: OperationHost) -> None:
        self._host = host
        self._boot_count = BootCount(host.config.state_directory, host.log)
        self._drained = False
        self._epoch = 0.0
        """Unix time at the loop's time 0, as last passed to the engines."""
        self.router_id = 0

    @property
    def hostname(self) -> str:
        """The advertised hostname."""
        return self._host.config.hostname or system_hostname()

    def settings(self) -> RouterSettings:
        """The present settings."""
        config, wall_ns = self._host.config, time.time_ns()
        settings = router_settings(config, self.router_id, self.hostname)
        if self._drained:
            settings = settings.drain()
        self._epoch = wall_ns / 1e9 - asyncio.get_running_loop().time()
        boots = self._boot_count.begin(wall_ns) if counts_boots(config) else 0
        return settings.with_clock(self._epoch, boots)

    def apply(self) -> None:
        """Pass the present settings to the router."""
        self._host.runner.feed(events.RouterSettingsApplied(self.settings()))
        self._host.health.reconfigured()

    def drain(self, *, drained: bool) -> dict[str, Any]:
        """Become a stub router (RFC 6987): no transit, own prefixes reachable; or end that."""
        self._drained = drained
        self._host.log.info("drain" if drained else "undrain")
        self.apply()
        return {"format": "fared-drain/1", "drained": drained}

    def clear_limits(self) -> dict[str, Any]:
        """Zero the counts of full databases, and ask neighbors again for what was ignored."""
        self._host.log.info("limits-cleared")
        self._host.runner.feed(igp.LimitsReset())
        return {"format": "fared-limits/1", "cleared": True}

    def check_clock(self) -> None:
        """Pass on a wall clock that was set, and store the boot count of the engines."""
        for instance in self._host.runner.router.instances.values():
            self._boot_count.follow(instance.engine.boot_count)
        set_by = time.time() - asyncio.get_running_loop().time() - self._epoch
        if abs(set_by) > CLOCK_TOLERANCE:
            self._host.log.info("clock-was-set", seconds=round(set_by, 3))
            self.apply()
