"""The daemon: a process with one router, which starts in order, and stops in order.

Start: the lock against a second daemon, the control socket, privileges, then the parts (``parts``):
sysctls, links, the router with the objects that the kernel still holds, then HTTP. Stop: flush our
LSAs so that neighbors route around us, wait ``parts.FAREWELL``, then remove our routes (or keep
them: ``fib: on-exit: keep``).
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from fared.config import Loaded
from fared.daemon.lock import InstanceLock
from fared.daemon.loop.defence import Defence
from fared.daemon.loop.descriptors import is_shortage, provide
from fared.daemon.loop.errors import DaemonError
from fared.daemon.loop.notify import Notifier
from fared.daemon.loop.rate_limited import RateLimitedLog
from fared.daemon.loop.runtime import RunningConfig, Runtime
from fared.daemon.parts import DaemonParts
from fared.daemon.people import actions
from fared.daemon.people.http import HttpPort, http_port
from fared.daemon.people.logs import DaemonLog
from fared.kernel.privileges import check_privileges
from fared.management.api.control import ControlServer, SocketInUse
from fared.management.api.respond import Json, Responder
from fared.management.documents.errors import CommandError
from fared.runtime.signals import release
from fared.runtime.startup import release_freed, set_aside

if TYPE_CHECKING:
    from fared.daemon.people.requests import Answer

VIEWS_AFTER = 10.0
"""Seconds until the views are loaded, even without a request: the first request is then fast, and
starting neighbors are not delayed."""


class Daemon:
    """One running fared."""

    def __init__(self, path: str, loaded: Loaded, record: str | None = None) -> None:
        self.running = RunningConfig(path, loaded.config)
        self._loaded: Loaded | None = loaded
        """The texts of the configuration, until there are parts."""
        self._record = record
        log = loaded.config.log
        self._logs = DaemonLog(log.level, log.format)
        self.log = self._logs.logger
        self.stderr = self._logs.output
        for warning in loaded.warnings:
            self.log.warning("configuration", warning=str(warning))
        self.defence = Defence(self.log, self._give_up)
        self.notifier = Notifier()
        now = time.time()
        self.runtime = Runtime(now, os.getpid(), path, now)
        if loaded.refused:
            self.runtime.last_reload_ok, self.runtime.last_reload_error = False, loaded.refused
            effect = "the configuration that ran last is in use"
            self.log.error("config-refused", file=path, error=loaded.refused, effect=effect)
        self.responder = Responder(self._answer, self._command_failed)
        self._stop = asyncio.Event()
        self.parts: DaemonParts | None = None
        """What needs the kernel, once it has been opened."""
        self.leaving = False
        """Whether the next process starts in place of this one."""
        self._farewell = True
        """Whether neighbors are told that this process ends."""
        self._failure: BaseException | None = None
        self._turned_away = RateLimitedLog(self.log.warning, "client-turned-away")

    # -- life -------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Start, run until a stop is requested, stop.

        Raises DaemonError, LockError, PrivilegeError, SocketInUse.
        """
        lock = InstanceLock(self.running.config.api.socket)
        try:
            lock.take()
            try:
                await self._serve()
            finally:
                lock.release()
        finally:
            self._logs.end()

    async def _serve(self) -> None:
        """Like ``serve``, with the lock held."""
        asyncio.get_running_loop().set_exception_handler(self._exception)
        for number in (signal.SIGTERM, signal.SIGINT):
            self._handle(number, self._stop.set)
        control = ControlServer(self.running.config.api.socket, self.responder, self._logs.feed)
        try:
            await control.start()
        except SocketInUse:
            raise
        except OSError as error:
            raise DaemonError(error.strerror or str(error)) from None
        http = None
        try:
            parts = self._open()
            await parts.begin()
            self._handle(signal.SIGHUP, parts.changes.reloader.hang_up)
            http = self._start_http(parts)
            parts.health.start()
            late = asyncio.create_task(self._load_views(parts))
            await self._stop.wait()
            late.cancel()
            parts.health.stop()
            if self._failure is not None:
                await parts.services.end_recording()
                raise DaemonError(
                    f"internal error: {self._failure!r}; our routes stay in the kernel,"
                    " a restart adopts them (the log has the traceback)"
                )
            if self._farewell:
                await self._shut_down(parts)
            else:
                parts.close()
            await parts.services.end_recording()
        finally:
            self._logs.end()  # those who follow the events are told the last ones
            if http is not None:
                await http.stop()
            await control.stop()

    def _open(self) -> DaemonParts:
        """Open everything that needs the kernel, and create the router."""
        provide(self.log)
        check_privileges()
        loaded, self._loaded = self._loaded, None
        assert loaded is not None, "it is served once"
        self.parts = DaemonParts(
            loaded,
            self.running,
            runtime=self.runtime,
            logs=self._logs,
            notifier=self.notifier,
            defence=self.defence,
            stopping=self._stop.is_set,
            leave=self._leave,
            record=self._record,
        )
        return self.parts

    async def _shut_down(self, parts: DaemonParts) -> None:
        on_exit = "keep" if self.leaving else self.running.config.fib.on_exit
        self.log.info("stopping", on_exit=on_exit)
        if not self.leaving:  # else the service goes on
            self.notifier.stopping()
        await parts.shut_down(withdraw=on_exit == "withdraw")
        self.log.info("stopped")

    def _leave(self, *, farewell: bool) -> None:
        """End this process and start the next one in its place; our routes stay."""
        self.leaving, self._farewell = True, farewell
        self._stop.set()

    def _start_http(self, parts: DaemonParts) -> HttpPort | None:
        listen = self.running.config.api.http
        if listen is None:
            return None
        port = http_port(listen, self.responder, parts.views, parts.runner)
        try:
            port.start()
        except OSError as error:
            message = f"cannot listen on {listen.host}:{listen.port}: {error.strerror}"
            raise DaemonError(f"{message} (api: http: in {self.running.path})") from None
        return port

    async def _load_views(self, parts: DaemonParts) -> None:
        """Load the views, and exempt the objects learned so far from garbage collection."""
        await asyncio.sleep(VIEWS_AFTER)
        with self.defence.guard("views"):
            await _when_possible(parts.views.load)
        with self.defence.guard("config-history"):
            await _when_possible(parts.changes.started)
        set_aside()
        release_freed()
        self.log.info("views-loaded")

    def _handle(self, number: signal.Signals, handler: Callable[[], object]) -> None:
        """Handle a signal from now on; one that has waited comes at once."""
        asyncio.get_running_loop().add_signal_handler(number, handler)
        release(number)

    def _exception(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Survive an exception that a callback or a client's connection raised."""
        message = str(context.get("message"))
        error = context.get("exception")
        if "socket" in context and is_shortage(error):
            self._turned_away(reason=str(error))  # clients without a descriptor (ClientListener)
            return
        if isinstance(error, asyncio.CancelledError):
            return  # before Python 3.12, of a client that connected while the daemon stopped
        self.defence.caught("event loop", error or RuntimeError(message), message)

    def _give_up(self, error: BaseException) -> None:
        """Stop because the router fails all the time.

        The kernel continues to forward, and systemd restarts the daemon.
        """
        self._failure = error
        self._stop.set()

    # -- commands ---------------------------------------------------------------------------

    def _answer(self, command: str, args: Json) -> Answer:
        """Answer a command of the control socket or HTTP. Raises CommandError."""
        if self.parts is None:
            raise CommandError("busy", "the daemon is starting")
        return actions.answer(self.parts, command, args)

    def _command_failed(self, command: str, error: Exception) -> None:
        self.log.error("command-failed", command=command, exc_info=error)


async def _when_possible(step: Callable[[], Awaitable[None]]) -> None:
    """Take a step that opens files; again and again while there are no descriptors for them."""
    while True:
        try:
            return await step()
        except OSError as error:
            if not is_shortage(error):
                raise
        await asyncio.sleep(VIEWS_AFTER)
