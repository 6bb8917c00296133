"""``show convergence``: how long start-up and the last changes took, stage by stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fared.management.documents import human
from fared.management.documents.cells import Columns, Styled, dim
from fared.management.documents.declare import Answer, Document
from fared.management.documents.facts import Facts, Seconds
from fared.management.documents.happened import WhatChanged, told
from fared.management.documents.sliced import Sliced, Work

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.management.documents.paper import Paper


class StageTime(Facts):
    """A start-up stage and when it was reached, in seconds since start."""

    stage: str
    seconds: Seconds


class ConvergenceChange(WhatChanged):
    """One change from its first sign to the kernel.

    ``detected`` is from the kernel's message or the packet to the engine, ``originated`` until our
    LSAs, and those to flood, were ready, ``flooded`` sending them. ``waited``
    was added by the SPF back-off, ``computed`` is ``spf`` and ``weighed`` (weights and RIB),
    ``planned`` the FIB plan, after other areas or levels have been told of the change,
    ``programmed`` the kernel; ``total`` is from first sign to done.
    """

    spf_ran: bool
    routes: int
    operations: int
    detected: Seconds
    originated: Seconds
    flooded: Seconds
    waited: Seconds
    computed: Seconds
    spf: Seconds
    weighed: Seconds
    planned: Seconds
    programmed: Seconds
    total: Seconds


_ROUNDED: Final = 1.01
"""Stages are rounded, and need not overlap if they add up to a little more."""
_WIDE: Final = 140
"""Columns that the stages of a change and its causes need beside one another."""


class Convergence(Answer, tag="fared-convergence/1"):
    """``show convergence``: start-up, then the last changes."""

    stages: list[StageTime]
    changes: list[ConvergenceChange]

    def show(self, paper: Paper) -> None:
        """Print start-up, then of each change its stages, what it changed and why."""
        stages = [f"{stage.stage} {human.duration(stage.seconds)}" for stage in self.stages]
        paper.line(dim(f"start-up: {', '.join(stages) or 'not begun'}\n"))
        numbers = {id(change): n for n, change in enumerate(reversed(self.changes), 1)}
        number: Columns = {">#": lambda change: str(numbers[id(change)])}
        ago: Columns = {">Ago": lambda change: paper.ago(change.at)}
        if paper.width >= _WIDE:
            paper.table(self.changes, {**number, **ago, **_STAGES, **_CAUSES})
        else:
            paper.table(self.changes, {**number, **_STAGES})
            paper.line()
            paper.table(self.changes, {**number, **ago, **_CAUSES})
        if any(map(_overlaps, self.changes)):
            paper.line(dim("stages overlap where they add up to more than the total"))
        if self.changes:
            paper.line(dim("'show changed #' has the routes of a change"))


def _overlaps(change: ConvergenceChange) -> bool:
    """Whether the stages of a change, as they are shown, add up to more than its total."""
    stages = (
        change.detected,
        change.originated,
        change.flooded,
        change.waited,
        change.spf,
        change.weighed,
        change.planned,
        change.programmed,
    )
    return sum(stages) > change.total * _ROUNDED


_STAGES: Columns = {
    ">Total": lambda change: Styled(human.duration(change.total), "bold"),
    ">Detect": "detected",
    ">Originate": "originated",
    ">Flood": "flooded",
    ">Wait": "waited",
    ">SPF": "spf",
    ">Weights": "weighed",
    ">FIB": lambda change: human.duration(change.planned + change.programmed),
}
_CAUSES: Columns = {">Routes": "routes", ">Ops": "operations", "~What changed": "why"}


def stages(context: ViewContext) -> list[StageTime]:
    """Return the start-up stages reached so far."""
    reached = sorted(context.router.startup.reached.items())
    return [StageTime(stage=stage.label, seconds=round(at, 6)) for stage, at in reached]


@Sliced
def convergence(context: ViewContext) -> Work[Convergence]:
    """``show convergence``."""
    changes_at = yield from told(context)
    changes = [
        ConvergenceChange.of(
            change,
            at=context.unix(change.at),
            causes=list(change.causes),
            changes=changes_at(change.at),
        )
        for change in context.router.journal.changes
    ]
    return Convergence(stages=stages(context), changes=changes)


DOCUMENT = Document(
    Convergence,
    convergence,
    "Duration of the last changes, by stage. Their causes are included.",
)
