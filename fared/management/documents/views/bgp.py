"""BGP's part of the documents that all protocols share (``each``): links, neighbors, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fared.core.ids import dotted, format_address
from fared.management.documents.census import Census, CensusLink
from fared.management.documents.context import ViewContext, family_name
from fared.management.documents.errors import CommandError
from fared.management.documents.graceful_restart import HelpedNeighbor, ProtocolRestart
from fared.management.documents.interface import BgpInterfaceEntry
from fared.management.documents.lsdb import LsdbFile
from fared.management.documents.neighbor import BgpNeighborEntry
from fared.management.documents.protocol_status import BgpFamilyStatus, BgpStatus
from fared.management.documents.sliced import Work
from fared.management.documents.views.bgp_sessions import (
    interface_of,
    neighbor_entry,
    problem_of,
)
from fared.management.documents.views.link import link_facts, unready_neighbor
from fared.management.documents.views.restart import ended_restart, running_restart
from fared.protocols.bgp.counted import COUNTABLE
from fared.protocols.bgp.instance import BgpInstance, BgpLink
from fared.protocols.bgp.neighbor import BgpSpeaker
from fared.protocols.bgp.rib.paths import OWN, REDISTRIBUTED
from fared.protocols.bgp.rib.tables import BgpRib
from fared.protocols.bgp.settings import BgpLinkSettings
from fared.router.protocols import BGP

_AREA = "unicast"


def _instance(context: ViewContext) -> BgpInstance:
    return context.bgp.instance


def _by_interface(context: ViewContext) -> dict[str, list[BgpSpeaker]]:
    """Return the neighbors of each link; one that no link leads to is under its own name."""
    found: dict[str, list[BgpSpeaker]] = {}
    for one in _instance(context).neighbors.values():
        found.setdefault(interface_of(context, one), []).append(one)
    return found


# -- links ------------------------------------------------------------------------------------


def interfaces(context: ViewContext) -> list[BgpInterfaceEntry]:
    """Return the links that lead to neighbors, or whose networks are announced."""
    instance, section = _instance(context), context.config.bgp
    there = _by_interface(context)
    found: list[BgpInterfaceEntry] = []
    for ifindex, link in sorted(context.links.items()):
        known = instance.links.get(ifindex)
        if known is not None:
            found.append(_interface(context, known, there.get(link.name, [])))
        elif section is not None and (entry := section.on(link)) is not None:
            # the engine forgets a link that is down
            down, known_there = BgpLink(link, BgpLinkSettings()), there.get(link.name, [])
            expected = entry[1].expects_neighbors
            found.append(_interface(context, down, known_there, expected=expected))
    return found


def _interface(
    context: ViewContext,
    link: BgpLink,
    neighbors: Sequence[BgpSpeaker],
    *,
    expected: bool = False,
) -> BgpInterfaceEntry:
    facts, kernel = link_facts(context, link), link.link
    wanted = [one for one in neighbors if one.settings.enabled]
    state = "Up" if facts["up"] else "Down"
    return BgpInterfaceEntry(
        **facts,
        state="Loopback" if kernel.loopback else state,
        passive=not wanted and not expected,
        addresses=[
            f"{format_address(one.family, one.address)}/{one.prefix_length}"
            for one in kernel.addresses
        ],
        unnumbered=any(one.ifindex is not None for one in neighbors),
        neighbors=len(wanted),
        full=sum(one.agreed is not None for one in wanted),
        flaps=sum(one.flaps for one in neighbors),
        refused=[],
        announced=_announced(_instance(context), link),
    )


def _announced(instance: BgpInstance, link: BgpLink) -> list[str]:
    """Return the networks of a link that are announced as our own."""
    networks = dict.fromkeys(own.prefix for own in link.link.addresses)
    return [
        str(prefix)
        for prefix in networks
        if (rib := instance.ribs.get(prefix.family)) is not None
        and any(one.peer.number == OWN for one in rib.paths(prefix))
    ]


# -- neighbors --------------------------------------------------------------------------------


def neighbors(context: ViewContext) -> list[BgpNeighborEntry]:
    """Return the neighbors, in the order of their links."""
    instance = _instance(context)
    return [neighbor_entry(context, instance, one) for one in _ordered(instance)]


def _ordered(instance: BgpInstance) -> list[BgpSpeaker]:
    def place(one: BgpSpeaker) -> tuple[int, int]:
        return (one.place.link.ifindex if one.place else one.ifindex or 0, one.number)

    return sorted(instance.neighbors.values(), key=place)


def in_vain(context: ViewContext) -> set[str]:
    """Return no interface: an established session is good for its routes."""
    del context
    return set()


def unready(context: ViewContext) -> tuple[str, list[str]]:
    """Return the check's name, and why sessions are not established, or exchange nothing."""
    instance = _instance(context)
    known = [(one, problem_of(one, instance)) for one in _ordered(instance)]
    return "sessions are established", [
        unready_neighbor(one.name, problem)
        for one, problem in known
        if problem is not None and one.settings.enabled
    ]


def timers(context: ViewContext) -> Iterator[tuple[str, str, float | None]]:
    """Yield each timer, its subject, and the seconds until it fires."""
    now = context.now
    for one in _ordered(_instance(context)):
        session = one.session
        if session is not None and session.dead_at is not None:
            yield "hold", one.name, session.dead_at - now
        if session is not None and session.again_at is not None:
            yield "connect-retry", one.name, session.again_at - now
        if one.held is not None:
            yield "maximum-prefixes", one.name, one.held.deadline - now
        for family, timer in one.stale.items():
            yield "stale routes", f"{one.name}, {family_name(family)}", timer.deadline - now


# -- tables -----------------------------------------------------------------------------------


def database(
    context: ViewContext, kind: str | None, entry_id: str | None
) -> Work[Mapping[str, Sequence[Any]]]:
    """Return nothing: paths have a document of their own. Raises CommandError."""
    del kind, entry_id
    _refuse_database(context)
    yield from ()
    return {}


def lsdb(context: ViewContext) -> Work[LsdbFile]:
    """BGP has no database of links. Raises CommandError."""
    _refuse_database(context)
    yield from ()
    raise CommandError("unsupported", "only OSPF and IS-IS have a database")


def _refuse_database(context: ViewContext) -> None:
    if context.instances == [context.router.instances[BGP]]:
        text = "BGP has no database of links: 'show bgp routes' lists the paths of neighbors"
        raise CommandError("unsupported", text)


def sizes(context: ViewContext) -> Iterator[tuple[str, int]]:
    """Yield the number of prefixes of each family."""
    for family, rib in _instance(context).ribs.items():
        yield family_name(family), len(rib.table)


def status(context: ViewContext) -> BgpStatus:
    """BGP in ``show status``."""
    instance = _instance(context)
    expected = [one for one in instance.neighbors.values() if one.settings.enabled]
    return BgpStatus(
        local_as=instance.settings.local_as,
        router_id=dotted(instance.settings.router_id),
        neighbors=len(expected),
        established=sum(one.agreed is not None for one in expected),
        unauthenticated=sum(one.settings.key is None for one in expected),
        graceful_shutdown=instance.settings.drained,
        families=[_family(instance, family, rib) for family, rib in instance.ribs.items()],
    )


def _family(instance: BgpInstance, family: int, rib: BgpRib) -> BgpFamilyStatus:
    known = [one.number for one in instance.neighbors.values() if rib.knows(one.number)]
    return BgpFamilyStatus(
        af=family_name(family),
        own=rib.table.count(OWN),
        redistributed=rib.table.count(REDISTRIBUTED),
        received=sum(rib.table.count(number) for number in known),
        prefixes=sum(len(members) for members in rib.table.members.values()),
        groups=len(rib.table.members),
        undecided=rib.table.backlog,
    )


def graceful_restart(context: ViewContext) -> ProtocolRestart:
    """Return the restart of this router, and neighbors whose routes are kept."""
    engine = context.bgp
    instance, restarter = engine.instance, engine.restarter
    settings = instance.settings.graceful_restart
    return ProtocolRestart(
        proto=BGP,
        enabled=settings.enabled,
        restarting=running_restart(context, restarter if engine.restarting else None),
        restarted=ended_restart(context, restarter.last),
        helper=settings.helper,
        helping=[
            HelpedNeighbor(
                interface=interface_of(context, one),
                router_id=one.name if one.peer is None else dotted(one.peer.identifier),
                hostname=None,
                reason="routes kept",
                since=None,
                remaining=round(max(t.deadline for t in one.stale.values()) - context.now, 3),
            )
            for one in _ordered(instance)
            if one.stale
        ],
        ended=[],
    )


def census(context: ViewContext) -> Census:
    """Count neighbors, prefixes and links for the metrics."""
    found, instance = Census(COUNTABLE), _instance(context)
    found.neighbors = Counter(
        (_AREA, one.state.label) for one in instance.neighbors.values() if one.settings.enabled
    )
    for family, rib in instance.ribs.items():
        number = sum(len(members) for members in rib.table.members.values())
        found.entries[_AREA, family_name(family)] = number
    there = _by_interface(context)
    for entry in interfaces(context):
        if entry.bandwidth is not None and entry.ifindex in instance.links:
            found.capacities.append((entry.ifindex, entry.interface, entry.bandwidth))
        if entry.passive or entry.state == "Loopback":
            found.others.add(entry.interface)
        else:
            there.setdefault(entry.interface, [])
    for name, known in there.items():
        wanted = [one for one in known if one.settings.enabled]
        if wanted or name not in found.others:
            found.links[name] = CensusLink(len(wanted) > 1, _established(wanted))
    return found


def _established(neighbors: Sequence[BgpSpeaker]) -> dict[str, bool]:
    return {dotted(one.agreed.identifier): True for one in neighbors if one.agreed is not None}
