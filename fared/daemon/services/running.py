"""Services that run only where they are wanted; the code of each is loaded then.

BFD runs when a neighbor wants a session, BIER and what other packages plug in by the configuration,
spraying by the settings or what is left in the kernel, and the recorder when an operator asks for
it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fared.core.bfd import BfdWanted
from fared.daemon.loop.errors import DaemonError
from fared.daemon.loop.runner import Runner
from fared.daemon.loop.runtime import RunningConfig
from fared.daemon.services.spraying import SprayService
from fared.kernel.fib import KernelFib
from fared.kernel.leftovers import has_bier_table
from fared.kernel.monitor import KernelMonitor
from fared.router import events
from fared.router.stages import Stage
from fared.runtime import extensions

if TYPE_CHECKING:
    from fared.daemon.services.bfd import BfdClient
    from fared.daemon.services.bier import BierService
    from fared.daemon.services.fpm import FpmService
    from fared.daemon.services.recorder import RouterRecorder
    from fared.daemon.services.switch_start import SwitchStart
    from fared.management.documents.context import PluggedIn
    from fared.sonic.platform import SonicPlatform


_ROUTES_KNOWN = Stage.FIB_IN_SYNC.label


class Services:
    """The services of one daemon; None: the service does not run."""

    def __init__(
        self,
        running: RunningConfig,
        runner: Runner,
        fib: KernelFib,
        monitor: KernelMonitor,
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        *,
        platform: SonicPlatform | None = None,
    ) -> None:
        """Create those that the configuration wants."""
        config = running.config
        self._running, self._runner, self._monitor, self._log = running, runner, monitor, log
        self._platform = platform
        self.bfd: BfdClient | None = None
        self.bier: BierService | None = None
        self.fpm: FpmService | None = None
        self._switch: SwitchStart | None = None
        self.plugged: dict[str, PluggedIn] = {}
        """Those of other packages, by their section of the configuration."""
        self.recorder: RouterRecorder | None = None
        """What records the router; None: nothing has been recorded yet."""
        self.spraying = SprayService(fib, runner, log, runner.defence)
        runner.serve(BfdWanted, self._want_bfd)
        runner.observers.append(self.observe)
        if config.bier is not None:
            self.bier = self._bier_service()
            runner.serve(events.ApplyBier, self.bier.apply)
        for service in extensions.SERVICES:
            section = getattr(config, service.section)
            if section.enabled:
                plugged = extensions.part(service.service)
                self.plugged[service.section] = plugged(section, runner, log, monitor.links.values)

    # -- from start to stop -------------------------------------------------------------------

    def start(self) -> None:
        """Adopt what a former process left in the kernel, or remove what this one does not run."""
        self.configure()
        if self.bier is not None:
            self.bier.start()
        elif has_bier_table():
            self._bier_service().clear()

    def _bier_service(self) -> BierService:
        from fared.daemon.services.bier import BierService  # noqa: PLC0415 - where BIER runs, or ran

        return BierService(self._runner.feed, self._log, self._runner.defence)

    def configure(self) -> None:
        """Apply the present settings."""
        self.spraying.configure(self._runner.router.settings.spray)
        self._configure_fpm()

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

    async def finish(self) -> None:
        """Let other processes take the last changes."""
        if self.fpm is not None:
            await self.fpm.finish()

    def close(self) -> None:
        """End the connections to other processes."""
        self._end_fpm()
        if self.bfd is not None:
            self.bfd.stop()
        for plugged in self.plugged.values():
            plugged.stop()

    # -- FPM ----------------------------------------------------------------------------------

    def _configure_fpm(self) -> None:
        """Begin or end the session of FPM, or begin one with another peer."""
        wanted = self._running.config.fib.fpm
        if wanted == (None if self.fpm is None else self.fpm.peer):
            return
        self._end_fpm()
        if wanted is not None:
            from fared.daemon.services.fpm import FpmService  # noqa: PLC0415 - only with FPM

            runner, monitor = self._runner, self._monitor
            self.fpm = FpmService(
                self._running.config,
                lambda: runner.router.planner,
                lambda: monitor.links,
                self._log,
                runner.defence,
            )
            runner.after_flush = self.fpm.pull
            self._switch = self._switch_start(self.fpm)
            self.fpm.start(None if self._switch is None else self._switch.prepared)

    def _switch_start(self, fpm: FpmService) -> SwitchStart | None:
        """Begin what SONiC needs beside the session; None: this is no such switch."""
        if self._platform is None:
            return None
        from fared.daemon.services.switch_start import SwitchStart  # noqa: PLC0415 - only on SONiC

        protocol = self._running.config.fib.protocol
        switch = SwitchStart(fpm, self._platform.databases, protocol, self._log)
        switch.start()
        if self._runner.router.startup.stage >= Stage.FIB_IN_SYNC:
            switch.routes_known()
        return switch

    def _end_fpm(self) -> None:
        if self._switch is not None:
            self._switch.stop()
        if self.fpm is not None:
            self.fpm.stop()
        self._switch = self.fpm = self._runner.after_flush = None

    def observe(self, output: events.Output) -> None:
        """Follow the start of the router."""
        is_known = isinstance(output, events.StageReached) and output.stage == _ROUTES_KNOWN
        if is_known and self._switch is not None:
            self._switch.routes_known()

    # -- BFD ----------------------------------------------------------------------------------

    def _want_bfd(self, proto: str, wanted: BfdWanted) -> None:
        """Run a BFD session, or end it."""
        if self.bfd is None:
            from fared.daemon.services.bfd import BfdClient  # noqa: PLC0415 - most routers run no BFD

            soon = asyncio.get_running_loop().call_soon
            self.bfd = BfdClient(self._runner.feed, soon, self._log)
        self.bfd.want(proto, wanted)

    # -- recordings ---------------------------------------------------------------------------

    def make_recorder(self) -> RouterRecorder:
        """What records the router, which most daemons never need."""
        if self.recorder is None:
            from fared.daemon.services.recorder import RouterRecorder  # noqa: PLC0415 - as said

            self.recorder = RouterRecorder(
                self._runner,
                self._running.config.state_directory,
                self._runner.defence.guard,
                self._log,
            )
        return self.recorder

    def record(self, directory: str, seed: int, now: float) -> None:
        """Record the router from its first call on. Raises DaemonError."""
        from fared.management.recording.files import RecordingError  # noqa: PLC0415 - where it is wanted

        try:
            self.make_recorder().begin_new(Path(directory).absolute(), seed, now)
        except RecordingError as error:
            raise DaemonError(f"cannot record: {error}") from None

    async def end_recording(self) -> None:
        """End the recording, if one runs."""
        if self.recorder is not None:
            await self.recorder.end()
