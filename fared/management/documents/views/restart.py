"""Graceful restarts of this router, shown alike by both protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fared.management.documents.graceful_restart import EndedRestart, RunningRestart

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.protocols.igp.restart import RestartEnded


class _Running(Protocol):
    @property
    def began(self) -> float: ...
    @property
    def until(self) -> float: ...


def running_restart(context: ViewContext, current: _Running | None) -> RunningRestart | None:
    """Return the restart in progress, in seconds from now."""
    if current is None:
        return None
    since, remaining = context.now - current.began, current.until - context.now
    return RunningRestart.of(current, since=round(since, 3), remaining=round(remaining, 3))


def ended_restart(context: ViewContext, last: RestartEnded | None) -> EndedRestart | None:
    """Return how the last restart ended."""
    if last is None:
        return None
    ended = round(context.now - last.at, 3)
    return EndedRestart.of(last, duration=round(last.duration, 3), ended=ended)
