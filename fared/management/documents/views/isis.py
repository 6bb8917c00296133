"""IS-IS's part of the documents shared by all protocols (``each``): circuits, adjacencies, LSPs."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from fared.core.ids import (
    FAMILY_IPV4,
    FAMILY_IPV6,
    SystemId,
    format_address,
    format_system_id,
    isis_node,
)
from fared.management.documents.census import Census, CensusLink
from fared.management.documents.context import ViewContext, checksum_text, family_name
from fared.management.documents.database import DatabaseLevel, DatabaseLsp
from fared.management.documents.graceful_restart import EndedHelp, HelpedNeighbor, ProtocolRestart
from fared.management.documents.interface import IsisInterfaceEntry, Lan
from fared.management.documents.neighbor import FloodingSpeed, IsisNeighborEntry
from fared.management.documents.protocol_status import IsisStatus, LevelStatus
from fared.management.documents.rows import Rows
from fared.management.documents.sliced import Work, chosen
from fared.management.documents.views.database_words import WantedEntries, wanted_entries
from fared.management.documents.views.isis_lsdb import address_text, isis_lsdb_document
from fared.management.documents.views.isis_words import words
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
from fared.management.documents.views.restart import ended_restart, running_restart
from fared.protocols.igp.keys import send_key
from fared.protocols.isis.adjacency.checks import carries_lsps
from fared.protocols.isis.adjacency.fsm import all_adjacencies
from fared.protocols.isis.adjacency.problems import problem_of
from fared.protocols.isis.circuit import Adjacency, Circuit, LanLevel
from fared.protocols.isis.counted import COUNTABLE
from fared.protocols.isis.ids import (
    Level,
    LevelSet,
    LspId,
    format_lsp_id,
    format_snpa,
    pseudonode_of,
    system_of,
)
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.render import render_pdu
from fared.protocols.isis.pdu.tlv import format_neighbor
from fared.protocols.isis.pdu.tlvs import format_area
from fared.protocols.isis.settings import CircuitKind
from fared.protocols.isis.transmit import LLC_SIZE
from fared.router.protocols import ISIS

if TYPE_CHECKING:
    from fared.core.links import InterfaceAddress
    from fared.management.documents.lsdb import IsisLsdb
    from fared.management.documents.neighbor import RefusedHelloEntry
    from fared.protocols.igp.refusals import NeighborProblem


_LEVEL_NAMES = {1: "level-1", 2: "level-2", 3: "level-1-2"}
LSP, PSEUDONODE = "lsp", "pseudonode"
_TYPES = (LSP, PSEUDONODE, *(level.label for level in Level))


def levels_name(levels: int) -> str:
    """Format a set of levels as in the configuration: ``level-1-2``."""
    return _LEVEL_NAMES.get(levels, "")


def interfaces(context: ViewContext) -> list[IsisInterfaceEntry]:
    """Return the circuits that IS-IS runs on."""
    refused = by_interface(refused_by(context.router.instances[ISIS], context.now))
    waiting = context.isis.waiting()
    return [
        _interface(context, circuit, refused[circuit.name], waiting.get(circuit.ifindex, 0))
        for circuit in context.isis.instance.ordered_circuits()
    ]


def _interface(
    context: ViewContext, circuit: Circuit, refused: list[RefusedHelloEntry], pending: int
) -> IsisInterfaceEntry:
    settings, adjacencies = circuit.settings, all_adjacencies(circuit)
    levels, keys = _levels(context, circuit), settings.authentication
    wall = context.isis.instance.settings.epoch + context.now
    return IsisInterfaceEntry.of(
        circuit,
        settings,
        **link_facts(context, circuit),
        announced_available=announced_available(circuit),
        area=levels_name(levels),
        levels=list(map(int, levels.levels)),
        network_type=circuit.kind.value,
        state=_state(circuit),
        cost=settings.metric,
        addresses=[address_text(address) for address in circuit.link.addresses],
        unnumbered=not circuit.link.ipv4(),
        dead_interval=settings.hello_interval * settings.hello_multiplier,
        retransmit_interval=settings.lsp_retransmit_interval,
        hello_in=_hello_in(context, circuit),
        neighbors=len(adjacencies),
        full=sum(adjacency.up for adjacency in adjacencies),
        flaps=sum(adjacency.flaps for adjacency in adjacencies),
        pending=pending,
        lans=[_lan(context, lan) for _, lan in sorted(circuit.lan.items())],
        refused=refused,
        authentication=keys_shown(keys, send_key(keys, wall), wall),
    )


def _levels(context: ViewContext, circuit: Circuit) -> LevelSet:
    """Return the levels in effect on a circuit."""
    return LevelSet(circuit.settings.levels & context.isis.instance.settings.levels)


def _state(circuit: Circuit) -> str:
    if not circuit.up:
        return "Down"
    if circuit.kind is CircuitKind.LOOPBACK:
        return "Loopback"
    if circuit.kind is CircuitKind.POINT_TO_POINT:
        return "Point-to-point"
    return "DIS" if any(lan.is_dis for lan in circuit.lan.values()) else "LAN"


def _lan(context: ViewContext, lan: LanLevel) -> Lan:
    return Lan(
        level=int(lan.level),
        dis=format_neighbor(lan.dis) if lan.dis else None,
        hostname=context.hostnames.get(isis_node(SystemId(lan.dis >> 8))) if lan.dis else None,
        is_dis=lan.is_dis,
    )


def _adjacencies(context: ViewContext) -> list[Adjacency]:
    """Return the adjacencies of all circuits, by ifindex."""
    circuits = context.isis.instance.ordered_circuits()
    return [adjacency for circuit in circuits for adjacency in all_adjacencies(circuit)]


def _problem(context: ViewContext, adjacency: Adjacency) -> NeighborProblem | None:
    return problem_of(context.isis.instance.settings, adjacency, context.now)


def in_vain(context: ViewContext) -> tuple[str, ...]:
    """Return no interface: an adjacency that is up can be used."""
    del context
    return ()


def neighbors(context: ViewContext) -> list[IsisNeighborEntry]:
    """Return the adjacencies of all circuits."""
    return [_neighbor(context, adjacency) for adjacency in _adjacencies(context)]


@functools.lru_cache(maxsize=256)
def _addresses(addresses: tuple[InterfaceAddress, ...]) -> str | None:
    """Format our addresses on a circuit, which every status asks for and which hardly change."""
    return ", ".join(map(address_text, addresses)) or None


def _neighbor(context: ViewContext, adjacency: Adjacency) -> IsisNeighborEntry:
    circuit, node = adjacency.circuit, isis_node(adjacency.system_id)
    system, since = format_system_id(adjacency.system_id), adjacency.up_since
    own, settings, helped = circuit.link.addresses, circuit.settings, adjacency.helped_until
    addresses = [format_address(FAMILY_IPV4, address) for address in adjacency.ipv4]
    addresses += [format_address(FAMILY_IPV6, address) for address in adjacency.ipv6]
    return IsisNeighborEntry.of(
        adjacency,
        router_id=system,
        system_id=system,
        hostname=context.hostnames.get(node),
        area=levels_name(adjacency.levels),
        levels=list(map(int, adjacency.levels.levels)),
        interface=circuit.name,
        address=next(iter(addresses), None),
        addresses=addresses,
        snpa=format_snpa(adjacency.snpa),
        areas=[format_area(area) for area in adjacency.areas],
        problem=problem_shown(_problem(context, adjacency)),
        uptime=None if since is None else round(context.now - since, 3),
        holding_time=float(adjacency.holding_time),
        dead_in=round(adjacency.expires - context.now, 3),
        topologies=list(adjacency.topologies),
        flooding=None if adjacency.flooding is None else FloodingSpeed.of(adjacency.flooding),
        bfd={
            family_name(FAMILY_IPV4 if len(remote) == 4 else FAMILY_IPV6): status.value
            for remote, status in adjacency.bfd.items()
        },
        last_reason=context.runtime.neighbor_reasons.get((circuit.ifindex, node)),
        own_address=_addresses(own),
        network_type=circuit.kind.value,
        mtu=adjacency.padded_to + LLC_SIZE if adjacency.padded_to else 0,
        own_mtu=circuit.link.mtu,
        hello_interval=settings.hello_interval,
        dead_interval=settings.hello_interval * settings.hello_multiplier,
        helped=None if helped is None else round(helped - context.now, 3),
        dis=format_neighbor(adjacency.lan_id) if adjacency.lan_id else None,
    )


def database(
    context: ViewContext, kind: str | None, lsp_id: str | None
) -> Work[Mapping[str, Sequence[Any]]]:
    """Return the LSPs of each level; a word that is no type is an id."""
    asked = wanted_entries(context, kind, lsp_id, _is_type)
    copies = [
        (level.label, checksum_text(lsdb.checksum), lsdb.ordered())
        for level, lsdb in sorted(context.isis.instance.databases.items())
    ]
    row = partial(_database_lsp, context, detailed=asked.detailed)
    rows: list[DatabaseLevel] = []
    for level, checksum, entries in copies:
        wanted = partial(_wanted, context, asked, level)
        found = yield from chosen(entries, wanted)
        if found or asked.everything:
            rows.append(DatabaseLevel(level=level, checksum=checksum, lsps=Rows(found, row)))
    return {"levels": rows}


def _is_type(word: str) -> bool:
    return any(name.startswith(word) for name in _TYPES)


def lsp_type(lsp_id: LspId) -> str:
    """Return the type of an LSP: that of a router or a pseudonode."""
    return PSEUDONODE if pseudonode_of(lsp_id) else LSP


def _wanted(context: ViewContext, asked: WantedEntries, level: str, entry: StoredLsp) -> bool:
    found, kind = entry.lsp_id, asked.kind
    of_kind = kind is None or lsp_type(found).startswith(kind) or level.startswith(kind)
    of_router = entry.own if asked.own else asked.id is None or _has_id(context, found, asked.id)
    return of_kind and of_router


def _has_id(context: ViewContext, found: LspId, wanted: str) -> bool:
    """Match LSP id, system id or hostname; a hostname may replace the system id of an LSP id."""
    system, written = format_system_id(system_of(found)), format_lsp_id(found)
    if wanted.lower() in (system, written):
        return True
    hostname = context.hostnames.get(isis_node(system_of(found)))
    return hostname is not None and wanted in (hostname, hostname + written[len(system) :])


def _database_lsp(context: ViewContext, entry: StoredLsp, *, detailed: bool) -> DatabaseLsp:
    lsp, lifetime = entry.lsp, entry.remaining_lifetime(context.now)
    body = render_pdu(lsp, entry.raw) | {"lifetime": lifetime} if detailed else UNSET
    return DatabaseLsp.of(
        lsp,
        type=lsp_type(entry.lsp_id),
        lsp_id=format_lsp_id(entry.lsp_id),
        hostname=context.hostnames.get(isis_node(system_of(entry.lsp_id))),
        seq=lsp.sequence_number,
        lifetime=lifetime,
        length=len(entry.raw),
        purged=entry.purged,
        self_originated=entry.own,
        body=body,
        words=UNSET if body is UNSET else words(body["tlvs"], context.named),
    )


def graceful_restart(context: ViewContext) -> ProtocolRestart:
    """Return the neighbors that restart, and those that did."""
    instance = context.isis.instance
    return ProtocolRestart(
        proto=ISIS,
        enabled=instance.settings.restarts,
        restarting=running_restart(context, instance.restart),
        restarted=ended_restart(context, context.isis.restarted),
        helper=instance.settings.restart_helper,
        helping=[
            HelpedNeighbor(
                interface=adjacency.circuit.name,
                router_id=format_system_id(adjacency.system_id),
                hostname=context.hostnames.get(isis_node(adjacency.system_id)),
                reason="restarting" if adjacency.restarting else "announced",
                since=None,
                remaining=round(adjacency.expires - context.now, 3),
            )
            for adjacency in _adjacencies(context)
            if adjacency.restarting or adjacency.prepared
        ],
        ended=[
            EndedHelp.of(
                ended,
                router_id=format_system_id(ended.system_id),
                hostname=context.hostnames.get(isis_node(SystemId(ended.system_id))),
                ended=round(context.now - ended.at, 3),
            )
            for ended in instance.help_ended
        ],
    )


def timers(context: ViewContext) -> Iterator[tuple[str, str, float | None]]:
    """Yield each timer, its subject, and the seconds until it fires."""
    for circuit in context.isis.instance.ordered_circuits():
        yield "hello", circuit.name, _hello_in(context, circuit)
        for adjacency in all_adjacencies(circuit):
            name = context.name(isis_node(adjacency.system_id))
            yield "holding", f"{name} on {circuit.name}", adjacency.expires - context.now


def _hello_in(context: ViewContext, circuit: Circuit) -> float | None:
    """Return the seconds to the next hello of any level; None where the MTU permits none."""
    if not carries_lsps(context.isis.instance, circuit):
        return None
    timers = [circuit.hello_timer, *(lan.hello_timer for lan in circuit.lan.values())]
    due = (due_in(timer, context.now) for timer in timers)
    return min((seconds for seconds in due if seconds is not None), default=None)


def status(context: ViewContext) -> IsisStatus:
    """IS-IS in ``show status``."""
    instance, settings = context.isis.instance, context.isis.instance.settings
    circuits, known = instance.ordered_circuits(), _adjacencies(context)
    levels: list[LevelStatus] = []
    for level, lsdb in sorted(instance.databases.items()):
        adjacencies = [adjacency for adjacency in known if adjacency.levels & level]
        levels.append(
            LevelStatus(
                level=level.label,
                interfaces=sum(bool(_levels(context, c) & level) for c in circuits),
                neighbors=len(adjacencies),
                up=sum(adjacency.up for adjacency in adjacencies),
                lsps=len(lsdb),
                checksum=checksum_text(lsdb.checksum),
            )
        )
    return IsisStatus(
        system_id=format_system_id(instance.system_id),
        areas=[format_area(area) for area in settings.areas],
        families=[family_name(family) for family in settings.families],
        overloaded=context.isis.overloaded,
        attached=context.isis.attached,
        unauthenticated=sum(
            _hello_in(context, c) is not None and not c.settings.authentication for c in circuits
        ),
        flooding=flooding_status(
            settings.reduction, context.isis.topologies(), _level_label, format_system_id
        ),
        levels=levels,
    )


def _level_label(level: int) -> str:
    return Level(level).label


def unready(context: ViewContext) -> tuple[str, list[str]]:
    """Return the check's name, and why adjacencies are not up, or not for all families."""
    known = [(adjacency, _problem(context, adjacency)) for adjacency in _adjacencies(context)]
    return "adjacencies are up", [
        unready_neighbor(f"{context.name(isis_node(a.system_id))} on {a.circuit.name}", problem)
        for a, problem in known
        if not a.up or problem is not None
    ]


def sizes(context: ViewContext) -> Iterator[tuple[str, int]]:
    """Yield the number of LSPs of each level."""
    for level, lsdb in sorted(context.isis.instance.databases.items()):
        yield level.label, len(lsdb)


def census(context: ViewContext) -> Census:
    """Count adjacencies, LSPs and links; one of both levels is one neighbor."""
    found, instance = Census(COUNTABLE), context.isis.instance
    found.neighbors = Counter((levels_name(a.levels), a.state.value) for a in _adjacencies(context))
    for level, lsdb in sorted(instance.databases.items()):
        for pseudonode, number in lsdb.live.items():
            if number:
                found.entries[level.label, PSEUDONODE if pseudonode else LSP] = number
        found.checksums[level.label] = lsdb.checksum & 0xFFFFFFFF
    for circuit in instance.ordered_circuits():
        if (capacity := circuit.bandwidth.capacity) is not None:
            found.capacities.append((circuit.ifindex, circuit.name, capacity))
        if circuit.settings.passive or circuit.loopback:
            found.others.add(circuit.name)
            continue
        link = found.links[circuit.name] = CensusLink(circuit.broadcast)
        for adjacency in all_adjacencies(circuit):
            neighbor = format_system_id(adjacency.system_id)
            link.adjacent[neighbor] = link.adjacent.get(neighbor, False) or adjacency.up
    return found


def lsdb(context: ViewContext) -> Work[IsisLsdb]:
    """``show lsdb`` of IS-IS."""
    yield
    return isis_lsdb_document(context.isis, context.now)
