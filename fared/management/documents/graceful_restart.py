"""``show graceful-restart``: restarts of this router, and of neighbors that it helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents import human
from fared.management.documents.cells import Columns, cell
from fared.management.documents.declare import Answer, Document
from fared.management.documents.facts import Facts, Seconds

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


class HelpedNeighbor(Facts):
    """A neighbor that restarts, and that this router helps; ``remaining``: of the grace period.

    ``reason`` is that of the neighbor's grace LSA: ``software-restart``; in IS-IS ``announced`` or
    ``restarting``. ``since`` None: unknown.
    """

    interface: str
    router_id: str
    hostname: str | None
    reason: str
    since: Seconds | None
    remaining: Seconds


class EndedHelp(Facts):
    """A restart of a neighbor that is over; ``result``: ``completed``, or why helping ended."""

    interface: str
    router_id: str
    hostname: str | None
    ended: Seconds
    result: str


class RunningRestart(Facts):
    """A restart of this router; ``remaining``: of the grace period."""

    planned: bool
    since: Seconds
    remaining: Seconds


class EndedRestart(Facts):
    """The last restart of this router; ``result``: ``completed``, or why it ended early."""

    planned: bool
    duration: Seconds
    ended: Seconds
    result: str


class ProtocolRestart(Facts):
    """Graceful restart of one protocol; ``ended``: seconds ago, the oldest first.

    ``enabled``: for this router, ``helper``: for its neighbors.
    """

    proto: str
    enabled: bool
    restarting: RunningRestart | None
    restarted: EndedRestart | None
    helper: bool
    helping: list[HelpedNeighbor]
    ended: list[EndedHelp]


class Restarts(Answer, tag="fared-graceful-restart/1"):
    """``show graceful-restart``."""

    protocols: list[ProtocolRestart]

    def show(self, paper: Paper) -> None:
        """Print what restarts, and what did."""
        enabled = {True: "enabled", False: "disabled"}
        for _, (part,) in paper.by_protocol(self.protocols):
            paper.line(f"restart: {enabled[part.enabled]}, helper: {enabled[part.helper]}")
            if part.restarting:
                running = "this router restarts: for {since}, {remaining} remaining"
                paper.line(cell(part.restarting, running) or "")
            if part.restarted:
                planned = "planned" if part.restarted.planned else "unplanned"
                last = f"last restart: {{result}}, {planned}, took {{duration}}, {{ended}} ago"
                paper.line(cell(part.restarted, last) or "")
            if part.helping:
                paper.table(part.helping, _HELPING)
            if part.ended:
                paper.table(part.ended, _ENDED)


def _who(entry: HelpedNeighbor | EndedHelp) -> str:
    return human.router(entry.router_id, entry.hostname)


_HELPING: Columns = {
    "Restarting": _who,
    "Interface": "interface",
    "Reason": "reason",
    ">For": "since",
    ">Remaining": "remaining",
}
_ENDED: Columns = {
    "Restarted": _who,
    "Interface": "interface",
    "Result": "result",
    ">Ago": "ended",
}

DOCUMENT = Document(
    Restarts,
    "protocol:graceful_restart",
    "Graceful restarts of this router, and of neighbors that it helps.",
    narrowed=True,
)
