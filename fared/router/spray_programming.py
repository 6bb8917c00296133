"""Passes the spray planner what the FIB holds, its operations to the kernel, and answers back.

``Spraying`` creates it when packets are to be sprayed, or when a former process left sprayed ones
behind. Nothing is changed while the FIB is frozen, and while operations on it are unanswered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.paths.fib.settings import SpraySettings
from fared.paths.fib.spray_planner import SprayPlanner
from fared.protocols.igp import events as igp
from fared.router import events

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fared.core.ids import Prefix
    from fared.paths.fib.planner import FibPlanner
    from fared.router.programming import FibProgramming


class SprayProgramming:
    """Executes a spray planner; ``outputs`` receives its operations and log records."""

    def __init__(
        self,
        settings: SpraySettings,
        planner: FibPlanner,
        fib: FibProgramming,
        outputs: list[events.Output],
    ) -> None:
        self.planner = SprayPlanner(settings)
        self._fib_planner = planner
        self._fib = fib
        self._outputs = outputs
        self._seen: int | None = None
        self._refused = ""

    def configure(self, settings: SpraySettings) -> None:
        """Apply changed settings."""
        if settings != self.planner.settings:
            self.planner.settings = settings
            self._seen = None

    def handle(self, event: events.SprayInput, now: float) -> None:
        """Take what the kernel holds, or its answer."""
        match event:
            case events.SprayAdopted(state):
                self.planner.adopt(state)
            case events.SprayAudited(state):
                self._audited(event)
            case events.SprayApplied(error, state):
                self.planner.answered(error, state, now)
                self._follow_links()
                self._log_refusal(error)

    def _audited(self, event: events.SprayAudited) -> None:
        """Repair changes by others; a reading that a change of ours overtakes is ignored."""
        if self.planner.busy:
            return
        drift = self.planner.reconcile(event.state)
        if drift:
            fields: dict[str, object] = {"objects": drift}
            self._outputs.append(igp.LogRecord("warning", "spray-drift-repaired", fields))

    def _log_refusal(self, error: str) -> None:
        if error and error != self._refused:
            fields: dict[str, object] = {"error": error, "effect": "packets follow their flow"}
            self._outputs.append(igp.LogRecord("warning", "spray-refused", fields))
        self._refused = error

    def _follow_links(self) -> None:
        self.planner.lose_marks(self._fib_planner.installed.nexthops)

    def process(self, now: float, local: Iterable[Prefix]) -> None:
        """Plan what is due."""
        if self._fib.frozen or self._fib.unanswered or self._fib.withdrawn:
            return
        if self._fib.version != self._seen:
            self._seen = self._fib.version
            self._follow_links()
            planner = self._fib_planner
            self.planner.desire(planner.installed, planner.desired, local)
        operations = self.planner.plan(now)
        if operations:
            self._outputs.append(events.ApplySpray(tuple(operations)))

    def local_changed(self) -> None:
        """Take changed routes of other sources into account."""
        self._seen = None

    def next_deadline(self) -> float | None:
        """When to call ``process`` at the latest."""
        return None if self._fib.frozen else self.planner.next_deadline()
