"""The parts of a running daemon, between the kernel and people: made, started and stopped in order.

Each gets the parts that it needs. Where two need each other, the first one gets a method of
``DaemonParts``, which is not called before all parts exist.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterable
from functools import partial

from fared.config import Loaded
from fared.core.ids import format_node
from fared.core.link_facts import KERNEL_PLATFORM
from fared.daemon.change.config_change import ConfigChanges
from fared.daemon.change.config_documents import ConfigDocuments
from fared.daemon.change.operation import Operation
from fared.daemon.change.reload import Reloader
from fared.daemon.change.restart import GracefulRestart
from fared.daemon.kernel import KernelSide
from fared.daemon.loop.after_flood import AfterFlood, AfterManyRoutes, clear_caches
from fared.daemon.loop.audit import Auditor
from fared.daemon.loop.defence import Defence
from fared.daemon.loop.gathering import Prompt
from fared.daemon.loop.health import Health
from fared.daemon.loop.inputs import Inputs
from fared.daemon.loop.notify import Notifier
from fared.daemon.loop.periodic import Periodic
from fared.daemon.loop.runtime import RunningConfig, Runtime
from fared.daemon.people.logs import DaemonLog
from fared.daemon.people.reports import Reports
from fared.daemon.people.views import ViewSource
from fared.daemon.platform import chosen_platform
from fared.daemon.services.lost_links import LostLinksFile
from fared.daemon.services.running import Services
from fared.kernel.monitor import KernelEvent
from fared.protocols.igp import events as igp
from fared.router import events
from fared.router.router import Router
from fared.runtime.startup import empty_free_lists, release_freed

FAREWELL = 0.3
"""Seconds between flushing our LSAs and removing our routes, in which neighbors reroute."""


class DaemonParts:
    """Everything that needs the kernel; ``record``: where the router is recorded, if at all."""

    def __init__(
        self,
        loaded: Loaded,
        running: RunningConfig,
        *,
        runtime: Runtime,
        logs: DaemonLog,
        notifier: Notifier,
        defence: Defence,
        stopping: Callable[[], bool],
        leave: Callable[..., None],
        record: str | None,
    ) -> None:
        """Open what needs the kernel, and create the router.

        Raises DaemonError, PrivilegeError, OSError.
        """
        self.running, self.stopping = running, stopping
        self._runtime, self._notifier, self._defence = runtime, notifier, defence
        self.logs, self._log = logs, logs.logger
        self.platform = chosen_platform(running.config.platform, self._log)
        kernel = self._kernel = KernelSide(
            running,
            runtime,
            self._kernel_event,
            self._links_settled,
            self._log,
            platform=self.platform or KERNEL_PLATFORM,
        )
        self.monitor = kernel.monitor
        self.operation = Operation(
            running,
            kernel.router_id,
            lambda: kernel.monitor.links,
            router=self._router,
            feed=self._feed,
            log=self._log,
            platform=self.platform,
        )
        self.operation.watch_links()
        kernel.sysctls.start()
        seed, now = int.from_bytes(os.urandom(8)), asyncio.get_running_loop().time()
        jobs = Periodic(defence.guard)
        router = Router(self.operation.settings(), random.Random(seed), now, time.perf_counter)
        self._inputs = self._make_inputs(router, jobs)
        self.runner = self._inputs.runner
        self.runner.observers.append(Reports(notifier, runtime, self._log).observe)
        self.runner.observers.append(AfterManyRoutes(release_freed).observe)
        self.services = Services(
            running, self.runner, kernel.fib, kernel.monitor, self._log, platform=self.platform
        )
        if record is not None:
            self.services.record(record, seed, now)
        self._auditor = self._make_auditor()
        self.lost_links = LostLinksFile(
            running.config.state_directory, lambda: self.runner.router.changes, self._log
        )
        self.health = self._make_health(jobs)
        self.restarts = GracefulRestart(running, self.runner, leave, self._log)
        self.changes = self._make_changes(loaded)
        self.views = self._make_views()

    # -- the parts, of those before them --------------------------------------------------------

    def _make_inputs(self, router: Router, jobs: Periodic) -> Inputs:
        return Inputs(
            router,
            self._kernel,
            self.operation,
            request_audit=self._request_audit,
            on_tick=jobs.share,
            every=jobs.every,
            wants_debug=partial(self.logs.wants, "debug"),
            log=self._log,
            defence=self._defence,
        )

    def _make_auditor(self) -> Auditor:
        runner, kernel = self.runner, self._kernel
        return Auditor(
            kernel.fib,
            expected=lambda: runner.router.planner.installed.routes,
            feed=runner.feed,
            drift=lambda: runner.router.journal.counts["drift"],
            poll=kernel.monitor.read_links,
            links=lambda: kernel.monitor.version,
            log=self._log,
            defence=self._defence,
            done=self._runtime.resyncs,
            compared=self.services.audit,
        )

    def _make_health(self, jobs: Periodic) -> Health:
        runner, inputs, kernel = self.runner, self._inputs, self._kernel
        shrink = (inputs.forget_senders, clear_caches, empty_free_lists, release_freed)
        floods = AfterFlood(
            lambda: inputs.taken,
            lambda: sum(runner.counts.values()),
            shrink,
            empty_free_lists,
        )
        return Health(
            runner,
            self._runtime,
            self.operation,
            jobs=jobs,
            monitor=kernel.monitor,
            sysctls=kernel.sysctls,
            auditor=self._auditor,
            notifier=self._notifier,
            look_for_floods=floods.look,
            keep_lost_links=self.lost_links.keep,
            log=self._log,
            platform=self.platform,
        )

    def _make_changes(self, loaded: Loaded) -> ConfigChanges:
        make_reloader = partial(
            Reloader,
            self.running,
            self,
            self.operation.link_events,
            runner=self.runner,
            monitor=self.monitor,
            runtime=self._runtime,
            notifier=self._notifier,
            log=self._log,
        )
        return ConfigChanges(
            self.running,
            loaded,
            make_reloader,
            runtime=self._runtime,
            stopping=self.stopping,
            log=self._log,
        )

    def _make_views(self) -> ViewSource:
        running, logs = self.running, self.logs
        return ViewSource(
            running=running,
            runner=self.runner,
            runtime=self._runtime,
            fib=self._kernel.fib,
            writes=self._kernel.writes,
            monitor=self.monitor,
            auditor=self._auditor,
            sysctls=self._kernel.sysctls,
            services=self.services,
            defence=self._defence,
            inputs=self._inputs,
            log=logs.ring,
            lines_lost=lambda: logs.output.dropped,
            operation=self.operation,
            config_documents=ConfigDocuments(running, self._runtime),
            platform=self.platform or KERNEL_PLATFORM,
        )

    # -- what one part asks of a later one ----------------------------------------------------

    def _kernel_event(self, event: KernelEvent) -> None:
        self._inputs.kernel_event(event)

    def _links_settled(self) -> None:
        self._inputs.links_settled()

    def _router(self) -> Router:
        return self.runner.router

    def _feed(self, inputs: Iterable[events.Input]) -> None:
        self.runner.feed_all(inputs)

    def _request_audit(self, reason: str) -> None:
        self._auditor.request(reason)

    # -- from start to stop -------------------------------------------------------------------

    async def begin(self) -> None:
        """Adopt what the kernel has, pass the router its links, and report changes from then on.

        Raises DaemonError if the kernel cannot be read.
        """
        adopted = await self._kernel.adoptable()
        if self.platform is not None:
            await self.platform.start(self.monitor.facts_changed)
        links = list(self.monitor.links.values())
        self._kernel.report_missing()
        root = format_node(self.runner.router.solver.root)
        self._log.info("starting", router_id=root, hostname=self.operation.hostname)
        burst = self._inputs.burst
        self.monitor.start(Prompt(burst, burst.hasten))
        if self._kernel.writes:
            self._auditor.start()
        lost = self.lost_links.read(asyncio.get_running_loop().time())
        restart = self.restarts.begun(routes=bool(adopted.routes))
        self.runner.feed(
            events.FibAdopted(adopted),
            *([] if restart is None else [restart]),
            *(event for link in links for event in self.operation.link_events(link)),
            *([events.LostLinksKnown(lost)] if lost else []),
            events.LinksKnown(),
        )
        self.watch_routes()
        self.services.start()

    async def shut_down(self, *, withdraw: bool) -> None:
        """Tell the neighbors that this router leaves; ``withdraw``: remove our routes, too."""
        await self.operation.retire()
        self.runner.feed(igp.ShutdownRequested())
        await asyncio.sleep(FAREWELL)
        await self.services.stop(remove=withdraw)
        if withdraw:
            self.runner.feed(events.WithdrawRequested())
            await self.services.finish()
        self.close()
        self.restarts.stopped()

    def close(self) -> None:
        """Close everything that needs the kernel; our routes stay as they are."""
        self._auditor.stop()
        if self.platform is not None:
            self.platform.stop()
        self._kernel.sysctls.stop()
        self.runner.stop()
        self.services.close()
        self.lost_links.close()
        self._inputs.close()
        self.monitor.close()
        self._kernel.fib.close()

    # -- changes ------------------------------------------------------------------------------

    def watch_routes(self) -> None:
        """Watch routes that may be redistributed, now that the router knows its interfaces."""
        self._kernel.watch_routes(by_flow=self.runner.router.settings.spray.by_flow)

    def reconfigured(self) -> None:
        """Apply the settings of the whole router from the configuration."""
        log = self.running.config.log
        self.logs.configure(log.level, log.format)
        self.operation.watch_links()
        self.operation.apply()
        self.health.reconfigured()
        self.services.configure()
        self._kernel.sysctls.check_soon()
        self.restarts.running()
