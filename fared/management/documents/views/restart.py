"""Graceful restarts of this router, shown alike by both protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.management.documents.schema.restart import EndedRestart, RunningRestart
    from fared.protocols.igp.restart import RestartEnded


class _Running(Protocol):
    @property
    def planned(self) -> bool: ...
    @property
    def began(self) -> float: ...
    @property
    def until(self) -> float: ...


def running_restart(context: ViewContext, current: _Running | None) -> RunningRestart | None:
    """Return the restart in progress, in seconds from now."""
    if current is None:
        return None
    return {
        "planned": current.planned,
        "since": round(context.now - current.began, 3),
        "remaining": round(current.until - context.now, 3),
    }


def ended_restart(context: ViewContext, last: RestartEnded | None) -> EndedRestart | None:
    """Return how the last restart ended."""
    if last is None:
        return None
    return {
        "planned": last.planned,
        "duration": round(last.duration, 3),
        "ended": round(context.now - last.at, 3),
        "result": last.result,
    }
