"""Start-up in named stages, and when a router reports that it is ready.

``Router`` advances through them. A restarted router finds its old routes in the kernel, still
forwarding. Routes computed from half a database would be worse, so adopted routes stay unchanged
until the last neighbor is full. Only then is the table updated, and unneeded objects swept. A
router that adopted nothing programs its routes as soon as it has them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec

CONFIRMATION_GRACE = 5.0
"""Seconds past the deadline in which neighbors may still confirm an adjacency."""


class Stage(enum.IntEnum):
    """Start-up stages in the order in which they are reached."""

    STARTING = 0
    LINKS_KNOWN = 1
    ADJACENCIES_UP = 2
    LSDB_IN_SYNC = 3
    FIRST_SPF = 4
    FIB_IN_SYNC = 5
    READY = 6

    @property
    def label(self) -> str:
        """The name in metrics, logs and ``show status``."""
        return self.name.lower().replace("_", "-")


class AdjacencyProgress(msgspec.Struct, frozen=True):
    """Progress of adjacencies: interfaces that could have one, and their neighbors."""

    expected: int
    full: int
    forming: int


def sum_progress(parts: Iterable[AdjacencyProgress]) -> AdjacencyProgress:
    """The sum over several protocols."""
    rows = [(part.expected, part.full, part.forming) for part in parts]
    return AdjacencyProgress(*map(sum, zip(*rows, strict=True)))


class StartUp(msgspec.Struct):
    """The present stage and when each was reached (seconds since ``began``)."""

    began: float
    deadline: float
    stage: Stage = Stage.STARTING
    reached: dict[Stage, float] = msgspec.field(default_factory=dict)

    def reach(self, stage: Stage, now: float) -> bool:
        """Move to the next stage; False where it is not the next one."""
        if stage != self.stage + 1:
            return False
        self.stage = stage
        self.reached[stage] = now - self.began
        return True

    @property
    def ready(self) -> bool:
        """Whether start-up is over."""
        return self.stage is Stage.READY

    def adjacencies_up(self, progress: AdjacencyProgress, now: float) -> bool:
        """Whether waiting for neighbors is over.

        Either every interface that could have a full neighbor has one, or the dead interval has
        passed without any still forming: a neighbor silent until then is down.
        """
        if progress.full >= progress.expected > 0:
            return True
        return now - self.began >= self.deadline and progress.forming == 0

    def lsdb_in_sync(self, progress: AdjacencyProgress, now: float, *, confirmed: bool) -> bool:
        """Whether no exchange is in progress and the database ``confirmed`` our adjacencies.

        A neighbor that never confirms must not keep the router from starting.
        """
        return progress.forming == 0 and (confirmed or now >= self._last_call)

    @property
    def _last_call(self) -> float:
        return self.began + self.deadline + CONFIRMATION_GRACE

    def next_deadline(self, now: float) -> float | None:
        """Return when waiting ends at the latest.

        None once that has passed: then an exchange is in progress, and its end is an event.
        """
        if self.stage not in {Stage.LINKS_KNOWN, Stage.ADJACENCIES_UP}:
            return None
        waiting = self.stage is Stage.LINKS_KNOWN
        at = self.began + self.deadline if waiting else self._last_call
        return at if at > now else None
