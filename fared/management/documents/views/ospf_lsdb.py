"""The OSPF database as a file: ``show lsdb --json`` prints it and ``fared-cli spf`` reads it.

LSAs are bytes as they arrived, with the present age patched in: a computation from the file has the
daemon's input, and no decoder can lose a part of it. The file of IS-IS is in ``isis_lsdb``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fared.core.ids import dotted
from fared.management.documents.context import finite
from fared.management.documents.rows import Rows
from fared.management.documents.sliced import Sliced, Work, in_order
from fared.protocols.ospf.lsdb import KEY, LsaEntry, Scope
from fared.protocols.ospf.snapshot import DatabaseView, InterfaceView, OspfSnapshot

if TYPE_CHECKING:
    from fared.management.documents.schema import lsdb as schema


@Sliced
def lsdb_document(snapshot: OspfSnapshot) -> Work[schema.Lsdb]:
    """Return the whole database of an engine, without LSAs of link scope, which no route needs."""
    by_scope: dict[str, list[DatabaseView]] = {scope.value: [] for scope in Scope}
    for database in snapshot.databases:
        by_scope[database.scope].append(database)
    areas: list[schema.LsdbArea] = []
    for view in by_scope[Scope.AREA.value]:
        lsas = yield from _lsas(view)
        areas.append({"area": dotted(view.area or 0), "stub": view.stub, "lsas": lsas})
    (as_scope,) = by_scope[Scope.AS.value]
    return {
        "format": "fared-lsdb/1",
        "proto": "ospf",
        "router_id": dotted(snapshot.router_id),
        "interfaces": [_interface(view) for view in snapshot.interfaces],
        "areas": areas,
        "as": (yield from _lsas(as_scope)),
    }


def _lsas(view: DatabaseView) -> Work[Rows[schema.LsdbLsa]]:
    return Rows((yield from in_order(view.entries, KEY)), partial(_lsa, view.now))


def _lsa(now: float, entry: LsaEntry) -> schema.LsdbLsa:
    age = entry.age(now)
    return {"hex": entry.aged(age).hex(), "age": age}


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
