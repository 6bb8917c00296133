"""The view of links without an adjacency, the same for all protocols."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from fared.config.globs import is_glob
from fared.management.documents.each import views_of
from fared.management.documents.interface import BgpInterfaceEntry, IsisInterfaceEntry
from fared.management.documents.missing import LinkCounts, MissingAdjacency
from fared.management.documents.neighbor import ProblemEntry
from fared.protocols.igp.refusals import explain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fared.core.lost_neighbors import LostNeighbor
    from fared.management.documents.context import ViewContext
    from fared.management.documents.interface import InterfaceEntry
    from fared.management.documents.neighbor import NeighborEntry
    from fared.router.instance import ProtocolInstance


class _Causes(NamedTuple):
    """What is said where nothing nearer is known."""

    silent: str
    forming: str
    ended: str


_OF_HELLOS: Final = _Causes(
    "no hello has arrived", "the adjacency is forming", "the adjacency ended"
)
_OF_SESSIONS: Final = _Causes("no session yet", "the session is being opened", "the session ended")
_LOOPBACK: Final = "Loopback"
_TOO_SMALL: Final = "mtu-too-small"
_ONE_WAY: Final = "1-WayReceived"
_ENDED_BY: Final = {
    "InactivityTimer": "no hello within the dead interval",
    "holding time expired": "no hello within the holding time",
    _ONE_WAY: "it has ended the adjacency",
    "LLDown": "the link went down",
    "KillNbr": "the adjacency was ended here",
}
"""What people read of the reasons for the end of an adjacency, by what the log has."""


def link_counts(context: ViewContext, interfaces: list[InterfaceEntry] | None = None) -> LinkCounts:
    """Count the links that are to have an adjacency, and find those without one.

    ``interfaces``: those of all protocols, if they have been made.
    """
    expected: set[str] = set()
    missing: list[MissingAdjacency] = []
    for instance, views in views_of(context):
        made = views.interfaces(context) if interfaces is None else interfaces
        rows = [row for row in made if row.proto == instance.name and _wanted(row)]
        in_vain = views.in_vain(context)
        without = [row for row in rows if not row.full or row.interface in in_vain]  # mostly none
        found = list(_missing(context, instance, without, views.neighbors)) if without else []
        found += [_absent(context, instance, name) for name in absent(context, instance.name)]
        expected |= {row.interface for row in rows} | {each.interface for each in found}
        missing += found
    return LinkCounts(total=len(expected), missing=missing)


def _wanted(row: InterfaceEntry) -> bool:
    return not row.passive and row.state != _LOOPBACK


def _missing(
    context: ViewContext,
    instance: ProtocolInstance,
    rows: Iterable[InterfaceEntry],
    neighbors: Callable[[ViewContext], Iterable[NeighborEntry]],
) -> Iterator[MissingAdjacency]:
    problems: defaultdict[str, list[ProblemEntry]] = defaultdict(list)
    for neighbor in neighbors(context):
        if neighbor.problem is not None:
            problems[neighbor.interface].append(neighbor.problem)
    gone = context.runtime.lost_neighbors.by_place()
    for row in rows:
        lost = gone.get((instance.name, row.interface), [None])[-1]
        cause, text = next(_reasons(context, row, problems[row.interface], lost))
        yield _entry(context, instance, row.interface, ProblemEntry(cause, text), lost)


def _reasons(
    context: ViewContext,
    row: InterfaceEntry,
    problems: list[ProblemEntry],
    lost: LostNeighbor | None,
) -> Iterator[tuple[str, str]]:
    """Yield the reasons, the nearest first: the link, a neighbor, one that is refused, silence."""
    words = _OF_SESSIONS if isinstance(row, BgpInterfaceEntry) else _OF_HELLOS
    link = context.links.get(row.ifindex)
    if link is not None and not link.enabled:
        yield "disabled", "administratively down"
    if not row.up:
        yield "carrier", "carrier lost"
    if row.state == "Down":
        yield "no-address", "it has no address"
    if isinstance(row, IsisInterfaceEntry) and row.up and row.hello_in is None:
        yield _TOO_SMALL, explain(_TOO_SMALL)  # RFC 3719 §5: no hello is sent
    for problem in problems:
        yield problem.cause, problem.text
    for refused in sorted(row.refused, key=lambda refused: refused.last):
        yield refused.cause, f"{refused.source} is refused: {refused.text}"
    if row.neighbors and not _has_ended(context, row, lost):
        yield "forming", words.forming
    if lost is not None:
        text = _ENDED_BY.get(lost.reason, f"{words.ended}: {lost.reason}")
        yield "stopped", text
    yield "silent", words.silent


def _has_ended(context: ViewContext, row: InterfaceEntry, lost: LostNeighbor | None) -> bool:
    """Whether a neighbor ended its adjacency with a final hello, and has not come back since."""
    if lost is None or lost.reason != _ONE_WAY:
        return False
    return context.runtime.neighbor_reasons.get((row.ifindex, lost.node)) == _ONE_WAY


def _entry(
    context: ViewContext,
    instance: ProtocolInstance,
    interface: str,
    reason: ProblemEntry,
    lost: LostNeighbor | None,
) -> MissingAdjacency:
    return MissingAdjacency(
        proto=instance.name,
        interface=interface,
        neighbor=None if lost is None else context.node(lost.node),
        hostname=None if lost is None else context.hostnames.get(lost.node),
        since=None if lost is None else lost.at,
        cause=reason.cause,
        text=reason.text,
    )


def _absent(context: ViewContext, instance: ProtocolInstance, name: str) -> MissingAdjacency:
    reason = ProblemEntry("absent", "there is no such interface")
    return _entry(context, instance, name, reason, None)


def absent(context: ViewContext, proto: str) -> Iterator[str]:
    """Yield the interfaces that the configuration names and this machine does not have."""
    present = {link.name for link in context.links.values()}
    section = context.config.protocols.get(proto)
    for name, settings in () if section is None else section.every_interface():
        if settings.expects_neighbors and name not in present and not is_glob(name):
            yield name
