"""A changed configuration file: read in a thread, applied in slices in the event loop.

Reading thousands of interfaces takes a second, and so does passing them to the engines; meanwhile
neighbors expect hellos. So a thread reads and compares, and the event loop runs every few
milliseconds while the changes are applied.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from fared.config import (
    Change,
    Config,
    ConfigErrors,
    Loaded,
    diff,
    load,
    load_runnable,
    load_text,
    merged,
)
from fared.config.here import compared
from fared.core.links import Link
from fared.daemon.loop.notify import Notifier
from fared.daemon.loop.runner import Runner
from fared.daemon.loop.runtime import RunningConfig, Runtime
from fared.kernel.monitor import KernelMonitor
from fared.kernel.present import default_route_ports
from fared.management.api.caller import CALLER
from fared.management.documents.config_changes import ConfigChange, ConfigDiff, ReloadDocument
from fared.management.documents.errors import CommandError
from fared.router.events import Input
from fared.runtime.startup import collector_paused

if TYPE_CHECKING:
    from fared.management.api.requests import ConfigDiffRequest

SLICE = 0.01
"""Seconds of work between two turns of the loop."""


class Target(Protocol):
    """What a configuration is applied to: the parts of the daemon."""

    def reconfigured(self) -> None:
        """Apply the settings of the whole router from the configuration that runs."""

    def watch_routes(self) -> None:
        """Watch the routes that the configuration redistributes, if any."""

    def stopping(self) -> bool:
        """Whether the daemon is about to end."""


class Plan(msgspec.Struct, frozen=True):
    """A change that was read and compared in a thread: what runs after it, and the file's."""

    config: Config
    changes: list[Change]
    loaded: Loaded

    @property
    def warnings(self) -> list[str]:
        """What the reader of the file said."""
        return [str(warning) for warning in self.loaded.warnings]


class Reloader:
    """Applies configurations, one at a time: that of the file, or another.

    ``reloaded`` is called after the file was read again and applied.
    """

    def __init__(
        self,
        running: RunningConfig,
        target: Target,
        link_events: Callable[[Link, Config], list[Input]],
        *,
        runner: Runner,
        monitor: KernelMonitor,
        runtime: Runtime,
        notifier: Notifier,
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        clock: Callable[[], float] = time.monotonic,
        reloaded: Callable[[Plan], Awaitable[None]] | None = None,
    ) -> None:
        self._running, self._target, self._runner, self._monitor = running, target, runner, monitor
        self._runtime, self._notifier, self._log = runtime, notifier, log
        self._link_events, self._clock, self._reloaded = link_events, clock, reloaded
        self.turn = asyncio.Lock()
        """Held while the configuration changes."""
        self._task: asyncio.Task[ReloadDocument] | None = None

    def hang_up(self) -> None:
        """SIGHUP: reload, and notify systemd, unless that still waits for the end of the start."""
        started = self._runner.router.startup.ready
        if started:
            self._notifier.reloading()
        context = copy_context()
        context.run(CALLER.set, "SIGHUP")
        self._task = asyncio.get_running_loop().create_task(self.reload(), context=context)
        self._task.add_done_callback(partial(self._hung_up, started))

    def _hung_up(self, started: bool, task: asyncio.Task[ReloadDocument]) -> None:  # noqa: FBT001 - a callback
        if started:
            self._notifier.ready()
        if not task.cancelled():
            with contextlib.suppress(CommandError):  # the daemon is stopping
                task.result()  # raises its exception into the loop's exception handler

    async def reload(self) -> ReloadDocument:
        """Answer ``config reload``; after any error the running configuration stays."""
        async with self.turn:
            runtime = self._runtime
            try:
                plan = await self.planned()
            except (ConfigErrors, OSError) as error:
                runtime.last_reload_ok, runtime.last_reload_error = False, str(error)
                self._log.error("reload-refused", error=str(error))
                return ReloadDocument(applied=False, errors=str(error).splitlines())
            await self.apply(plan)
            runtime.last_reload_ok, runtime.last_reload_error = True, None
            self._log.info("reloaded", changes=len(plan.changes))
            if self._reloaded is not None:
                await self._reloaded(plan)
            return ReloadDocument(
                applied=True, changes=changes_of(plan.changes), warnings=plan.warnings
            )

    async def diff(self, asked: ConfigDiffRequest) -> ConfigDiff:
        """Answer ``config diff``: compare a text, or the file, with what runs.

        One after the other, as reloads: each takes a second of the interpreter. Raises
        CommandError.
        """
        async with self.turn:
            running = self._running
            return await asyncio.to_thread(_config_diff, running.config, running.path, asked)

    async def planned(self, text: str | None = None, name: str | None = None) -> Plan:
        """Read the file, or a text of this name, in a thread, and compare it with what runs.

        Raises ConfigErrors, OSError.
        """
        path = Path(self._running.path if name is None else name)
        return await asyncio.to_thread(_plan, self._running.config, path, text)

    async def apply(self, plan: Plan) -> None:
        """Apply a change, with ``turn`` held. Raises CommandError if the daemon is stopping."""
        running, target = self._running, self._target
        if target.stopping():
            raise CommandError("internal", "the daemon is stopping")
        old, running.config = running.config, plan.config
        self._runtime.loaded_at = time.time()
        for warning in plan.warnings:
            self._log.warning("configuration", warning=warning)
        target.reconfigured()
        await self._apply_links(old)
        if not target.stopping():
            target.watch_routes()

    async def _apply_links(self, old: Config) -> None:
        """Pass the engines the links whose settings changed."""
        target = self._target
        ends = self._clock() + SLICE
        for ifindex in list(self._monitor.links):
            if self._clock() >= ends:
                await asyncio.sleep(0)
                ends = self._clock() + SLICE
            link = self._monitor.links.get(ifindex)
            if target.stopping():
                return
            if link is not None:
                after = self._link_events(link, self._running.config)
                if self._link_events(link, old) != after:
                    self._runner.feed_all(after)


def _plan(running: Config, path: Path, text: str | None) -> Plan:
    """Read the file or the text, and compare it with the running configuration.

    Raises ConfigErrors, OSError.
    """
    with collector_paused():
        compare = compared(default_route_ports(), here=False)
        loaded = load_runnable(path, text, compare)
        return plan_of(running, loaded)


def plan_of(running: Config, loaded: Loaded) -> Plan:
    """Return the change from what runs to another configuration."""
    config = loaded.config
    return Plan(merged(running, config), diff(running, config), loaded)


def _config_diff(config: Config, path: str, asked: ConfigDiffRequest) -> ConfigDiff:
    text = asked.text
    try:
        with collector_paused():
            other = load(Path(path)) if text is None else load_text(text, asked.file)
            changes = diff(config, other)
    except ConfigErrors as errors:
        raise CommandError("bad-argument", str(errors)) from None
    return ConfigDiff(changes=changes_of(changes))


def changes_of(changes: Iterable[Change]) -> list[ConfigChange]:
    """Return the changes as documents have them; secrets are hidden."""
    return [
        ConfigChange(
            path=".".join(change.path),
            old=change.old,
            new=change.new,
            action=change.action.value,
        )
        for change in changes
    ]
