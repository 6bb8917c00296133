"""``show bier``: BFERs, BFR neighbors and BIFTs, with the kernel's counters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fared.core.ids import FAMILY_IPV4
from fared.management.documents.bier import (
    Bfer,
    BfrNeighborEntry,
    Bier,
    BierNextHop,
    BierPackets,
    BiftEntry,
    BiftMask,
)
from fared.management.documents.context import ViewContext, gateway

if TYPE_CHECKING:
    from fared.paths.bier.birt import BfrNeighbor, BirtEntry
    from fared.router.bier import BierRouting

Counts = Mapping[str, tuple[int, int]]


def bier(context: ViewContext, *, bift: bool = False) -> Bier:
    """``show bier``; ``bift`` is for the table, since the document always has all values."""
    routing = context.router.multicast.bier
    if routing is None:
        return Bier(enabled=False, bift=bift)
    counted = context.bier.counted
    packets = {name: counted.get(name, (0, 0))[0] for name in BierPackets.__struct_fields__}
    return Bier(
        enabled=True,
        sub_domain=routing.settings.sub_domain,
        bfr_id=routing.settings.bfr_id,
        bit_string_length=routing.settings.length,
        problem=context.bier.problem or routing.planner.error,
        by_process=context.bier.by_process,
        bfers=[_bfer(context, routing, e) for found in routing.birt.values() for e in found],
        neighbors=_neighbors(context, routing, counted),
        bifts=_bifts(context, routing),
        packets=BierPackets(**packets),
        bift=bift,
    )


def _node(context: ViewContext, neighbor: BfrNeighbor) -> tuple[str | None, str | None]:
    """Return id and hostname of a neighbor; a host has neither."""
    if not neighbor.node:
        return None, None
    return context.node(neighbor.node), context.hostnames.get(neighbor.node)


def _bfer(context: ViewContext, routing: BierRouting, entry: BirtEntry) -> Bfer:
    from fared.paths.bier.bit_string import place  # noqa: PLC0415 - where BIER runs

    set_id, bit = place(entry.bfr_id, routing.settings.length)
    route = context.router.table.routes.get(entry.prefix)
    owners = () if route is None else route.destinations
    hosts = {host for host, _ in routing.settings.hosts}
    return Bfer(
        bfr_id=entry.bfr_id,
        prefix=str(entry.prefix),
        hostname=next((context.hostnames.get(node) for node in owners), None),
        set=set_id,
        bit=bit.bit_length() - 1,
        local=entry.local,
        host=entry.prefix.network in hosts,
        nexthops=[_hop(context, routing, set_id, bit, way) for way in entry.ways],
        problem=entry.problem,
    )


def _hop(
    context: ViewContext,
    routing: BierRouting,
    set_id: int,
    bit: int,
    way: tuple[BfrNeighbor, int],
) -> BierNextHop:
    neighbor, weight = way
    node, hostname = _node(context, neighbor)
    bift = routing.bifts.get(set_id)
    tables = () if bift is None else bift.tables
    return BierNextHop(
        interface=neighbor.interface,
        neighbor=node,
        hostname=hostname,
        address=gateway(FAMILY_IPV4, neighbor.address),
        weight=weight,
        tables=sum((neighbor, mask) in t.masks for t in tables for mask in _with(t.masks, bit)),
    )


def _with(masks: tuple[tuple[BfrNeighbor, int], ...], bit: int) -> list[int]:
    return [mask for _, mask in masks if mask & bit]


def _neighbors(
    context: ViewContext, routing: BierRouting, counted: Counts
) -> list[BfrNeighborEntry]:
    from fared.kernel.bier_table import counter_of  # noqa: PLC0415 - where BIER runs
    from fared.paths.bier.bit_string import as_ranges, bfr_ids  # noqa: PLC0415 - where BIER runs

    behind: dict[BfrNeighbor, set[int]] = {neighbor: set() for neighbor in routing.refused}
    for set_id, bift in routing.bifts.items():
        for table in {*bift.tables}:
            for neighbor, mask in table.masks:
                ids = bfr_ids(mask, routing.settings.length, set_id)
                behind.setdefault(neighbor, set()).update(ids)
    found: list[BfrNeighborEntry] = []
    for neighbor in sorted(behind):
        node, hostname = _node(context, neighbor)
        packets, size = counted.get(counter_of(neighbor), (0, 0))
        found.append(
            BfrNeighborEntry(
                interface=neighbor.interface,
                neighbor=node,
                hostname=hostname,
                address=gateway(FAMILY_IPV4, neighbor.address),
                bfr_ids=as_ranges(sorted(behind[neighbor])),
                packets=packets,
                bytes=size,
                problem=routing.refused.get(neighbor, ""),
            )
        )
    return found


def _bifts(context: ViewContext, routing: BierRouting) -> list[BiftEntry]:
    from fared.core.bier import bift_id  # noqa: PLC0415 - where BIER runs
    from fared.paths.bier.bit_string import as_ranges, bfr_ids  # noqa: PLC0415 - where BIER runs

    length = routing.settings.length
    found: list[BiftEntry] = []
    for set_id, bift in routing.bifts.items():
        for table in dict.fromkeys(bift.tables):
            chosen = [at for at, other in enumerate(bift.tables) if other == table]
            found.append(
                BiftEntry(
                    set=set_id,
                    bift_id=bift_id(length, routing.settings.sub_domain, set_id),
                    entropy=as_ranges(chosen),
                    local=as_ranges(bfr_ids(table.local, length, set_id)),
                    masks=[
                        BiftMask(
                            interface=neighbor.interface,
                            neighbor=_node(context, neighbor)[0],
                            hostname=_node(context, neighbor)[1],
                            f_bm=f"{mask:0{length // 4}x}",
                            bfr_ids=as_ranges(bfr_ids(mask, length, set_id)),
                        )
                        for neighbor, mask in table.masks
                    ],
                )
            )
    return found
