"""Services that run only where they are wanted; the code of each is loaded then.

BFD runs when a neighbor wants a session, BIER and aggregation by the configuration, spraying by
the settings or what is left in the kernel, and the recorder when an operator asks for it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fared.config import Config
from fared.core.bfd import BfdWanted
from fared.daemon.extensions import JOBS, extension
from fared.daemon.loop.defence import Defence
from fared.daemon.loop.errors import DaemonError
from fared.daemon.loop.runner import Runner
from fared.daemon.services.spraying import SprayService
from fared.kernel.fib import KernelFib
from fared.kernel.leftovers import has_bier_table
from fared.kernel.monitor import KernelMonitor
from fared.router.router import Router

if TYPE_CHECKING:
    from fared.daemon.services.bfd import BfdClient
    from fared.daemon.services.bier import BierService
    from fared.daemon.services.recorder import RouterRecorder
    from fared.management.documents.context import JobSource


class ServiceHost(Protocol):
    """The parts of the daemon that services use."""

    config: Config
    fib: KernelFib
    monitor: KernelMonitor
    runner: Runner
    defence: Defence
    log: Any  # structlog's filtering logger has no public type


class Services:
    """The services of one daemon; None: the service does not run."""

    spraying: SprayService

    def __init__(self, host: ServiceHost) -> None:
        self._host = host
        self.bfd: BfdClient | None = None
        self.bier: BierService | None = None
        self.ina: JobSource | None = None
        self.recorder: RouterRecorder | None = None
        """What records the router; None: nothing has been recorded yet."""

    # -- from start to stop -------------------------------------------------------------------

    def make(self) -> None:
        """Create those that the configuration wants, once the runner exists."""
        host = self._host
        self.spraying = SprayService(host.fib, host.runner, host.log, host.defence)
        host.runner.on_bfd = self._want_bfd
        if host.config.bier is not None:
            from fared.daemon.services.bier import BierService  # noqa: PLC0415 - where BIER runs

            self.bier = BierService(host.runner.feed, host.log, host.defence)
            host.runner.bier = self.bier.apply
        if host.config.ina.enabled:
            self.ina = extension(JOBS)(
                host.runner, host.config.ina.socket, host.log, host.monitor.links.values
            )

    def start(self) -> None:
        """Adopt what a former process left in the kernel, or remove what this one does not run."""
        self.configure()
        if self.bier is not None:
            self.bier.start()
        elif has_bier_table():
            from fared.daemon.services.bier import BierService  # noqa: PLC0415 - where BIER ran

            host = self._host
            BierService(host.runner.feed, host.log, host.defence).clear()

    def configure(self) -> None:
        """Apply the router's present settings."""
        self.spraying.configure(self._host.runner.router.settings.spray)

    def audit(self) -> None:
        """Compare nftables with the expected state."""
        self.spraying.audit()
        if self.bier is not None:
            self.bier.look_soon()

    async def stop(self, *, remove: bool) -> None:
        """End what writes nftables; ``remove``: leave nothing in the kernel."""
        await self.spraying.stop(remove=remove)
        if self.bier is not None:
            await self.bier.stop(remove=remove)

    def close(self) -> None:
        """End the connections to other processes."""
        if self.bfd is not None:
            self.bfd.stop()
        if self.ina is not None:
            self.ina.stop()

    # -- BFD ----------------------------------------------------------------------------------

    def _want_bfd(self, proto: str, wanted: BfdWanted) -> None:
        """Run a BFD session, or end it."""
        if self.bfd is None:
            from fared.daemon.services.bfd import BfdClient  # noqa: PLC0415 - most routers run no BFD

            soon = asyncio.get_running_loop().call_soon
            self.bfd = BfdClient(self._host.runner.feed, soon, self._host.log)
        self.bfd.want(proto, wanted)

    # -- recordings ---------------------------------------------------------------------------

    def make_recorder(self) -> RouterRecorder:
        """What records the router, which most daemons never need."""
        if self.recorder is None:
            from fared.daemon.services.recorder import RouterRecorder  # noqa: PLC0415 - as said

            self.recorder = RouterRecorder(self._host, self._host.defence.guard)
        return self.recorder

    def recorded(self, router: Router, directory: str, seed: int, now: float) -> Router:
        """Record a router from its first call on. Raises DaemonError."""
        from fared.management.recording.files import RecordingError  # noqa: PLC0415 - where it is wanted

        try:
            return self.make_recorder().begin_new(router, Path(directory).absolute(), seed, now)
        except RecordingError as error:
            raise DaemonError(f"cannot record: {error}") from None

    async def end_recording(self) -> None:
        """End the recording, if one runs."""
        if self.recorder is not None:
            await self.recorder.end()
