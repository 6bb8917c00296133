"""``show timers``: what is pending, the next first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents import human
from fared.management.documents.cells import Columns
from fared.management.documents.declare import Answer, Document
from fared.management.documents.facts import Facts, Seconds

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


class PendingTimer(Facts):
    """A pending timer. ``subject`` is its interface, neighbor or LSA.

    ``proto`` None: it serves all protocols.
    """

    timer: str
    proto: str | None
    subject: str
    due_in: Seconds


class Timers(Answer, tag="fared-timers/1"):
    """``show timers``, the next one first."""

    timers: list[PendingTimer]

    def show(self, paper: Paper) -> None:
        """Print timers, with their protocol if several run."""
        several = len({timer.proto for timer in self.timers} - {None}) > 1
        proto: Columns = {"Proto": lambda t: human.PROTOCOLS.get(t.proto, human.DASH)}
        columns = {">Due in": "due_in", **(proto if several else {})}
        paper.table(self.timers, {**columns, "Timer": "timer", "~About": "subject"})


DOCUMENT = Document(Timers, "protocol:timers", "Pending timers.", narrowed=True)
