"""Answers of commands that operate the router: drain, undrain, restart, clear, log level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fared.management.documents import human
from fared.management.documents.cells import judged, red
from fared.management.documents.declare import Answer
from fared.management.documents.facts import Facts

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper


class DrainDocument(Answer, tag="fared-drain/1"):
    """``drain`` and ``undrain``: the resulting state.

    ``not_kept``: why a restart undoes it; None: it does not.
    """

    drained: bool
    interface: str | None
    share: float | None
    reason: str
    not_kept: str | None

    def show(self, paper: Paper) -> None:
        """Print the state of the router or the link."""
        name, share = self.interface, self.share
        if name is None:
            paper.line("drained: others avoid this router" if self.drained else "in service")
        elif share is None:
            paper.line(f"{name}: in service")
        else:
            left = f"{human.share(share)} of its capacity" if share else "the last resort"
            paper.line(f"{name} drained: {left}")
        if self.not_kept is not None:
            paper.line(red(f"not saved, so it ends with the daemon: {self.not_kept}"))


class RestartDocument(Answer, tag="fared-restart/1"):
    """``restart``. ``announced``: all neighbors know."""

    announced: bool

    def show(self, paper: Paper) -> None:
        """Print whether neighbors know."""
        known = self.announced
        paper.line(
            judged("restarting" if known else "restarting, not all neighbors know", good=known)
        )


class LimitsDocument(Answer, tag="fared-limits/1"):
    """``clear-limits``."""

    cleared: bool

    def show(self, paper: Paper) -> None:
        """Print what follows."""
        paper.line("cleared: what was ignored is requested again")


class ClearedNeighbor(Facts):
    """A neighbor on an interface whose adjacency was ended."""

    proto: str
    interface: str
    router_id: str
    hostname: str | None


class ClearedNeighbors(Answer, tag="fared-clear-neighbor/1"):
    """``clear neighbor``; ``soft``: sessions of BGP go on, routes are told again."""

    neighbors: list[ClearedNeighbor]
    soft: bool

    def show(self, paper: Paper) -> None:
        """Print whose adjacencies end."""
        happens = "routes are told again" if self.soft else "ended, and forms again"
        for each in self.neighbors:
            name = human.router(each.router_id, each.hostname)
            proto = human.PROTOCOLS.get(each.proto, each.proto)
            paper.line(f"{name} on {each.interface} ({proto}): {happens}")


class ClearedCounters(Answer, tag="fared-clear-counters/1"):
    """``clear counters``."""

    cleared: bool

    def show(self, paper: Paper) -> None:
        """Print what begins anew."""
        paper.line(
            "cleared: show counters, interfaces NAME and neighbors NAME begin at 0; metrics go on"
        )


class LogLevel(Answer, tag="fared-log-level/1"):
    """``log level``; ``configured``: the level of the configuration."""

    level: str
    configured: str

    def show(self, paper: Paper) -> None:
        """Print the level, and how long it lasts."""
        lasts = f" until a reload or restart; configured: {self.configured}"
        paper.line(f"log level {self.level}{lasts if self.level != self.configured else ''}")
