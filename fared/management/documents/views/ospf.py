"""OSPF's part of the documents that all protocols share (``each``): interfaces, neighbors, LSAs."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from fared.core.ids import dotted
from fared.management.documents.census import Census, CensusLink
from fared.management.documents.context import ViewContext, checksum_text
from fared.management.documents.database import DatabaseArea, DatabaseLsa
from fared.management.documents.graceful_restart import EndedHelp, HelpedNeighbor, ProtocolRestart
from fared.management.documents.interface import OspfInterfaceEntry
from fared.management.documents.neighbor import MtuMismatch, OspfNeighborEntry
from fared.management.documents.protocol_status import AreaStatus, OspfStatus
from fared.management.documents.rows import Rows
from fared.management.documents.sliced import Work, chosen, in_order
from fared.management.documents.views.database_words import WantedEntries, wanted_entries
from fared.management.documents.views.link import (
    announced_available,
    by_interface,
    due_in,
    flooding_status,
    keys_shown,
    link_facts,
    problem_shown,
    refused_by,
    unready_neighbor,
)
from fared.management.documents.views.ospf_lsdb import lsdb_document
from fared.management.documents.views.ospf_words import about, words
from fared.management.documents.views.restart import ended_restart, running_restart
from fared.protocols.ospf.adjacency.problems import mtu_mismatch, network_types_differ, problem_of
from fared.protocols.ospf.counted import COUNTABLE
from fared.protocols.ospf.interface import Interface, Neighbor
from fared.protocols.ospf.lsdb import KEY, OPAQUE_TYPES, LsaEntry, Scope, kind_of
from fared.protocols.ospf.neighbor import NeighborState
from fared.protocols.ospf.packet.grace import restart_reason
from fared.protocols.ospf.packet.lsa import LsType
from fared.protocols.ospf.packet.opaque import OpaqueType
from fared.protocols.ospf.packet.packets import Options
from fared.protocols.ospf.packet.render import render_lsa
from fared.protocols.ospf.packet.te_facts import TeReader
from fared.protocols.ospf.processing.authenticate import sending_key
from fared.router.protocols import OSPF

if TYPE_CHECKING:
    from fared.management.documents.lsdb import OspfLsdb
    from fared.management.documents.neighbor import RefusedHelloEntry


_TYPES = (
    *(name.lower().replace("_", "-") for name in (*LsType.__members__, *OpaqueType.__members__)),
    *("te-link", "te-router-address"),
)
"""What ``show database`` calls LSAs."""


def interfaces(context: ViewContext) -> list[OspfInterfaceEntry]:
    """Return the interfaces that OSPF runs on."""
    refused = by_interface(refused_by(context.router.instances[OSPF], context.now))
    running = context.ospf.instance.ordered_interfaces()
    return [_interface(context, interface, refused[interface.name]) for interface in running]


def _interface(
    context: ViewContext, interface: Interface, refused: list[RefusedHelloEntry]
) -> OspfInterfaceEntry:
    settings, instance = interface.settings, context.ospf.instance
    designated, backup = interface.designated_router, interface.backup_designated_router
    chosen_key = sending_key(instance, interface, context.now)
    wall = instance.settings.epoch + context.now
    return OspfInterfaceEntry.of(
        interface,
        settings,
        **link_facts(context, interface),
        announced_available=announced_available(interface),
        area=dotted(settings.area),
        priority=settings.router_priority,
        designated_router=_router(designated),
        designated_router_hostname=_hostname(context, interface, designated),
        backup_designated_router=_router(backup),
        backup_designated_router_hostname=_hostname(context, interface, backup),
        addresses=[f"{dotted(a.address)}/{a.prefix_length}" for a in interface.link.ipv4()],
        hello_interval=float(settings.hello_interval),
        dead_interval=float(settings.router_dead_interval),
        retransmit_interval=settings.rxmt_interval,
        hello_in=due_in(interface.hello_timer, context.now),
        neighbors=len(interface.neighbors),
        full=sum(n.state is NeighborState.FULL for n in interface.neighbors.values()),
        flaps=sum(neighbor.flaps for neighbor in interface.neighbors.values()),
        refused=refused,
        authentication=keys_shown(settings.authentication, chosen_key, wall),
    )


def _router(address: int) -> str | None:
    return dotted(address) if address else None


def _hostname(context: ViewContext, interface: Interface, address: int) -> str | None:
    """Return the hostname of the router with this address on the network of an interface."""
    if any(own.address == address for own in interface.link.ipv4()):
        return context.ospf.instance.settings.hostname
    neighbors = interface.neighbors.values()
    found = (n.router_id for n in neighbors if n.address == address)
    return next((context.hostnames.get(router_id) for router_id in found), None)


def neighbors(context: ViewContext) -> list[OspfNeighborEntry]:
    """Return the neighbors of all interfaces."""
    instance = context.ospf.instance
    lengths = instance.retransmissions()
    return [_neighbor(context, each, lengths[each]) for each in instance.neighbors()]


def in_vain(context: ViewContext) -> set[str]:
    """Return the interfaces whose neighbors, though Full, have another network type."""
    found: set[str] = set()
    for interface in context.ospf.instance.interfaces.values():
        full = [n for n in interface.neighbors.values() if n.state is NeighborState.FULL]
        if full and all(network_types_differ(neighbor, context.now) for neighbor in full):
            found.add(interface.name)
    return found


def _neighbor(context: ViewContext, neighbor: Neighbor, retransmissions: int) -> OspfNeighborEntry:
    interface, mtus = neighbor.interface, mtu_mismatch(neighbor)
    reasons = context.runtime.neighbor_reasons
    stagger, helping = context.ospf.instance.settings.adjacency_stagger, neighbor.helping
    return OspfNeighborEntry.of(
        neighbor,
        router_id=dotted(neighbor.router_id),
        hostname=context.hostnames.get(neighbor.router_id),
        area=dotted(interface.settings.area),
        interface=interface.name,
        address=dotted(neighbor.address),
        state=neighbor.state.label,
        problem=problem_shown(problem_of(neighbor, context.now)),
        uptime=round(context.now - neighbor.since, 3),
        dead_in=round(neighbor.dead_at - context.now, 3),
        last_reason=reasons.get((interface.ifindex, neighbor.router_id)),
        retransmission_list=retransmissions,
        request_list=len(neighbor.requests),
        summary_list=len(neighbor.summaries),
        waits_for=stagger if neighbor.waits else None,
        mtu_mismatch=None if mtus is None else MtuMismatch(neighbor=mtus[0], own=mtus[1]),
        own_address=_router(interface.address),
        network_type=interface.settings.network_type.value,
        own_mtu=interface.link.mtu,
        hello_interval=float(interface.settings.hello_interval),
        dead_interval=float(interface.settings.router_dead_interval),
        helped=None if helping is None else round(helping.until - context.now, 3),
        options=_options(neighbor.options),
        designated_router=_router(neighbor.designated_router),
        backup_designated_router=_router(neighbor.backup_designated_router),
    )


@functools.cache
def _options(bits: int) -> list[str]:
    """Return the letters of options; there are few values, and every status asks."""
    return [str(option.name) for option in Options if option & bits]


def graceful_restart(context: ViewContext) -> ProtocolRestart:
    """Return the neighbors that restart, and those that did."""
    engine = context.ospf
    settings = engine.instance.settings.graceful_restart
    return ProtocolRestart(
        proto=OSPF,
        enabled=settings.enabled,
        restarting=running_restart(context, engine.restarter.current),
        restarted=ended_restart(context, engine.restarter.last),
        helper=settings.helper,
        helping=[
            HelpedNeighbor(
                interface=neighbor.interface.name,
                router_id=dotted(neighbor.router_id),
                hostname=context.hostnames.get(neighbor.router_id),
                reason=restart_reason(neighbor.helping.reason),
                since=round(context.now - neighbor.helping.began, 3),
                remaining=round(neighbor.helping.until - context.now, 3),
            )
            for neighbor in engine.instance.neighbors()
            if neighbor.helping is not None
        ],
        ended=[
            EndedHelp.of(
                ended,
                router_id=dotted(ended.router_id),
                hostname=context.hostnames.get(ended.router_id),
                ended=round(context.now - ended.at, 3),
            )
            for ended in engine.help_ended
        ],
    )


def database(
    context: ViewContext, kind: str | None, lsa_id: str | None
) -> Work[Mapping[str, Sequence[Any]]]:
    """Return the LSAs of each area, and those of no area."""
    instance = context.ospf.instance
    every = [area for _, area in sorted(instance.areas.items())]
    copies = [(area, checksum_text(area.lsdb.checksum), tuple(area.lsdb)) for area in every]
    external = tuple(instance.as_scope)
    asked = wanted_entries(context, kind, lsa_id, _is_type)
    wanted = partial(_wanted, context, asked)
    row = partial(_database_lsa, context, TeReader(), detailed=asked.detailed)

    def rows(entries: Sequence[LsaEntry]) -> Work[Rows[DatabaseLsa]]:
        found = yield from chosen(entries, wanted)
        return Rows((yield from in_order(found, KEY)), row)

    areas: list[DatabaseArea] = []
    for area, checksum, entries in copies:
        lsas = yield from rows(entries)
        if len(lsas) or asked.everything:
            name, stub = dotted(area.area_id), "stub" if area.settings.stub else "normal"
            areas.append(DatabaseArea(area=name, type=stub, checksum=checksum, lsas=lsas))
    return {"areas": areas, "as_scope": (yield from rows(external))}


@functools.cache
def kind_name(kind: int) -> str:
    """Return the name of a ``kind_of``: ``router``, ``te-link``, ``router-information``..."""
    ls_type, opaque = divmod(abs(kind), 1 << 8)
    try:
        name = LsType(ls_type).name
        if ls_type in OPAQUE_TYPES:
            name = OpaqueType(opaque).name
            if opaque == OpaqueType.TRAFFIC_ENGINEERING:
                name = "te-link" if kind > 0 else "te-router-address"
    except ValueError:
        return f"type-{ls_type}"
    return name.lower().replace("_", "-")


def _is_type(word: str) -> bool:
    return any(_matches(name, word) for name in _TYPES)


def _wanted(context: ViewContext, asked: WantedEntries, entry: LsaEntry) -> bool:
    key = entry.key
    if asked.kind is not None and not _matches(kind_name(kind_of(key, entry.raw)), asked.kind):
        return False
    router = key.advertising_router
    if asked.own and router != context.ospf.instance.router_id:
        return False
    return (
        asked.id is None
        or router in asked.routers
        or asked.id in (dotted(key.link_state_id), dotted(router))
    )


def _matches(name: str, kind: str) -> bool:
    """Whether a word is a type's name, or a beginning of it that is no other name."""
    exact = {member.name.lower().replace("_", "-") for member in LsType}
    return name == kind if kind in exact else name.startswith(kind)


def _database_lsa(
    context: ViewContext, reader: TeReader, entry: LsaEntry, *, detailed: bool
) -> DatabaseLsa:
    lsa = entry.lsa
    header = lsa.header
    return DatabaseLsa(
        type=kind_name(kind_of(entry.key, entry.raw)),
        id=dotted(header.link_state_id),
        adv_router=dotted(header.advertising_router),
        hostname=context.hostnames.get(header.advertising_router),
        seq=header.ls_sequence_number & 0xFFFFFFFF,
        age=entry.age(context.now),
        checksum=header.ls_checksum,
        length=header.length,
        self_originated=header.advertising_router == context.ospf.instance.router_id,
        about=about(lsa, context.name, reader),
        body=(render_lsa(lsa)["body"] or {}) if detailed else UNSET,
        words=words(lsa, context.name) if detailed else UNSET,
    )


def timers(context: ViewContext) -> Iterator[tuple[str, str, float | None]]:
    """Yield each timer, its subject, and the seconds until it fires."""
    now = context.now
    for interface in context.ospf.instance.ordered_interfaces():
        yield "hello", interface.name, due_in(interface.hello_timer, now)
        for _, neighbor in sorted(interface.neighbors.items()):
            subject = f"{context.name(neighbor.router_id)} on {interface.name}"
            yield "inactivity", subject, neighbor.dead_at - now


def status(context: ViewContext) -> OspfStatus:
    """OSPF in ``show status``."""
    instance = context.ospf.instance
    areas: list[AreaStatus] = []
    for area_id, area in sorted(instance.areas.items()):
        members = instance.area_interfaces(area_id)
        neighbors = [n for interface in members for n in interface.neighbors.values()]
        areas.append(
            AreaStatus(
                area=dotted(area_id),
                type="stub" if area.settings.stub else "normal",
                interfaces=len(members),
                neighbors=len(neighbors),
                full=sum(n.state is NeighborState.FULL for n in neighbors),
                lsas=len(area.lsdb),
                checksum=checksum_text(area.lsdb.checksum),
            )
        )
    return OspfStatus(
        stub_router=instance.stub_router,
        unauthenticated=sum(
            due_in(i.hello_timer, context.now) is not None and not i.settings.authentication
            for i in instance.interfaces.values()
        ),
        flooding=flooding_status(
            instance.settings.reduction, context.ospf.topologies(), dotted, dotted
        ),
        areas=areas,
    )


def unready(context: ViewContext) -> tuple[str, list[str]]:
    """Return the check's name, and why neighbors are no adjacency, or would not be again.

    2-Way is final between routers of a LAN that are neither DR nor BDR (RFC 2328 §10.4).
    """
    done = (NeighborState.FULL, NeighborState.TWO_WAY, NeighborState.DOWN)
    known = [(n, problem_of(n, context.now)) for n in context.ospf.instance.neighbors()]
    return "neighbors are full", [
        unready_neighbor(f"{context.name(n.router_id)} on {n.interface.name}", problem)
        for n, problem in known
        if n.state not in done or problem is not None
    ]


def sizes(context: ViewContext) -> Iterator[tuple[str, int]]:
    """Yield the number of LSAs of each area, and of the AS."""
    for area_id, area in sorted(context.ospf.instance.areas.items()):
        yield dotted(area_id), len(area.lsdb)
    yield "as", len(context.ospf.instance.as_scope)


def census(context: ViewContext) -> Census:
    """Count neighbors, LSAs and links for the metrics."""
    found, instance = Census(COUNTABLE), context.ospf.instance
    found.neighbors = Counter(
        (dotted(n.interface.settings.area), n.state.label) for n in instance.neighbors()
    )
    areas = [area.lsdb for _, area in sorted(instance.areas.items())]
    links = [interface.lsdb for interface in instance.ordered_interfaces()]
    for lsdb in (*areas, instance.as_scope, *links):
        area = lsdb.scope.value if lsdb.area is None else dotted(lsdb.area)
        for kind, number in lsdb.kinds.items():
            if number:
                found.entries[area, kind_name(kind)] += number
        if lsdb.scope is Scope.AREA:
            found.checksums[area] = lsdb.checksum & 0xFFFFFFFF
    for interface in instance.ordered_interfaces():
        if (capacity := interface.bandwidth.capacity) is not None:
            found.capacities.append((interface.ifindex, interface.name, capacity))
        if interface.settings.passive or interface.loopback:
            found.others.add(interface.name)
        else:
            adjacent = _adjacent(interface, context.now)
            found.links[interface.name] = CensusLink(interface.broadcast, adjacent)
    return found


def _adjacent(interface: Interface, now: float) -> dict[str, bool]:
    """Whether each neighbor is adjacent, or need not be: 2-Way is final on a LAN (§10.4).

    One that takes the LAN for a point-to-point link, or the reverse, is none, even if it is Full.
    """
    final = interface.broadcast
    return {
        dotted(n.router_id): (n.adjacent or (final and n.state is NeighborState.TWO_WAY))
        and not network_types_differ(n, now)
        for n in interface.neighbors.values()
    }


def lsdb(context: ViewContext) -> Work[OspfLsdb]:
    """``show lsdb`` of OSPF."""
    return lsdb_document.work(context.ospf, context.now)
