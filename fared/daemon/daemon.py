"""The daemon process: builds the rooms, starts them in order, and stops them in order.

Start: the lock against a second daemon, privileges and sysctls, links, the router with the objects
that the kernel still holds, then the servers for people. Stop: flush our LSAs so that neighbors
route around us, wait ``FAREWELL``, then remove our routes (or keep them: ``fib: on-exit: keep``).
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fared.api.control import ControlServer, SocketInUse
from fared.api.respond import Responder
from fared.config import Config, Loaded
from fared.core import igp
from fared.core.bfd import BfdWanted
from fared.core.ids import format_node
from fared.daemon import actions, health
from fared.daemon.audit import Auditor
from fared.daemon.config_change import ConfigChanges
from fared.daemon.defence import Defence
from fared.daemon.descriptors import is_shortage, raise_limit
from fared.daemon.http import HttpPort, http_port
from fared.daemon.inputs import Inputs, Sockets
from fared.daemon.lock import InstanceLock, LockError
from fared.daemon.logs import DaemonLog
from fared.daemon.machine import named_interfaces, router_id_of, sysctls_of
from fared.daemon.notify import Notifier
from fared.daemon.operation import Operation
from fared.daemon.rate_limited import RateLimitedLog
from fared.daemon.reports import Reports
from fared.daemon.restart import GracefulRestart
from fared.daemon.runner import Runner
from fared.daemon.runtime import Runtime
from fared.daemon.settings import fib_settings
from fared.daemon.spraying import SprayService
from fared.daemon.sysctls import SettingsGuard
from fared.daemon.views import ViewSource
from fared.fib.model import FibState
from fared.kernel import monitor
from fared.kernel.errors import PrivilegeError
from fared.kernel.fib import KernelFib
from fared.kernel.isis_socket import IsisSockets
from fared.kernel.leftovers import has_bier_table
from fared.kernel.ospf_socket import OspfSockets
from fared.kernel.privileges import check_privileges
from fared.kernel.sysctl import SysctlMode, Wanted
from fared.router import events
from fared.router.protocols import ISIS, OSPF
from fared.router.router import Router
from fared.startup import release_freed, set_aside, share_heap

if TYPE_CHECKING:
    from fared.daemon.bfd import BfdClient
    from fared.daemon.bier import BierService
    from fared.daemon.ina import InaService
    from fared.daemon.recorder import RouterRecorder

FAREWELL = 0.3
"""Seconds between flushing our LSAs and removing our routes, in which neighbors reroute."""

VIEWS_AFTER = 10.0
"""Seconds until the views are loaded, even without a request: the first request is then fast, and
starting neighbors are not delayed."""

ADOPT_WITHIN = 10.0
"""Seconds for attempts to read the kernel before start-up fails."""

SOCKETS: Mapping[str, type[OspfSockets | IsisSockets]] = MappingProxyType(
    {OSPF: OspfSockets, ISIS: IsisSockets}
)


class DaemonError(Exception):
    """The daemon cannot run; the message is for the operator."""


def run(path: str, loaded: Loaded, record: str | None = None) -> None:
    """Run until SIGTERM or SIGINT; ``record``: where to, if at all. Raises DaemonError."""
    share_heap()
    daemon = Daemon(path, loaded, record)
    del loaded  # its text, when it is in the history
    try:
        asyncio.run(daemon.serve())
        if daemon.leaving:
            _execute_again()
    except (LockError, PrivilegeError) as error:
        raise DaemonError(str(error)) from None
    except SocketInUse as error:
        raise DaemonError(error.strerror or str(error)) from None


def _execute_again() -> None:
    """Start the next process in place of this one: its pid, its arguments, present code."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - ourselves
    except OSError as error:
        raise DaemonError(f"cannot restart {sys.executable}: {error.strerror}") from None


class Daemon:
    """One running fared."""

    def __init__(self, path: str, loaded: Loaded, record: str | None = None) -> None:
        self.path = path
        self._record = record
        self.recorder: RouterRecorder | None = None
        """What records the router; None: nothing has been recorded yet."""
        self.config: Config = loaded.config
        self._logs = DaemonLog(self.config.log.level, self.config.log.format)
        self.log = self._logs.logger
        for warning in loaded.warnings:
            self.log.warning("configuration", warning=str(warning))
        self.defence = Defence(self.log, self._give_up)
        self.notifier = Notifier()
        now = time.time()
        self.runtime = Runtime(now, os.getpid(), path, now)
        self.changes = ConfigChanges(self, loaded)
        self.responder = Responder(partial(actions.answer, self), self._command_failed)
        self._stop = asyncio.Event()
        self.operation = Operation(self)
        self.link_events = self.operation.link_events
        self.restarts = GracefulRestart(self)
        self.leaving = False
        """Whether the next process starts in place of this one."""
        self.farewell = True
        """Whether neighbors are told that this process ends."""
        self._failure: BaseException | None = None
        self._inputs = Inputs(self)
        self.bfd: BfdClient | None = None
        self.ina: InaService | None = None
        self._turned_away = RateLimitedLog(self.log.warning, "client-turned-away")

    # -- life -------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Start, run until a stop is requested, stop.

        Raises DaemonError, LockError, PrivilegeError, SocketInUse.
        """
        lock = InstanceLock(self.config.api.socket)
        lock.take()
        try:
            await self._serve()
        finally:
            lock.release()

    async def _serve(self) -> None:
        """Like ``serve``, with the lock held."""
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
            self.health = health.Health(self, self.operation.check_clock)
            self._install_signals()
            self._begin(await self._adoptable())
            http = self._start_http()
            self.health.start()
            late = asyncio.create_task(self._load_views())
            await self._stop.wait()
            late.cancel()
            self.health.stop()
            if self._failure is not None:
                await self._end_recording()
                raise DaemonError(
                    f"internal error: {self._failure!r}; our routes stay in the kernel,"
                    " a restart adopts them (the log has the traceback)"
                )
            if self.farewell:
                await self._shut_down()
            else:
                self._close()
            await self._end_recording()
        finally:
            if http is not None:
                await http.stop()
            await control.stop()

    def _open(self) -> None:
        """Open everything that needs the kernel, and create the router."""
        raise_limit()
        check_privileges()
        self._open_kernel()
        self._make_router()
        self._make_onlookers()
        self._start_aggregation()

    def _open_kernel(self) -> None:
        """Open the FIB and the monitor, and watch the sysctls that routing needs."""
        fib = self.config.fib
        self.fib = KernelFib(
            table=fib.table,
            protocol=fib.protocol,
            metric=fib.metric,
            settings=fib_settings(self.config),
        )
        self.monitor = monitor.KernelMonitor(
            self._inputs.kernel_event,
            protocol=fib.protocol,
            fib_port=self.fib.port_id,
            taken=self.fib.taken,
            settled=self._inputs.links_settled,
        )
        links = list(self.monitor.links.values())
        router_id = router_id_of(self.config, links)
        sections = self.config.protocols.values()
        if router_id is None and any(section.needs_router_id for section in sections):
            raise DaemonError(
                "no router id: set router-id in the configuration, or give lo an address"
                " other than 127.0.0.1"
            )
        self.operation.router_id = router_id or 0
        self.operation.watch_links()
        self.sysctls = SettingsGuard(
            SysctlMode(fib.sysctls),
            self._wanted_sysctls,
            lambda: self.monitor.links,
            self.runtime,
            self.log,
        )
        self.sysctls.start()

    def _make_router(self) -> None:
        """Create the router, its sockets and its runner."""
        loop = asyncio.get_running_loop()
        settings, inputs = self.operation.settings(), self._inputs
        burst = inputs.burst
        seed, now = int.from_bytes(os.urandom(8)), loop.time()
        router = Router(settings, random.Random(seed), now, time.perf_counter)
        if self._record is not None:
            router = self._recorded(router, Path(self._record).absolute(), seed, now)
        self.io: Mapping[str, Sockets] = {
            name: SOCKETS[name](partial(burst.take, name), loop, inputs.socket_trouble, burst)
            for name in settings.protocols
        }
        burst.io = self.io
        burst.hellos = {name: io.is_hello for name, io in self.io.items()}
        self.runner = Runner(
            router,
            self.fib,
            self.io,
            self.log,
            catch_up=inputs.catch_up,
            defence=self.defence,
        )
        self.runner.on_refusal = inputs.refused
        self.runner.on_bfd = self._want_bfd
        self.runner.observers.append(Reports(self.notifier, self.runtime, self.log).observe)

    def make_recorder(self) -> RouterRecorder:
        """What records the router, which most daemons never need."""
        if self.recorder is None:
            from fared.daemon.recorder import RouterRecorder  # noqa: PLC0415 - as said

            self.recorder = RouterRecorder(self, self.defence.guard)
        return self.recorder

    def _recorded(self, router: Router, directory: Path, seed: int, now: float) -> Router:
        """Record a router from its first call on. Raises DaemonError."""
        from fared.recording.files import RecordingError  # noqa: PLC0415 - where it is wanted

        try:
            return self.make_recorder().begin_new(router, directory, seed, now)
        except RecordingError as error:
            raise DaemonError(f"cannot record: {error}") from None

    async def _end_recording(self) -> None:
        if self.recorder is not None:
            await self.recorder.end()

    def _make_onlookers(self) -> None:
        """Create the auditor of the kernel, and the servers and views for people."""
        self.auditor = Auditor(
            self.fib,
            feed=self.runner.feed,
            drift=lambda: self.runner.router.journal.counts["drift"],
            poll=self.monitor.read_links,
            links=lambda: self.monitor.version,
            log=self.log,
            defence=self.defence,
            done=self.runtime.resyncs,
        )
        self.spraying = SprayService(self.fib, self.runner, self.log, self.defence)
        self.bier: BierService | None = None
        self.auditor.compared = self._audit_nftables
        if self.config.bier is not None:
            from fared.daemon.bier import BierService  # noqa: PLC0415 - where BIER runs

            self.bier = BierService(self.runner.feed, self.log, self.defence)
            self.runner.bier = self.bier.apply
        self.views = ViewSource(
            config=lambda: self.config,
            runner=self.runner,
            runtime=self.runtime,
            fib=self.fib,
            monitor=self.monitor,
            auditor=self.auditor,
            sysctls=self.sysctls,
            spraying=self.spraying,
            defence=self.defence,
            io=self.io,
            log=self._logs.ring,
            bfd=lambda: self.bfd,
            ina=lambda: self.ina,
            operation=self.operation,
            bier=self.bier,
        )

    def _audit_nftables(self) -> None:
        self.spraying.audit()
        if self.bier is not None:
            self.bier.look_soon()

    def _start_aggregation(self) -> None:
        """Connect to ``fared-ina``, where the configuration wants it."""
        if self.config.ina.enabled:
            from fared.daemon.ina import InaService  # noqa: PLC0415 - only where it is enabled

            self.ina = InaService(
                self.runner, self.config.ina.socket, self.log, self.monitor.links.values
            )

    async def _adoptable(self) -> FibState:
        """Return our objects in the kernel. Raises DaemonError if they cannot be read."""
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + ADOPT_WITHIN, 0.05
        while True:
            try:
                return self.fib.dump()
            except OSError as error:
                if loop.time() + pause > deadline:
                    why = error.strerror or str(error)
                    raise DaemonError(f"cannot read the kernel's routes: {why}") from None
            await asyncio.sleep(pause)
            pause *= 2

    def _begin(self, adopted: FibState) -> None:
        """Pass the router links and adopted objects, and report changes from then on."""
        links = list(self.monitor.links.values())
        present = {link.name for link in links}
        for name in named_interfaces(self.config):
            if name not in present:
                self.log.warning("interface-missing", interface=name, effect="runs when it appears")
        root = format_node(self.runner.router.solver.root)
        self.log.info("starting", router_id=root, hostname=self.operation.hostname)
        self.monitor.start(self._inputs.burst)
        self.auditor.start()
        restart = self.restarts.begun(routes=bool(adopted.routes))
        self.runner.feed(
            events.FibAdopted(adopted),
            *([] if restart is None else [restart]),
            *(event for link in links for event in self.operation.link_events(link)),
            events.LinksKnown(),
        )
        self.watch_routes()
        self.spraying.configure(self.runner.router.settings.spray)
        if self.bier is not None:
            self.bier.start()
        elif has_bier_table():
            from fared.daemon.bier import BierService  # noqa: PLC0415 - where BIER ran

            BierService(self.runner.feed, self.log, self.defence).clear()

    async def _shut_down(self) -> None:
        on_exit = "keep" if self.leaving else self.config.fib.on_exit
        self.log.info("stopping", on_exit=on_exit)
        if not self.leaving:  # else the service goes on
            self.notifier.stopping()
        await self.operation.retire()
        self.runner.feed(igp.ShutdownRequested())
        await asyncio.sleep(FAREWELL)
        withdraw = on_exit == "withdraw"
        await self.spraying.stop(remove=withdraw)
        if self.bier is not None:
            await self.bier.stop(remove=withdraw)
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
        self.sysctls.stop()
        self.runner.stop()
        if self.bfd is not None:
            self.bfd.stop()
        if self.ina is not None:
            self.ina.stop()
        for io in self.io.values():
            io.close_all()
        self.monitor.close()
        self.fib.close()

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

    def _install_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self.changes.reloader.hang_up)
        loop.set_exception_handler(self._exception)

    def _exception(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Survive an exception that a callback or a client's connection raised."""
        message = str(context.get("message"))
        error = context.get("exception")
        if "socket" in context and is_shortage(error):
            self._turned_away(reason=str(error))  # clients without a descriptor (ClientListener)
            return
        self.defence.caught("event loop", error or RuntimeError(message), message)

    def _give_up(self, error: BaseException) -> None:
        """Stop because the router fails all the time.

        The kernel continues to forward, and systemd restarts the daemon.
        """
        self._failure = error
        self._stop.set()

    # -- the kernel -------------------------------------------------------------------------

    def _wanted_sysctls(self) -> list[Wanted]:
        return sysctls_of(self.config, self.operation.router_id, list(self.monitor.links.values()))

    def watch_routes(self) -> None:
        """Watch routes that may be redistributed, now that the router knows its interfaces."""
        sections = self.config.protocols.values()
        wanted = any(section.redistribute.wanted for section in sections)
        # Of sprayed prefixes the packets that a route of others leads keep their path.
        wanted |= not self.runner.router.settings.spray.by_flow
        self.monitor.watch_routes(wanted=wanted)

    def _want_bfd(self, proto: str, wanted: BfdWanted) -> None:
        """Run a BFD session, or end it."""
        if self.bfd is None:
            from fared.daemon.bfd import BfdClient  # noqa: PLC0415 - most routers run no BFD

            soon = asyncio.get_running_loop().call_soon
            self.bfd = BfdClient(self.runner.feed, soon, self.log)
        self.bfd.want(proto, wanted)

    # -- commands ---------------------------------------------------------------------------

    def _command_failed(self, command: str, error: Exception) -> None:
        self.log.error("command-failed", command=command, exc_info=error)

    def reconfigured(self) -> None:
        """Apply the settings of the whole router from the configuration."""
        self._logs.configure(self.config.log.level, self.config.log.format)
        self.operation.watch_links()
        self.operation.apply()
        self.spraying.configure(self.runner.router.settings.spray)
        self.sysctls.check_soon()
        self.restarts.running()

    def stopping(self) -> bool:
        """Whether the daemon is about to end."""
        return self._stop.is_set()
