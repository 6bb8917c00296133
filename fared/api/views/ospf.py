"""Views of the protocol: interfaces, neighbors, the link state database, its timers."""

from __future__ import annotations

from typing import Any

from fared.api.control import CommandError
from fared.api.schema import ospf as schema
from fared.api.views.context import ViewContext, finite
from fared.core.ids import dotted
from fared.ospf.packet.lsa import LSA_HEADER_SIZE, Lsa, LsType
from fared.ospf.packet.opaque import OpaqueType
from fared.ospf.packet.render import render_lsa
from fared.ospf.snapshot import (
    AuthenticationView,
    DatabaseView,
    InterfaceView,
    LsaView,
    NeighborView,
)

PROTO = "ospf"


def interfaces(context: ViewContext) -> schema.Interfaces:
    """``show interfaces``."""
    snapshot = context.ospf
    return {
        "format": "fared-interfaces/1",
        "router_id": context.root,
        "interfaces": [_interface(context, view) for view in snapshot.interfaces],
    }


def _interface(context: ViewContext, view: InterfaceView) -> schema.Interface:
    link = context.links.get(view.ifindex)
    utilized = context.runtime.utilized.get(view.ifindex)
    capacity = finite(view.capacity)
    available = None
    if capacity is not None and utilized is not None:
        available = max(0.0, capacity - utilized)
    configured = context.config.interface_bandwidth(view.name)
    source = None
    if configured is not None:
        source = "config"
    elif link is not None and capacity is not None:
        source = "shaper" if link.shaped is not None and capacity == link.shaped else "speed"
    return {
        "interface": view.name,
        "ifindex": view.ifindex,
        "up": link is not None and link.up,
        "proto": PROTO,
        "area": dotted(view.area),
        "network_type": view.network_type,
        "state": view.state,
        "passive": view.passive,
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
        "bandwidth": capacity,
        "bandwidth_source": source,
        "utilized": utilized,
        "available": available,
        "hello_interval": float(view.hello_interval),
        "dead_interval": float(view.router_dead_interval),
        "neighbors": len(view.neighbors),
        "full": sum(neighbor.state == "Full" for neighbor in view.neighbors),
        "flaps": sum(neighbor.flaps for neighbor in view.neighbors),
        "dampened": False,
        "authentication": _authentication(view.authentication),
    }


def _authentication(view: AuthenticationView | None) -> schema.Authentication | None:
    if view is None:
        return None
    return {
        "algorithm": view.algorithm,
        "key_id": view.key_id,
        "extended": view.extended,
        "expired": view.expired,
        "accepted_key_ids": list(view.accepted),
    }


def _router(address: int) -> str | None:
    return dotted(address) if address else None


def _hostname(context: ViewContext, view: InterfaceView, address: int) -> str | None:
    """Name the router that has this address on the network of an interface."""
    if any(own == address for own, _ in view.addresses):
        return context.ospf.hostname
    found = (n.router_id for n in view.neighbors if n.address == address)
    return next((context.hostnames.get(router_id) for router_id in found), None)


def neighbors(context: ViewContext) -> schema.Neighbors:
    """``show neighbors``."""
    return {
        "format": "fared-neighbors/1",
        "router_id": context.root,
        "neighbors": [_neighbor(context, view) for view in context.ospf.neighbors],
    }


def _neighbor(context: ViewContext, view: NeighborView) -> schema.Neighbor:
    reasons = context.runtime.neighbor_reasons
    return {
        "proto": PROTO,
        "router_id": dotted(view.router_id),
        "hostname": context.hostnames.get(view.router_id),
        "area": dotted(view.area),
        "interface": view.interface,
        "address": dotted(view.address),
        "state": view.state,
        "uptime": round(view.uptime, 3),
        "dead_in": round(view.dead_in, 3),
        "priority": view.priority,
        "flaps": view.flaps,
        "last_reason": reasons.get((view.ifindex, view.router_id)),
        "retransmission_list": view.retransmissions,
        "request_list": view.requests,
        "summary_list": view.summaries,
    }


def database(
    context: ViewContext, kind: str | None = None, lsa_id: str | None = None
) -> schema.Database:
    """``show database [TYPE] [ID]``. Raises CommandError where nothing matches."""
    areas: list[schema.DatabaseArea] = []
    as_scope: list[schema.DatabaseLsa] = []
    for view in context.ospf.databases:
        lsas = [
            _database_lsa(context, stored, detailed=lsa_id is not None)
            for stored in sorted(view.lsas, key=lambda stored: stored.lsa.header.key)
            if _wanted(stored.lsa, kind, lsa_id)
        ]
        if view.area is None:
            as_scope += lsas
        elif view.scope == "area":
            areas.append(
                {
                    "area": dotted(view.area),
                    "type": "stub" if view.stub else "normal",
                    "checksum": checksum_text(view),
                    "lsas": lsas,
                }
            )
    if (kind or lsa_id) and not as_scope and not any(area["lsas"] for area in areas):
        raise CommandError("not-found", f"no LSA matches {' '.join(filter(None, (kind, lsa_id)))}")
    return {
        "format": "fared-database/1",
        "router_id": context.root,
        "areas": areas,
        "as_scope": as_scope,
    }


def checksum_text(view: DatabaseView) -> str:
    """Sum of the LS checksums as RFC 4750 has it: equal on all routers of an area."""
    return f"0x{view.checksum & 0xFFFFFFFF:08x}"


OPAQUE_TYPES = (LsType.OPAQUE_LINK, LsType.OPAQUE_AREA, LsType.OPAQUE_AS)
_TE_ROUTER_ADDRESS, _TE_ROUTER_ADDRESS_SIZE = b"\0\1", 8


def lsa_type_name(lsa: Lsa) -> str:
    """The word for an LSA's type: ``router``, ``te-link``, ``router-information``..."""
    header = lsa.header
    try:
        kind = LsType(header.ls_type)
        if kind not in OPAQUE_TYPES:
            return kind.name.lower().replace("_", "-")
        opaque = OpaqueType(header.link_state_id >> 24)
    except ValueError:
        return f"type-{header.ls_type}"
    if opaque is not OpaqueType.TRAFFIC_ENGINEERING:
        return opaque.name.lower().replace("_", "-")
    # FRR puts the router address in front of each link; the link is what the LSA is about.
    body = lsa.raw[LSA_HEADER_SIZE:]
    alone = len(body) <= _TE_ROUTER_ADDRESS_SIZE and body[:2] == _TE_ROUTER_ADDRESS
    return "te-router-address" if alone else "te-link"


def _wanted(lsa: Lsa, kind: str | None, lsa_id: str | None) -> bool:
    header = lsa.header
    if kind is not None and not _matches(lsa_type_name(lsa), kind):
        return False
    return lsa_id is None or lsa_id in (
        dotted(header.link_state_id),
        dotted(header.advertising_router),
    )


def _matches(name: str, kind: str) -> bool:
    """Whether a type is meant: by its name, or by a beginning that is not a name itself."""
    exact = {member.name.lower().replace("_", "-") for member in LsType}
    return name == kind if kind in exact else name.startswith(kind)


def _database_lsa(context: ViewContext, view: LsaView, *, detailed: bool) -> schema.DatabaseLsa:
    header = view.lsa.header
    document: schema.DatabaseLsa = {
        "type": lsa_type_name(view.lsa),
        "id": dotted(header.link_state_id),
        "adv_router": dotted(header.advertising_router),
        "hostname": context.hostnames.get(header.advertising_router),
        "seq": header.ls_sequence_number & 0xFFFFFFFF,
        "age": view.age,
        "checksum": header.ls_checksum,
        "length": header.length,
        "self_originated": header.advertising_router == context.ospf.router_id,
    }
    if detailed:
        body: dict[str, Any] | None = render_lsa(view.lsa)["body"]
        document["body"] = body or {}
    return document


def timers(context: ViewContext) -> schema.Timers:
    """``show timers``: what happens next if nothing else does."""
    rows: list[schema.Timer] = []

    def add(timer: str, subject: str, due_in: float | None) -> None:
        if due_in is not None:
            rows.append({"timer": timer, "subject": subject, "due_in": round(due_in, 3)})

    for view in context.ospf.interfaces:
        add("hello", view.name, view.hello_in)
        for neighbor in view.neighbors:
            add("inactivity", f"{dotted(neighbor.router_id)} on {view.name}", neighbor.dead_in)
    router = context.router
    for name, deadline in (
        ("spf", router.backoff.next_deadline()),
        ("fib-housekeeping", router.planner.next_deadline()),
        ("ospf", router.engine.next_deadline()),
    ):
        add(name, "", None if deadline is None else deadline - context.now)
    rows.sort(key=lambda row: row["due_in"])
    return {"format": "fared-timers/1", "timers": rows}
