"""IS-IS's part of the documents shared by all protocols (``each``): circuits, adjacencies, LSPs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fared.core.ids import FAMILY_IPV4, SystemId, format_address, format_system_id, isis_node
from fared.management.documents.census import Census
from fared.management.documents.context import ViewContext, checksum_text, family_name
from fared.management.documents.protocol_status import IsisStatus, LevelStatus
from fared.management.documents.rows import Rows
from fared.management.documents.sliced import Work, chosen
from fared.management.documents.views.isis_lsdb import isis_lsdb_document
from fared.management.documents.views.link import (
    by_interface,
    flooding_status,
    keyring_shown,
    link_facts,
    problem_shown,
    refused_by,
    unready_neighbor,
)
from fared.management.documents.views.restart import ended_restart, running_restart
from fared.protocols.isis.ids import (
    Level,
    LspId,
    format_lsp_id,
    format_snpa,
    pseudonode_of,
    system_of,
)
from fared.protocols.isis.lsdb import StoredLsp
from fared.protocols.isis.pdu.flooding_parameters import FloodingParameters
from fared.protocols.isis.pdu.render import render_pdu
from fared.protocols.isis.pdu.tlv import format_neighbor
from fared.protocols.isis.pdu.tlvs import format_area
from fared.protocols.isis.settings import CircuitKind
from fared.protocols.isis.snapshot import (
    AdjacencyView,
    CircuitView,
    DatabaseView,
    LanView,
)
from fared.router.protocols import ISIS

if TYPE_CHECKING:
    from fared.management.documents.schema import isis as schema
    from fared.management.documents.schema.isis_lsdb import IsisLsdb
    from fared.management.documents.schema.link import RefusedHelloEntry
    from fared.management.documents.schema.restart import ProtocolRestart


_LEVEL_NAMES = {1: "level-1", 2: "level-2", 3: "level-1-2"}
_IPV6 = 6
LSP, PSEUDONODE = "lsp", "pseudonode"
_TYPES = (LSP, PSEUDONODE, *(level.label for level in Level))


def levels_name(levels: int) -> str:
    """Format a set of levels as in the configuration: ``level-1-2``."""
    return _LEVEL_NAMES.get(levels, "")


def interfaces(context: ViewContext) -> list[schema.InterfaceEntry]:
    """Return the circuits that IS-IS runs on."""
    refused = by_interface(refused_by(context.router.instances[ISIS], context.now))
    return [_interface(context, view, refused[view.name]) for view in context.isis.circuits]


def _interface(
    context: ViewContext, view: CircuitView, refused: list[RefusedHelloEntry]
) -> schema.InterfaceEntry:
    return {
        "interface": view.name,
        "ifindex": view.ifindex,
        "proto": ISIS,
        "area": levels_name(view.levels),
        "levels": list(map(int, view.levels.levels)),
        "network_type": view.kind,
        "state": _state(view),
        "passive": view.passive,
        "prefix_suppression": view.prefix_suppression,
        "priority": view.priority,
        "circuit_id": view.circuit_id,
        "cost": view.metric,
        "mtu": view.mtu,
        "addresses": [
            f"{format_address(family, address)}/{length}"
            for family, address, length in view.addresses
        ],
        "unnumbered": not any(family == FAMILY_IPV4 for family, _, _ in view.addresses),
        **link_facts(context, view),
        "hello_interval": view.hello_interval,
        "hello_multiplier": view.hello_multiplier,
        "dead_interval": view.hello_interval * view.hello_multiplier,
        "neighbors": len(view.adjacencies),
        "full": sum(adjacency.state == "Up" for adjacency in view.adjacencies),
        "flaps": sum(adjacency.flaps for adjacency in view.adjacencies),
        "pending": view.pending,
        "lans": [_lan(context, lan) for lan in view.lans],
        "refused": refused,
        "authentication": keyring_shown(view.authentication),
    }


def _state(view: CircuitView) -> str:
    if not view.up:
        return "Down"
    if view.kind == CircuitKind.LOOPBACK.value:
        return "Loopback"
    if view.kind == CircuitKind.POINT_TO_POINT.value:
        return "Point-to-point"
    return "DIS" if any(lan.is_dis for lan in view.lans) else "LAN"


def _lan(context: ViewContext, lan: LanView) -> schema.Lan:
    return {
        "level": lan.level,
        "dis": format_neighbor(lan.dis) if lan.dis else None,
        "hostname": context.hostnames.get(isis_node(lan.dis >> 8)) if lan.dis else None,
        "is_dis": lan.is_dis,
    }


def neighbors(context: ViewContext) -> list[schema.NeighborEntry]:
    """Return the adjacencies of all circuits."""
    return [_neighbor(context, view) for view in context.isis.adjacencies]


def _neighbor(context: ViewContext, view: AdjacencyView) -> schema.NeighborEntry:
    node = isis_node(view.system_id)
    addresses = [format_address(FAMILY_IPV4, address) for address in view.ipv4]
    addresses += [format_address(_IPV6, address) for address in view.ipv6]
    return {
        "proto": ISIS,
        "router_id": format_system_id(view.system_id),
        "system_id": format_system_id(view.system_id),
        "hostname": view.hostname or context.hostnames.get(node),
        "area": levels_name(view.levels),
        "levels": list(map(int, view.levels.levels)),
        "interface": view.interface,
        "address": next(iter(addresses), None),
        "addresses": addresses,
        "snpa": format_snpa(view.snpa),
        "areas": [format_area(area) for area in view.areas],
        "state": view.state,
        "problem": problem_shown(view.problem),
        "uptime": None if view.uptime is None else round(view.uptime, 3),
        "holding_time": float(view.holding_time),
        "dead_in": round(view.expires_in, 3),
        "priority": view.priority,
        "topologies": list(view.topologies),
        "extended_circuit_id": view.extended_circuit_id,
        "flooding": _speed(view.flooding),
        "bfd": view.bfd,
        "flaps": view.flaps,
        "last_reason": context.runtime.neighbor_reasons.get((view.ifindex, node)),
    }


def _speed(parameters: FloodingParameters | None) -> schema.FloodingSpeed | None:
    if parameters is None:
        return None
    return {
        "burst_size": parameters.burst_size,
        "transmission_interval": parameters.transmission_interval,
        "lsps_per_psnp": parameters.lsps_per_psnp,
        "psnp_interval": parameters.psnp_interval,
        "receive_window": parameters.receive_window,
    }


def database(
    context: ViewContext, kind: str | None, lsp_id: str | None
) -> Work[Mapping[str, Sequence[Any]]]:
    """Return the LSPs of each level; a word that is no type is an id."""
    if kind is not None and lsp_id is None and not _is_type(kind):
        kind, lsp_id = None, kind
    rows: list[schema.DatabaseLevel] = []
    for view in context.isis.databases:
        level = Level(view.level).label
        wanted = partial(_wanted, context, level=level, kind=kind, lsp_id=lsp_id)
        found = yield from chosen(view.entries, wanted)
        if found or (kind is None and lsp_id is None):
            row = partial(_database_lsp, context, view, detailed=lsp_id is not None)
            lsps = Rows(found, row)
            rows.append({"level": level, "checksum": checksum_text(view.checksum), "lsps": lsps})
    return {"levels": rows}


def _is_type(word: str) -> bool:
    return any(name.startswith(word) for name in _TYPES)


def lsp_type(lsp_id: LspId) -> str:
    """Return the type of an LSP: that of a router or a pseudonode."""
    return PSEUDONODE if pseudonode_of(lsp_id) else LSP


def _wanted(
    context: ViewContext, entry: StoredLsp, *, level: str, kind: str | None, lsp_id: str | None
) -> bool:
    found = entry.lsp_id
    of_kind = kind is None or lsp_type(found).startswith(kind) or level.startswith(kind)
    return of_kind and (lsp_id is None or _has_id(context, found, lsp_id))


def _has_id(context: ViewContext, found: LspId, wanted: str) -> bool:
    """Match LSP id, system id or hostname; a hostname may replace the system id of an LSP id."""
    system, written = format_system_id(system_of(found)), format_lsp_id(found)
    if wanted.lower() in (system, written):
        return True
    hostname = context.hostnames.get(isis_node(system_of(found)))
    return hostname is not None and wanted in (hostname, hostname + written[len(system) :])


def _database_lsp(
    context: ViewContext, database: DatabaseView, entry: StoredLsp, *, detailed: bool
) -> schema.DatabaseLsp:
    view = database.view(entry)
    lsp = view.lsp
    document: schema.DatabaseLsp = {
        "type": lsp_type(lsp.lsp_id),
        "lsp_id": format_lsp_id(lsp.lsp_id),
        "hostname": context.hostnames.get(isis_node(system_of(lsp.lsp_id))),
        "seq": lsp.sequence_number,
        "lifetime": view.remaining_lifetime,
        "checksum": lsp.checksum,
        "length": len(view.raw),
        "overload": lsp.overload,
        "attached": lsp.attached,
        "partition_repair": lsp.partition_repair,
        "purged": view.purged,
        "self_originated": view.own,
    }
    if detailed:
        document["body"] = render_pdu(lsp, view.raw) | {"lifetime": view.remaining_lifetime}
    return document


def graceful_restart(context: ViewContext) -> ProtocolRestart:
    """Return the neighbors that restart, and those that did."""
    snapshot = context.isis
    return {
        "proto": ISIS,
        "enabled": snapshot.restarts,
        "restarting": running_restart(context, context.isis.restarting),
        "restarted": ended_restart(context, context.isis.restarted),
        "helper": snapshot.helper,
        "helping": [
            {
                "interface": view.interface,
                "router_id": format_system_id(view.system_id),
                "hostname": context.hostnames.get(isis_node(view.system_id)),
                "reason": "restarting" if view.restarting else "announced",
                "since": None,
                "remaining": round(view.expires_in, 3),
            }
            for view in snapshot.adjacencies
            if view.restarting or view.prepared
        ],
        "ended": [
            {
                "interface": ended.interface,
                "router_id": format_system_id(ended.system_id),
                "hostname": context.hostnames.get(isis_node(SystemId(ended.system_id))),
                "ended": round(context.now - ended.at, 3),
                "result": ended.result,
            }
            for ended in snapshot.help_ended
        ],
    }


def timers(context: ViewContext) -> Iterator[tuple[str, str, float | None]]:
    """Yield each timer, its subject, and the seconds until it fires."""
    for view in context.isis.circuits:
        yield "hello", view.name, view.hello_in
        for adjacency in view.adjacencies:
            name = context.name(isis_node(adjacency.system_id))
            yield "holding", f"{name} on {view.name}", adjacency.expires_in


def status(context: ViewContext) -> IsisStatus:
    """IS-IS in ``show status``."""
    snapshot = context.isis
    levels: list[LevelStatus] = []
    for view in snapshot.databases:
        adjacencies = [a for a in snapshot.adjacencies if a.levels & view.level]
        levels.append(
            LevelStatus(
                level=Level(view.level).label,
                interfaces=sum(bool(c.levels & view.level) for c in snapshot.circuits),
                neighbors=len(adjacencies),
                up=sum(adjacency.state == "Up" for adjacency in adjacencies),
                lsps=len(view.entries),
                checksum=checksum_text(view.checksum),
            )
        )
    return IsisStatus(
        system_id=format_system_id(snapshot.system_id),
        areas=[format_area(area) for area in snapshot.areas],
        families=[family_name(family) for family in snapshot.families],
        overloaded=snapshot.overloaded,
        attached=snapshot.attached,
        unauthenticated=sum(
            c.hello_in is not None and c.authentication is None for c in snapshot.circuits
        ),
        flooding=flooding_status(
            snapshot.reduction, snapshot.topologies, _level_label, format_system_id
        ),
        levels=levels,
    )


def _level_label(level: int) -> str:
    return Level(level).label


def unready(context: ViewContext) -> tuple[str, list[str]]:
    """Return the check's name, and why adjacencies are not up, or not for all families."""
    return "adjacencies are up", [
        unready_neighbor(view.hostname or format_system_id(view.system_id), view)
        for view in context.isis.adjacencies
        if view.state != "Up" or view.problem is not None
    ]


def sizes(context: ViewContext) -> Iterator[tuple[str, int]]:
    """Yield the number of LSPs of each level."""
    for view in context.isis.databases:
        yield Level(view.level).label, len(view.entries)


def census(context: ViewContext) -> Census:
    """Count adjacencies, LSPs and links; an adjacency of both levels counts once."""
    found, snapshot = Census(), context.isis
    found.neighbors.update((levels_name(a.levels), a.state) for a in snapshot.adjacencies)
    for view in snapshot.databases:
        level = Level(view.level).label
        for pseudonode, number in view.live.items():
            if number:
                found.entries[level, PSEUDONODE if pseudonode else LSP] = number
        found.checksums[level] = view.checksum & 0xFFFFFFFF
    for circuit in snapshot.circuits:
        if circuit.capacity is not None:
            found.capacities.append((circuit.ifindex, circuit.name, circuit.capacity))
    return found


def lsdb(context: ViewContext) -> Work[IsisLsdb]:
    """``show lsdb`` of IS-IS."""
    yield
    return isis_lsdb_document(context.isis)
