"""The daemon: builds the rooms, starts them in order, and stops them in order.

Start: the lock against a second daemon, privileges and sysctls, links, the router with the objects
that the kernel still holds, then the servers for people. Stop: flush our LSAs so that neighbors
route around us, wait ``FAREWELL``, then remove our routes (or keep them: ``fib: on-exit: keep``).
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from fared.config import Config, Loaded
from fared.core.ids import format_node
from fared.daemon.change.config_change import ConfigChanges
from fared.daemon.change.config_documents import ConfigDocuments
from fared.daemon.change.operation import Operation
from fared.daemon.change.restart import GracefulRestart
from fared.daemon.kernel import KernelSide
from fared.daemon.lock import InstanceLock
from fared.daemon.loop import health
from fared.daemon.loop.after_flood import AfterFlood, AfterManyRoutes, clear_caches
from fared.daemon.loop.audit import Auditor
from fared.daemon.loop.defence import Defence
from fared.daemon.loop.descriptors import is_shortage, provide
from fared.daemon.loop.errors import DaemonError
from fared.daemon.loop.gathering import Prompt
from fared.daemon.loop.inputs import Inputs, Sockets
from fared.daemon.loop.notify import Notifier
from fared.daemon.loop.rate_limited import RateLimitedLog
from fared.daemon.loop.repairs import Repairs
from fared.daemon.loop.runner import Runner
from fared.daemon.loop.runtime import Runtime
from fared.daemon.people import actions
from fared.daemon.people.http import HttpPort, http_port
from fared.daemon.people.logs import DaemonLog
from fared.daemon.people.reports import Reports
from fared.daemon.people.views import ViewSource
from fared.daemon.services.running import Services
from fared.kernel.isis_socket import IsisSockets
from fared.kernel.ospf_socket import OspfSockets
from fared.kernel.privileges import check_privileges
from fared.management.api.control import ControlServer, SocketInUse
from fared.management.api.respond import Responder
from fared.paths.fib.model import FibState
from fared.protocols.igp import events as igp
from fared.router import events
from fared.router.protocols import ISIS, OSPF
from fared.router.router import Router
from fared.runtime.signals import release
from fared.runtime.startup import empty_free_lists, release_freed, set_aside

FAREWELL = 0.3
"""Seconds between flushing our LSAs and removing our routes, in which neighbors reroute."""

VIEWS_AFTER = 10.0
"""Seconds until the views are loaded, even without a request: the first request is then fast, and
starting neighbors are not delayed."""

SOCKETS: Mapping[str, type[OspfSockets | IsisSockets]] = MappingProxyType(
    {OSPF: OspfSockets, ISIS: IsisSockets}
)


class Daemon:
    """One running fared."""

    def __init__(self, path: str, loaded: Loaded, record: str | None = None) -> None:
        self.path = path
        self._record = record
        self.config: Config = loaded.config
        self._logs = DaemonLog(self.config.log.level, self.config.log.format)
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
        self.changes = ConfigChanges(self, loaded)
        self.config_documents = ConfigDocuments(self)
        self.responder = Responder(partial(actions.answer, self), self._command_failed)
        self._stop = asyncio.Event()
        self.operation = Operation(self)
        self.link_events = self.operation.link_events
        self.services = Services(self)
        self.restarts = GracefulRestart(self)
        self.leaving = False
        """Whether the next process starts in place of this one."""
        self.farewell = True
        """Whether neighbors are told that this process ends."""
        self._failure: BaseException | None = None
        self._inputs = Inputs(self)
        self._turned_away = RateLimitedLog(self.log.warning, "client-turned-away")

    # -- life -------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Start, run until a stop is requested, stop.

        Raises DaemonError, LockError, PrivilegeError, SocketInUse.
        """
        lock = InstanceLock(self.config.api.socket)
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
        control = ControlServer(self.config.api.socket, self.responder, self._logs.feed)
        try:
            await control.start()
        except SocketInUse:
            raise
        except OSError as error:
            raise DaemonError(error.strerror or str(error)) from None
        http = None
        try:
            self._open()
            burst = self._inputs.burst
            shrink = (self._forget_senders, clear_caches, empty_free_lists, release_freed)
            written = self.runner.counts
            flood = AfterFlood(
                lambda: burst.taken, lambda: sum(written.values()), shrink, empty_free_lists
            )
            self.health = health.Health(self, self.operation.check_clock, flood.look)
            self._begin(await self._kernel.adoptable())
            self._handle(signal.SIGHUP, self.changes.reloader.hang_up)
            http = self._start_http()
            self.health.start()
            late = asyncio.create_task(self._load_views())
            await self._stop.wait()
            late.cancel()
            self.health.stop()
            if self._failure is not None:
                await self.services.end_recording()
                raise DaemonError(
                    f"internal error: {self._failure!r}; our routes stay in the kernel,"
                    " a restart adopts them (the log has the traceback)"
                )
            if self.farewell:
                await self._shut_down()
            else:
                self._close()
            await self.services.end_recording()
        finally:
            self._logs.end()  # those who follow the events are told the last ones
            if http is not None:
                await http.stop()
            await control.stop()

    def _open(self) -> None:
        """Open everything that needs the kernel, and create the router."""
        provide(self.log)
        check_privileges()
        self._open_kernel()
        self._make_router()
        self.services.make()
        self._make_onlookers()

    def _open_kernel(self) -> None:
        """Open the FIB and the monitor, and watch the sysctls that routing needs."""
        self._kernel: KernelSide = KernelSide(self, self._inputs)
        self.fib, self.monitor = self._kernel.fib, self._kernel.monitor
        self.sysctls = self._kernel.sysctls
        self.operation.router_id = self._kernel.router_id()
        self.operation.watch_links()
        self.sysctls.start()

    def _make_router(self) -> None:
        """Create the router, its sockets and its runner."""
        loop = asyncio.get_running_loop()
        settings, inputs = self.operation.settings(), self._inputs
        burst = inputs.burst
        seed, now = int.from_bytes(os.urandom(8)), loop.time()
        router = Router(settings, random.Random(seed), now, time.perf_counter)
        if self._record is not None:
            router = self.services.recorded(router, self._record, seed, now)
        self.io: Mapping[str, Sockets] = {
            name: SOCKETS[name](partial(burst.take_all, name), loop, inputs.socket_trouble, burst)
            for name in settings.protocols
        }
        burst.io = {name: io.interfaces for name, io in self.io.items()}
        burst.hellos = {name: io.is_hello for name, io in self.io.items()}
        self.runner: Runner = Runner(
            router,
            self.fib,
            self.io,
            self.log,
            catch_up=inputs.catch_up,
            defence=self.defence,
        )
        self.runner.on_refusal = inputs.refused
        self.runner.read_links = self.monitor.read_links
        self.runner.wants_debug = partial(self._logs.wants, "debug")
        self.runner.observers.append(Reports(self.notifier, self.runtime, self.log).observe)
        self.runner.observers.append(AfterManyRoutes(release_freed).observe)

    def _make_onlookers(self) -> None:
        """Create the auditor of the kernel, and the servers and views for people."""
        self.repairs = Repairs(self.fib.notices.take, self.runner.feed)
        self.auditor = Auditor(
            self.fib,
            expected=lambda: self.runner.router.planner.installed.routes,
            feed=self.runner.feed,
            drift=lambda: self.runner.router.journal.counts["drift"],
            poll=self.monitor.read_links,
            links=lambda: self.monitor.version,
            log=self.log,
            defence=self.defence,
            done=self.runtime.resyncs,
        )
        self.auditor.compared = self.services.audit
        self.views = ViewSource(
            config=lambda: self.config,
            runner=self.runner,
            runtime=self.runtime,
            fib=self.fib,
            monitor=self.monitor,
            auditor=self.auditor,
            sysctls=self.sysctls,
            services=self.services,
            defence=self.defence,
            io=self.io,
            log=self._logs.ring,
            lines_lost=lambda: self.stderr.dropped,
            operation=self.operation,
        )

    def _begin(self, adopted: FibState) -> None:
        """Pass the router links and adopted objects, and report changes from then on."""
        links = list(self.monitor.links.values())
        self._kernel.report_missing()
        root = format_node(self.runner.router.solver.root)
        self.log.info("starting", router_id=root, hostname=self.operation.hostname)
        burst = self._inputs.burst
        self.monitor.start(Prompt(burst, burst.hasten))
        self.auditor.start()
        restart = self.restarts.begun(routes=bool(adopted.routes))
        self.runner.feed(
            events.FibAdopted(adopted),
            *([] if restart is None else [restart]),
            *(event for link in links for event in self.operation.link_events(link)),
            events.LinksKnown(),
        )
        self.watch_routes()
        self.services.start()

    async def _shut_down(self) -> None:
        on_exit = "keep" if self.leaving else self.config.fib.on_exit
        self.log.info("stopping", on_exit=on_exit)
        if not self.leaving:  # else the service goes on
            self.notifier.stopping()
        await self.operation.retire()
        self.runner.feed(igp.ShutdownRequested())
        await asyncio.sleep(FAREWELL)
        withdraw = on_exit == "withdraw"
        await self.services.stop(remove=withdraw)
        if withdraw:
            self.runner.feed(events.WithdrawRequested())
        self._close()
        self.restarts.stopped()
        self.log.info("stopped")

    def leave(self, *, farewell: bool) -> None:
        """End this process and start the next one in its place; our routes stay."""
        self.leaving, self.farewell = True, farewell
        self._stop.set()

    def _close(self) -> None:
        """Close everything that needs the kernel; our routes stay as they are."""
        self.auditor.stop()
        self.repairs.stop()
        self.sysctls.stop()
        self.runner.stop()
        self.services.close()
        for io in self.io.values():
            io.close_all()
        self.monitor.close()
        self.fib.close()

    def _forget_senders(self) -> None:
        for io in self.io.values():
            io.forget_senders()

    def _start_http(self) -> HttpPort | None:
        listen = self.config.api.http
        if listen is None:
            return None
        port = http_port(listen, self.responder, self.views, self.runner)
        try:
            port.start()
        except OSError as error:
            message = f"cannot listen on {listen.host}:{listen.port}: {error.strerror}"
            raise DaemonError(f"{message} (api: http: in {self.path})") from None
        return port

    async def _load_views(self) -> None:
        """Load the views, and exempt the objects learned so far from garbage collection."""
        await asyncio.sleep(VIEWS_AFTER)
        with self.defence.guard("views"):
            await self.views.load()
        with self.defence.guard("config-history"):
            await self.changes.started()
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

    # -- changes ----------------------------------------------------------------------------

    def watch_routes(self) -> None:
        """Watch routes that may be redistributed, now that the router knows its interfaces."""
        self._kernel.watch_routes(by_flow=self.runner.router.settings.spray.by_flow)

    def _command_failed(self, command: str, error: Exception) -> None:
        self.log.error("command-failed", command=command, exc_info=error)

    def reconfigured(self) -> None:
        """Apply the settings of the whole router from the configuration."""
        self._logs.configure(self.config.log.level, self.config.log.format)
        self.operation.watch_links()
        self.operation.apply()
        self.services.configure()
        self.sysctls.check_soon()
        self.restarts.running()

    def stopping(self) -> bool:
        """Whether the daemon is about to end."""
        return self._stop.is_set()
