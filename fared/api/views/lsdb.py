"""The database as a file: what ``show lsdb --json`` prints and ``fared-cli spf`` reads.

LSAs and LSPs are bytes as they arrived, with the age or lifetime of this moment patched in:
whoever computes from the file sees what the daemon sees, and nothing a decoder might have lost
on the way.
"""

from __future__ import annotations

from fared.api.schema import lsdb as schema
from fared.api.views.context import ViewContext, finite
from fared.core.ids import FAMILY_IPV4, dotted, format_address, format_system_id
from fared.isis.contents import link_local
from fared.isis.pdu.render import format_area
from fared.isis.snapshot import AdjacencyView, CircuitView, IsisSnapshot, LspView
from fared.ospf.lsdb import Scope
from fared.ospf.packet.lsa import with_age
from fared.ospf.snapshot import DatabaseView, InterfaceView, LsaView, OspfSnapshot
from fared.router.speaker import OSPF

_LIFETIME = slice(10, 12)
"""Where an LSP has its remaining lifetime (ISO 10589 §9.8); no checksum covers it."""


def lsdb(context: ViewContext) -> schema.Lsdb | schema.IsisLsdb:
    """``show lsdb``: of the protocol that is asked for, else of OSPF where that runs."""
    if context.speaks(OSPF):
        return lsdb_document(context.ospf)
    return isis_document(context.isis)


def lsdb_document(snapshot: OspfSnapshot) -> schema.Lsdb:
    """Write a whole engine's database; LSAs of link scope are left out, no route needs them."""
    by_scope: dict[str, list[DatabaseView]] = {scope.value: [] for scope in Scope}
    for database in snapshot.databases:
        by_scope[database.scope].append(database)
    return {
        "format": "fared-lsdb/1",
        "proto": "ospf",
        "router_id": dotted(snapshot.router_id),
        "interfaces": [_interface(view) for view in snapshot.interfaces],
        "areas": [
            {"area": dotted(view.area or 0), "stub": view.stub, "lsas": _lsas(view)}
            for view in by_scope[Scope.AREA.value]
        ],
        "as": [lsa for view in by_scope[Scope.AS.value] for lsa in _lsas(view)],
    }


def _lsas(database: DatabaseView) -> list[schema.LsdbLsa]:
    ordered = sorted(database.lsas, key=lambda view: view.lsa.header.key)
    return [_lsa(view) for view in ordered]


def _lsa(view: LsaView) -> schema.LsdbLsa:
    return {"hex": with_age(view.lsa, view.age).raw.hex(), "age": view.age}


def _interface(view: InterfaceView) -> schema.LsdbInterface:
    return {
        "name": view.name,
        "area": dotted(view.area),
        "type": view.network_type,
        "ifindex": view.ifindex,
        "addresses": [f"{dotted(address)}/{length}" for address, length in view.addresses],
        "unnumbered": view.unnumbered,
        "cost": view.cost,
        "bandwidth": finite(view.capacity),
        "neighbors": [
            {"router_id": dotted(neighbor.router_id), "address": dotted(neighbor.address)}
            for neighbor in view.neighbors
            if neighbor.next_hop
        ],
    }


def isis_document(snapshot: IsisSnapshot) -> schema.IsisLsdb:
    """Write the databases of all levels, purged LSPs included: they say what is gone."""
    return {
        "format": "fared-lsdb/1",
        "proto": "isis",
        "system_id": format_system_id(snapshot.system_id),
        "levels": [view.level for view in snapshot.databases],
        "areas": [format_area(area) for area in snapshot.areas],
        "families": list(snapshot.families),
        "multi_topology": snapshot.multi_topology,
        "interfaces": [_circuit(view) for view in snapshot.circuits],
        "lsps": [
            {"level": view.level, "hex": _lsp(stored).hex()}
            for view in snapshot.databases
            for stored in view.lsps
        ],
    }


def _lsp(view: LspView) -> bytes:
    raw = bytearray(view.raw)
    raw[_LIFETIME] = view.remaining_lifetime.to_bytes(2, "big")
    return bytes(raw)


def _circuit(view: CircuitView) -> schema.LsdbCircuit:
    return {
        "name": view.name,
        "type": view.kind,
        "ifindex": view.ifindex,
        "levels": list(map(int, view.levels.levels)),
        "addresses": [
            f"{format_address(family, address)}/{length}"
            for family, address, length in view.addresses
        ],
        "unnumbered": not any(family == FAMILY_IPV4 for family, _, _ in view.addresses),
        "metric": view.metric,
        "bandwidth": finite(view.capacity),
        "adjacencies": [
            entry
            for adjacency in view.adjacencies
            if adjacency.state == "Up"
            for entry in _adjacencies(view, adjacency)
        ],
    }


def _adjacencies(circuit: CircuitView, view: AdjacencyView) -> list[schema.LsdbAdjacency]:
    ipv4 = _shared(circuit, view.ipv4)
    ipv6 = next((address for address in view.ipv6 if link_local(address)), None)
    return [
        {
            "neighbor": format_system_id(view.system_id),
            "level": int(level),
            "ipv4": None if ipv4 is None else dotted(ipv4),
            "ipv6": None if ipv6 is None else format_address(6, ipv6),
        }
        for level in view.levels.levels
    ]


def _shared(circuit: CircuitView, addresses: tuple[int, ...]) -> int | None:
    """The address that lies in one of our subnets, else the first."""
    for address in sorted(addresses):
        for family, own, length in circuit.addresses:
            if family == FAMILY_IPV4 and (own ^ address) >> (32 - length) == 0:
                return address
    return addresses[0] if addresses else None
