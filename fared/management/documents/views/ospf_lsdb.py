"""The OSPF database as a file: ``show lsdb --json`` prints it and ``fared-cli spf`` reads it.

LSAs are bytes as they arrived, with the present age patched in: a computation from the file has the
daemon's input, and no decoder can lose a part of it. The file of IS-IS is in ``isis_lsdb``.
"""

from __future__ import annotations

from functools import partial

from fared.core.ids import dotted
from fared.management.documents.context import finite
from fared.management.documents.lsdb import LsdbArea, LsdbInterface, LsdbLsa, LsdbNeighbor, OspfLsdb
from fared.management.documents.rows import Rows
from fared.management.documents.sliced import Sliced, Work, in_order
from fared.protocols.ospf.engine import OspfEngine
from fared.protocols.ospf.interface import Interface
from fared.protocols.ospf.lsdb import KEY, LsaEntry
from fared.protocols.ospf.origination.contents import next_hop_neighbors


@Sliced
def lsdb_document(engine: OspfEngine, now: float) -> Work[OspfLsdb]:
    """Return the whole database of an engine, without LSAs of link scope, which no route needs."""
    instance = engine.instance
    copies = [(area, tuple(area.lsdb)) for _, area in sorted(instance.areas.items())]
    external = tuple(instance.as_scope)
    interfaces = [_interface(interface) for interface in instance.ordered_interfaces()]
    areas: list[LsdbArea] = []
    for area, entries in copies:
        lsas = yield from _lsas(entries, now)
        areas.append(LsdbArea(area=dotted(area.area_id), stub=area.settings.stub, lsas=lsas))
    return OspfLsdb(
        proto="ospf",
        router_id=dotted(instance.router_id),
        interfaces=interfaces,
        areas=areas,
        as_scope=(yield from _lsas(external, now)),
    )


def _lsas(entries: tuple[LsaEntry, ...], now: float) -> Work[Rows[LsdbLsa]]:
    return Rows((yield from in_order(entries, KEY)), partial(_lsa, now))


def _lsa(now: float, entry: LsaEntry) -> LsdbLsa:
    age = entry.age(now)
    return LsdbLsa(hex=entry.aged(age).hex(), age=age)


def _interface(interface: Interface) -> LsdbInterface:
    hops = next_hop_neighbors(interface)
    return LsdbInterface.of(
        interface,
        interface.settings,
        area=dotted(interface.settings.area),
        type=interface.settings.network_type.value,
        addresses=[f"{dotted(a.address)}/{a.prefix_length}" for a in interface.link.ipv4()],
        bandwidth=finite(interface.bandwidth.capacity),
        neighbors=[
            LsdbNeighbor(router_id=dotted(neighbor.router_id), address=dotted(neighbor.address))
            for _, neighbor in sorted(interface.neighbors.items())
            if neighbor in hops
        ],
    )
