"""Links without an adjacency, and why: in ``show neighbors``, ``show interfaces``, ``show status``.

Every interface that a protocol runs on, and that is not passive, is to have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fared.management.documents import human
from fared.management.documents.cells import Cell, Columns, red
from fared.management.documents.facts import Facts, UnixTime

if TYPE_CHECKING:
    from fared.management.documents.paper import Paper

_NAMED: Final = 3


class MissingAdjacency(Facts):
    """An interface without an adjacency that carries traffic.

    ``cause`` is a code: ``absent`` (no such interface), ``disabled``, ``carrier``, ``no-address``,
    ``silent`` (no hello arrives, or there has been no session), ``stopped`` (none arrives any more,
    or it ended the adjacency), ``forming``, or that of a refused hello or of a neighbor that cannot
    be used; ``text`` says it. ``neighbor``: the last adjacency, lost at ``since``; both None where
    there has been none since the start.
    """

    proto: str
    interface: str
    neighbor: str | None
    hostname: str | None
    since: UnixTime | None
    cause: str
    text: str

    @property
    def name(self) -> str:
        """The last neighbor, or the interface."""
        return self.hostname or self.neighbor or self.interface


class LinkCounts(Facts):
    """Interfaces that are to have an adjacency, of all protocols, and those without one."""

    total: int
    missing: list[MissingAdjacency]


def show_missing(paper: Paper, missing: Sequence[MissingAdjacency]) -> None:
    """Print the links without an adjacency; those of two protocols for one reason once."""
    once = {(m.interface, m.name, m.text): m for m in missing}
    sessions = all(m.proto == "bgp" for m in missing)
    columns: Columns = {
        "No session" if sessions else "No adjacency": "interface",
        "Was": lambda m: m.hostname or m.neighbor or human.DASH,
        ">For": lambda m: human.DASH if m.since is None else paper.ago(m.since),
        "~Why": "text",
    }
    paper.more(list(once.values()), columns)


def summary(links: LinkCounts, now: float) -> Cell:
    """``1 of 8 down: L5 (3m, carrier lost)``; the number where all are up."""
    once = {m.interface: m for m in links.missing}
    if not once:
        return f"{links.total} up"
    named = [_summed(each, now) for each in list(once.values())[:_NAMED]]
    more = f", and {len(once) - _NAMED} more" if len(once) > _NAMED else ""
    return red(f"{len(once)} of {links.total} down: {', '.join(named)}{more}")


def _summed(missing: MissingAdjacency, now: float) -> str:
    age = "" if missing.since is None else f"{human.duration(now - missing.since)}, "
    return f"{missing.name} ({age}{missing.text})"
