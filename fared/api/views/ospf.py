"""What OSPF adds to the documents of the protocols: its interfaces, neighbors, LSAs and timers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fared.api.schema import ospf as schema
from fared.api.schema.link import Authentication
from fared.api.views.context import ViewContext
from fared.api.views.link import link_facts
from fared.core.ids import dotted
from fared.ospf.packet.lsa import LSA_HEADER_SIZE, Lsa, LsType
from fared.ospf.packet.opaque import OpaqueType
from fared.ospf.packet.render import render_lsa
from fared.ospf.snapshot import (
    AuthenticationView,
    InterfaceView,
    LsaView,
    NeighborView,
)
from fared.router.speaker import OSPF


def interfaces(context: ViewContext) -> list[schema.Interface]:
    """The interfaces that OSPF runs on."""
    return [_interface(context, view) for view in context.ospf.interfaces]


def _interface(context: ViewContext, view: InterfaceView) -> schema.Interface:
    return {
        "interface": view.name,
        "ifindex": view.ifindex,
        "proto": OSPF,
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
        **link_facts(context, view),
        "hello_interval": float(view.hello_interval),
        "dead_interval": float(view.router_dead_interval),
        "neighbors": len(view.neighbors),
        "full": sum(neighbor.state == "Full" for neighbor in view.neighbors),
        "flaps": sum(neighbor.flaps for neighbor in view.neighbors),
        "dampened": False,
        "authentication": _authentication(view.authentication),
    }


def _authentication(view: AuthenticationView | None) -> Authentication | None:
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


def neighbors(context: ViewContext) -> list[schema.Neighbor]:
    """The neighbors of all interfaces."""
    return [_neighbor(context, view) for view in context.ospf.neighbors]


def _neighbor(context: ViewContext, view: NeighborView) -> schema.Neighbor:
    reasons = context.runtime.neighbor_reasons
    return {
        "proto": OSPF,
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
    context: ViewContext, kind: str | None, lsa_id: str | None
) -> tuple[list[schema.DatabaseArea], list[schema.DatabaseLsa]]:
    """The LSAs of each area, and those that belong to none."""
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
                    "checksum": checksum_text(view.checksum),
                    "lsas": lsas,
                }
            )
    return areas, as_scope


def checksum_text(checksum: int) -> str:
    """Sum of checksums as RFC 4750 has it: equal on all routers of an area or level."""
    return f"0x{checksum & 0xFFFFFFFF:08x}"


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


def timers(context: ViewContext) -> Iterator[tuple[str, str, float | None]]:
    """Timer, what it is about, and in how many seconds it fires."""
    for view in context.ospf.interfaces:
        yield "hello", view.name, view.hello_in
        for neighbor in view.neighbors:
            yield (
                "inactivity",
                f"{context.name(neighbor.router_id)} on {view.name}",
                neighbor.dead_in,
            )
