"""The table of timers."""

from __future__ import annotations

from rich.console import Console

from fared.management.documents import human
from fared.management.documents.paper import Json, Renderer, emit, table


def _timers(document: Json, out: Console, _now: float) -> None:
    """Print timers, with their protocol if several run."""
    protos = {timer["proto"] for timer in document["timers"]} - {None}
    shown = ("Proto",) if len(protos) > 1 else ()
    grid = table(">Due in", *shown, "Timer", "~About")
    for timer in document["timers"]:
        whose = (human.PROTOCOLS.get(timer["proto"], human.DASH),) if shown else ()
        grid.add_row(human.duration(timer["due_in"]), *whose, timer["timer"], timer["subject"])
    emit(out, grid)


RENDERERS: dict[str, Renderer] = {"fared-timers/1": _timers}
