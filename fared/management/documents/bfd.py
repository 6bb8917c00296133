"""``show bfd``: the sessions, as the process that runs them last reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents.cells import Columns, judged
from fared.management.documents.declare import Answer, Argument, Document
from fared.management.documents.facts import Facts, Seconds

if TYPE_CHECKING:
    from fared.management.documents.context import ViewContext
    from fared.management.documents.paper import Paper


class BfdProcessFacts(Facts):
    """The process ``fared-bfd``; ``pid`` None: it does not run.

    ``priority`` in words, ``starts`` counts; ``reported``: age of the counters below.
    ``spare``: the process that is ready to take its place, None: there is none at present.
    """

    pid: int | None
    spare: int | None
    priority: str
    starts: int
    reported: Seconds | None


class BfdSessionEntry(Facts):
    """One session; ``since``: in its present state.

    ``transmit_interval`` is before jitter; ``detection_time`` 0: unknown yet. ``neighbor_*`` are
    values that the neighbor announced. ``late`` counts timers that fired late in this router,
    ``extended`` the detection times extended for it.
    """

    interface: str
    neighbor: str
    local: str
    protocols: list[str]
    state: str
    neighbor_state: str
    diagnostic: str
    neighbor_diagnostic: str
    since: Seconds
    strict: bool
    authenticated: bool
    local_discriminator: int
    neighbor_discriminator: int
    source_port: int
    transmit_interval: Seconds
    detection_time: Seconds
    min_tx: Seconds
    min_rx: Seconds
    multiplier: int
    neighbor_min_tx: Seconds
    neighbor_min_rx: Seconds
    neighbor_multiplier: int
    sent: int
    received: int
    discarded: dict[str, int]
    ups: int
    downs: int
    late: int
    worst_late: Seconds
    extended: int


class Bfd(Answer, tag="fared-bfd/1"):
    """``show bfd``; ``process`` None: no interface uses BFD.

    ``discarded``: packets of no session, by reason. ``detail``: all values were asked for.
    """

    process: BfdProcessFacts | None
    discarded: dict[str, int]
    sessions: list[BfdSessionEntry]
    detail: bool

    def show(self, paper: Paper) -> None:
        """Print the process and its sessions."""
        if self.process is None:
            paper.line("no interface uses BFD")
            return
        paper.facts(self.process, _PROCESS)
        paper.line()
        if self.detail:
            for session in self.sessions:
                paper.facts(session, _VALUES)
                paper.line()
            return
        paper.table(self.sessions, _SESSIONS)
        paper.more([s for s in self.sessions if s.state != "Up"], _DOWN)
        paper.more([s for s in self.sessions if s.late], _LATE)
        if self.discarded:
            paper.line()
            paper.grid(
                ("Discarded", ">Packets"),
                ((reason, str(n)) for reason, n in sorted(self.discarded.items())),
            )


def _process(process: BfdProcessFacts) -> str:
    running = "not running" if process.pid is None else f"pid {process.pid}"
    again = process.starts - 1
    words = (running, process.priority, f"restarted {again} times" if again > 0 else "")
    return ", ".join(filter(None, words))


def _discarded(session: BfdSessionEntry) -> str:
    return ", ".join(f"{n} {why}" for why, n in sorted(session.discarded.items())) or "none"


_PROCESS: Columns = {"Process": _process}
_SESSIONS: Columns = {
    "Interface": "interface",
    "~Neighbor": "neighbor",
    "State": lambda s: judged(s.state, good=s.state == "Up"),
    ">For": "since",
    ">Sends": "transmit_interval",
    ">Detects": "detection_time",
    ">Downs": "downs",
    ">Late": "late",
}
_DOWN: Columns = {
    "Down": "interface",
    "~Reason": "diagnostic",
    "Neighbor": "neighbor_state",
    "~Its reason": "neighbor_diagnostic",
}
"""Why sessions are down, here and at the neighbor."""
_LATE: Columns = {
    "Late": "interface",
    "~Neighbor": "neighbor",
    ">Times": "late",
    ">Worst": "worst_late",
    ">Detection extended": "extended",
}
"""Sessions whose timers fired late in this router."""
_VALUES: Columns = {
    "Session": "{neighbor} on {interface}, from {local}",
    "State": "{state} for {since}",
    "Neighbor's state": "{neighbor_state}, {neighbor_diagnostic}",
    "Last failure": "{diagnostic}; {downs} in all",
    "Protocols": "protocols",
    "Strict, signed": "{strict}, {authenticated}",
    "Discriminators": "{local_discriminator}, {neighbor_discriminator}",
    "Source port": "source_port",
    "Sends": "every {transmit_interval}",
    "Detects": "within {detection_time}",
    "Wishes": "sends {min_tx}, receives {min_rx}, multiplier {multiplier}",
    "Neighbor's": "sends {neighbor_min_tx}, receives {neighbor_min_rx},"
    " multiplier {neighbor_multiplier}",
    "Packets": "{sent} sent, {received} received",
    "Discarded": _discarded,
    "Late": "{late}, worst {worst_late}",
    "Extended": "extended",
}
"""All values of one session."""


def bfd(context: ViewContext, *, detail: bool = False) -> Bfd:
    """``show bfd``; ``detail`` is for the table, since the document always has all values."""
    found = context.bfd()
    if found is None:
        return Bfd(process=None, discarded={}, sessions=[], detail=detail)
    assert isinstance(found, Bfd)
    found.detail = detail
    return found


DOCUMENT = Document(
    Bfd,
    bfd,
    "BFD sessions, and the process that runs them. Counters are a few seconds old.",
    (Argument("detail", "flag", help="All values of each session."),),
)
