"""The kernel's side of the daemon: routes to write, links to watch, sysctls to keep.

Opened at start, before the router exists, and closed last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fared.core.link_facts import KERNEL_PLATFORM, LinkPlatform
from fared.daemon.change.machine import named_interfaces, router_id_of, sysctls_of
from fared.daemon.change.settings import fib_settings
from fared.daemon.loop.errors import DaemonError
from fared.daemon.loop.runtime import RunningConfig, Runtime
from fared.daemon.loop.sysctls import SettingsGuard
from fared.kernel import monitor
from fared.kernel.fib import KernelFib
from fared.kernel.sysctl import SysctlMode, Wanted
from fared.paths.fib.model import FibState, ForwardingTable, deletions
from fared.paths.fib.unwritten import UnwrittenFib

ADOPT_WITHIN = 10.0
"""Seconds for attempts to read the kernel before start-up fails."""


class KernelSide:
    """The FIB, the monitor, and the guard of the sysctls that routing needs."""

    def __init__(
        self,
        running: RunningConfig,
        runtime: Runtime,
        report: Callable[[monitor.KernelEvent], None],
        settled: Callable[[], None],
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        *,
        platform: LinkPlatform = KERNEL_PLATFORM,
    ) -> None:
        """``report`` and ``settled`` are called from the start of the monitor on.

        Raises DaemonError.
        """
        self._running, self._log = running, log
        fib = running.config.fib
        self.fib = KernelFib(
            table=fib.table,
            protocol=fib.protocol,
            metric=fib.metric,
            settings=fib_settings(running.config),
        )
        self.table: ForwardingTable = self.fib if fib.kernel else UnwrittenFib()
        """Where routes are written."""
        self.monitor = monitor.KernelMonitor(
            report,
            protocol=fib.protocol,
            fib_port=self.fib.port_id,
            taken=self.fib.taken,
            ours=self.fib.notices.add,
            settled=settled,
            facts=platform.link,
        )
        self.router_id = self._router_id()
        self.sysctls = SettingsGuard(
            SysctlMode(fib.sysctls),
            self._wanted_sysctls,
            lambda: self.monitor.links,
            runtime,
            log,
        )

    def _router_id(self) -> int:
        """The router id, 0 if none is needed. Raises DaemonError."""
        config = self._running.config
        found = router_id_of(config, list(self.monitor.links.values()))
        if found is None and any(section.needs_router_id for section in config.protocols.values()):
            raise DaemonError(
                "no router id: set router-id in the configuration, or give lo an address"
                " other than 127.0.0.1"
            )
        return found or 0

    def _wanted_sysctls(self) -> list[Wanted]:
        links = list(self.monitor.links.values())
        return sysctls_of(self._running.config, self.router_id, links)

    async def adoptable(self) -> FibState:
        """Return our objects in the kernel. Raises DaemonError if they cannot be read.

        If the kernel gets no routes those of a former process are removed.
        """
        found = await self._readable()
        if self.writes:
            return found
        if operations := deletions(found):
            self.fib.apply(operations)
        return FibState()

    @property
    def writes(self) -> bool:
        """Whether the kernel gets routes."""
        return self.table is self.fib

    async def _readable(self) -> FibState:
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

    def report_missing(self) -> None:
        """Warn of interfaces that the file names and the kernel does not have."""
        present = {link.name for link in self.monitor.links.values()}
        for name in named_interfaces(self._running.config):
            if name not in present:
                self._log.warning(
                    "interface-missing", interface=name, effect="runs when it appears"
                )

    def watch_routes(self, *, by_flow: bool) -> None:
        """Watch routes that may be redistributed, and those that sprayed packets may follow.

        ``by_flow``: no packets are sprayed. Of sprayed prefixes the packets that a route of others
        leads keep their path.
        """
        sections = self._running.config.protocols.values()
        wanted = any(section.redistribute.wanted for section in sections)
        self.monitor.watch_routes(wanted=wanted or not by_flow)
