"""Sources of views and metrics: the parts of the running daemon at the time of the request.

The views are imported long after start-up, or at the first request, since routing does not need
them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from fared.core.ids import Prefix
from fared.core.link_facts import KERNEL_PLATFORM, LinkPlatform
from fared.daemon.change.config_documents import ConfigDocuments
from fared.daemon.change.operation import Operation
from fared.daemon.loop.audit import Auditor
from fared.daemon.loop.defence import Defence
from fared.daemon.loop.inputs import Inputs
from fared.daemon.loop.runner import Runner
from fared.daemon.loop.runtime import RunningConfig, Runtime
from fared.daemon.loop.sysctls import SettingsGuard
from fared.daemon.people.counters import counters_of
from fared.daemon.services.running import Services
from fared.kernel.fib import KernelFib
from fared.kernel.monitor import KernelMonitor
from fared.management.documents.context import NothingForwarded, ViewContext
from fared.management.documents.errors import CommandError
from fared.management.documents.log_ring import LogRing
from fared.paths.fib.model import FibState

if TYPE_CHECKING:
    from fared.management.documents.bfd import Bfd


class ViewSource(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that views read. ``log``: latest records."""

    running: RunningConfig
    runner: Runner
    runtime: Runtime
    fib: KernelFib
    writes: bool = True
    """Whether the kernel gets routes."""
    monitor: KernelMonitor
    auditor: Auditor
    sysctls: SettingsGuard
    services: Services
    defence: Defence
    inputs: Inputs
    log: LogRing
    lines_lost: Callable[[], int]
    operation: Operation
    config_documents: ConfigDocuments
    platform: LinkPlatform = KERNEL_PLATFORM

    def families(self) -> Iterable[Any]:
        """All metrics of this moment, as prometheus_client has them."""
        from fared.daemon.people.metrics import families  # noqa: PLC0415 - not before it is scraped

        return families(self.context(), self.runner.counts)

    async def load(self) -> None:
        """Import all views in a thread, while the loop runs."""
        await asyncio.to_thread(_load, list(self.runner.router.instances))

    def context(self) -> ViewContext:
        """The present state of the daemon."""
        return ViewContext(
            router=self.runner.router,
            config=self.running.config,
            runtime=self.runtime,
            now=asyncio.get_running_loop().time(),
            wall=time.time(),
            log=self.log,
            dump=self._dump,
            links=self.monitor.links,
            counters=self._counters,
            foreign=self._foreign_routes,
            bfd=self._bfd,
            shown_config=self.config_documents.answer,
            plugged=self.services.plugged,
            spraying=self.services.spraying,
            derated=self.operation.deratings,
            link_health=self.operation.link_health,
            drained=self.operation.drained,
            platform=self.platform,
            bier=self.services.bier or NothingForwarded(),
            fpm=self.services.fpm,
        )

    def _dump(self) -> FibState:
        """The kernel's tables. Raises CommandError if they cannot be read."""
        if not self.writes:
            return self.runner.router.planner.installed
        try:
            return self.fib.dump()
        except OSError as error:
            why = error.strerror or str(error)
            raise CommandError("busy", f"the kernel cannot be read now: {why}") from None

    def _bfd(self) -> Bfd | None:
        client = self.services.bfd
        if client is None:
            return None
        from fared.daemon.services.bfd_report import bfd_document  # noqa: PLC0415 - only with BFD

        return bfd_document(client, asyncio.get_running_loop().time())

    def _foreign_routes(self) -> dict[Prefix, int | None]:
        """Foreign routes in the places of ours, with their protocol numbers."""
        wanted = self.runner.router.planner.desired
        return {p: number for p, number in self.fib.foreign.items() if p in wanted}

    def _counters(self) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
        return counters_of(
            self.runner.router,
            sockets=self.inputs.counters,
            operations=self.runner.counts,
            loads=self.runtime.load_samples,
            edge={
                "audits-skipped": self.auditor.skipped,
                "log-lines-lost": self.lines_lost(),
                "sysctls-set-back": self.sysctls.set_back,
                **{f"internal-error {where}": n for where, n in self.defence.counts.items()},
            },
        )


def _load(protocols: list[str]) -> None:
    from fared.management.documents.dispatch import load  # noqa: PLC0415 - long after start-up

    load(protocols)
