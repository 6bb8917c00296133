"""Whether packets are sprayed, and with it whether the code for that is loaded at all.

It is loaded for a granularity other than ``flow``, and to remove what a former process left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.paths.fib.settings import Granularity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fared.core.ids import Prefix
    from fared.core.routes import LocalRoute, RouteKey
    from fared.paths.fib.planner import FibPlanner
    from fared.paths.fib.settings import SpraySettings
    from fared.router import events
    from fared.router.programming import FibProgramming
    from fared.router.spray_programming import SprayProgramming


class Spraying:
    """The part of the router that sprays packets; ``programming`` None: it never did."""

    def __init__(
        self,
        settings: SpraySettings,
        planner: FibPlanner,
        fib: FibProgramming,
        outputs: list[events.Output],
    ) -> None:
        self.programming: SprayProgramming | None = None
        self._settings = settings
        self._planner = planner
        self._fib = fib
        self._outputs = outputs
        self._local: dict[RouteKey, LocalRoute] = {}
        self.configure(settings)

    def configure(self, settings: SpraySettings) -> None:
        """Apply settings."""
        self._settings = settings
        if self.programming is not None:
            self.programming.configure(settings)
        elif not settings.by_flow:
            self._load()

    def _load(self) -> SprayProgramming:
        from fared.router.spray_programming import SprayProgramming  # noqa: PLC0415 - see above

        self.programming = SprayProgramming(self._settings, self._planner, self._fib, self._outputs)
        return self.programming

    def granularity(self, prefix: Prefix) -> str:
        """Return what takes one path of the route to a prefix."""
        programming = self.programming
        sprayed = programming is not None and programming.planner.sprayed(prefix)
        return (self._settings.granularity if sprayed else Granularity.FLOW).value

    def handle(self, event: events.SprayInput, now: float) -> None:
        """Take what the kernel holds, or its answer."""
        (self.programming or self._load()).handle(event, now)

    def local_changed(self, changes: Mapping[RouteKey, LocalRoute | None]) -> None:
        """Take changed routes of other sources: packets that they lead keep their path."""
        for key, route in changes.items():
            if route is None:
                self._local.pop(key, None)
            else:
                self._local[key] = route
        if self.programming is not None:
            self.programming.local_changed()

    def process(self, now: float) -> None:
        """Plan what is due."""
        if self.programming is not None:
            self.programming.process(now, (prefix for _, prefix in self._local))

    def next_deadline(self) -> float | None:
        """When to call ``process`` at the latest."""
        return None if self.programming is None else self.programming.next_deadline()
