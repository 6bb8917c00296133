"""The process: puts the rooms together, starts them in order, and takes them down in order.

Start: privileges and sysctls, links, the router with what the kernel still holds of ours, then
the servers people look through. Stop: flush our LSAs so that neighbors route around us, give
them a moment, then remove our routes (or keep them: ``fib: on-exit: keep``).
"""

from __future__ import annotations

import asyncio
import importlib
import os
import random
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fared.api.control import CommandError, ControlServer, Json, SocketInUse
from fared.api.views.context import Runtime, ViewContext
from fared.config import Config, ConfigErrors, diff, load_runnable
from fared.config.convert import circuit_settings, interface_settings
from fared.core.ids import format_node, isis_node
from fared.core.links import Link
from fared.daemon import garbage, health, reload
from fared.daemon.burst import Burst, Packet
from fared.daemon.counters import counters_of
from fared.daemon.logs import configure
from fared.daemon.notify import Notifier
from fared.daemon.runner import Runner
from fared.daemon.settings import (
    fib_settings,
    named_interfaces,
    router_id_of,
    router_settings,
    sysctls_of,
    with_clock,
)
from fared.isis import events as isis
from fared.kernel import monitor
from fared.kernel.errors import PrivilegeError
from fared.kernel.fib import KernelFib
from fared.kernel.isis_socket import IsisSockets
from fared.kernel.ospf_socket import OspfSockets
from fared.kernel.privileges import check_privileges
from fared.kernel.routes import LocalRoutesChanged
from fared.kernel.sysctl import SysctlMode, apply_sysctls
from fared.ospf import events as ospf
from fared.router import events
from fared.router.router import Router
from fared.router.stages import Stage

FAREWELL = 0.3
"""Seconds between flushing our LSAs and removing our routes: what neighbors need to turn away."""

SET_ASIDE_AFTER = 2.0
"""Seconds after start-up until what was learnt is taken for lasting: nothing is urgent then."""

VIEWS_AFTER = 10.0
"""Seconds until what people look through is loaded unasked: a first question should find it, and
starting neighbors should not wait for it."""

CLOCK_TOLERANCE = 1.0
"""Seconds by which the wall clock may run away from the loop's before the engine is told."""


class DaemonError(Exception):
    """The daemon cannot run; the message is for the operator."""


def run(path: str, config: Config) -> None:
    """Run until SIGTERM or SIGINT. Raises DaemonError."""
    try:
        asyncio.run(Daemon(path, config).serve())
    except PrivilegeError as error:
        raise DaemonError(str(error)) from None
    except SocketInUse as error:
        raise DaemonError(error.strerror or str(error)) from None


class Daemon:
    """One running fared."""

    def __init__(self, path: str, config: Config) -> None:
        self.path = path
        self.config = config
        self.log, self.ring = configure(config.log.level, config.log.format)
        self.notifier = Notifier()
        now = time.time()
        self.runtime = Runtime(now, os.getpid(), path, now)
        self._stop = asyncio.Event()
        self._drained = False
        self._failure: BaseException | None = None

    # -- life -------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Start, run until told to stop, stop. Raises DaemonError, PrivilegeError, SocketInUse."""
        control = ControlServer(self.config.api.socket, self._command, self._command_failed)
        try:
            await control.start()
        except SocketInUse:
            raise
        except OSError as error:
            raise DaemonError(error.strerror or str(error)) from None
        http = None
        try:
            self._open()
            self.health = health.Health(self)
            self._install_signals()
            self._begin()
            http = await self._start_http()
            self.health.start()
            asyncio.get_running_loop().call_later(VIEWS_AFTER, self._load_views)
            await self._stop.wait()
            self.health.stop()
            if self._failure is not None:
                raise DaemonError(
                    f"internal error: {self._failure!r}; our routes stay in the kernel,"
                    " a restart adopts them (the log has the traceback)"
                )
            await self._shut_down()
        finally:
            if http is not None:
                await http.stop()
            await control.stop()

    def _open(self) -> None:
        """Open everything that needs the kernel, and make the router."""
        check_privileges()
        loop = asyncio.get_running_loop()
        fib = self.config.fib
        self.fib = KernelFib(
            table=fib.table,
            protocol=fib.protocol,
            metric=fib.metric,
            settings=fib_settings(self.config),
        )
        self.monitor = monitor.KernelMonitor(
            self._kernel_event, protocol=fib.protocol, fib_port=self.fib.port_id
        )
        links = list(self.monitor.links.values())
        router_id = router_id_of(self.config, links)
        if router_id is None and self.config.ospf is not None:
            raise DaemonError(
                "no router id: set router-id in the configuration, or give lo an address"
                " other than 127.0.0.1"
            )
        self.hostname = self.config.hostname or socket.gethostname().partition(".")[0]
        self.router_id = router_id or 0
        self._check_sysctls(links)
        settings = router_settings(self.config, self.router_id, self.hostname)
        settings = with_clock(settings, time.time_ns(), loop.time())
        self._epoch = settings.epoch
        router = Router(settings, random.Random(), loop.time(), time.perf_counter)
        burst = Burst(self._handle)
        self.sockets = burst.sockets = OspfSockets(burst.packet, loop)
        self.frames = burst.frames = IsisSockets(burst.frame, loop)
        self.runner = Runner(router, self.fib, self.sockets, self.frames, self.log)
        self.runner.observers.append(self._observe)

    def _begin(self) -> None:
        """Tell the router what there is, and listen to the kernel from then on."""
        links = list(self.monitor.links.values())
        self._warn_of_missing_interfaces({link.name for link in links})
        root = format_node(self.runner.router.solver.root)
        self.log.info("starting", router_id=root, hostname=self.hostname)
        self.monitor.start()
        self.runner.feed(
            events.FibAdopted(self.fib.dump()),
            *(event for link in links for event in self._link_events(link)),
            events.LinksKnown(),
        )
        self._watch_routes()

    async def _shut_down(self) -> None:
        self.log.info("stopping", on_exit=self.config.fib.on_exit)
        self.notifier.stopping()
        self.runner.feed(ospf.ShutdownRequested())
        await asyncio.sleep(FAREWELL)
        if self.config.fib.on_exit == "withdraw":
            self.runner.feed(events.WithdrawRequested())
        self.runner.stop()
        self.sockets.close_all()
        self.frames.close_all()
        self.monitor.close()
        self.fib.close()
        self.log.info("stopped")

    async def _start_http(self) -> Any:  # noqa: ANN401 - imported only where it is wanted
        listen = self.config.api.http
        if listen is None:
            return None
        # uvicorn and prometheus: in a thread, for neighbors are waiting for our hellos already.
        for name in ("fared.api.http", "fared.daemon.scrape"):
            await asyncio.to_thread(importlib.import_module, name)
        from fared import __version__  # noqa: PLC0415
        from fared.api.http import App, HttpServer  # noqa: PLC0415
        from fared.api.metrics import Metrics  # noqa: PLC0415
        from fared.daemon.scrape import Source, observe  # noqa: PLC0415

        metrics = Metrics(Source(self), __version__)
        self.runner.observers.append(lambda output: observe(metrics, output))
        app = App(self._command, metrics, self._is_ready, self._command_failed)
        server = HttpServer(listen.host, listen.port, app)
        try:
            await server.start()
        except OSError as error:
            message = f"cannot listen on {listen.host}:{listen.port}: {error.strerror}"
            raise DaemonError(f"{message} (api: http: in {self.path})") from None
        return server

    def _load_views(self) -> None:
        """Import what the answers to people need, in a thread: the loop goes on routing."""
        loop = asyncio.get_running_loop()
        loaded = loop.run_in_executor(None, importlib.import_module, "fared.daemon.commands")
        loaded.add_done_callback(self._views_loaded)

    def _views_loaded(self, _: asyncio.Future[Any]) -> None:
        garbage.set_aside()
        self.log.info("views-loaded")

    def _install_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        loop.set_exception_handler(self._exception)

    def _exception(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Stop where a callback of ours failed: half-done work must not go on routing packets.

        The kernel goes on forwarding; systemd starts us again. Trouble with a client's
        connection is only logged.
        """
        error = context.get("exception")
        self.log.error("internal-error", message=context.get("message"), exc_info=error)
        if "handle" in context and error is not None and self._failure is None:
            self._failure = error
            self._stop.set()

    # -- the kernel -------------------------------------------------------------------------

    def _check_sysctls(self, links: list[Link]) -> None:
        wanted = sysctls_of(self.config, self.router_id, links)
        rows = apply_sysctls(SysctlMode(self.config.fib.sysctls), wanted)
        self.runtime.sysctls = [asdict(row) for row in rows]
        for row in rows:
            if not row.ok:
                self.log.warning(
                    "sysctl-wrong", name=row.name, found=row.found, wanted=row.wanted, why=row.why
                )

    def _warn_of_missing_interfaces(self, present: set[str]) -> None:
        for name in named_interfaces(self.config):
            if name not in present:
                self.log.warning("interface-missing", interface=name, effect="runs once it appears")

    def _link_events(self, link: Link) -> Iterator[events.Input]:
        """Tell each protocol of a link."""
        config = self.config
        if config.ospf is not None:
            settings = interface_settings(config, link.name, loopback=link.loopback)
            yield ospf.LinkChanged(link, settings)
        if config.isis is not None:
            circuit = circuit_settings(config, link.name, loopback=link.loopback)
            yield isis.CircuitChanged(link, circuit)

    def _kernel_event(self, event: monitor.KernelEvent) -> None:
        match event:
            case monitor.LinkChanged(link):
                self._came_in(self.monitor.arrived)
                self.runner.feed_all(self._link_events(link))
            case monitor.LinkRemoved(link):
                self._came_in(self.monitor.arrived)
                self.runner.feed(ospf.LinkRemoved(link.ifindex))
            case LocalRoutesChanged(changes):
                self.runner.feed(ospf.ExternalRoutes(changes))
            case monitor.FibDisturbed():
                self.audit("foreign-change")
            case monitor.Overflow(source):
                self.log.warning("netlink-overflow", source=source)
                self.audit("overflow")

    def _watch_routes(self) -> None:
        """Follow what may be redistributed; only now that the router knows its interfaces."""
        sections = (self.config.ospf, self.config.isis)
        wanted = any(section is not None and section.redistribute.wanted for section in sections)
        self.monitor.watch_routes(wanted=wanted)

    def _handle(self, packets: list[Packet], arrived: float) -> None:
        """Work out what came in at one time."""
        self._came_in(arrived)
        self.runner.feed_all(packets)

    def _came_in(self, arrived: float) -> None:
        """Say since when the coming inputs have been here."""
        self.runner.router.detected(asyncio.get_running_loop().time() - arrived)

    def audit(self, reason: str) -> None:
        """Compare the kernel with what should be there, and repair."""
        self.runtime.resyncs[reason] += 1
        self.runner.feed(events.FibAudited(self.fib.dump()))

    # -- observation ------------------------------------------------------------------------

    def _is_ready(self) -> bool:
        return self.runner.router.startup.ready

    def _observe(self, output: events.Output) -> None:
        match output:
            case events.StageReached(stage):
                self.notifier.status(f"start-up: {stage}")
                if stage == Stage.READY.label:
                    self.notifier.status("routing")
                    self.notifier.ready()
                    asyncio.get_running_loop().call_later(SET_ASIDE_AFTER, garbage.set_aside)
            case ospf.NeighborChanged(ifindex=ifindex, router_id=router_id, reason=reason):
                self.runtime.neighbor_reasons[ifindex, router_id] = reason
            case isis.AdjacencyChanged(ifindex=ifindex, system_id=system_id, reason=reason):
                self.runtime.neighbor_reasons[ifindex, isis_node(system_id)] = reason
            case events.Converged(record):
                self.log.info(
                    "converged",
                    causes=list(record.causes),
                    spf=record.spf_ran,
                    routes=record.routes,
                    operations=record.operations,
                    milliseconds=round(record.total * 1e3, 2),
                )

    def context(self) -> ViewContext:
        """One moment of the daemon, for views."""
        return ViewContext(
            router=self.runner.router,
            config=self.config,
            runtime=self.runtime,
            now=asyncio.get_running_loop().time(),
            wall=time.time(),
            log=self.ring,
            dump=self.fib.dump,
            links=self.monitor.links,
            counters=self._counters,
        )

    def _counters(self) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
        return counters_of(
            self.runner.router,
            packets=self.sockets.counters,
            frames=self.frames.counters,
            operations=self.runner.counts,
            loads=self.runtime.load_samples,
        )

    # -- commands ---------------------------------------------------------------------------

    def _command(self, command: str, args: Json) -> Mapping[str, Any]:
        from fared.daemon import commands  # noqa: PLC0415 - views: for those who ask

        if command in commands.VIEWS:
            document: Mapping[str, Any] = commands.run_view(self.context(), command, args)
            return document
        match command:
            case "drain" | "undrain":
                return self._drain(drained=command == "drain")
            case "reload":
                return self._reload()
            case "config-diff":
                return reload.config_diff(self.config, self.path, args)
        raise CommandError("unknown-command", f"no such command: {command}")

    def _command_failed(self, command: str, error: Exception) -> None:
        self.log.error("command-failed", command=command, exc_info=error)

    def _drain(self, *, drained: bool) -> Json:
        """Stub router (RFC 6987): others stop passing through, what ends here still arrives."""
        self._drained = drained
        self.log.info("drain" if drained else "undrain")
        self._apply_router_settings()
        return {"format": "fared-drain/1", "drained": drained}

    def _apply_router_settings(self) -> None:
        settings = router_settings(self.config, self.router_id, self.hostname)
        if self._drained:
            settings = settings.drain()
        settings = with_clock(settings, time.time_ns(), asyncio.get_running_loop().time())
        self._epoch = settings.epoch
        self.runner.feed(events.RouterSettingsApplied(settings))
        self.health.reconfigured()

    def check_clock(self) -> None:
        """Follow a wall clock that was set: key lifetimes count in it."""
        epoch = time.time() - asyncio.get_running_loop().time()
        if abs(epoch - self._epoch) > CLOCK_TOLERANCE:
            self.log.info("clock-was-set", seconds=round(epoch - self._epoch, 3))
            self._apply_router_settings()

    def _hang_up(self) -> None:
        self.notifier.reloading()
        self._reload()
        self.notifier.ready()

    def _reload(self) -> Json:
        """Read the file again; with any error the running configuration stays."""
        try:
            config = load_runnable(Path(self.path))
        except (ConfigErrors, OSError) as error:
            self.runtime.last_reload_ok, self.runtime.last_reload_error = False, str(error)
            self.log.error("reload-refused", error=str(error))
            return reload.refused(error)
        changes = diff(self.config, config)
        self.config = reload.merged(self.config, config)
        self.hostname = config.hostname or self.hostname
        self.runtime.loaded_at = time.time()
        self.runtime.last_reload_ok, self.runtime.last_reload_error = True, None
        self._apply_router_settings()
        for link in self.monitor.links.values():
            self.runner.feed_all(self._link_events(link))
        self._watch_routes()
        self.log.info("reloaded", changes=len(changes))
        return reload.applied(changes)

    def operations(self) -> Counter[str]:
        """Operations on the kernel by kind and result."""
        return self.runner.counts
