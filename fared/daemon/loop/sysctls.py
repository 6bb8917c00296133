"""Keeps sysctls correct: at start, after a write of another program, and periodically."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Mapping
from typing import Any

from fared.core.links import Link
from fared.core.sysctl import SysctlRow
from fared.daemon.loop.rate_limited import RateLimitedLog
from fared.daemon.loop.runtime import Runtime
from fared.kernel.netconf import SettingsWatch
from fared.kernel.sysctl import SettingsKeeper, SysctlMode, Wanted

_SOON = 0.05
"""Seconds after an interface appeared until its settings are checked."""
_SLICE = 200
"""Settings that are read in one turn of the loop, in a few milliseconds."""


class SettingsGuard:
    """Checks and sets the ``wanted`` sysctls; results go to ``runtime`` and the log."""

    def __init__(
        self,
        mode: SysctlMode,
        wanted: Callable[[], list[Wanted]],
        links: Callable[[], Mapping[int, Link]],
        runtime: Runtime,
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
    ) -> None:
        self._keeper = SettingsKeeper(mode)
        self._wanted = wanted
        self._runtime = runtime
        self._log = log
        self._list: list[Wanted] = []
        self._told: dict[str, _Told] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._sweeping: asyncio.Handle | None = None
        self._watch = None if mode is SysctlMode.IGNORE else SettingsWatch(self._touched, links)
        self._started = False

    @property
    def set_back(self) -> int:
        """How many times a setting was restored after another program had changed it."""
        return self._keeper.set_back

    def start(self) -> None:
        """Check all settings, report wrong ones, and watch from now on."""
        self._list = self._wanted()
        self._check(None)
        self._started = True
        if self._watch is not None:
            self._watch.start()

    def stop(self) -> None:
        """Stop watching."""
        for handle in (self._timer, self._sweeping):
            if handle is not None:
                handle.cancel()
        if self._watch is not None:
            self._watch.close()

    def check(self) -> None:
        """Check all settings, some in each turn of the loop."""
        self._list = self._wanted()
        self._sweep([setting.path for setting in self._list])

    def _sweep(self, paths: list[str]) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        self._check(frozenset(paths[:_SLICE]))
        if rest := paths[_SLICE:]:
            self._sweeping = asyncio.get_running_loop().call_soon(self._sweep, rest)

    def _check(self, only: Container[str] | None) -> None:
        """Check settings with paths in ``only`` (None: all), and those never checked."""
        loop = asyncio.get_running_loop()
        changed = self._keeper.check(self._list, loop.time(), only)
        for row in changed:
            self._report(row)
        if changed or len(self._keeper.rows) != len(self._runtime.sysctls):
            self._runtime.sysctls = self._keeper.rows
        again = self._keeper.next_check()
        if again is not None:
            self._check_at(again)

    def check_soon(self) -> None:
        """Check soon, because an interface appeared or its settings changed."""
        self._check_at(asyncio.get_running_loop().time() + _SOON)

    def _check_at(self, when: float) -> None:
        loop = asyncio.get_running_loop()
        if self._timer is None or when < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(when, self._due)

    def _due(self) -> None:
        self._timer = None
        self.check()

    def _touched(self, paths: list[str] | None) -> None:
        self._check(None if paths is None else frozenset(paths))

    def _report(self, row: SysctlRow) -> None:
        told = self._told.get(row.name)
        if told is None:
            told = self._told[row.name] = _Told(self._log)
        fields = {"name": row.name, "found": row.found, "wanted": row.wanted, "why": row.why}
        if not row.ok:
            failed = {} if row.error is None else {"error": row.error}
            told.wrong(**fields, **failed)
        elif row.action == "set" and self._started:
            told.set_back(**fields)


class _Told:
    """The lines about one setting, which another program may write all the time."""

    def __init__(self, log: Any) -> None:  # noqa: ANN401 - as above
        self.wrong = RateLimitedLog(log.warning, "sysctl-wrong")
        self.set_back = RateLimitedLog(log.warning, "sysctl-set-back")
