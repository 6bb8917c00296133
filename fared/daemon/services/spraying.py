"""Starts and stops spraying: at start, with a reload, and on exit.

Its code is loaded if packets are to be sprayed, or if a former process left something in the
kernel. Without nftables packets follow their flow.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fared.daemon.loop.defence import Defence
from fared.daemon.loop.runner import Runner
from fared.kernel.fib import KernelFib
from fared.paths.fib.settings import SpraySettings
from fared.router import events

if TYPE_CHECKING:
    from fared.daemon.services.spray_writer import SprayWriter


class SprayService:
    """Has a ``writer`` while packets may be sprayed; ``missing``: why it has none."""

    def __init__(
        self,
        fib: KernelFib,
        runner: Runner,
        log: Any,  # noqa: ANN401 - structlog's filtering logger has no public type
        defence: Defence,
    ) -> None:
        self.writer: SprayWriter | None = None
        self.missing = ""
        self._fib = fib
        self._runner = runner
        self._log = log
        self._defence = defence

    def configure(self, settings: SpraySettings) -> None:
        """Start if settings, or remains in the kernel, require it."""
        if self.writer is None and not (settings.by_flow and not self._fib.marks):
            self._start(settings)

    def _start(self, settings: SpraySettings) -> None:
        # Not needed by a daemon whose packets follow their flows.
        from fared.daemon.services.spray_writer import SprayWriter  # noqa: PLC0415
        from fared.kernel.spray import open_spray  # noqa: PLC0415

        kernel = open_spray(self._fib)
        if kernel is None:
            self.missing = "nft is missing: install nftables"
            self._log.warning(
                "packets-not-sprayed",
                granularity=settings.granularity.value,
                reason=self.missing,
                effect="packets follow their flow",
            )
            return
        self.missing = ""
        self.writer = SprayWriter(kernel, self._runner.feed, self._log, self._defence)
        self._runner.serve(events.ApplySpray, self.writer.apply)
        self.writer.adopt()

    @property
    def problem(self) -> str:
        """Why nothing can be sprayed; empty if it can."""
        return self.missing if self.writer is None else self.writer.unread

    @property
    def counted(self) -> Mapping[int, tuple[int, int]]:
        """Packets and bytes of each mark at the last reading; another one follows."""
        if self.writer is None:
            return {}
        self.writer.audit()
        return self.writer.kernel.counted

    def audit(self) -> None:
        """Compare the kernel with the expected state soon."""
        if self.writer is not None:
            self.writer.look_soon()

    async def stop(self, *, remove: bool) -> None:
        """Stop; ``remove``: leave nothing in the kernel."""
        if self.writer is not None:
            await self.writer.stop(remove=remove)
