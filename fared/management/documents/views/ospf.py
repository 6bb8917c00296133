"""OSPF's part of the documents that all protocols share (``each``): interfaces, neighbors, LSAs."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fared.core.ids import dotted
from fared.management.documents.census import Census
from fared.management.documents.context import ViewContext, checksum_text
from fared.management.documents.protocol_status import AreaStatus, OspfStatus
from fared.management.documents.rows import Rows
from fared.management.documents.sliced import Work, chosen, in_order
from fared.management.documents.views.link import (
    by_interface,
    flooding_status,
    keyring_shown,
    link_facts,
    problem_shown,
    refused_by,
    unready_neighbor,
)
from fared.management.documents.views.ospf_lsdb import lsdb_document
from fared.management.documents.views.restart import ended_restart, running_restart
from fared.protocols.ospf.lsdb import KEY, OPAQUE_TYPES, LsaEntry, kind_of
from fared.protocols.ospf.packet.grace import restart_reason
from fared.protocols.ospf.packet.lsa import LsType
from fared.protocols.ospf.packet.opaque import OpaqueType
from fared.protocols.ospf.packet.render import render_lsa
from fared.protocols.ospf.snapshot import (
    InterfaceView,
    NeighborView,
)
from fared.router.protocols import OSPF

if TYPE_CHECKING:
    from fared.management.documents.schema import ospf as schema
    from fared.management.documents.schema.link import RefusedHelloEntry
    from fared.management.documents.schema.lsdb import Lsdb
    from fared.management.documents.schema.restart import ProtocolRestart


def interfaces(context: ViewContext) -> list[schema.InterfaceEntry]:
    """Return the interfaces that OSPF runs on."""
    refused = by_interface(refused_by(context.router.instances[OSPF], context.now))
    return [_interface(context, view, refused[view.name]) for view in context.ospf.interfaces]


def _interface(
    context: ViewContext, view: InterfaceView, refused: list[RefusedHelloEntry]
) -> schema.InterfaceEntry:
    return {
        "interface": view.name,
        "ifindex": view.ifindex,
        "proto": OSPF,
        "area": dotted(view.area),
        "network_type": view.network_type,
        "state": view.state,
        "passive": view.passive,
        "prefix_suppression": view.prefix_suppression,
        "priority": view.priority,
        "designated_router": _router(view.designated_router),
        "designated_router_hostname": _hostname(context, view, view.designated_router),
        "backup_designated_router": _router(view.backup_designated_router),
        "backup_designated_router_hostname": _hostname(
            context, view, view.backup_designated_router
        ),
        "cost": view.cost,
        "mtu": view.mtu,
        "addresses": [f"{dotted(address)}/{length}" for address, length in view.addresses],
        "unnumbered": view.unnumbered,
        **link_facts(context, view),
        "hello_interval": float(view.hello_interval),
        "dead_interval": float(view.router_dead_interval),
        "neighbors": len(view.neighbors),
        "full": sum(neighbor.state == "Full" for neighbor in view.neighbors),
        "flaps": sum(neighbor.flaps for neighbor in view.neighbors),
        "refused": refused,
        "authentication": keyring_shown(view.authentication),
        "ttl_security": view.ttl_security,
    }


def _router(address: int) -> str | None:
    return dotted(address) if address else None


def _hostname(context: ViewContext, view: InterfaceView, address: int) -> str | None:
    """Return the hostname of the router with this address on the network of an interface."""
    if any(own == address for own, _ in view.addresses):
        return context.ospf.hostname
    found = (n.router_id for n in view.neighbors if n.address == address)
    return next((context.hostnames.get(router_id) for router_id in found), None)


def neighbors(context: ViewContext) -> list[schema.NeighborEntry]:
    """Return the neighbors of all interfaces."""
    return [_neighbor(context, view) for view in context.ospf.neighbors]


def _neighbor(context: ViewContext, view: NeighborView) -> schema.NeighborEntry:
    reasons = context.runtime.neighbor_reasons
    return {
        "proto": OSPF,
        "router_id": dotted(view.router_id),
        "hostname": context.hostnames.get(view.router_id),
        "area": dotted(view.area),
        "interface": view.interface,
        "address": dotted(view.address),
        "state": view.state,
        "problem": problem_shown(view.problem),
        "uptime": round(view.uptime, 3),
        "dead_in": round(view.dead_in, 3),
        "priority": view.priority,
        "flaps": view.flaps,
        "last_reason": reasons.get((view.ifindex, view.router_id)),
        "retransmission_list": view.retransmissions,
        "request_list": view.requests,
        "summary_list": view.summaries,
        "waits_for": view.waits_for,
        "mtu_mismatch": _mtu_mismatch(view),
        "bfd": view.bfd,
    }


def graceful_restart(context: ViewContext) -> ProtocolRestart:
    """Return the neighbors that restart, and those that did."""
    return {
        "proto": OSPF,
        "enabled": context.ospf.restarts,
        "restarting": running_restart(context, context.ospf.restarting),
        "restarted": ended_restart(context, context.ospf.restarted),
        "helper": context.ospf.helper,
        "helping": [
            {
                "interface": view.interface,
                "router_id": dotted(view.router_id),
                "hostname": context.hostnames.get(view.router_id),
                "reason": restart_reason(view.reason),
                "since": round(view.since, 3),
                "remaining": round(view.remaining, 3),
            }
            for view in context.ospf.helped
        ],
        "ended": [
            {
                "interface": help_ended.interface,
                "router_id": dotted(help_ended.router_id),
                "hostname": context.hostnames.get(help_ended.router_id),
                "ended": round(context.now - help_ended.at, 3),
                "result": help_ended.result,
            }
            for help_ended in context.ospf.help_ended
        ],
    }


def _mtu_mismatch(view: NeighborView) -> schema.MtuMismatch | None:
    if view.mtu_mismatch is None:
        return None
    neighbor, own = view.mtu_mismatch
    return {"neighbor": neighbor, "own": own}


def database(
    context: ViewContext, kind: str | None, lsa_id: str | None
) -> Work[Mapping[str, Sequence[Any]]]:
    """Return the LSAs of each area, and those of no area."""
    areas: list[schema.DatabaseArea] = []
    as_scope: list[LsaEntry] = []
    row = partial(_database_lsa, context, detailed=lsa_id is not None)
    for view in context.ospf.databases:
        wanted = partial(_wanted, kind=kind, lsa_id=lsa_id)
        found = yield from chosen(view.entries, wanted)
        found = yield from in_order(found, KEY)
        if view.area is None:
            as_scope += found
        elif view.scope == "area" and (found or (kind is None and lsa_id is None)):
            areas.append(
                {
                    "area": dotted(view.area),
                    "type": "stub" if view.stub else "normal",
                    "checksum": checksum_text(view.checksum),
                    "lsas": Rows(found, row),
                }
            )
    return {"areas": areas, "as_scope": Rows(as_scope, row)}


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


def _wanted(entry: LsaEntry, *, kind: str | None, lsa_id: str | None) -> bool:
    key = entry.key
    if kind is not None and not _matches(kind_name(kind_of(key, entry.raw)), kind):
        return False
    return lsa_id is None or lsa_id in (dotted(key.link_state_id), dotted(key.advertising_router))


def _matches(name: str, kind: str) -> bool:
    """Whether a word is a type's name, or a beginning of it that is no other name."""
    exact = {member.name.lower().replace("_", "-") for member in LsType}
    return name == kind if kind in exact else name.startswith(kind)


def _database_lsa(context: ViewContext, entry: LsaEntry, *, detailed: bool) -> schema.DatabaseLsa:
    lsa = entry.lsa
    header = lsa.header
    document: schema.DatabaseLsa = {
        "type": kind_name(kind_of(entry.key, entry.raw)),
        "id": dotted(header.link_state_id),
        "adv_router": dotted(header.advertising_router),
        "hostname": context.hostnames.get(header.advertising_router),
        "seq": header.ls_sequence_number & 0xFFFFFFFF,
        "age": entry.age(context.now),
        "checksum": header.ls_checksum,
        "length": header.length,
        "self_originated": header.advertising_router == context.ospf.router_id,
    }
    if detailed:
        body: dict[str, Any] | None = render_lsa(lsa)["body"]
        document["body"] = body or {}
    return document


def timers(context: ViewContext) -> Iterator[tuple[str, str, float | None]]:
    """Yield each timer, its subject, and the seconds until it fires."""
    for view in context.ospf.interfaces:
        yield "hello", view.name, view.hello_in
        for neighbor in view.neighbors:
            yield (
                "inactivity",
                f"{context.name(neighbor.router_id)} on {view.name}",
                neighbor.dead_in,
            )


def status(context: ViewContext) -> OspfStatus:
    """OSPF in ``show status``."""
    snapshot = context.ospf
    areas: list[AreaStatus] = []
    for view in snapshot.databases:
        if view.scope != "area" or view.area is None:
            continue
        members = [i for i in snapshot.interfaces if i.area == view.area]
        neighbors = [n for i in members for n in i.neighbors]
        areas.append(
            AreaStatus(
                area=dotted(view.area),
                type="stub" if view.stub else "normal",
                interfaces=len(members),
                neighbors=len(neighbors),
                full=sum(n.state == "Full" for n in neighbors),
                lsas=len(view.entries),
                checksum=checksum_text(view.checksum),
            )
        )
    return OspfStatus(
        stub_router=snapshot.stub_router,
        unauthenticated=sum(
            i.hello_in is not None and i.authentication is None for i in snapshot.interfaces
        ),
        flooding=flooding_status(snapshot.reduction, snapshot.topologies, dotted, dotted),
        areas=areas,
    )


def unready(context: ViewContext) -> tuple[str, list[str]]:
    """Return the check's name, and why neighbors are no adjacency, or would not be again.

    2-Way is final between routers of a LAN that are neither DR nor BDR (RFC 2328 §10.4).
    """
    done = ("Full", "2-Way", "Down")
    return "neighbors are full", [
        unready_neighbor(context.name(view.router_id), view)
        for view in context.ospf.neighbors
        if view.state not in done or view.problem is not None
    ]


def sizes(context: ViewContext) -> Iterator[tuple[str, int]]:
    """Yield the number of LSAs of each area, and of the AS."""
    for view in context.ospf.databases:
        if view.scope != "link":
            yield view.scope if view.area is None else dotted(view.area), len(view.entries)


def census(context: ViewContext) -> Census:
    """Count neighbors, LSAs and links for the metrics."""
    found, snapshot = Census(), context.ospf
    found.neighbors.update((dotted(n.area), n.state) for n in snapshot.neighbors)
    for view in snapshot.databases:
        area = view.scope if view.area is None else dotted(view.area)
        for kind, number in view.kinds.items():
            if number:
                found.entries[area, kind_name(kind)] += number
        if view.scope == "area":
            found.checksums[area] = view.checksum & 0xFFFFFFFF
    for interface in snapshot.interfaces:
        if interface.capacity is not None:
            found.capacities.append((interface.ifindex, interface.name, interface.capacity))
    return found


def lsdb(context: ViewContext) -> Work[Lsdb]:
    """``show lsdb`` of OSPF."""
    return lsdb_document.work(context.ospf)
