"""Who is at the other end of an interface, with the cost and the capacity of that end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fared.management.documents.context import finite
from fared.management.documents.interface import (
    InterfaceDetail,
    InterfaceNeighbor,
)
from fared.management.documents.neighbor import BgpNeighborEntry
from fared.management.documents.views.packet_counts import packets_by_type, rejected_by_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fared.core.ids import NodeId
    from fared.management.documents.context import ViewContext
    from fared.management.documents.interface import InterfaceEntry
    from fared.management.documents.neighbor import NeighborEntry
    from fared.management.documents.packet_counts import PacketCounts, RejectedPackets
    from fared.paths.ted.model import NodeBlock
    from fared.router.instance import ProtocolInstance

_UNKNOWN = None, None, None


def interface_detail(
    context: ViewContext,
    row: InterfaceEntry,
    neighbors: Iterable[tuple[ProtocolInstance, NeighborEntry]],
    types: Iterable[str],
) -> InterfaceDetail:
    """Return the detail of one interface.

    ``neighbors`` are those of all interfaces, ``types`` those of the protocol's packets.
    """
    instance = context.router.instances[row.proto]
    here = [
        each
        for found, each in neighbors
        if found.name == row.proto and each.interface == row.interface
    ]
    packets, rejected = _counted(instance, row, here, types)
    return InterfaceDetail(
        proto=row.proto,
        interface=row.interface,
        neighbors=[_neighbor(context, instance, row, each) for each in here],
        packets=packets,
        rejected=rejected,
    )


def _counted(
    instance: ProtocolInstance,
    row: InterfaceEntry,
    here: Sequence[NeighborEntry],
    types: Iterable[str],
) -> tuple[list[PacketCounts], list[RejectedPackets]]:
    """Return the packets of an interface; BGP counts those of each neighbor."""
    counted = instance.engine.counters.interfaces.get(row.ifindex)
    if counted is not None:
        return packets_by_type(counted, types), rejected_by_reason(counted)
    sessions = [each for each in here if isinstance(each, BgpNeighborEntry)]
    if len(sessions) == 1:
        return sessions[0].messages, sessions[0].rejected
    return [], []


def _neighbor(
    context: ViewContext, instance: ProtocolInstance, row: InterfaceEntry, neighbor: NeighborEntry
) -> InterfaceNeighbor:
    cost, capacity, available = _far_end(context, instance, row.ifindex, neighbor.router_id)
    return InterfaceNeighbor.of(
        neighbor, id=neighbor.router_id, cost=cost, capacity=capacity, available=available
    )


def _far_end(
    context: ViewContext, instance: ProtocolInstance, ifindex: int, router: str
) -> tuple[int | None, float | None, float | None]:
    """Return metric, capacity and available bandwidth of a neighbor's direction of a link.

    Of parallel links it is the one that names our end, or the first.
    """
    for link in instance.local_links:
        if link.ifindex != ifindex or context.node(link.neighbor) != router:
            continue
        for solver in instance.solvers.values():
            for area in solver.areas:
                block = solver.ted(area).blocks.get(link.neighbor)
                back = () if block is None else _rows_to(block, instance.root)
                if block is None or not back:
                    continue
                ours = [at for at in back if block.remote_ids[at] == link.local_id]
                at = (ours or back)[0]
                return (
                    int(block.metrics[at]),
                    finite(float(block.capacities[at])),
                    finite(float(block.availables[at])),
                )
    return _UNKNOWN


def _rows_to(block: NodeBlock, node: NodeId) -> list[int]:
    found: list[int] = np.flatnonzero(block.neighbors == node).tolist()
    return found
