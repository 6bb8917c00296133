"""The database as a file: what ``show lsdb --json`` prints and ``fared-cli spf`` reads.

LSAs are bytes as they arrived, with the age of this moment patched in: whoever computes from
the file sees what the daemon sees, and nothing a decoder might have lost on the way. The file of
IS-IS is in ``isis_lsdb``.
"""

from __future__ import annotations

from fared.api.schema import lsdb as schema
from fared.api.schema.isis_lsdb import IsisLsdb
from fared.api.views.context import ViewContext, finite
from fared.core.ids import dotted
from fared.ospf.lsdb import Scope
from fared.ospf.packet.lsa import with_age
from fared.ospf.snapshot import DatabaseView, InterfaceView, LsaView, OspfSnapshot
from fared.router.speaker import OSPF


def lsdb(context: ViewContext) -> schema.Lsdb | IsisLsdb:
    """``show lsdb``: of the protocol that is asked for, else of OSPF where that runs."""
    if context.speaks(OSPF):
        return lsdb_document(context.ospf)
    from fared.api.views.isis_lsdb import isis_lsdb_document  # noqa: PLC0415

    return isis_lsdb_document(context.isis)


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
