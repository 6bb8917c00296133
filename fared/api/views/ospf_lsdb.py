"""The OSPF database as a file: ``show lsdb --json`` prints it and ``fared-cli spf`` reads it.

LSAs are bytes as they arrived, with the present age patched in: a computation from the file has the
daemon's input, and no decoder can lose a part of it. The file of IS-IS is in ``isis_lsdb``.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from fared.api.rows import Rows
from fared.api.views.context import finite
from fared.core.ids import dotted
from fared.ospf.lsdb import Scope
from fared.ospf.packet.lsa import with_age
from fared.ospf.snapshot import DatabaseView, InterfaceView, LsaView, OspfSnapshot

if TYPE_CHECKING:
    from fared.api.schema import lsdb as schema


def lsdb_document(snapshot: OspfSnapshot) -> schema.Lsdb:
    """Return the whole database of an engine, without LSAs of link scope, which no route needs."""
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
        "as": _lsas(*by_scope[Scope.AS.value]),
    }


def _lsas(*databases: DatabaseView) -> Rows[schema.LsdbLsa]:
    found = (sorted(d.lsas, key=lambda view: view.lsa.header.key) for d in databases)
    return Rows(list(chain.from_iterable(found)), _lsa)


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
