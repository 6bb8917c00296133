"""Advances start-up through its stages: when each is reached is decided in ``stages``.

The first routes are computed once the database is whole; then what a former process left in the
kernel and nothing uses is removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.router import events
from fared.router.stages import AdjacencyProgress, Stage, StartUp, sum_progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from fared.router.instance import ProtocolInstance
    from fared.router.programming import FibProgramming


class Starting:
    """The start-up of one router."""

    def __init__(
        self,
        startup: StartUp,
        instances: dict[str, ProtocolInstance],
        fib: FibProgramming,
        outputs: list[events.Output],
        first_spf: Callable[[float], None],
    ) -> None:
        """``first_spf`` computes and writes the routes of the whole database."""
        self._startup = startup
        self._instances = instances
        self._fib = fib
        self._outputs = outputs
        self._first_spf = first_spf
        self._swept = False

    def progress(self) -> AdjacencyProgress:
        """Interfaces without a full neighbor, with one, and neighbors still forming."""
        return sum_progress(instance.progress() for instance in self._instances.values())

    def reach(self, stage: Stage, now: float) -> None:
        """Move to the next stage and report it; any other one is ignored."""
        if self._startup.reach(stage, now):
            reached = self._startup.reached[stage]
            self._outputs.append(events.StageReached(stage.label, reached))

    def advance(self, now: float) -> None:
        """Advance through the stages that have been reached."""
        startup = self._startup
        # RFC 3623 §2: while this router restarts, its routes stay as they were
        if any(instance.engine.restarting for instance in self._instances.values()):
            return
        if startup.stage is Stage.LINKS_KNOWN and startup.adjacencies_up(self.progress(), now):
            self.reach(Stage.ADJACENCIES_UP, now)
        if startup.stage is Stage.ADJACENCIES_UP and startup.lsdb_in_sync(
            self.progress(), now, confirmed=self._confirmed()
        ):
            self.reach(Stage.LSDB_IN_SYNC, now)
        if startup.stage is Stage.LSDB_IN_SYNC:
            self._first_spf(now)
            self.reach(Stage.FIRST_SPF, now)
        if startup.stage is Stage.FIRST_SPF and not self._fib.unanswered:
            self._end(now)

    def _end(self, now: float) -> None:
        """Remove what nothing uses; start-up ends when the kernel has answered."""
        if self._swept:
            self.reach(Stage.FIB_IN_SYNC, now)
            self.reach(Stage.READY, now)
            return
        self._swept = True
        self._fib.sweep(now)
        if not self._fib.unanswered:
            self._end(now)

    def _confirmed(self) -> bool:
        return all(instance.confirmed() for instance in self._instances.values())
